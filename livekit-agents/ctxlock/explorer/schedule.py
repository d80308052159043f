"""Runs operations under one schedule, chosen step by step, and says what they come to."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from livekit.agents import llm

from ..races.verdict import NotAtRest
from .clock import Stuck, VirtualLoop, virtual_clock
from .integrity import FROZEN, OTHER, Problem, judge_integrity, unfinished_kinds
from .kinds import make_operations
from .limits import SILENCE, known_limit
from .search import Choose, follow
from .serializability import judge, unfinished
from .simulation import Simulation

__all__ = ["ScheduleOutcome", "replay", "run_schedule"]


@dataclass(frozen=True)
class ScheduleOutcome:
    """What became of one schedule.

    Attributes:
        problems: What is wrong with it; nothing if it is linearizable and at rest.
        limit: The known limit that all of it comes down to, a key of `limits.LIMITS`, or nothing.
        order: The kinds of the operations in the order of their starts.
        kinds: The kinds of the problems, if they were judged for integrity.
    """

    problems: tuple[str, ...]
    limit: str
    order: tuple[str, ...]
    kinds: tuple[str, ...] = ()


def run_schedule(
    kinds: Sequence[str], choose: Choose, disturbances: int = 0, *, integrity: bool = False
) -> ScheduleOutcome:
    """Runs operations of these kinds to their end.

    Args:
        kinds: What overlaps; the operations are numbered from 1.
        choose: Says which step comes next.
        disturbances: How many updates or operations may be disturbed.
        integrity: Whether a provider may be silent, and the stricter verdict holds.
    """
    with _quiet(), virtual_clock():
        if not 1e9 <= llm.ChatMessage(role="user", content=[]).created_at < 1.1e9:
            raise RuntimeError("Import ctxlock.explorer.clock before livekit.agents.")
        loop = VirtualLoop()
        try:
            simulation = Simulation(loop, make_operations(kinds), disturbances, integrity)
            simulation.open()
            while steps := simulation.steps():
                simulation.take(steps[choose(list(steps))])
            problems = list(_judged(simulation, integrity))
            limit = _limit(simulation, problems, integrity) if problems else ""
            settled = len(problems)
            try:
                simulation.close()
            except (NotAtRest, Stuck) as error:
                problems.append(Problem(FROZEN, str(error)))
            problems += [Problem(OTHER, complaint) for complaint in simulation.complaints]
            limit = limit if len(problems) == settled or limit == SILENCE else ""
        finally:
            loop.set_task_factory(None)
            loop.set_exception_handler(None)
            loop.close()
    started = sorted(simulation.progress, key=lambda p: p.began or 0)
    order = tuple(p.operation.kind for p in started)
    found = sorted({problem.kind for problem in problems}) if integrity else []
    return ScheduleOutcome(tuple(p.text for p in problems), limit, order, tuple(found))


def _judged(simulation: Simulation, integrity: bool) -> Iterator[Problem]:
    for text in unfinished(simulation):
        yield Problem(unfinished_kinds(simulation, text), text)
    if integrity:
        yield from judge_integrity(simulation)
    else:
        yield from (Problem(OTHER, text) for text in judge(simulation))


def _limit(simulation: Simulation, problems: Sequence[Problem], integrity: bool) -> str:
    texts = [problem.text for problem in problems]
    verdict = judge_integrity if integrity else judge
    return known_limit(simulation, texts, verdict, integrity=integrity)


def replay(*kinds: str, choices: Sequence[str], integrity: bool = False) -> None:
    """Repeats a schedule that was found wanting.

    Args:
        kinds: The operations, as they were explored.
        choices: The steps, up to where it no longer matters.
        integrity: Whether it was found wanting by the stricter verdict.

    Raises:
        AssertionError: If something is wrong with it.
    """

    def run(choose: Choose) -> ScheduleOutcome:
        return run_schedule(kinds, choose, len(choices), integrity=integrity)

    outcome = follow(run, choices).result
    assert not outcome.problems, "; ".join(outcome.problems)


@contextmanager
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
