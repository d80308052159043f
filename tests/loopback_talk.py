"""An engine without an agent, connected to the scripted server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ctxlock.races.harness import idle
from ctxlock.races.loopback.far_end import FarEnd
from ctxlock.races.loopback.model import serving
from livekit.agents import llm


def context(*names: str) -> llm.ChatContext:
    """User messages of these ids, which say their names in small letters."""
    return llm.ChatContext(
        [llm.ChatMessage(id=name, role="user", content=[name.lower()]) for name in names]
    )


def ids(chat_ctx: Any) -> list[str]:
    return [item.id for item in chat_ctx.items]


class Talk:
    """The engine and its far end, and the errors that the engine reports."""

    def __init__(self, engine: Any, far_end: FarEnd) -> None:
        self.engine, self.far_end = engine, far_end
        self.errors: list[Any] = []
        engine.on("error", lambda event: self.errors.append(event.error))

    def send(self, kind: str, **more: Any) -> None:
        """Has the engine send an event that it would not send by itself."""
        self.engine.send_event({"type": kind, **more})

    def refusals(self) -> list[str]:
        return [error.body.code for error in self.errors]

    def assert_agreed(self, *names: str) -> None:
        """Both ends have these items, in this order."""
        assert ids(self.far_end.server) == ids(self.engine.chat_ctx) == list(names)


@asynccontextmanager
async def connected(**options: Any) -> AsyncIterator[Talk]:
    async with serving(**options) as model:
        engine = model.session()
        await idle()
        try:
            yield Talk(engine, model.sessions[0])
            await idle()
        finally:
            await engine.aclose()
