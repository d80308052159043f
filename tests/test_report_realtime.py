"""``python -m ctxlock.races``: what it prints, and that it ends whatever a race does."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

import pytest
from _realtime_support import VERSION

from ctxlock.races import __main__ as command
from ctxlock.races.releases import Releases, is_patched
from ctxlock.races.scenarios import SCENARIOS, Scenario
from ctxlock.races.verdict import HandoffCrash, LostUpdate, OutOfOrder

MEANINGS: dict[type[BaseException], str] = {
    OutOfOrder: "moved",
    LostUpdate: "lost",
    HandoffCrash: "crashed",
}


def expected_outcome(scenario: Scenario) -> str:
    if VERSION not in scenario.applies:
        return "not applicable"
    if VERSION in scenario.broken and not is_patched(VERSION):
        return MEANINGS[scenario.failure]
    return "kept"


def test_report_of_the_installed_release() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ctxlock.races", "--json", "--progress"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert list(report) == ["format", "livekit_agents", "provider", "results"]
    assert (report["format"], report["livekit_agents"]) == (2, VERSION)
    found = {result["scenario"]: result["outcome"] for result in report["results"]}
    assert found == {scenario.name: expected_outcome(scenario) for scenario in SCENARIOS}
    assert list(found) == [scenario.name for scenario in SCENARIOS]
    progress = [line for line in done.stderr.splitlines() if line.split(":")[0] in found]
    assert progress == [f"{name}: {outcome}" for name, outcome in found.items()]


def raises(error: Exception) -> Any:
    def run() -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("run", "outcome", "detail"),
    [
        pytest.param(lambda: None, "kept", "", id="kept"),
        pytest.param(raises(LostUpdate("A is missing.")), "lost", "A is missing.", id="lost"),
        pytest.param(raises(OutOfOrder("A is last.")), "moved", "A is last.", id="moved"),
        pytest.param(raises(HandoffCrash("It raised.")), "crashed", "It raised.", id="crashed"),
        pytest.param(raises(ValueError("what?")), "error", "ValueError: what?", id="error"),
    ],
)
def test_outcomes(run: Any, outcome: str, detail: str) -> None:
    assert command.outcome_of(run, MEANINGS) == {"outcome": outcome, "detail": detail}


def test_stuck_race_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "WATCHDOG", 0.01)
    never = threading.Event()
    result = command.outcome_of(never.wait, MEANINGS)
    never.set()
    assert result["outcome"] == "stuck"


@pytest.mark.parametrize(
    ("releases", "inside", "outside"),
    [
        (Releases(), ["1.0.0", "1.8.9+ctxlock.3.lock", "2.0.0b1"], []),
        (Releases("1.8.9"), ["1.8.9", "1.10.0"], ["1.8.8", "2.0.0b1", "2.0.0b1+ctxlock.1"]),
        (
            Releases("1.7.0", before="1.8.9"),
            ["1.7.0", "2.0.0b1"],
            ["1.6.10", "1.8.9+ctxlock.3.full"],
        ),
    ],
)
def test_ranges_of_releases(releases: Releases, inside: list[str], outside: list[str]) -> None:
    assert [version for version in inside + outside if version in releases] == inside
