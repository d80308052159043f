"""Runs operations under one schedule, chosen step by step, and says what they come to."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from livekit.agents import llm

from .clock import Stuck, VirtualLoop, virtual_clock
from .judge import judge, unfinished
from .limits import known_limit
from .operations import make_operations
from .search import Choose, follow
from .verdict import NotAtRest
from .world import World

__all__ = ["Outcome", "replay", "run_schedule"]


@dataclass(frozen=True)
class Outcome:
    """What became of one schedule.

    Attributes:
        problems: What is wrong with it; nothing if it is linearizable and at rest.
        limit: The known limit that all of it comes down to, a key of `limits.LIMITS`, or nothing.
        order: The kinds of the operations in the order of their starts.
    """

    problems: tuple[str, ...]
    limit: str
    order: tuple[str, ...]


def run_schedule(kinds: Sequence[str], choose: Choose, disturbances: int = 0) -> Outcome:
    """Runs operations of these kinds to their end.

    Args:
        kinds: What overlaps; the operations are numbered from 1.
        choose: Says which step comes next.
        disturbances: How many updates or operations may be disturbed.
    """
    with _quiet(), virtual_clock():
        if not 1e9 <= llm.ChatMessage(role="user", content=[]).created_at < 1.1e9:
            raise RuntimeError("Import ctxlock.races.clock before livekit.agents.")
        loop = VirtualLoop()
        try:
            world = World(loop, make_operations(kinds), disturbances)
            world.open()
            while steps := world.steps():
                world.take(steps[choose(list(steps))])
            problems = [*unfinished(world), *judge(world)]
            limit = known_limit(world, problems) if problems else ""
            settled = len(problems)
            try:
                world.close()
            except (NotAtRest, Stuck) as error:
                problems.append(str(error))
            problems += world.complaints
            limit = limit if len(problems) == settled else ""
        finally:
            loop.close()
    started = sorted(world.progress, key=lambda p: p.began or 0)
    order = tuple(p.operation.kind for p in started)
    return Outcome(tuple(problems), limit, order)


def replay(*kinds: str, choices: Sequence[str]) -> None:
    """Repeats a schedule that was found wanting.

    Args:
        kinds: The operations, as they were explored.
        choices: The steps, up to where it no longer matters.

    Raises:
        AssertionError: If something is wrong with it.
    """
    outcome = follow(lambda choose: run_schedule(kinds, choose, len(choices)), choices).result
    assert not outcome.problems, "; ".join(outcome.problems)


@contextmanager
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
