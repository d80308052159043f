"""Siblings of the lost items: the fallback adapter swaps one provider session for another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from _realtime_support import closed_by_full, still_lost
from siblings import both_ways

from ctxlock.races.fake_realtime import FakeRealtimeModel
from ctxlock.races.harness import Harness, idle, running
from ctxlock.races.loopback.push import TIMEOUT
from ctxlock.races.loopback.traffic import advance
from ctxlock.races.push import Push
from ctxlock.races.scenario import agent_with, note
from livekit.agents.llm.realtime_fallback_adapter import RealtimeModelFallbackAdapter

BEFORE, OLD, HELLO, NEXT = 'user "before"', 'user "old"', 'user "hello"', 'user "and now?"'

dropped = closed_by_full("the adapter drops what is pushed during a swap, and says nothing")


class Adapter(RealtimeModelFallbackAdapter):
    """Swaps a provider's session for another of the same provider."""

    def __init__(self, model: Any) -> None:
        super().__init__([model])
        self._model = model
        self.started: list[Push] = []

    @property
    def sessions(self) -> Any:
        return self._model.sessions

    def hold_next(self) -> None:
        """Holds what the next session is given when it is made."""
        session = self._model.session

        def held(**how: Any) -> Any:
            self._model.session = session
            opened = session(**how)
            self.started.append(self.sessions[-1].hold())
            return opened

        self._model.session = held


@asynccontextmanager
async def falling_back(over: Any) -> AsyncIterator[tuple[Harness, Adapter]]:
    if over is None:
        adapter = Adapter(FakeRealtimeModel())
        async with running(agent_with(), model=adapter) as talk:
            await talk.replace(note("before"), note("old"))
            yield talk, adapter
    else:
        async with over() as model:
            adapter = Adapter(model)
            async with running(agent_with(), model=adapter) as talk:
                await talk.replace(note("before"), note("old"))
                yield talk, adapter


async def begin_swap(talk: Harness, adapter: Adapter) -> Push:
    """Swaps until the new session waits for its context to be acknowledged."""
    adapter.hold_next()
    talk.start(adapter.restart_session())
    await idle()
    [push] = adapter.started
    await push.entered.wait()
    return push


@both_ways
class TestSwaps:
    @closed_by_full("the swap interrupts the message's turn, before it is recorded")
    async def test_typed_message_under_way(self, over: Any) -> None:
        async with falling_back(over) as (talk, adapter):
            push = talk.realtime.hold()
            talk.text_turn("hello")
            await push.entered.wait()
            swap = talk.start(adapter.restart_session())
            await idle()
            advance(TIMEOUT)  # that of an interruption, and of the engine
            await swap
            await talk.text_turn("and now?")
            await talk.expect(BEFORE, OLD, HELLO, NEXT)

    async def test_replacement_under_way(self, over: Any) -> None:
        async with falling_back(over) as (talk, adapter):
            push = talk.realtime.hold()
            talk.replace(note("A"), without=[OLD])
            await push.entered.wait()
            await talk.start(adapter.restart_session())
            advance(TIMEOUT)  # the engine waits for its old session till then, the next with it
            await idle()
            await talk.text_turn("hello")
            await talk.expect(BEFORE, 'user "A"', HELLO, gone=push.deletes)

    @dropped
    async def test_typed_message_during_one(self, over: Any) -> None:
        async with falling_back(over) as (talk, adapter):
            push = await begin_swap(talk, adapter)
            talk.text_turn("hello")
            await idle()
            push.release()
            await talk.expect(BEFORE, OLD, HELLO)

    @dropped
    async def test_replacement_that_adds_during_one(self, over: Any) -> None:
        async with falling_back(over) as (talk, adapter):
            push = await begin_swap(talk, adapter)
            talk.replace(note("A"))
            await idle()
            push.release()
            await talk.expect(BEFORE, OLD, 'user "A"')

    @still_lost("the adapter drops what is pushed during a swap, and removals are not made again")
    async def test_replacement_that_removes_during_one(self, over: Any) -> None:
        async with falling_back(over) as (talk, adapter):
            push = await begin_swap(talk, adapter)
            removed = [item.id for item in talk.local.items if item.type == "message"][:1]
            talk.replace(without=[BEFORE])
            await idle()
            push.release(1)
            await idle()
            push.release()
            await talk.expect(OLD, gone=removed)
