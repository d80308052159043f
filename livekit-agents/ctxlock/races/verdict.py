"""What went wrong, if anything: is an item missing that nobody removed, or back that somebody did?

Items are named by what they are, not by their ids, which differ from run to run: ``user "hello"``,
``function_call lookup``, ``function_call_output of lookup``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from livekit.agents import llm

from .backend import Realtime
from .engine import conversation_items

__all__ = ["HandoffCrash", "LostUpdate", "NotAtRest", "check", "name_items"]


class LostUpdate(AssertionError):
    """An item was lost or came back, or the two sides no longer agree on what there is."""


class HandoffCrash(AssertionError):
    """A replacement that waited while a handoff took its session ended in an error.

    Nothing is lost then, so it is no `LostUpdate`; and an ``AttributeError`` as such could be
    anything, a mistake in a test included.
    """


class NotAtRest(AssertionError):
    """Something was still going on when all was said and done: a lock held, a task left over."""


def name_items(items: Iterable[Any]) -> list[str]:
    """Names items by what they are; an output goes by the call it answers, if that is there.

    Args:
        items: Those of a chat context, or of a conversation of the loopback server.
    """
    items = list(items)
    tools = {item.call_id: item.name for item in items if item.type == "function_call"}
    return [_name(item, tools) for item in items]


def _name(item: Any, tools: dict[str, str]) -> str:
    if item.type == "function_call":
        return f"function_call {item.name}"
    if item.type == "function_call_output":
        tool = item.name or tools.get(item.call_id, item.call_id)
        return f"function_call_output of {tool}"
    if item.type == "message":
        return f'{item.role} "{item.text_content or ""}"'
    return str(item.type)


def check(
    realtime: Realtime,
    *,
    kept: Sequence[str] = (),
    gone: Sequence[str] = (),
    local: llm.ChatContext | None = None,
    ordered: bool = True,
) -> None:
    """Compares what the model sees with what it should.

    Args:
        realtime: The connection whose server is looked at.
        kept: Names of items that must be there, once each.
        gone: Ids of items that must not.
        local: The agent's context; both sides must then hold the same items.
        ordered: Whether they must also agree on the order.

    Raises:
        LostUpdate: If the conversation is not as it should be.
    """
    remote = realtime.server.items
    names = name_items(remote)
    ids = [item.id for item in remote]
    problems = [f"{name} is missing" for name in kept if name not in names]
    problems += [f"{name} is there twice" for name in kept if names.count(name) > 1]
    problems += [f"the deleted item {i} is back" for i in gone if i in ids]
    mirror = [item.id for item in realtime.chat_ctx.items]
    if mirror != ids:
        problems.append("the engine's mirror is not what the server has")
    if local is not None:
        problems += _disagreements(conversation_items(local), remote, ordered=ordered)
    if problems:
        raise LostUpdate("\n".join([f"{'; '.join(problems)}.", *_story(realtime)]))


def _disagreements(
    local: Sequence[llm.ChatItem], remote: Sequence[llm.ChatItem], *, ordered: bool
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
    found = [f"only the agent has {names[i]}" for i in local_ids if i not in remote_ids]
    found += [f"only the model has {names[i]}" for i in remote_ids if i not in local_ids]
    order = ", ".join(names[i] for i in local_ids)
    return found or [f"the agent's order is another: {order}"]


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
