"""What a lock around the updates cannot mend, and how a schedule that comes to it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .engine import conversation_items
from .happenings import Interruption
from .history import Event, State
from .judge import judge, unfinished
from .operation import label_items
from .operations import TextTurn
from .push import Create
from .world import World

__all__ = [
    "DROPPED_TURN",
    "FAILED_REPLACEMENT",
    "LATE_ARRIVAL",
    "LIMITS",
    "UNSENT_OUTPUT",
    "known_limit",
]

LATE_ARRIVAL = "late arrival"
FAILED_REPLACEMENT = "failed replacement"
DROPPED_TURN = "turn dropped by a handoff"
UNSENT_OUTPUT = "output dropped by an interruption"
LIMITS = {
    LATE_ARRIVAL: (
        "The client gave up on an update that arrived all the same; the next one, sent meanwhile, "
        "counted on an item that it deletes, or on the place of one that it adds."
    ),
    FAILED_REPLACEMENT: (
        "A replacement deleted what was added while it waited, and the next replacement, which "
        "would have put it back, failed; with the agent its context stands."
    ),
    DROPPED_TURN: (
        "A text turn was asked for while a handoff waited for the old agent's updates: "
        "livekit-agents said so with a RuntimeError, and what it had begun of the turn then found "
        "the session gone and failed an assertion; nothing of it had been sent."
    ),
    UNSENT_OUTPUT: (
        "An interruption's limit cancelled a tool's task after its output was recorded with the "
        "agent, and before it was asked to be sent; the next replacement sends it."
    ),
}
"""By name, in full sentences."""


Judge = Callable[[World, State, State], Sequence[object]]


def known_limit(
    world: World, problems: Sequence[str], verdict: Judge = judge, *, integrity: bool = False
) -> str:
    """The known limit that explains every one of the problems, if one does.

    Args:
        world: A schedule at its end.
        problems: What is wrong with it, `unfinished` and by the verdict.
        verdict: What judges the two contexts.
        integrity: Whether only what no patch can mend is a limit.
    """
    dropped = {
        f"{progress.operation.name} raised {error!r}"
        for progress in world.progress
        for error in progress.errors()
        if isinstance(progress.operation, TextTurn)
        and any(other.overlaps_handoff(progress) for other in world.progress)
        and repr(error) == "AssertionError('rt_session is not available')"
    }
    if dropped.issuperset(problems):
        return DROPPED_TURN
    if any(unfinished(world)):
        return ""
    missing, misplaced = _astray(world)
    if (missing or misplaced) and not verdict(world, missing, misplaced):
        return LATE_ARRIVAL
    if (unsent := _unsent(world)) and not verdict(world, unsent, frozenset()):
        return UNSENT_OUTPUT
    if integrity:
        return ""
    overwritten = frozenset(_overwritten([progress.as_event() for progress in world.progress]))
    return (
        FAILED_REPLACEMENT if overwritten and not verdict(world, overwritten, frozenset()) else ""
    )


def _unsent(world: World) -> State:
    """The outputs that the agent has and no update carried, where there was an interruption."""
    if not any(isinstance(progress.operation, Interruption) for progress in world.progress):
        return frozenset()
    local = conversation_items(world.talk.local)
    sent = {item.id for push in world.pushes for item in push.creates}
    return frozenset(
        name
        for item, name in zip(local, label_items(local), strict=True)
        if item.type == "function_call_output" and item.id not in sent
    )


def _overwritten(events: Sequence[Event]) -> Iterator[str]:
    """What one replacement may delete, and another would have put back that failed."""
    replacements = [event for event in events if event.captured is not None]
    if all(event.certain for event in replacements):
        return
    for event in events:
        for other in replacements:
            if other.certain and other is not event and other.overlaps(event):
                yield from event.adds - (other.captured or frozenset())


def _astray(world: World) -> tuple[State, State]:
    """The items that an update which arrived after its client had given up leads astray.

    Returns:
        Names of those that may be missing, as the late update deletes them, which is its
        operation's business, or deletes what they were to stand behind; and of those that may be
        misplaced, as they stand behind what it adds.
    """
    items = [*world.initial, *conversation_items(world.talk.local), *world.realtime.server.items]
    for push in world.pushes:
        items += push.creates
    names = dict(zip((item.id for item in items), label_items(items), strict=True))
    effects = {progress.operation.name: progress.effect for progress in world.progress}
    missing: set[str] = set()
    misplaced: set[str] = set()
    for push in world.pushes:
        if push.given_up and push.owner in effects:
            missing |= {i for i in push.deletes if effects[push.owner].deletes(names[i])}
            misplaced |= {item.id for item in push.creates}
    for item, previous in world.realtime.server.orphans:  # in the order of their refusal
        if previous in missing:
            missing.add(item.id)
    for push in world.pushes:
        for operation in push.operations:
            if isinstance(operation, Create) and operation.previous_id in misplaced:
                misplaced.add(operation.item_id)
    return frozenset(names[i] for i in missing), frozenset(names[i] for i in misplaced)
