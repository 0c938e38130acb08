"""Spark's own published test suites, run beside aqepilot in four ways and compared test by test."""
