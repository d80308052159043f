"""Measures a stock release and the patched one in turns, and prints both and their ratios.

``python benchmarks/compare.py STOCK PATCHED --release V [--scope lock]`` takes the interpreters of
two environments that differ by the livekit-agents wheel alone; `uv run nox -s benchmarks` makes
them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, get_args

from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ctxlock.release import DEFAULT_SCOPE, Scope

__all__ = ["Measure", "main", "table"]

T = TypeVar("T")
Pair = tuple[float, float]

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Measure:
    """Something that was measured.

    Attributes:
        name: What it is called.
        unit: What the numbers are; nothing for a count.
        pairs: What stock and patched took, a pair for each round.
        target: The ratio that it should not exceed, where there is one.
    """

    name: str
    unit: str
    pairs: Sequence[Pair]
    target: float | None = None

    @property
    def medians(self) -> Pair:
        """Stock's median and the patched one's."""
        stock, patched = zip(*self.pairs, strict=True)
        return statistics.median(stock), statistics.median(patched)

    @property
    def ratios(self) -> list[float]:
        """Patched by stock in each round, from the lowest to the highest."""
        return sorted(patched / stock for stock, patched in self.pairs)

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios: what disturbs a round disturbs both its sides."""
        return statistics.median(self.ratios)


def table(title: str, measures: Sequence[Measure]) -> Table:
    """The measures as a table for the terminal."""
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    shown.add_column("")
    for column in ("stock", "patched", "ratio", "lowest to highest", "target"):
        shown.add_column(column, justify="right")
    for measure in measures:
        numbers = [f"{median:.4g} {measure.unit}".rstrip() for median in measure.medians]
        cells = [*numbers, f"{measure.ratio:.3f}"]
        cells.append(f"{measure.ratios[0]:.3f} to {measure.ratios[-1]:.3f}")
        if measure.target is not None:
            met = measure.ratio <= measure.target
            colour, said = ("green", "met") if met else ("red", "not met")
            cells.append(f"[{colour}]{measure.target:.2f}, {said}[/]")
        shown.add_row(measure.name, *cells)
    return shown


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Compares a stock release with the patched one.")
    parser.add_argument("stock", help="a Python that has the stock release")
    parser.add_argument("patched", help="a Python that has the patched one")
    parser.add_argument("--release", required=True, help="the release, to build and install it")
    parser.add_argument(
        "--scope", choices=get_args(Scope), default=DEFAULT_SCOPE, help="the patched one's"
    )
    parser.add_argument("--rounds", type=int, default=7, help="of each measure; odd ones are best")
    parser.add_argument("--turns", type=int, default=1000, help="turns in a row")
    given = parser.parse_args(argv)
    pythons = (given.stock, given.patched)
    measured = list(
        _rounds("probes", given.rounds, lambda side: _probe(pythons[side], given.turns))
    )
    imports = list(
        _rounds("imports", 2 * given.rounds, lambda side: _probe(pythons[side], 0)["import"])
    )
    wishes = (
        [f"livekit-agents=={given.release}"],
        [
            str(ROOT / "livekit-agents"),
            *("-C", f"upstream={given.release}", "-C", f"scope={given.scope}"),
        ],
    )
    installs = list(
        _rounds("installs", 3, lambda side: _install(pythons[side], wishes[side]), warm=True)
    )

    def pairs(key: str) -> list[Pair]:
        return [(stock[key], patched[key]) for stock, patched in measured]

    # the scope full makes two tasks for each push, which is no matter beside a round trip
    push = 1.05 if given.scope == "lock" else None
    measures = [
        Measure("uncontended push", "µs", pairs("push"), push),
        Measure("text turn behind a pending push", "µs", pairs("turn behind")),
        Measure("  acknowledgements it waits for", "", pairs("acknowledgements"), 1.0),
        Measure("  the same, client without turns", "", pairs("acknowledgements, concurrent")),
        Measure(f"{given.turns} turns in a row", "s", pairs("turns")),
        Measure("import livekit.agents", "s", imports, 1.02),
        Measure("install (patched: build, too)", "s", installs),
    ]
    floor = statistics.median(found["lock"] for pair in measured for found in pair)
    out = Console(width=110 if not sys.stdout.isatty() else None)
    title = f"livekit-agents {given.release}, scope {given.scope}, {given.rounds} rounds"
    out.print(table(title, measures))
    stock, _ = measures[0].medians
    out.print(
        f"The floor: taking and leaving a free asyncio.Lock alone took {floor:.2f} µs, which is "
        f"{floor / stock:.1%} of a push on stock.",
        highlight=False,
    )
    return 0


def _rounds(
    what: str, count: int, measure: Callable[[int], T], *, warm: bool = False
) -> Iterator[tuple[T, T]]:
    """Measures stock, 0, and patched, 1, in every round; who goes first takes turns."""
    if warm:
        measure(0), measure(1)
    console = Console(stderr=True)
    for number in track(range(count), description=what, console=console, transient=True):
        first = number % 2
        found = {first: measure(first)}
        found[1 - first] = measure(1 - first)
        yield found[0], found[1]


def _probe(python: str, turns: int) -> dict[str, float]:
    done = subprocess.run(
        [python, "-W", "ignore", str(ROOT / "benchmarks" / "probes.py"), f"--turns={turns}"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "livekit-agents")},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _install(python: str, wish: Sequence[str]) -> float:
    """Seconds of the wall to put a release in place of itself, with a warm cache."""
    command = ["uv", "pip", "install", "-q", "-p", python, "--no-deps", "--compile-bytecode"]
    before = time.perf_counter()
    subprocess.run([*command, "--reinstall-package", "livekit-agents", *wish], check=True)
    return time.perf_counter() - before


if __name__ == "__main__":
    sys.exit(main())
