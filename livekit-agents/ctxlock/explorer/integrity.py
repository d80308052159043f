"""The stricter verdict: is an item missing that nobody removed, and do both sides agree at rest?

It goes further than `judge`, which asks for what a lock around the updates can promise:

- A replacement deletes what its caller left out and the agent or the session held when it was
  called. What came later stays, though the replacement had to wait and is the last to be sent.
- An item that the server added stays, unless an operation is there to remove it. That its agent
  should have noted it, and did not, is no excuse: a caller who copies the agent's context leaves
  out nothing. A handoff may leave out what was done on the old agent's behalf meanwhile, though,
  what the model called included; what the user said stays.
- The attached agent's context and the model's agree, in their order too, also if an update was
  given up on and arrived late, or whoever waited for it was cancelled.

Of what a disturbance kept from the server, and of what a new connection cannot repeat, nothing is
asked. Each problem is of a kind, by what it is about; tables count the kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from livekit.agents import llm

from ..races.engine import conversation_items
from .history import History, HistoryEntry, State, repeated
from .operation import FINAL, Operation, label_items
from .operations import Cleanup, SessionStart
from .session_events import ModelCall, Reconnection, UserSpeech
from .simulation import Simulation

__all__ = [
    "FROZEN",
    "KINDS_OF_PROBLEMS",
    "OTHER",
    "Problem",
    "judge_integrity",
    "rewritten",
    "unfinished_kinds",
]

SERVER_ITEM = "1 server item lost"
ARRIVED = "2 arrived while waiting lost"
HANDOFF_SERVER = "3 server item lost at a handoff"
HANDOFF = "4 update lost at a handoff"
TYPED = "5 typed message on one side only"
FROZEN = "6 frozen"
RECONNECTION = "7 lost at a reconnection"
ORDER = "8 in another order"
ASKED_ORDER = "9 not in the order asked for"
OTHER = "10 other"
KINDS_OF_PROBLEMS = (
    SERVER_ITEM,
    ARRIVED,
    HANDOFF_SERVER,
    HANDOFF,
    TYPED,
    FROZEN,
    RECONNECTION,
    ORDER,
    ASKED_ORDER,
    OTHER,
)


UNHEARD = 'assistant ""'


@dataclass(frozen=True)
class Problem:
    """Something that is wrong, in words, and of which kind it is."""

    kind: str
    text: str


def rewritten(simulation: Simulation) -> tuple[HistoryEntry, ...]:
    """The operations as events of which replacements delete no more than they may."""
    events = [progress.as_event() for progress in simulation.progress]
    server = _from_server(simulation)
    added = server.union(*(event.adds for event in events))
    found = []
    for progress, event in zip(simulation.progress, events, strict=True):
        if isinstance(progress.operation, SessionStart):
            event = replace(event, stays=_from_server(simulation, UserSpeech))
        elif isinstance(progress.operation, ModelCall):
            late = any(other.overlaps_handoff(progress) for other in simulation.progress)
            event = replace(event, certain=event.certain and not late)
        elif event.captured is not None:
            agent, session = progress.held
            event = replace(event, stays=added - (agent | (session - server)), spares=False)
        found.append(event)
    return tuple(found)


def judge_integrity(
    simulation: Simulation, beyond: State = frozenset(), unordered: State = frozenset()
) -> list[Problem]:
    """What is wrong with the two contexts; the arguments are as for `judge.judge`."""
    remote_items = simulation.realtime.server.items
    local_items = conversation_items(simulation.talk.local)
    remote, local = label_items(remote_items), label_items(local_items)
    excused = beyond | _excused(simulation, [*local_items, *remote_items], [*local, *remote])
    about = _About(simulation)
    initial = frozenset(label_items(simulation.initial))
    lenient = History(initial, tuple(progress.as_event() for progress in simulation.progress))
    strict = History(initial, rewritten(simulation))
    found = []
    # that a tool was let go on is the agent's doing, not the operation's
    expected = [name for name in remote if not name.endswith(FINAL)]
    lost, extra = strict.difference(expected, excused)
    lost_anyway, _ = lenient.difference(expected, excused)
    for name in sorted(lost):
        kind = about.lost(name, only_strictly=name not in lost_anyway)
        found.append(Problem(kind, f"{name} is lost"))
    found += [Problem(OTHER, f"{name} is back") for name in sorted(extra)]
    for side, names in (("agent", local), ("model", remote)):
        twice = sorted(repeated(names))
        found += [Problem(OTHER, f"the {side} has {name} twice") for name in twice]
    found += [
        Problem(about.one_sided(name), f"only the {side} has {name}")
        for side, here, there in (("agent", local, remote), ("model", remote, local))
        for name in sorted(set(here) - set(there) - excused)
    ]
    texts = {name: _text(item) for name, item in zip(remote, remote_items, strict=True)}
    for name, item in zip(local, local_items, strict=True):
        if name not in excused and texts.get(name, _text(item)) != _text(item):
            found.append(Problem(about.one_sided(name), f"the text of {name} differs"))
    placed = set(remote) & set(local) - excused - unordered
    if [n for n in local if n in placed] != [n for n in remote if n in placed]:
        order = ", ".join(name for name in local if name in placed)
        found.append(Problem(ORDER, f"the agent's order is another: {order}"))
    disorder = simulation.talk.order.problems(beyond | unordered)
    found += [Problem(ASKED_ORDER, text) for text in disorder]
    if [item.id for item in simulation.realtime.chat_ctx.items] != [i.id for i in remote_items]:
        found.append(Problem(OTHER, "the client's mirror is not what the server has"))
    return found


def unfinished_kinds(simulation: Simulation, text: str) -> str:
    """The kind of something that has not come to rest, or ended in an error."""
    if " raised " not in text:
        return FROZEN
    return HANDOFF if _About(simulation).handoff else OTHER


class _About:
    """Tells the kinds of problems by what happened."""

    def __init__(self, simulation: Simulation) -> None:
        operations = [progress.operation for progress in simulation.progress]
        self.server = _from_server(simulation)
        self.handoff = any(isinstance(operation, SessionStart) for operation in operations)
        self.reconnection = any(isinstance(operation, Reconnection) for operation in operations)

    def lost(self, name: str, only_strictly: bool) -> str:
        if only_strictly and not self.handoff:
            return ARRIVED
        return self._elsewhere(name)

    def one_sided(self, name: str) -> str:
        return TYPED if name.startswith('user "text ') else self._elsewhere(name)

    def _elsewhere(self, name: str) -> str:
        if self.reconnection and name.startswith("system "):
            return RECONNECTION
        if name in self.server:
            return HANDOFF_SERVER if self.handoff else SERVER_ITEM
        return HANDOFF if self.handoff else OTHER


def _text(item: llm.ChatItem) -> str:
    return (item.text_content or "") if item.type == "message" else ""


def _from_server(simulation: Simulation, kind: type[Operation] = Operation) -> State:
    operations = [progress.operation for progress in simulation.progress]
    return frozenset().union(*(o.initiates for o in operations if isinstance(o, kind)))


def _excused(simulation: Simulation, items: list[llm.ChatItem], labels: list[str]) -> State:
    names = {item.id: name for item, name in zip(items, labels, strict=True)}
    kept_from = {push.owner for push in simulation.pushes if push.dropped}
    return frozenset(_all_excused(simulation, names, kept_from))


def _all_excused(
    simulation: Simulation, names: dict[str, str], kept_from: set[str]
) -> Iterator[str]:
    yield from (names[item_id] for item_id in simulation.dropped if item_id in names)
    kinds = {type(progress.operation) for progress in simulation.progress}
    if Cleanup in kinds and any(issubclass(kind, SessionStart) for kind in kinds):
        yield UNHEARD  # without a text, so that no provider is sent it if it was handed over
    for progress in simulation.progress:
        yield from progress.operation.forgets
        if progress.operation.name in kept_from:
            yield from progress.effect.adds | progress.effect.removes
