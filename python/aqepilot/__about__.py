"""The version of aqepilot, read by the Python build and by sbt."""

__version__ = "0.1.0"
