"""The doctor on logs that the real engine writes, of runs whose losses are known."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from _realtime_support import VERSION, has_engine

if not has_engine():
    pytest.skip("no livekit-plugins-openai that is scripted here", allow_module_level=True)

from doctor_cases import HIDDEN, MEANT, RACES, UNSHOWN, regressions, run_of
from doctor_runs import CALM, Log, calmly, examined, formatter

from ctxlock.doctor.findings import STRONG
from ctxlock.races import backend
from ctxlock.races.loopback.model import serving
from ctxlock.races.releases import has_full_scope, is_patched
from ctxlock.races.scenarios import Scenario
from ctxlock.races.verdict import LostUpdate

FORMS = {"production": {}, "dev": {"dev": True}}
DELETE_NOTHING = ("a replacement that adds", "turns and tools")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scenario", [pytest.param(s, id=s.name) for s in RACES])
async def test_what_a_race_loses_is_strong(scenario: Scenario, form: str, tmp_path: Path) -> None:
    found = await examined(run_of(scenario), tmp_path / "log", formatter(**FORMS[form]))
    loses = VERSION in scenario.broken and not is_patched(VERSION)
    assert bool(found.truth) == (loses and scenario.failure is LostUpdate)
    assert found.ids(STRONG) == found.truth
    assert found.counts.damaged == 0
    for loss in found.losses:
        if loss.grade == STRONG:
            assert loss.race == scenario.name


@pytest.mark.parametrize("scenario", [pytest.param(s, id=s.name) for s in RACES])
async def test_a_race_of_speech(scenario: Scenario, tmp_path: Path) -> None:
    async def run(log: Log) -> None:
        with backend.over(partial(serving, spoken=True)):
            await run_of(scenario)(log)

    found = await examined(run, tmp_path / "log")
    assert found.ids(STRONG) == found.truth


@pytest.mark.parametrize("seconds", [1.0, 5.0])
@pytest.mark.parametrize("name", CALM)
async def test_what_was_meant_is_not_strong(name: str, seconds: float, tmp_path: Path) -> None:
    found = await examined(calmly(name, seconds), tmp_path / "log")
    assert found.verdict == ""
    assert found.ids(STRONG) == set()
    assert bool(found.losses) == (name not in DELETE_NOTHING)  # else this shows nothing


@pytest.mark.parametrize(
    ("name", "case"), [pytest.param(name, run, id=name) for name, run in regressions()]
)
async def test_a_regression(
    name: str, case: Callable[[Log], Awaitable[None]], tmp_path: Path
) -> None:
    found = await examined(case, tmp_path / "log")
    if not name.startswith((*MEANT, *HIDDEN)):
        assert found.ids(STRONG) <= found.truth
    if not name.startswith(UNSHOWN):
        assert found.truth <= found.ids(STRONG)


@pytest.mark.skipif(not has_full_scope(), reason="the scope full says which updates waited")
async def test_what_waited_is_told(tmp_path: Path) -> None:
    (scenario,) = [s for s in RACES if s.name == "text turn during a tool output"]
    found = await examined(run_of(scenario), tmp_path / "log")
    (report,) = found.reports
    assert report.waits == 1
    assert [t.kind for t in report.troubles] == ["waited"]
