"""Explores groups of operations, and counts what became of their schedules."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .operation import Operation
from .operations import SEVERAL, AddingReplacement, AddingThree, SessionStart, TextTurn, ToolOutput
from .schedule import ScheduleOutcome, run_schedule
from .search import Choose, Execution, every_path, follow
from .session_events import HAPPENINGS

__all__ = ["Group", "Tally", "plan", "tally", "warm_up"]

BUDGET = 20_000
"""Schedules of one group, beyond which it counts as unknown."""


@dataclass(frozen=True, order=True)
class Group:
    """Operations to overlap, by kind, how many may be disturbed, and by which verdict."""

    kinds: tuple[str, ...]
    disturbances: int
    integrity: bool = False

    def run(self, choose: Choose) -> ScheduleOutcome:
        """Runs them under one schedule."""
        return run_schedule(self.kinds, choose, self.disturbances, integrity=self.integrity)


@dataclass
class Tally:
    """What became of a group's schedules.

    Attributes:
        orders: By the order in which the operations started: schedules, violations, known limits.
        limits: How many came to each known limit.
        problems: How many had a problem of each kind, if they were judged for integrity.
        replays: The shortest choices to each first problem, and to each known limit.
        exhausted: Whether the budget ended before the schedules did, so that nothing is certain.
        seconds: How long it took.
    """

    kinds: tuple[str, ...]
    disturbances: int
    integrity: bool = False
    orders: dict[str, list[int]] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    problems: dict[str, int] = field(default_factory=dict)
    replays: dict[str, list[str]] = field(default_factory=dict)
    exhausted: bool = False
    seconds: float = 0.0

    @property
    def schedules(self) -> int:
        """How many there were."""
        return sum(counts[0] for counts in self.orders.values())

    @property
    def violations(self) -> int:
        """How many were violated."""
        return sum(counts[1] for counts in self.orders.values())

    def as_json(self) -> dict[str, Any]:
        """The tally as a JSON object."""
        return asdict(self)


def plan(kinds: Sequence[type[Operation]], depth: int, *, integrity: bool = False) -> list[Group]:
    """The groups to explore: pairs with every disturbance, then larger ones undisturbed.

    Updates of several items have many points at which to be disturbed: that happens to few pairs of
    them, and larger groups have none.

    Args:
        kinds: What there is to overlap.
        depth: How many operations the largest groups have.
        integrity: Whether to judge by the stricter verdict; larger groups then have at least one
            operation that is no update.
    """
    return [
        Group(tuple(kind.kind for kind in group), _disturbances(group, integrity), integrity)
        for size in range(2, depth + 1)
        for group in itertools.combinations_with_replacement(kinds, size)
        if not any(kind.alone and group.count(kind) > 1 for kind in group)
        if size == 2 or not any(kind in SEVERAL for kind in group)
        if size == 2 or not integrity or any(kind in HAPPENINGS for kind in group)
    ]


_DISTURBED = [(kind, AddingThree) for kind in (TextTurn, ToolOutput, AddingReplacement)]
"""Of the pairs with an update of several items, those that are disturbed."""


def _disturbances(group: Sequence[type[Operation]], integrity: bool) -> int:
    """One for a pair; none if another stands for it, or if neither of the two is an update."""
    if any(kind in SEVERAL for kind in group):
        return int(tuple(group) in _DISTURBED)
    happenings = sum(kind in HAPPENINGS for kind in group)
    handoffs = sum(kind is SessionStart for kind in group)  # a slow handoff takes all its steps
    return int(len(group) == 2 and not (integrity and happenings + handoffs == 2 and happenings))


def tally(group: Group, budget: int = BUDGET) -> Tally:
    """Explores one group to its end, or to the budget's."""
    started = time.perf_counter()
    found = Tally(group.kinds, group.disturbances, group.integrity)
    shortest: dict[str, Execution[ScheduleOutcome]] = {}
    executions: Iterator[Execution[ScheduleOutcome]] = every_path(group.run)
    for execution in itertools.islice(executions, budget):
        outcome = execution.result
        counts = found.orders.setdefault(" > ".join(outcome.order), [0, 0, 0])
        counts[0] += 1
        if not outcome.problems:
            continue
        counts[2 if outcome.limit else 1] += 1
        if outcome.limit:
            found.limits[outcome.limit] = found.limits.get(outcome.limit, 0) + 1
        for kind in () if outcome.limit else outcome.kinds:
            found.problems[kind] = found.problems.get(kind, 0) + 1
        problem = outcome.limit or outcome.problems[0]
        known = shortest.get(problem)
        if known is None or len(execution.choices) < len(known.choices):
            shortest[problem] = execution
    found.exhausted = found.schedules == budget and next(executions, None) is not None
    for problem, execution in sorted(shortest.items()):
        found.replays[problem] = list(_shortened(group, execution))
    found.seconds = time.perf_counter() - started
    return found


def warm_up() -> None:
    """Has this process imported and cached what it will need, and no more collect it as garbage."""
    follow(Group(("tool output", "text turn"), 0).run, [])
    gc.collect()
    gc.freeze()


def _shortened(group: Group, execution: Execution[ScheduleOutcome]) -> tuple[str, ...]:
    """The choices up to where the first open step is good enough to go wrong in the same way."""
    choices = execution.choices
    wrong = (execution.result.limit, execution.result.problems)
    while choices:
        again = follow(group.run, choices[:-1]).result
        if (again.limit, again.problems) != wrong:
            break
        choices = choices[:-1]
    return choices
