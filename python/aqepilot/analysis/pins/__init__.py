"""Pins of what one run of a query decided, and how such pins fare in later runs."""
