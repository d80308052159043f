"""What tests read off a talk."""

from __future__ import annotations

from typing import Any

from ctxlock.races.harness import Harness
from ctxlock.races.names import name_items
from livekit.agents import llm


def own_items(talk: Harness) -> list[Any]:
    """The items that the agent has, themselves; since 2.0 they are the activity's."""
    owner = talk.activity if hasattr(talk.activity, "_chat_ctx") else talk.activity.agent
    items: list[Any] = owner._chat_ctx.items
    return items


def asked(talk: Harness) -> list[list[str]]:
    """What each update from now on asks the provider for, by name."""
    realtime: Any = talk.realtime
    update, updates = realtime.update_chat_ctx, []

    async def update_chat_ctx(chat_ctx: llm.ChatContext) -> None:
        updates.append(name_items(chat_ctx.items))
        await update(chat_ctx)

    realtime.update_chat_ctx = update_chat_ctx
    return updates
