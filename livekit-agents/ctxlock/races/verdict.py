"""What went wrong, if anything: is an item lost that nobody removed, or back that somebody did?"""

from __future__ import annotations

from collections.abc import Sequence

from livekit.agents import llm

from .backend import Realtime
from .engine import conversation_items
from .names import name_items
from .trace import note

__all__ = ["HandoffCrash", "LostUpdate", "NotAtRest", "OutOfOrder", "check", "name_items"]


class LostUpdate(AssertionError):
    """An item was lost or came back, or the two sides no longer agree on what there is."""


class OutOfOrder(LostUpdate):
    """Nothing is lost, but what the application put in an order did not stay in it."""


class HandoffCrash(AssertionError):
    """A replacement that waited while a handoff took its session ended in an error.

    Nothing is lost then, so it is no `LostUpdate`; and an ``AttributeError`` as such could be
    anything, a mistake in a test included.
    """


class NotAtRest(AssertionError):
    """Something was still going on when all was said and done: a lock held, a task left over."""


def check(
    realtime: Realtime,
    *,
    kept: Sequence[str] = (),
    gone: Sequence[str] = (),
    local: llm.ChatContext | None = None,
    ordered: bool = True,
    disorder: Sequence[str] = (),
) -> None:
    """Compares what the model sees with what it should.

    Args:
        realtime: The connection whose server is looked at.
        kept: Names of items that must be there, once each.
        gone: Ids of items that must not.
        local: The agent's context; both sides must then hold the same items.
        ordered: Whether they must also agree on the order.
        disorder: What did not stay in the order that was asked for.

    Raises:
        LostUpdate: If the conversation is not as it should be.
        OutOfOrder: If nothing else is wrong with it.
    """
    remote = realtime.server.items
    names = name_items(remote)
    own = conversation_items(local) if local is not None else []
    note("end", model=list(remote), **({} if local is None else {"agent": own}))
    ids = [item.id for item in remote]
    has_it = {False: "", True: ", though the agent has it"}
    lost = [name for name in kept if name not in names]
    problems = [f"{name} is lost{has_it[name in name_items(own)]}" for name in lost]
    problems += [f"{name} is there twice" for name in kept if names.count(name) > 1]
    back = [name for name, i in zip(names, ids, strict=True) if i in gone]
    problems += [f"{name} is back, though it was deleted" for name in back]
    mirror = [item.id for item in realtime.chat_ctx.items]
    if mirror != ids:
        problems.append("the engine's mirror is not what the server has")
    if local is not None:
        problems += _disagreements(own, remote, ordered=ordered, told=[*lost, *back])
    kind = LostUpdate if problems else OutOfOrder
    problems += disorder
    if problems:
        raise kind("\n".join([f"{'; '.join(problems)}.", *_story(realtime)]))


def _disagreements(
    local: Sequence[llm.ChatItem],
    remote: Sequence[llm.ChatItem],
    *,
    ordered: bool,
    told: Sequence[str],
) -> list[str]:
    if not any(item.type.startswith("function_call") for item in local):
        # in the oldest releases an agent's context has no tool items at all
        remote = [item for item in remote if item.type == "message"]
    local_ids = [item.id for item in local]
    remote_ids = [item.id for item in remote]
    if local_ids == remote_ids or (not ordered and sorted(local_ids) == sorted(remote_ids)):
        return []
    names = dict(zip(local_ids, name_items(local), strict=True))
    names |= dict(zip(remote_ids, name_items(remote), strict=True))
    agents = [names[i] for i in local_ids if i not in remote_ids]
    models = [names[i] for i in remote_ids if i not in local_ids]
    if not agents and not models:
        return [f"the agent's order is another: {', '.join(names[i] for i in local_ids)}"]
    found = [f"only the agent has {name}" for name in agents if name not in told]
    return found + [f"only the model has {name}" for name in models if name not in told]


def _story(realtime: Realtime) -> list[str]:
    """Who created and deleted what, for the reader of a failure."""
    known = {item.id: item for item in realtime.server.items}
    for push in realtime.pushes:
        known |= {item.id: item for item in push.creates}
    names = dict(zip(known, name_items(known.values()), strict=True))
    lines = []
    for number, push in enumerate(realtime.pushes, 1):
        steps = [f"deletes {names.get(i, 'an item')} ({i})" for i in push.deletes]
        steps += [f"creates {names[item.id]} ({item.id})" for item in push.creates]
        lines.append(f"  push {number}: {', '.join(steps)}")
    seen = ", ".join(f"{names[item.id]} ({item.id})" for item in realtime.server.items)
    return [*lines, f"  the model sees: {seen or 'nothing'}"]
