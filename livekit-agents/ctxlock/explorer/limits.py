"""What a lock around the updates cannot mend, and how a schedule that comes to it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..races.engine import conversation_items
from ..races.push import Create
from .history import HistoryEntry, State
from .operation import FINAL, label_items
from .operations import TextTurn
from .progress import Progress
from .serializability import judge, unfinished
from .session_events import Interruption
from .simulation import Simulation

__all__ = [
    "CUT_OFF",
    "DROPPED_TURN",
    "FAILED_REPLACEMENT",
    "LATE_ARRIVAL",
    "LIMITS",
    "SILENCE",
    "UNSENT_OUTPUT",
    "known_limit",
]

LATE_ARRIVAL = "late arrival"
FAILED_REPLACEMENT = "failed replacement"
DROPPED_TURN = "turn dropped by a handoff"
UNSENT_OUTPUT = "output dropped by an interruption"
SILENCE = "never acknowledged"
CUT_OFF = "cancelled inside of the client"
LIMITS = {
    LATE_ARRIVAL: (
        "The client gave up on an update, which arrived later all the same. The next update was "
        "sent before that. It relied on an item that the late update deletes, or on the place of "
        "an item that the late update adds."
    ),
    FAILED_REPLACEMENT: (
        "A replacement deleted what was added while it waited. The next replacement would have put "
        "that back, but failed. The agent keeps the context of the failed replacement."
    ),
    DROPPED_TURN: (
        "A text turn was asked for while a handoff waited for the old agent's updates. "
        "livekit-agents refused it with a RuntimeError. The part of the turn that had begun then "
        "found no session, and failed an assertion. Nothing of the turn was sent."
    ),
    UNSENT_OUTPUT: (
        "The time limit of an interruption cancelled a tool's task. The agent had recorded the "
        "tool's output, but had not asked to send it. The next replacement sends it."
    ),
    SILENCE: (
        "An update was never acknowledged, so it never ended. What livekit-agents itself lets wait "
        "for it never ended either. Nobody waited for the lock."
    ),
    CUT_OFF: (
        "An update was cancelled while it waited in the provider's own client, so it was never "
        "sent. The agent has it."
    ),
}
"""By name, in full sentences."""


Judge = Callable[[Simulation, State, State], Sequence[object]]


def known_limit(
    simulation: Simulation,
    problems: Sequence[str],
    verdict: Judge = judge,
    *,
    integrity: bool = False,
) -> str:
    """The known limit that explains every one of the problems, if one does.

    Args:
        simulation: A schedule at its end.
        problems: What is wrong with it, `unfinished` and by the verdict.
        verdict: What judges the two contexts.
        integrity: Whether only what no patch can mend is a limit.
    """
    dropped = {
        f"{progress.operation.name} raised {error!r}"
        for progress in simulation.progress
        for error in progress.errors()
        if isinstance(progress.operation, TextTurn)
        and any(other.overlaps_handoff(progress) for other in simulation.progress)
        and repr(error) == "AssertionError('rt_session is not available')"
    }
    if dropped.issuperset(problems):
        return DROPPED_TURN
    if unended := [*unfinished(simulation)]:
        silent = any(push.silent and not push.settled for push in simulation.pushes)
        waiting = any(lock._waiters for lock in simulation.locks)
        raised = any(" raised " in text for text in unended)
        if not silent or waiting or raised:
            return ""
        beyond = _hoped_for(simulation, lambda progress: progress.ended is None or progress.cut_off)
        unheard_of = [push for push in simulation.pushes if push.silent and not push.settled]
        names = _names(simulation)
        beyond |= {names[item.id] for push in unheard_of for item in push.creates}
        beyond |= {names[item_id] for push in unheard_of for item_id in push.deletes}
        return "" if verdict(simulation, beyond, frozenset()) else SILENCE
    beyond = _hoped_for(simulation, lambda progress: progress.cut_off)
    if beyond and not verdict(simulation, beyond, frozenset()):
        return CUT_OFF
    missing, misplaced = _astray(simulation)
    if (missing or misplaced) and not verdict(simulation, missing, misplaced):
        return LATE_ARRIVAL
    if (unsent := _unsent(simulation)) and not verdict(simulation, unsent, frozenset()):
        return UNSENT_OUTPUT
    if integrity:
        return ""
    overwritten = frozenset(_overwritten([progress.as_event() for progress in simulation.progress]))
    return (
        FAILED_REPLACEMENT
        if overwritten and not verdict(simulation, overwritten, frozenset())
        else ""
    )


def _names(simulation: Simulation) -> dict[str, str]:
    """The names of all items that are or were anywhere, by their ids."""
    items = [
        *simulation.initial,
        *conversation_items(simulation.talk.local),
        *simulation.realtime.server.items,
    ]
    for push in simulation.pushes:
        items += push.creates
    return dict(zip((item.id for item in items), label_items(items), strict=True))


def _hoped_for(simulation: Simulation, of: Callable[[Progress], bool]) -> State:
    """What some of the operations were to add and remove, and what a tool says after an outcome."""
    some = [progress for progress in simulation.progress if of(progress)]
    local = label_items(conversation_items(simulation.talk.local)) if some else []
    final = frozenset(name for name in local if name.endswith(FINAL))
    return final.union(*(p.effect.adds | p.effect.removes for p in some))


def _unsent(simulation: Simulation) -> State:
    """The outputs that the agent has and no update carried, where there was an interruption."""
    if not any(isinstance(progress.operation, Interruption) for progress in simulation.progress):
        return frozenset()
    local = conversation_items(simulation.talk.local)
    sent = {item.id for push in simulation.pushes for item in push.creates}
    return frozenset(
        name
        for item, name in zip(local, label_items(local), strict=True)
        if item.type == "function_call_output" and item.id not in sent
    )


def _overwritten(events: Sequence[HistoryEntry]) -> Iterator[str]:
    """What one replacement may delete, and another would have put back that failed."""
    replacements = [event for event in events if event.captured is not None]
    if all(event.certain for event in replacements):
        return
    for event in events:
        for other in replacements:
            if other.certain and other is not event and other.overlaps(event):
                yield from event.adds - (other.captured or frozenset())


def _astray(simulation: Simulation) -> tuple[State, State]:
    """The items that an update which arrived after its client had given up leads astray.

    Returns:
        Names of those that may be missing, as the late update deletes them, which is its
        operation's business, or deletes what they were to stand behind; and of those that may be
        misplaced, as they stand behind what it adds.
    """
    names = _names(simulation)
    effects = {progress.operation.name: progress.effect for progress in simulation.progress}
    missing: set[str] = set()
    misplaced: set[str] = set()
    for push in simulation.pushes:
        if push.given_up and push.owner in effects:
            missing |= {i for i in push.deletes if effects[push.owner].deletes(names[i])}
            misplaced |= {item.id for item in push.creates}
    for item, previous in simulation.realtime.server.orphans:  # in the order of their refusal
        if previous in missing:
            missing.add(item.id)
    for push in simulation.pushes:
        for operation in push.operations:
            if isinstance(operation, Create) and operation.previous_id in misplaced:
                misplaced.add(operation.item_id)
    return frozenset(names[i] for i in missing), frozenset(names[i] for i in misplaced)
