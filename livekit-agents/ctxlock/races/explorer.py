"""Runs operations under one schedule, and judges what they come to.

The verdict has two halves. The model's conversation must be what some sequential order of the
operations gives (`history`). And at rest, the agent's context and the model's must hold the same
items, in the same order where the design of livekit-agents makes them agree: it records some items
locally before it pushes them, so that two items whose operations overlapped may stand in either
order on either side. Items of which a disturbance kept the request, or its effect, from one of the
two sides are left out of both.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from livekit.agents import llm

from .clock import Stuck, VirtualLoop, virtual_clock
from .engine import conversation_items
from .history import Event, History, State, repeated
from .operations import TextTurn, make_operations
from .search import Choose, follow
from .verdict import NotAtRest, name_items
from .world import World

__all__ = ["LIMITS", "Outcome", "replay", "run_schedule"]

LATE_DELETION = "late deletion"
DROPPED_TURN = "turn dropped by a handoff"
LIMITS = {
    LATE_DELETION: (
        "The client gave up on an update that deletes the last item, and the update arrived all "
        "the same; the next item, sent meanwhile to stand behind the deleted one, was refused."
    ),
    DROPPED_TURN: (
        "A text turn that was queued while a handoff waited for the old agent's updates found the "
        "session gone and failed an assertion; nothing of it had been sent."
    ),
}
"""What a lock around the updates cannot mend: in the provider's client, and in the handoff."""


@dataclass(frozen=True)
class Outcome:
    """What became of one schedule.

    Attributes:
        problems: What is wrong with it; nothing if it is linearizable and at rest.
        limit: The known limit that all of it comes down to, a key of `LIMITS`, or nothing.
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
            problems = [*_unfinished(world), *_judge(world)]
            limit = _limit(world, problems) if problems else ""
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


def _limit(world: World, problems: Sequence[str]) -> str:
    """The known limit that explains every one of the problems, if one does."""
    dropped = {
        f"{progress.operation.name} raised {error!r}"
        for progress, error in world.errors()
        if isinstance(progress.operation, TextTurn)
        and any(other.overlaps_handoff(progress) for other in world.progress)
        and repr(error) == "AssertionError('rt_session is not available')"
    }
    if dropped.issuperset(problems):
        return DROPPED_TURN
    orphans = frozenset(name_items(world.orphaned))
    if orphans and not [*_unfinished(world), *_judge(world, orphans)]:
        return LATE_DELETION
    return ""


@contextmanager
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _unfinished(world: World) -> Iterator[str]:
    for progress in world.progress:
        if progress.ended is None:
            yield f"{progress.operation.name} never ends"
    for name in world.held_locks:
        yield f"{name} is still held"
    for progress, error in world.errors():
        yield f"{progress.operation.name} raised {error!r}"


def _judge(world: World, beyond: State = frozenset()) -> list[str]:
    """What is wrong with the two contexts, items ``beyond`` the verdict left out."""
    remote_items = world.talk.realtime.server.items
    local_items = conversation_items(world.talk.local)
    remote, local = name_items(remote_items), name_items(local_items)
    both = zip([*local_items, *remote_items], [*local, *remote], strict=True)
    names = {item.id: name for item, name in both}
    events = tuple(progress.as_event() for progress in world.progress)
    excused = beyond.union(
        (names[item_id] for item_id in world.dropped if item_id in names),
        *(event.adds | event.removes for event in events if not event.certain),
    )
    problems = History(frozenset(world.initial), events).explain(remote, excused)
    problems += [f"the agent has {name} twice" for name in sorted(repeated(local))]
    problems += _disagreements(local, remote, excused, events)
    if [item.id for item in world.talk.realtime.chat_ctx.items] != [i.id for i in remote_items]:
        problems.append("the client's mirror is not what the server has")
    return problems


def _disagreements(
    local: Sequence[str], remote: Sequence[str], excused: State, events: Sequence[Event]
) -> Iterator[str]:
    for name in sorted(set(local) - set(remote) - excused):
        yield f"only the agent has {name}"
    for name in sorted(set(remote) - set(local) - excused):
        yield f"only the model has {name}"
    adder = {name: event for event in events for name in event.adds}
    shared = [name for name in dict.fromkeys(remote) if name in local and name not in excused]
    for at, first in enumerate(shared):
        for second in shared[at + 1 :]:
            both = [adder[name] for name in (first, second) if name in adder]
            if local.index(first) > local.index(second) and not (
                len(both) == 2 and both[0].overlaps(both[1])
            ):
                yield f"the agent has {second} before {first}, and the model the other way round"
