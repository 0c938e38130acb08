"""The autopilot: candidates become shadows, experiments, promoted policies, or are taken back.

A look, each night say, reads what came of the runs since the last one, decides the next step of
each trial, writes that down, and only then delivers it. See `docs/run/autopilot.md`.
"""
