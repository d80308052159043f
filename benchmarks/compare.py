"""Measures a stock release and the patched one in turns, and prints both and their ratios.

Stock is measured twice in each round, so that the ratio of stock to itself tells what the machine
and chance alone make of a ratio.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, get_args

from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ctxlock.release import DEFAULT_SCOPE, Scope

__all__ = ["Measure", "main", "run", "table"]

T = TypeVar("T")
Pair = tuple[float, float]
Round = tuple[T, T, T]
"""Stock, patched, and stock again."""

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Measure:
    """Something that was measured.

    Attributes:
        name: What it is called.
        unit: What the numbers are; nothing for a count.
        rounds: What stock, patched and stock again took.
        target: The ratio that it should not exceed, where there is one, unless stock against
            itself does.
    """

    name: str
    unit: str
    rounds: Sequence[Round[float]]
    target: float | None = None

    @property
    def medians(self) -> Pair:
        """Stock's median and the patched one's."""
        stock, patched, _ = zip(*self.rounds, strict=True)
        return statistics.median(stock), statistics.median(patched)

    @property
    def ratios(self) -> list[float]:
        """Patched by stock in each round, from the lowest to the highest."""
        return sorted(patched / stock for stock, patched, _ in self.rounds)

    @property
    def spread(self) -> list[float]:
        """Stock by stock in each round, from the lowest to the highest."""
        return sorted(again / stock for stock, _, again in self.rounds)

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios: what disturbs a round disturbs both its sides."""
        return statistics.median(self.ratios)

    @property
    def met(self) -> bool:
        """Whether the ratio is at most the target, or such as stock has with itself."""
        return self.ratio <= max(self.target or 0.0, self.spread[-1])


def table(title: str, measures: Sequence[Measure]) -> Table:
    """The measures as a table for the terminal."""
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    shown.add_column("")
    for column in ("stock", "patched", "ratio", "lowest to highest", "stock by stock", "target"):
        shown.add_column(column, justify="right")
    for measure in measures:
        numbers = [f"{median:.4g} {measure.unit}".rstrip() for median in measure.medians]
        cells = [*numbers, f"{measure.ratio:.3f}"]
        for ratios in (measure.ratios, measure.spread):
            cells.append(f"{ratios[0]:.3f} to {ratios[-1]:.3f}")
        if measure.target is not None:
            colour, said = ("green", "met") if measure.met else ("red", "not met")
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
    parser.add_argument("--rounds", type=int, default=9, help="of each measure; odd ones are best")
    parser.add_argument("--turns", type=int, default=1000, help="turns in a row")
    given = parser.parse_args(argv)
    pythons = (given.stock, given.patched)
    turns = (f"--turns={given.turns}",)
    count = given.rounds
    measured = _rounds("probes", count, lambda side: run("probes", pythons[side], *turns))
    calls = _rounds("long calls", count, lambda side: run("long_calls", pythons[side])["measured"])
    empty = "--turns=0"
    imports = _rounds("imports", 2 * count, lambda n: run("probes", pythons[n], empty)["import"])
    settings = ("-C", f"upstream={given.release}", "-C", f"scope={given.scope}")
    wishes = ([f"livekit-agents=={given.release}"], [str(ROOT / "livekit-agents"), *settings])
    installs = _rounds("installs", 3, lambda side: _install(pythons[side], wishes[side]), warm=True)

    def rounds(key: str, found: Sequence[Round[Any]] = measured) -> list[Round[float]]:
        return [(stock[key], patched[key], again[key]) for stock, patched, again in found]

    # the lock is to cost nothing that can be told from chance
    allowed = 1.0 if given.scope == "lock" else 1.10
    measures = [
        Measure("uncontended push", "µs", rounds("push"), 1.05 if given.scope == "lock" else 1.10),
        Measure("text turn behind a pending push", "µs", rounds("turn behind")),
        Measure("  acknowledgements it waits for", "", rounds("acknowledgements"), 1.0),
        Measure("  the same, client without turns", "", rounds("acknowledgements, concurrent")),
        Measure(f"{given.turns} turns in a row", "s", rounds("turns")),
        Measure("import livekit.agents", "s", imports, 1.02),
        Measure("install (patched: build, too)", "s", installs),
        *(Measure(name, "µs", rounds(name, calls), allowed) for name in calls[0][0]),
    ]
    floor = statistics.median(found["lock"] for found in chain.from_iterable(measured))
    out = Console(width=130 if not sys.stdout.isatty() else None)
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
) -> list[Round[T]]:
    """Measures stock, 0, patched, 1, and stock again in every round; who goes first takes turns."""
    if warm:
        measure(0), measure(1)
    console = Console(stderr=True)
    found = []
    for number in track(range(count), description=what, console=console, transient=True):
        if number % 2:
            again, patched, stock = measure(0), measure(1), measure(0)
        else:
            stock, patched, again = measure(0), measure(1), measure(0)
        found.append((stock, patched, again))
    return found


def run(module: str, python: str, *options: str) -> Any:
    """Runs a module of the benchmarks with another interpreter; returns its JSON."""
    done = subprocess.run(
        [python, "-W", "ignore", str(ROOT / "benchmarks" / f"{module}.py"), *options],
        env={**os.environ, "PYTHONPATH": str(ROOT / "livekit-agents")},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def _install(python: str, wish: Sequence[str]) -> float:
    """Seconds of the wall to put a release in place of itself, with a warm cache."""
    command = ["uv", "pip", "install", "-q", "-p", python, "--no-deps", "--compile-bytecode"]
    before = time.perf_counter()
    subprocess.run([*command, "--reinstall-package", "livekit-agents", *wish], check=True)
    return time.perf_counter() - before


if __name__ == "__main__":
    sys.exit(main())
