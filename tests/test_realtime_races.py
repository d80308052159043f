"""The races that ``ctxlock verify`` shows: two updates overlap, and neither loses to the other."""

from __future__ import annotations

import pytest
from _realtime_support import VERSION

from ctxlock.races.releases import is_patched
from ctxlock.races.scenarios import SCENARIOS, Scenario


def _case(scenario: Scenario) -> object:
    marks = []
    if VERSION not in scenario.applies:
        marks.append(pytest.mark.skip(reason=f"only {scenario.applies} do this"))
    elif VERSION in scenario.broken and not is_patched(VERSION):
        marks.append(
            pytest.mark.xfail(raises=scenario.failure, strict=True, reason=scenario.description)
        )
    return pytest.param(scenario, id=scenario.name.replace(" ", "-"), marks=marks)


@pytest.mark.parametrize("scenario", [_case(scenario) for scenario in SCENARIOS])
async def test_neither_update_loses(scenario: Scenario) -> None:
    await scenario.run()


def test_names_are_unique_and_sorted() -> None:
    names = [scenario.name for scenario in SCENARIOS]
    assert names == sorted(set(names))


@pytest.mark.parametrize("scenario", [pytest.param(s, id=s.name) for s in SCENARIOS])
def test_a_scenario_breaks_only_where_it_applies(scenario: Scenario) -> None:
    for version in ("1.0.0", "1.5.17", "1.7.1", "1.8.8", "1.8.9", "2.0.0b1"):
        assert version not in scenario.broken or version in scenario.applies
