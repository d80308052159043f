"""A lost connection: the plugin repeats what was acknowledged, and the rest is put back, once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from _realtime_support import (
    BEYOND_THE_LOCK,
    RESENDS,
    TELLS_OF_ITEMS,
    closed_by_full,
    needs,
    still_lost,
)
from patience import PATIENCE, impatient
from reconnections import let_it_repeat, reconnect

from ctxlock.races.fake_realtime import FakeRealtimeModel, FakeRealtimeSession
from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.loopback.traffic import advance
from ctxlock.races.names import name_items
from ctxlock.races.push import Push
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import LostUpdate
from livekit.agents import Agent, APIConnectionError, llm

pytestmark = needs(BEYOND_THE_LOCK, TELLS_OF_ITEMS)

HELLO = 'user "hello"'
OUTPUT = "function_call_output of lookup"

back = still_lost("the plugin repeats what it could not delete; each update of its is as on stock")
lost = closed_by_full("what was not acknowledged in time is with the agent alone")

how_often = pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])


async def send_in_vain(talk: Harness, text: str) -> None:
    """The user types, and the provider never hears of it."""
    push = talk.realtime.hold()
    talk.text_turn(text)
    await push.entered.wait()
    push.time_out(lost=True)
    await idle()


async def remove_in_vain(talk: Harness, name: str) -> list[str]:
    """The application removes an item, and the provider never hears of it; returns its id."""
    push = talk.realtime.hold()
    removal = talk.replace(without=[name])
    await push.entered.wait()
    push.time_out(lost=True)
    with pytest.raises(llm.RealtimeError):
        await removal
    return push.deletes


@needs(RESENDS)
@how_often
async def test_everything_is_there_again_and_once(times: int) -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.text_turn("hello")
        heard = talk.realtime.hear()
        await idle()
        talk.realtime.transcribe(heard, "good day")
        await idle()
        await talk.call(lookup)
        lookup.finish()
        await idle()
        await reconnect(talk, times)
        await talk.expect(HELLO, 'user "good day"', "function_call lookup", OUTPUT)
        await talk.text_turn("and now?")
        await talk.expect(HELLO, 'user "good day"', OUTPUT, 'user "and now?"')


@lost
@how_often
async def test_typed_message_that_was_never_acknowledged(times: int) -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        await send_in_vain(talk, "hello")
        await reconnect(talk, times)
        await talk.expect('user "before"', HELLO)
        await talk.text_turn("and now?")
        await talk.expect('user "before"', HELLO, 'user "and now?"')


@lost
async def test_typed_message_in_the_middle_that_was_never_acknowledged() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        await send_in_vain(talk, "hello")
        heard = talk.realtime.hear()
        await idle()
        talk.realtime.transcribe(heard, "good day")
        await idle()
        await reconnect(talk)
        await talk.expect('user "before"', HELLO, 'user "good day"')


@lost
async def test_typed_message_while_the_provider_still_repeats_the_rest() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"), note("and another"))
        await send_in_vain(talk, "hello")
        again = talk.realtime.hold()
        await reconnect(talk)
        talk.text_turn("and now?")
        await idle()
        again.release(1)
        await idle()
        again.release()
        await let_it_repeat()
        await talk.expect('user "before"', 'user "and another"', HELLO, 'user "and now?"')


@needs(RESENDS)
@how_often
async def test_typed_message_that_is_under_way(times: int) -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        push = talk.realtime.hold()
        talk.text_turn("hello")
        await push.entered.wait()
        await reconnect(talk, times)
        await talk.expect('user "before"', HELLO)


@back
@how_often
async def test_removed_item_does_not_come_back(times: int) -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"), note("unwanted"), note("behind"))
        removed = await remove_in_vain(talk, 'user "unwanted"')
        await reconnect(talk, times)
        await talk.expect('user "before"', 'user "behind"', gone=removed)


@back
async def test_removed_item_at_the_end_does_not_come_back() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"), note("unwanted"))
        removed = await remove_in_vain(talk, 'user "unwanted"')
        await reconnect(talk)
        await talk.expect('user "before"', gone=removed)
        await talk.text_turn("hello")
        await talk.expect('user "before"', HELLO, gone=removed)


@back
async def test_removed_turn_does_not_come_back() -> None:
    async with running(agent_with()) as talk:
        heard = talk.realtime.hear()
        await idle()
        talk.realtime.transcribe(heard, "good day")
        await idle()
        removed = await remove_in_vain(talk, 'user "good day"')
        await reconnect(talk)
        await talk.expect(gone=removed)


@back
async def test_removed_items_do_not_come_back_while_a_message_is_owed() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"), note("unwanted"))
        await send_in_vain(talk, "hello")
        removed = await remove_in_vain(talk, 'user "unwanted"')
        again = talk.realtime.hold()
        await reconnect(talk)
        again.release()
        await let_it_repeat()
        await talk.expect('user "before"', HELLO, gone=removed)


@back
async def test_item_of_an_earlier_agent_does_not_come_back() -> None:
    async with running(agent_with()) as talk:
        old = note("of the old agent")
        await talk.replace(old)
        push = talk.realtime.hold()
        talk.session.update_agent(agent_with())
        await push.entered.wait()
        push.time_out(lost=True)  # the start of the new agent's session
        await idle()
        await reconnect(talk)
        await talk.expect(gone=[old.id])


@needs(RESENDS)
async def test_replacement_that_waits_while_the_connection_is_lost() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        push = talk.realtime.hold()
        talk.replace(note("A"))
        await push.entered.wait()
        talk.replace(note("B"))
        await idle()
        await reconnect(talk)
        await talk.expect('user "before"', 'user "A"', 'user "B"')


async def test_connection_lost_between_two_activities() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        before = talk.activity
        close = before.aclose

        async def aclose() -> None:
            await reconnect(talk)
            await close()

        before.aclose = aclose
        talk.session.update_agent(agent_with())
        handoff: Any = talk.session._update_activity_atask
        await handoff
        await talk.expect()
        if talk.realtime.server.items:
            raise LostUpdate("What the old agent had is there again.")


@lost
@how_often
async def test_system_message_comes_back_in_its_place(times: int) -> None:
    async with running(agent_with()) as talk:
        system = llm.ChatMessage(role="system", content=["be brief"])
        await talk.replace(note("before"), system, note("behind"))
        errors: list[Any] = []
        talk.session.on("error", errors.append)
        for _ in range(times):
            pushes = len(talk.realtime.pushes)
            await reconnect(talk)
            names = ('user "before"', 'system "be brief"', 'user "behind"')
            await talk.expect(*names)
            assert name_items(talk.realtime.server.items) == [*names]
            again = [item.id for push in talk.realtime.pushes[pushes:] for item in push.creates]
            assert len(again) == len(set(again)) == 3
        told = [event.error.error for event in errors]
        assert all(isinstance(error, APIConnectionError) for error in told), "of the cut alone"


@lost
async def test_system_message_that_is_all_there_is_comes_back_at_once() -> None:
    """The plugin has nothing to repeat, so that nothing is waited for."""
    async with running(agent_with()) as talk:
        await talk.replace(llm.ChatMessage(role="system", content=["be brief"]))
        talk.realtime.cut()
        await idle()
        await talk.text_turn("hello")
        await talk.expect('system "be brief"', HELLO)


@lost
async def test_connection_lost_again_while_something_is_put_back() -> None:
    async with running(agent_with()) as talk:
        system = llm.ChatMessage(role="system", content=["be brief"])
        await talk.replace(note("before"), system)
        await send_in_vain(talk, "hello")
        repeated, put_back = talk.realtime.hold(), talk.realtime.hold()
        talk.realtime.cut()
        await idle()
        repeated.release()
        await let_it_repeat()
        put_back.release(1)
        await idle()
        await reconnect(talk)
        await let_it_repeat()
        await talk.expect('user "before"', 'system "be brief"', HELLO)


@needs(RESENDS)
@lost
async def test_output_left_behind_that_was_never_acknowledged() -> None:
    """Its task is ended while it waits; the one that pushes it in its stead has no answer."""
    lookup = GatedTool("lookup")
    with impatient():
        async with running(agent_with(lookup)) as talk:
            push, in_its_stead = talk.realtime.hold(), talk.realtime.hold()
            talk.replace(note("before"))
            await push.entered.wait()
            await talk.call_and_interrupt(lookup)
            lookup.finish()
            await idle()
            advance(PATIENCE)
            await idle()
            push.release()
            await idle()
            if in_its_stead.entered.is_set():
                in_its_stead.time_out(lost=True)
            in_its_stead.release()
            await idle()
            await reconnect(talk)
            await talk.expect('user "before"', "function_call lookup", OUTPUT)


async def test_session_that_is_closed_before_anything_is_repeated() -> None:
    """No task is left over, which the harness looks for."""
    async with running(agent_with()) as talk:
        await talk.replace(note("before"), llm.ChatMessage(role="system", content=["be brief"]))
        talk.realtime.hold()  # of what the plugin repeats
        talk.realtime.cut()
        await idle()
        advance(1.0)
        await idle()


class HoldingModel(FakeRealtimeModel):
    """Holds the first update of each session, which its start makes."""

    def __init__(self) -> None:
        super().__init__()
        self.first: asyncio.Queue[Push] = asyncio.Queue()

    def session(self, **how: Any) -> FakeRealtimeSession:
        session = super().session(**how)
        self.first.put_nowait(session.hold())
        return session


@lost
async def test_first_context_that_was_never_acknowledged() -> None:
    model = HoldingModel()

    async def lose_it() -> None:
        push = await model.first.get()
        await push.entered.wait()
        push.time_out(lost=True)

    losing = asyncio.create_task(lose_it())
    agent = Agent(instructions="Answer.", chat_ctx=llm.ChatContext([note("before")]))
    async with running(agent, model=model) as talk:
        await losing
        heard = talk.realtime.hear()
        await idle()
        talk.realtime.transcribe(heard, "good day")
        await idle()
        await reconnect(talk)
        await talk.expect('user "before"', 'user "good day"')
