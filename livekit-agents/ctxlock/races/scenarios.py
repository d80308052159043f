"""All the races, by name."""

from __future__ import annotations

from . import handoff_races, speech_races, turn_races  # noqa: F401  (they register themselves)
from .scenario import Scenario, registered

__all__ = ["SCENARIOS", "Scenario"]

SCENARIOS = registered()
"""Every scenario, in the order of their names."""
