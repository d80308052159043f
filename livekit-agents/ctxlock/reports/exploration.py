"""What an exploration of every schedule found, and how it is shown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

__all__ = ["REPLAY_IMPORT", "Exploration"]

_SIZES = {2: "pairs", 3: "triples"}
_VIOLATIONS_SHOWN = 3
_TERMINAL = 80
"""Columns; where two numbers in each cell would not fit, one is shown."""

REPLAY_IMPORT = "from ctxlock.explorer.schedule import replay"
"""What the tests that :meth:`Exploration.replays` yields need."""


@dataclass(frozen=True)
class Exploration:
    """What `python -m ctxlock.explorer` reports."""

    report: dict[str, Any]

    @property
    def schedules(self) -> int:
        """How many there were."""
        return self._count(0)

    @property
    def violations(self) -> int:
        """How many were violated."""
        return self._count(1)

    @property
    def limits(self) -> dict[str, int]:
        """How many came to each known limit."""
        found: Counter[str] = Counter()
        for group in self.report["groups"]:
            found.update(group["limits"])
        return dict(found)

    @property
    def integrity(self) -> bool:
        """Whether it was judged by the stricter verdict."""
        return bool(self.report["integrity"])

    @property
    def unknown(self) -> list[str]:
        """The groups whose budget ended before their schedules did."""
        return [_named(group) for group in self.report["groups"] if group["exhausted"]]

    @property
    def verdict(self) -> str:
        """``violated``, ``unknown`` or ``linearizable``."""
        if self.violations:
            return "violated"
        return "unknown" if self.unknown or not self.schedules else "linearizable"

    @property
    def several(self) -> list[str]:
        """The kinds of updates of several items, which have a table of their own."""
        return list(self.report.get("several", ()))

    def heat_maps(self) -> Iterator[Table]:
        """A table for each size of group: violated schedules, by the first two that started.

        And one of the pairs with an update of several items, whichever started first.
        """
        beside: dict[tuple[str, str], list[int]] = {}
        for size in sorted({len(group["kinds"]) for group in self.report["groups"]}):
            cells: dict[tuple[str, str], list[int]] = {}
            for group in self.report["groups"]:
                if len(group["kinds"]) == size:
                    for order, counts in group["orders"].items():
                        first, second = order.split(" > ")[:2]
                        if {first, second} & set(self.several):
                            for pair in {(first, second), (second, first)}:
                                _count_in(beside, pair, counts)
                        else:
                            _count_in(cells, (first, second), counts)
            if cells:
                yield self._heat_map(_SIZES.get(size, f"groups of {size}"), cells)
        if beside:
            yield self._beside_several(beside)

    def _beside_several(self, cells: dict[tuple[str, str], list[int]]) -> Table:
        release = self.report["livekit_agents"]
        title = f"pairs with several items, livekit-agents {release}: violated / all"
        table = Table(title=title, box=box.SIMPLE, show_edge=False, padding=0)
        table.add_column("beside", no_wrap=True)
        for kind in self.several:
            table.add_column(kind, justify="right", max_width=12)
        for kind in self.report["kinds"]:
            table.add_row(kind, *(_cell(cells.get((kind, other))) for other in self.several))
        return table

    def _heat_map(self, what: str, cells: dict[tuple[str, str], list[int]]) -> Table:
        kinds = [kind for kind in self.report["kinds"] if kind not in self.several]
        names = [f"{number} {kind}" for number, kind in enumerate(kinds, 1)]
        columns = [[_cell(cells.get((first, second))) for first in kinds] for second in kinds]
        width = sum(1 + max(map(len, column)) for column in columns) + max(map(len, names))
        wide = width > _TERMINAL
        said = "violated schedules" if wide else "violated / all"
        title = f"{what} on livekit-agents {self.report['livekit_agents']}: {said}"
        table = Table(title=title, box=box.SIMPLE, show_edge=False, padding=0)
        table.add_column("first \\ then", no_wrap=True)
        for number in range(1, len(kinds) + 1):
            table.add_column(str(number), justify="right", no_wrap=True)
        for name, first in zip(names, kinds, strict=True):
            row = (_cell(cells.get((first, second)), of_all=not wide) for second in kinds)
            table.add_row(name, *row)
        return table

    def problems(self) -> Iterator[Table]:
        """For the stricter verdict, a table of the violated schedules by kind of problem."""
        if not self.integrity:
            return
        found: Counter[str] = Counter()
        for group in self.report["groups"]:
            found.update(group["problems"])
        title = f"integrity of livekit-agents {self.report['livekit_agents']}"
        table = Table(title=title, box=box.SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
        table.add_column("kind")
        table.add_column("violated / all", justify="right")
        for kind in self.report["problems"]:
            table.add_row(kind, _cell([self.schedules, found[kind]]))
        yield table

    def remarks(self) -> Iterator[str]:
        """What the heat maps do not say, in sentences."""
        seconds = self.report["seconds"]
        yield (
            f"{self.schedules} schedules, {self.violations} of them violated, in {seconds:.0f} s: "
            f"{self.schedules / max(seconds, 0.001):.0f} a second."
        )
        for limit, count in sorted(self.limits.items()):
            yield f"Known limit, {limit}: {count} schedules. {self.report['limits'][limit]}"
        for name in self.unknown:
            yield f"Unknown: not all schedules of {name} were run within the --budget."
        yield f"Left out: {self._left_out()}."

    def replays(self) -> Iterator[str]:
        """For each known limit, and the first few violations, a test that replays the shortest."""
        shortest: dict[str, tuple[int, str]] = {}
        for group in self.report["groups"]:
            for problem, choices in group["replays"].items():
                test = (len(choices), _as_test(group, choices, problem))
                shortest[problem] = min(shortest.get(problem, test), test)
        for limit in sorted(set(self.limits) & set(shortest)):
            yield shortest.pop(limit)[1]
        yield from (text for _, text in sorted(shortest.values())[:_VIOLATIONS_SHOWN])

    def as_json(self) -> str:
        """The report with its verdict, keys sorted."""
        return json.dumps({"verdict": self.verdict, **self.report}, indent=2, sort_keys=True)

    def _left_out(self) -> str:
        size = max((len(group["kinds"]) for group in self.report["groups"]), default=1)
        undisturbed = sorted(
            {len(g["kinds"]) for g in self.report["groups"] if not g["disturbances"]}
        )
        names = ["larger groups that have only updates"] if self.integrity and size > 2 else []
        names += [f"{_SIZES.get(n, f'groups of {n}')} with a failure" for n in undisturbed]
        larger = _SIZES.get(size + 1, f"groups of {size + 1}")
        return ", ".join([*names, f"{larger} and larger groups", "several failures at once"])

    def _count(self, index: int) -> int:
        groups = self.report["groups"]
        return sum(counts[index] for group in groups for counts in group["orders"].values())


def _named(group: dict[str, Any]) -> str:
    return " + ".join(group["kinds"])


def _count_in(cells: dict[tuple[str, str], list[int]], at: tuple[str, str], counts: Any) -> None:
    cell = cells.setdefault(at, [0, 0])
    cell[0] += counts[0]
    cell[1] += counts[1]


def _cell(counts: list[int] | None, *, of_all: bool = True) -> Text:
    if counts is None:
        return Text("-", style="dim")
    schedules, violated = counts
    share = violated / max(schedules, 1)
    text = f"{violated}/{schedules}" if of_all else str(violated)
    if not violated:
        return Text(text, style="green")
    return Text(text, style=f"white on rgb({95 + round(160 * share)},0,0)")


def _as_argument(choices: list[str]) -> list[str]:
    if not choices:
        return ["        choices=[],  # the first open way at every fork"]
    return ["        choices=[", *(f'            "{choice}",' for choice in choices), "        ],"]


def _as_test(group: dict[str, Any], choices: list[str], problem: str) -> str:
    kinds: list[str] = group["kinds"]
    name = "_and_".join(kind.replace(" ", "_").replace("-", "_") for kind in kinds)
    lines = [
        f"def test_{name}() -> None:",
        f"    # {problem}",
        "    replay(",
        *(f'        "{kind}",' for kind in kinds),
        *_as_argument(choices),
        *(["        integrity=True,"] if group["integrity"] else []),
        "    )",
    ]
    return "\n".join(lines)
