"""Platforms that run Spark jobs, themselves in environments of their own: `make platforms`."""
