"""The races that ``ctxlock verify`` shows: two updates overlap, and neither loses to the other."""

from __future__ import annotations

import pytest
from regressions import race_case

from ctxlock.races.scenarios import SCENARIOS, Scenario


@pytest.mark.parametrize("scenario", [race_case(scenario) for scenario in SCENARIOS])
async def test_neither_update_loses(scenario: Scenario) -> None:
    await scenario.run()


def test_names_are_unique() -> None:
    names = [scenario.name for scenario in SCENARIOS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("scenario", [pytest.param(s, id=s.name) for s in SCENARIOS])
def test_a_scenario_breaks_only_where_it_applies(scenario: Scenario) -> None:
    for version in ("1.0.0", "1.5.17", "1.7.1", "1.8.8", "1.8.9", "2.0.0b1"):
        assert version not in scenario.broken or version in scenario.applies
