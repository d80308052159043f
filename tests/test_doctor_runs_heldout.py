"""The doctor on runs that its rules were not made with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from _realtime_support import VERSION, has_engine

if not has_engine():
    pytest.skip("no livekit-plugins-openai that is scripted here", allow_module_level=True)

from doctor_heldout import LOSSES, MEANT, heldout
from doctor_runs import Log, formatter, told

from ctxlock.doctor.findings import STRONG
from ctxlock.races.releases import is_patched

WAYS: dict[str, tuple[dict[str, Any], dict[str, bool]]] = {
    "production": ({}, {}),
    "speech, in dev": ({"spoken": True, "pace": 1.0}, {"dev": True}),
    "console, in whole seconds": ({"pace": 1.0}, {"dev": True, "console": True}),
    "a far server": ({"round_trip": 0.33, "pace": 1.0}, {}),
}
LOSE_NOTHING = {
    "1.8.8": ["turn typed during what is said"],  # two typed turns wait for each other
    "1.8.9": ["picture while a result waits"],  # both hold the lock
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MEANT)
async def test_what_was_meant_is_not_strong(name: str, way: str, tmp_path: Path) -> None:
    how, form = WAYS[way]
    found = await heldout(name, **how)(tmp_path / "log", formatter(**form))
    assert found.truth == set()
    assert found.losses  # else this shows nothing
    assert found.ids(STRONG) == set()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LOSSES)
async def test_what_an_overlap_loses_is_strong(name: str, way: str, tmp_path: Path) -> None:
    how, form = WAYS[way]
    found = await heldout(name, **how)(tmp_path / "log", formatter(**form))
    assert found.ids(STRONG) == found.truth
    if not is_patched(VERSION) and str(VERSION) in LOSE_NOTHING:
        assert bool(found.truth) == (name not in LOSE_NOTHING[str(VERSION)])


QUICK = [
    "picture replaced by its caption",
    "clock with nothing in between",
    "number blanked before the reply",
    "reply replaced by a corrected one",
]
"""Those whose picture is that of a loss, but for the time that goes by."""


@pytest.mark.parametrize("round_trip", [0.06, 0.5, 0.8, 1.5])
@pytest.mark.parametrize("name", QUICK)
async def test_a_far_server_makes_no_application_slower(
    name: str, round_trip: float, tmp_path: Path
) -> None:
    run = heldout(name, pace=0.25, round_trip=round_trip)
    assert (await run(tmp_path / "log")).ids(STRONG) == set()


async def test_two_calls_in_one_file_are_told_apart(tmp_path: Path) -> None:
    """One that loses a picture, line by line beside one that replaces pictures by captions."""
    losing, meaning = Log(), Log()
    path = tmp_path / "log"
    found = await heldout("picture")(path, log=losing, job_id="AJ_1", room="one")
    await heldout("picture replaced by its caption")(path, log=meaning, job_id="AJ_2", room="two")
    lines = sorted(
        [*losing.lines, *meaning.lines], key=lambda line: line.partition('"timestamp"')[2]
    )
    reports, _, calls = told(path, lines)
    assert calls.totals.calls == 2
    strong = [(r.name, loss.item.id) for r in reports for loss in r.graded(STRONG)]
    assert strong == [("job AJ_1, room one", i) for i in sorted(found.truth)]
