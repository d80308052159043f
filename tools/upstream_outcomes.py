"""Reads what pytest-reportlog wrote, and tells which outcomes differ between runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

__all__ = ["Outcome", "Outcomes", "differing", "ended_in", "is_whole", "outcomes_of"]

_UNTOLD = "no outcome"


@dataclass(frozen=True)
class Outcome:
    """How a test ended, and the first line of what it said if that was not well."""

    state: str
    detail: str = ""


Outcomes = Mapping[str, Outcome]


def outcomes_of(log: str) -> dict[str, Outcome]:
    """The outcome of each test in a report log, by its id; a file that cannot be imported is one.

    Args:
        log: What pytest-reportlog wrote, perhaps cut short.
    """
    found: dict[str, Outcome] = {}
    for entry in _entries(log):
        kind, test = entry.get("$report_type"), str(entry.get("nodeid"))
        if kind == "CollectReport" and entry["outcome"] == "failed":
            found[test] = Outcome("not collected", _said(entry["longrepr"]))
        elif kind == "TestReport":
            outcome = _outcome(entry)
            # the teardown of what has failed adds nothing, and that of what passed may fail
            if outcome is not None and (test not in found or found[test].state == "passed"):
                found[test] = outcome
    return found


def is_whole(log: str) -> bool:
    """Whether pytest came to its end."""
    return any(entry.get("$report_type") == "SessionFinish" for entry in _entries(log))


def ended_in(log: str) -> set[str]:
    """The tests that were torn down."""
    return {entry["nodeid"] for entry in _entries(log) if entry.get("when") == "teardown"}


def _entries(log: str) -> Iterator[dict[str, Any]]:
    for line in log.splitlines():
        with suppress(ValueError):  # the last one, if pytest was ended while it wrote
            yield json.loads(line)


def _outcome(entry: Mapping[str, Any]) -> Outcome | None:
    expected = "wasxfail" in entry
    if entry["outcome"] == "failed":
        return Outcome("failed" if entry["when"] == "call" else "error", _said(entry["longrepr"]))
    if entry["outcome"] == "skipped":
        return Outcome("xfailed" if expected else "skipped")
    if entry["when"] == "call":
        return Outcome("xpassed" if expected else "passed")
    return None


def _said(longrepr: Any) -> str:
    """The first line of an error, as pytest tells of it in one of several shapes."""
    if isinstance(longrepr, Mapping):
        longrepr = (longrepr.get("reprcrash") or {}).get("message", "")
    lines = str(longrepr or "").strip().splitlines()
    errors = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return (errors or lines or [""])[0]


def differing(runs: Mapping[str, Outcomes]) -> list[tuple[str, list[Outcome]]]:
    """The tests whose state is not the same in all runs, with their outcome in each."""
    tests = sorted({test for outcomes in runs.values() for test in outcomes})
    rows = [(t, [o.get(t, Outcome(_UNTOLD)) for o in runs.values()]) for t in tests]
    return [(t, row) for t, row in rows if len({outcome.state for outcome in row}) > 1]
