"""An experiment in production, as it is submitted: its arms, and which of them each unit gets."""

from aqepilot.experiment.assignment import Arm, arm_of, bucket, parse_arms

__all__ = ["Arm", "arm_of", "bucket", "parse_arms"]
