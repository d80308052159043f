"""Judges what a patched side did by what stock did, twice.

Equality is asked for, of every channel and of the order between them. It is asked for where a step
contains a failure, too, though the law only asks for "no worse" there: so far nothing had to be
relaxed. What is to be relaxed later is written down here, rule by rule.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tomlkit
from tomlkit.exceptions import TOMLKitError

from .trace import Trace

__all__ = ["BadExpectations", "Expected", "Verdict", "judge", "read_expected", "surprises"]

Kind = Literal["same", "inside", "differs", "unjudged", "unsupported"]

INSIDE = ("calls", "order")
"""Channels that only the provider's plugin sees: who calls it and with which object."""


@dataclass(frozen=True)
class Verdict:
    """What came of one step of one provider on one side.

    Attributes:
        kind: ``inside`` if nothing differs but the calls that reach the plugin, ``unjudged`` if
            stock does not do the same twice, ``unsupported`` if the step does not apply.
        lines: What differs, by channel; ``-`` is stock's, ``+`` the side's.
        outcome: How the step ended on stock.
    """

    kind: Kind
    lines: tuple[str, ...] = ()
    outcome: str = "done"

    @property
    def seen(self) -> int:
        """How many lines differ that somebody outside of the plugin sees."""
        return sum(not line.startswith(INSIDE) for line in self.lines)

    def as_json(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {
            "is": self.kind,
            "outcome": self.outcome,
            "seen": self.seen,
            "lines": list(self.lines),
        }


def judge(stock: Trace, again: Trace, other: Trace) -> Verdict:
    """Compares a side with stock, if stock does the same twice."""
    if wobble := differing(stock, again):
        return Verdict("unjudged", wobble, stock.outcome)
    if lines := differing(stock, other):
        seen = [line for line in lines if not line.startswith(INSIDE)]
        return Verdict("differs" if seen else "inside", lines, stock.outcome)
    return Verdict("unsupported" if stock.outcome == "unsupported" else "same", (), stock.outcome)


def differing(left: Trace, right: Trace) -> tuple[str, ...]:
    """The lines that differ; none if the traces are the same."""
    lines = []
    if left.outcome != right.outcome:
        lines += [
            f"outcome: - {left.outcome} {left.why}",
            f"outcome: + {right.outcome} {right.why}",
        ]
    for channel in dict.fromkeys([*left.channels, *right.channels]):
        ours, theirs = left.channels.get(channel, []), right.channels.get(channel, [])
        lines += [
            f"{channel}: {line[0]} {line[1:]}"
            for line in difflib.unified_diff(ours, theirs, n=0, lineterm="")
            if not line.startswith(("---", "+++", "@@"))
        ]
    if not lines and left.order != right.order:
        at = next(i for i, (a, b) in enumerate(zip(left.order, right.order, strict=True)) if a != b)
        lines += [f"order: - {left.order[at]} at {at}", f"order: + {right.order[at]} at {at}"]
    return tuple(lines)


# -- expected differences


class BadExpectations(Exception):
    """The file of expected differences cannot be read."""


@dataclass(frozen=True)
class Expectation:
    """How a step is expected to differ, and why."""

    kind: str
    reason: str


Expected = Mapping[tuple[str, str, str], Expectation]
"""By scope, provider and step."""


def read_expected(file: Path, *, scopes: Iterable[str]) -> dict[tuple[str, str, str], Expectation]:
    """Reads the file of expected differences.

    Raises:
        BadExpectations: It is none, or says something twice, or gives no reason.
    """
    expected: dict[tuple[str, str, str], Expectation] = {}
    for scope, reason, entry in entries(file, scopes):
        if (kind := entry.get("is")) not in ("differs", "inside"):
            raise BadExpectations(f'{file} has an entry of {scope} without "differs" or "inside".')
        for provider, steps in entry.get("steps", {}).items():
            for step in steps:
                if (scope, provider, step) in expected:
                    raise BadExpectations(f"{file} has {scope}, {provider}, {step} twice.")
                expected[scope, provider, step] = Expectation(kind, reason)
    return expected


def entries(file: Path, scopes: Iterable[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each entry of a file of expected differences: its scope, its reason, and all of it.

    Raises:
        BadExpectations: It cannot be read, or an entry is of no known scope or gives no reason.
    """
    try:
        content = tomlkit.parse(file.read_text(encoding="utf-8")).unwrap()
    except (OSError, TOMLKitError) as e:
        raise BadExpectations(f"{file} cannot be read: {e}.") from None
    known = {*scopes}
    for scope, listed in content.items():
        if scope not in known:
            raise BadExpectations(f"{file} speaks of the scope {scope}; there is none.")
        for entry in listed:
            if not (reason := str(entry.pop("reason", "")).strip()):
                raise BadExpectations(f"{file} has an entry of {scope} without a reason.")
            yield scope, reason, entry


def surprises(
    verdicts: Mapping[tuple[str, str, str], Verdict], expected: Expected, *, whole: bool
) -> list[str]:
    """What is not as it was expected to be, in sentences; strict in both directions.

    Args:
        verdicts: By scope, provider and step.
        expected: What is expected to differ.
        whole: Whether everything was run, so that nothing that is expected may be missing.
    """
    found = []
    for key, verdict in verdicts.items():
        where = ", ".join(key)
        meant = expected[key].kind if key in expected else None
        differs = verdict.kind if verdict.kind in ("differs", "inside") else None
        if meant is None and differs is not None:
            found.append(f"{where}: {_SAID[differs]}, which was not expected.")
        elif meant is not None and meant != differs:
            found.append(f"{where}: {_SAID[meant]} was expected, and it is {verdict.kind}.")
    if whole:
        missing = [key for key in expected if key not in verdicts]
        found += [f"{', '.join(key)}: is listed, and there is no such step." for key in missing]
    return found


_SAID = {"differs": "differs from stock", "inside": "calls the plugin otherwise than stock"}
