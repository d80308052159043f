"""How the benchmarks reckon; nothing here measures a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import compare
import pytest
from compare import Measure, table
from rich.console import Console


def shown(*measures: Measure) -> list[str]:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(table("A title", measures))
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def test_the_ratio_is_the_median_of_the_rounds() -> None:
    rounds = [(10.0, 11.0, 9.0), (100.0, 100.0, 100.0), (1.0, 2.0, 1.2)]
    measure = Measure("push", "µs", rounds)
    assert measure.medians == (10.0, 11.0)
    assert measure.ratios == [1.0, 1.1, 2.0]
    assert measure.ratio == 1.1
    assert measure.spread == [0.9, 1.0, 1.2]


@pytest.mark.parametrize(
    ("target", "again", "said"),
    [
        (1.10, 10.0, "1.000 to 1.000 1.10, met"),
        (1.05, 10.0, "1.000 to 1.000 1.05, not met"),
        (1.05, 11.0, "1.100 to 1.100 1.05, met"),
        (None, 10.0, "1.000 to 1.000"),
    ],
)
def test_the_table_says_whether_a_target_is_met(
    target: float | None, again: float, said: str
) -> None:
    rounds = [(10.0, patched, again) for patched in (10.5, 11.0, 12.0)]
    row = shown(Measure("push", "µs", rounds, target))[-1]
    assert row == f"push 10 µs 11 µs 1.100 1.050 to 1.200 {said}"


def test_who_goes_first_takes_turns_and_stock_is_measured_twice() -> None:
    order: list[int] = []

    def measure(side: int) -> int:
        order.append(side)
        return side

    assert compare._rounds("probes", 2, measure) == [(0, 1, 0)] * 2
    assert order == [0, 1, 0] * 2


def test_the_probes_report_what_is_compared() -> None:
    done = subprocess.run(
        [sys.executable, str(Path(compare.__file__).with_name("probes.py")), "--turns=2"],
        capture_output=True,
        text=True,
        check=True,
    )
    measured = json.loads(done.stdout)
    assert measured.pop("version")
    assert (measured.pop("acknowledgements"), measured.pop("acknowledgements, concurrent")) == (
        2,
        2,
    )
    assert {*measured} == {"import", "lock", "push", "turn behind", "turns"}
    assert all(value >= 0 for value in measured.values())
