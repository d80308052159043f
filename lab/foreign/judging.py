"""Judges what was recorded on a patched side by what was recorded on stock, twice.

What is judged are three kinds of facts, each by itself: the ``calls`` that reach the provider's
session, with their arguments and times; the ``manner`` of these, which is objects, tasks and steps
of the loop; and the ``outcome``, which is all else. Equality is asked for, or, from the first step
in which the provider refuses something, that the outcome is no worse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import options
from lab.compare import BadExpectations, differing, entries
from lab.environments import Laboratory
from lab.trace import REFUSED, Trace

__all__ = [
    "KINDS",
    "BadExpectations",
    "Verdict",
    "judge",
    "judged",
    "on_all_sides",
    "read_expected",
    "show_lines",
    "surprises",
]

KINDS = {
    "calls": ("calls",),
    "manner": ("manner",),
    "outcome": ("agent", "model", "history", "events", "speeches", "raised", "logged", "left"),
}
"""The kinds of facts, and the aspects of a step that belong to each."""

Step = dict[str, Any]
Key = tuple[str, str, str]
"""Scope, what was run, and a kind of facts."""


@dataclass(frozen=True)
class Verdict:
    """What came of one thing that was run, on one side.

    Attributes:
        differing: By kind, the lines that differ in the first step that differs.
        steps: By kind, how many steps differ.
        first: The number of the first step that differs in any way; None if none does.
        wobbles: Whether stock does not do the same twice, so that nothing is judged.
    """

    differing: Mapping[str, tuple[str, ...]]
    steps: Mapping[str, int]
    first: int | None = None
    wobbles: bool = False


def judge(
    stock: Sequence[Step],
    again: Sequence[Step],
    other: Sequence[Step],
    *,
    no_worse: bool = False,
) -> Verdict:
    """Compares a side with stock, if stock does the same twice.

    Args:
        stock: What was recorded on stock.
        again: The same, once more.
        other: What was recorded on the side.
        no_worse: Whether the outcome need only be no worse once the provider has refused something.
    """
    wobble = _compare(stock, again, len(stock))
    if wobble.first is not None:
        return Verdict(wobble.differing, wobble.steps, wobble.first, wobbles=True)
    return _compare(stock, other, _refused(stock) if no_worse else len(stock))


def _refused(steps: Sequence[Step]) -> int:
    """The number of the first step in which something is refused."""
    found = (n for n, step in enumerate(steps) if any(REFUSED in line for line in step["calls"]))
    return next(found, len(steps))


def _compare(stock: Sequence[Step], other: Sequence[Step], refused: int) -> Verdict:
    lines: dict[str, tuple[str, ...]] = {}
    steps = dict.fromkeys(KINDS, 0)
    first = None
    for number in range(max(len(stock), len(other))):
        for kind in KINDS:
            if refused <= number < min(len(stock), len(other)):
                found = _worse(stock[number], other[number]) if kind == "outcome" else ()
            else:
                found = differing(_trace(stock, number, kind), _trace(other, number, kind))
            if found:
                first = number if first is None else first
                steps[kind] += 1
                lines.setdefault(kind, (f"step {number}, {_name(stock, other, number)}", *found))
    return Verdict(lines, steps, first)


def _worse(stock: Step, other: Step) -> tuple[str, ...]:
    """What is worse than on stock: `-` lost, `~` moved or late, `+` doubled, or fails besides."""
    found = []
    for aspect in ("agent", "model", "history", "speeches", "events"):
        timed = aspect == "events"
        wanted, has = _timed(stock[aspect], timed), _timed(other[aspect], timed)
        rest = iter(has)
        for at, line in wanted:
            if not any(line == own and when <= at for when, own in rest):
                lost = all(line != own for _, own in has)
                found.append(f"{aspect}: {'-' if lost else '~'} {line}")
                break
        most, count = Counter(line for _, line in wanted), Counter(line for _, line in has)
        found += [f"{aspect}: + {line}" for line in count if count[line] > max(1, most[line])]
    for aspect in ("raised", "logged", "left"):
        more = Counter[str](other[aspect]) - Counter[str](stock[aspect])
        found += [f"{aspect}: + {line}" for line in more]
    return tuple(found)


def _timed(lines: Sequence[str], timed: bool) -> list[tuple[float, str]]:
    """Each line with its time, if it begins with one."""
    if not timed:
        return [(0.0, line) for line in lines]
    parts = [line.partition("s ") for line in lines]
    return [(float(at), line) for at, _, line in parts]


def _trace(steps: Sequence[Step], number: int, kind: str) -> Trace:
    if number >= len(steps):
        return Trace("missing")
    return Trace(steps[number]["step"], {aspect: steps[number][aspect] for aspect in KINDS[kind]})


def _name(stock: Sequence[Step], other: Sequence[Step], number: int) -> str:
    name: str = (stock if number < len(stock) else other)[number]["step"]
    return name


def on_all_sides(lab: Laboratory, what: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Goes through variants, seeds or cases on each side, on stock twice; returns the reports."""
    names = [*lab.sides, "stock again"]

    def run(name: str) -> Any:
        return lab.run(name.removesuffix(" again"), "lab.foreign.run", [what, *arguments])

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(names, pool.map(run, names), strict=True))


# -- expected differences


def read_expected(
    file: Path,
    scopes: Iterable[str],
    names: Iterable[str],
    *,
    whole: bool = True,
    release: str | None = None,
) -> dict[Key, str]:
    """Reads a file of expected differences.

    Each entry is of a scope; it gives a reason, and names what differs under the kind of facts in
    which it does. ``"all"`` stands for everything. It may list the `releases` that it is about.

    Args:
        file: The file.
        scopes: Those that there are.
        names: What was run.
        whole: Whether that is all that there is, so that any other name is wrong.
        release: What was run; an entry about others alone is left out.

    Raises:
        BadExpectations: It is none, names what there is not, says something twice, or gives no
            reason.
    """
    known, expected = [*names], dict[Key, str]()
    for scope, reason, entry in entries(file, scopes):
        releases = entry.pop("releases", None)
        if releases is not None and release not in releases:
            continue
        for kind, listed in entry.items():
            if kind not in KINDS:
                raise BadExpectations(f"{file} speaks of {kind}; facts are {', '.join(KINDS)}.")
            for name in known if listed == "all" else map(str, listed):
                if name not in known and whole:
                    raise BadExpectations(f"{file} speaks of {name}; there is none.")
                if (scope, name, kind) in expected:
                    raise BadExpectations(f"{file} has {scope}, {name}, {kind} twice.")
                if name in known:
                    expected[scope, name, kind] = reason
    return expected


def surprises(
    verdicts: Mapping[tuple[str, str], Verdict], expected: Mapping[Key, str]
) -> Iterator[str]:
    """What is not as it was expected to be, in sentences; strict in both directions.

    Args:
        verdicts: By scope and what was run; what was not run is not missed.
        expected: What is expected to differ, and why.
    """
    for (scope, name), verdict in verdicts.items():
        if verdict.wobbles:
            yield f"{scope}, {name}: stock does not do the same twice; mend the lab."
            continue
        for kind in KINDS:
            listed, what = (scope, name, kind) in expected, f"a difference in the {kind}"
            if kind in verdict.differing and not listed:
                yield f"{scope}, {name}: {what} was not expected."
            elif kind not in verdict.differing and listed:
                reason = expected[scope, name, kind]
                yield f"{scope}, {name}: {what} was expected, and is gone: {reason}"


def judged(
    verdicts: Mapping[tuple[str, str], Verdict], expected: Mapping[Key, str], *, newest: bool
) -> Iterator[str]:
    """As `surprises`; what is expected of another scope than `lock` is of the newest release."""
    if newest:
        return surprises(verdicts, expected)
    return surprises({key: one for key, one in verdicts.items() if key[0] == "lock"}, expected)


def show_lines(verdict: Verdict) -> None:
    """Prints what differs first, kind by kind."""
    for kind, lines in verdict.differing.items():
        options.show(f"  {kind}, {verdict.steps[kind]} steps; the first is {lines[0]}:")
        for line in lines[1:]:
            options.show(f"    {line[:400]}")
