"""Compares what long calls cost in counts: they are the same each time, and so can be asserted.

``python benchmarks/counts.py STOCK lock=PYTHON full=PYTHON`` takes interpreters of environments
that differ by the livekit-agents wheel alone; `uv run nox -s long_calls` makes them. The rule is:
what the patch does besides what stock does is as much with 10,000 items as with 100, and where
nothing overlaps it makes no task and no copy. A copy of a plain list is not seen.

It exits with 0 if the rule is kept by all that is not listed in `EXPECTED`, and broken by all that
is; else with 1.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from compare import run
from rich import box
from rich.console import Console
from rich.table import Table

__all__ = ["EXPECTED", "Counts", "broken", "main", "misnamed", "unexpected"]

Counts = Mapping[str, Mapping[str, Mapping[str, int]]]
"""By event, length and kind."""

GROWING = ("visited", "compared")
NEVER_MORE = ("copied", "tasks")

_NOTED = "each item of a first context is noted once, as one that the provider has not confirmed"
EXPECTED: Mapping[str, Mapping[str, str]] = {
    "full": {"start": _NOTED, "handoff to a new session": _NOTED}
}
"""By scope and event: why it breaks the rule."""


def broken(stock: Counts, patched: Counts) -> dict[str, list[str]]:
    """What breaks the rule, by event: a sentence for each count that does; none where it is kept.

    Raises:
        KeyError: The two were not measured in the same way.
    """
    found: dict[str, list[str]] = {}
    for event in stock:
        short, long = sorted(stock[event], key=int)
        extra = {
            length: {kind: patched[event][length][kind] - count for kind, count in counts.items()}
            for length, counts in stock[event].items()
        }
        told = [
            f"{kind}: {extra[short][kind]:+,} at {int(short):,} items, "
            f"{extra[long][kind]:+,} at {int(long):,}"
            for kind in GROWING
            if extra[long][kind] > extra[short][kind]
        ]
        told += [
            f"{kind}: {more:+,}"
            for kind in NEVER_MORE
            if (more := max(extra[short][kind], extra[long][kind])) > 0
        ]
        found[event] = told
    return found


def unexpected(scope: str, found: Mapping[str, Sequence[str]]) -> list[str]:
    """Sentences about events that are not as `EXPECTED` has them."""
    expected = EXPECTED.get(scope, {})
    told = [
        f"{scope}: {event} costs more than it may: {', '.join(said)}."
        for event, said in found.items()
        if said and event not in expected
    ]
    told += [
        f"{scope}: {event} keeps the rule, or is gone; take it from the expected failures."
        for event in expected
        if not found.get(event)
    ]
    return told


_USAGE = f"""\
usage: {Path(__file__).name} STOCK SCOPE=PYTHON ...
STOCK and each PYTHON are interpreters of environments that differ by the livekit-agents wheel
alone; `uv run nox -s long_calls` makes them, and runs this with them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    given = sys.argv[1:] if argv is None else list(argv)
    patched = dict(text.split("=", 1) for text in given[1:] if "=" in text)
    if not patched or len(patched) != len(given) - 1:
        print(_USAGE, file=sys.stderr)
        return 2
    stock = _count("stock", given[0])
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for column in ("event", "scope", "beyond stock"):
        table.add_column(column, overflow="fold")
    told: list[str] = []
    for scope, python in patched.items():
        found = broken(stock, _count(scope, python))
        told += unexpected(scope, found)
        for event, said in found.items():
            table.add_row(event, scope, "\n".join(said) or "nothing, or the same at both lengths")
    out = Console()
    out.print(table)
    for sentence in told:
        out.print(sentence, style="red", highlight=False)
    return 1 if told else 0


def misnamed(name: str, version: str) -> str | None:
    """A sentence, if a version is not that of `name`: stock that is called `lock` would pass."""
    label = version.partition("+")[2]
    if (label.rpartition(".")[2] or "stock") == name:
        return None
    return f"The environment called {name} holds livekit-agents {version}, which is another."


def _count(name: str, python: str) -> Counts:
    report = run("long_calls", python, "--count")
    if (said := misnamed(name, report["version"])) is not None:
        raise SystemExit(said)
    measured: Counts = report["measured"]
    return measured


if __name__ == "__main__":
    sys.exit(main())
