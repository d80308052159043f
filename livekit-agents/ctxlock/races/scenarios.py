"""All the races."""

from __future__ import annotations

from . import handoff_races, speech_races, turn_races
from .scenario import Scenario, registered

__all__ = ["SCENARIOS", "Scenario"]

_ORDER = [module.__name__ for module in (speech_races, handoff_races, turn_races)]

SCENARIOS = sorted(registered(), key=lambda scenario: _ORDER.index(scenario.run.__module__))
"""Every scenario, in the order of the table in README.md."""
