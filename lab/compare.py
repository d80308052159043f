"""Judges what a patched side did by what stock did, twice.

Equality is asked for, of every channel and of the order between them. It is asked for where a step
contains a failure, too, though the law only asks for "no worse" there: so far nothing had to be
relaxed. What is to be relaxed later is written down here, rule by rule.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tomlkit
from tomlkit.exceptions import TOMLKitError

from .trace import Trace

__all__ = ["BadExpectations", "Expected", "Verdict", "judge", "read_expected", "surprises"]

Kind = Literal["same", "differs", "unjudged", "unsupported"]


@dataclass(frozen=True)
class Verdict:
    """What came of one step of one provider on one side.

    Attributes:
        kind: ``unjudged`` if stock does not do the same twice, ``unsupported`` if the step does
            not apply.
        lines: What differs, by channel; ``-`` is stock's, ``+`` the side's.
        outcome: How the step ended on stock.
    """

    kind: Kind
    lines: tuple[str, ...] = ()
    outcome: str = "done"

    def as_json(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {"is": self.kind, "outcome": self.outcome, "lines": list(self.lines)}


def judge(stock: Trace, again: Trace, other: Trace) -> Verdict:
    """Compares a side with stock, if stock does the same twice."""
    if wobble := differing(stock, again):
        return Verdict("unjudged", wobble, stock.outcome)
    if lines := differing(stock, other):
        return Verdict("differs", lines, stock.outcome)
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


Expected = Mapping[tuple[str, str, str], str]
"""Scope, provider and step; why it differs."""


def read_expected(file: Path, *, scopes: Iterable[str]) -> dict[tuple[str, str, str], str]:
    """Reads the file of expected differences.

    Raises:
        BadExpectations: It is none, or says something twice, or gives no reason.
    """
    try:
        content = tomlkit.parse(file.read_text(encoding="utf-8")).unwrap()
    except (OSError, TOMLKitError) as e:
        raise BadExpectations(f"{file} cannot be read: {e}.") from None
    expected: dict[tuple[str, str, str], str] = {}
    known = {*scopes}
    for scope, entries in content.items():
        if scope not in known:
            raise BadExpectations(f"{file} speaks of the scope {scope}; there is none.")
        for entry in entries:
            if not (reason := str(entry.get("reason", "")).strip()):
                raise BadExpectations(f"{file} has an entry of {scope} without a reason.")
            for provider, steps in entry.get("steps", {}).items():
                for step in steps:
                    if (scope, provider, step) in expected:
                        raise BadExpectations(f"{file} has {scope}, {provider}, {step} twice.")
                    expected[scope, provider, step] = reason
    return expected


def surprises(verdicts: Mapping[tuple[str, str, str], Verdict], expected: Expected) -> list[str]:
    """What is not as it was expected to be, in sentences; strict in both directions.

    Args:
        verdicts: By scope, provider and step; what is missing was not run.
        expected: What is expected to differ.
    """
    found = []
    for (scope, provider, step), verdict in verdicts.items():
        listed = (scope, provider, step) in expected
        where = f"{scope}, {provider}, {step}"
        if verdict.kind == "differs" and not listed:
            found.append(f"{where}: differs from stock, which was not expected.")
        elif verdict.kind != "differs" and listed:
            found.append(f"{where}: was expected to differ from stock, and is {verdict.kind}.")
    return found
