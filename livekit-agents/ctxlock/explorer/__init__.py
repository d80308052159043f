"""Runs every schedule of overlapping operations, and judges what each one leaves."""

from . import clock  # noqa: F401  (before livekit.agents, in each process)
