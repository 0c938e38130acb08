"""Submits jobs with aqepilot: settings, the jar that fits, and what stands in their way."""
