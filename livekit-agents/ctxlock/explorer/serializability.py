"""Judges what the operations of a schedule have come to.

The verdict has two halves. The model's conversation must be what some sequential order of the
operations gives (`history`). And at rest, the agent's context and the model's must hold the same
items, in the same order where the design of livekit-agents makes them agree: it records some items
locally before it pushes them, so that two items whose operations overlapped may stand in either
order on either side. Items of which a disturbance kept the request, or its effect, from one of the
two sides are left out of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..races.engine import conversation_items
from ..races.verdict import name_items
from .history import History, HistoryEntry, State, repeated
from .simulation import Simulation

__all__ = ["judge", "unfinished"]


def unfinished(simulation: Simulation) -> Iterator[str]:
    """What has not come to rest, or ended in an error."""
    for progress in simulation.progress:
        if progress.ended is None:
            yield f"{progress.operation.name} never ends"
    for name in simulation.held_locks:
        yield f"{name} is still held"
    for progress in simulation.progress:
        for error in progress.errors():
            yield f"{progress.operation.name} raised {error!r}"


def judge(
    simulation: Simulation, beyond: State = frozenset(), unordered: State = frozenset()
) -> list[str]:
    """What is wrong with the two contexts.

    Args:
        simulation: A schedule at its end.
        beyond: Items that are not looked at.
        unordered: Items whose place is not looked at.
    """
    remote_items = simulation.talk.realtime.server.items
    local_items = conversation_items(simulation.talk.local)
    remote, local = name_items(remote_items), name_items(local_items)
    both = zip([*local_items, *remote_items], [*local, *remote], strict=True)
    names = {item.id: name for item, name in both}
    events = tuple(progress.as_event() for progress in simulation.progress)
    excused = beyond.union(
        (names[item_id] for item_id in simulation.dropped if item_id in names),
        *(event.adds | event.removes for event in events if not event.certain),
    )
    problems = History(frozenset(name_items(simulation.initial)), events).explain(remote, excused)
    problems += [f"the agent has {name} twice" for name in sorted(repeated(local))]
    problems += _disagreements(local, remote, excused, unordered, events)
    problems += simulation.talk.order.problems(beyond | unordered)
    if [item.id for item in simulation.talk.realtime.chat_ctx.items] != [
        i.id for i in remote_items
    ]:
        problems.append("the client's mirror is not what the server has")
    return problems


def _disagreements(
    local: Sequence[str],
    remote: Sequence[str],
    excused: State,
    unordered: State,
    events: Sequence[HistoryEntry],
) -> Iterator[str]:
    for name in sorted(set(local) - set(remote) - excused):
        yield f"only the agent has {name}"
    for name in sorted(set(remote) - set(local) - excused):
        yield f"only the model has {name}"
    adder = {name: event for event in events for name in event.adds}
    placed = set(local) - excused - unordered
    shared = [name for name in dict.fromkeys(remote) if name in placed]
    for at, first in enumerate(shared):
        for second in shared[at + 1 :]:
            both = [adder[name] for name in (first, second) if name in adder]
            if local.index(first) > local.index(second) and not (
                len(both) == 2 and both[0].overlaps(both[1])
            ):
                yield f"the agent has {second} before {first}, and the model the other way round"
