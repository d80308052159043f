"""How tests have a session reconnect."""

from __future__ import annotations

from ctxlock.races.harness import Harness, idle
from ctxlock.races.loopback.traffic import advance


async def let_it_repeat() -> None:
    """The plugin has repeated what it knows, and says no more."""
    for _ in range(3):
        await idle()
        advance(1.0)
    await idle()


async def reconnect(talk: Harness, times: int = 1) -> None:
    for _ in range(times):
        talk.realtime.cut()
        await let_it_repeat()
