"""What the agent has of what was said, called and removed, without any race."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from typing import Any

import pytest
from _realtime_support import BEYOND_THE_LOCK, CATCHES_FAILED_UPDATES, needs, still_lost
from silent_provider import ForgetfulSession, SilentModel, SilentSession, silent

from ctxlock.races.fake_realtime import FakeRealtimeSession
from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import LostUpdate, name_items
from livekit.agents import llm

pytestmark = needs(BEYOND_THE_LOCK, CATCHES_FAILED_UPDATES)

BEFORE, HELLO, HEARD = 'user "before"', 'user "hello"', 'user "good day"'
CALL, OUTPUT = "function_call lookup", "function_call_output of lookup"


async def remove_in_vain(talk: Harness, name: str) -> list[str]:
    """The application removes an item, and the provider never hears of it; returns its id."""
    push = talk.realtime.hold()
    removal = talk.replace(without=[name])
    await push.entered.wait()
    push.time_out(lost=True)
    await asyncio.gather(removal, return_exceptions=True)
    return push.deletes


class HastySession(FakeRealtimeSession):
    """A provider that tells of an item before its mirror has it."""

    _told_of = ""

    def emit(self, event: Any, *args: Any) -> None:
        self._told_of = args[0].item.id if event == "remote_item_added" else ""
        super().emit(event, *args)
        self._told_of = ""

    @property
    def chat_ctx(self) -> llm.ChatContext:
        return llm.ChatContext([i for i in super().chat_ctx.items if i.id != self._told_of])


class TestWhatWasRemoved:
    @still_lost("the snapshot of the next message still has it")
    async def test_message_after_a_removal_that_was_never_acknowledged(self) -> None:
        async with running(agent_with()) as talk:
            await talk.replace(note("before"), note("unwanted"))
            removed = await remove_in_vain(talk, 'user "unwanted"')
            await talk.text_turn("hello")
            await talk.expect(BEFORE, HELLO, gone=removed)

    @still_lost("a late acknowledgement brings back what was taken out meanwhile")
    async def test_message_that_arrives_with_the_replacement_after_the_next(self) -> None:
        async with running(agent_with()) as talk:
            await talk.replace(note("before"))
            push = talk.realtime.hold()
            talk.text_turn("hello")
            await push.entered.wait()
            push.time_out()
            await idle()
            await talk.replace(without=[HELLO])
            await talk.replace(note("A"))
            await talk.expect(BEFORE, 'user "A"', gone=[item.id for item in push.creates])

    @still_lost("it is sent when the speech ends, though it was removed by then")
    async def test_output_that_waits_for_a_speech_to_end(self) -> None:
        lookup = GatedTool("lookup")
        async with running(agent_with(lookup)) as talk:
            await talk.replace(note("before"))
            await talk.call(lookup)
            speech = talk.realtime.respond()
            message = speech.message()
            await idle()
            lookup.finish()
            await idle()
            assert name_items(talk.local.items).count(OUTPUT) == 1
            await talk.replace(without=[CALL, OUTPUT])
            message.write("One moment.")
            speech.done()
            await talk.expect(BEFORE, 'assistant "One moment."')
            if OUTPUT in name_items(i for push in talk.realtime.pushes for i in push.creates):
                raise LostUpdate(f"{OUTPUT} was sent, though it was removed.")

    @still_lost("what is understood of it is recorded, though the model forgot it")
    async def test_turn_of_a_silent_provider_that_is_understood_late(self) -> None:
        async with running(agent_with(), model=silent()) as talk:
            heard = talk.realtime.hear()
            await talk.replace(note("A"))
            talk.realtime.transcribe(heard, "good day")
            await talk.expect(HEARD, 'user "A"')

    @pytest.mark.parametrize("kind", [SilentSession, ForgetfulSession])
    async def test_turn_that_is_understood_twice(self, kind: type[FakeRealtimeSession]) -> None:
        # a transcript is always recorded, as some providers use an id again
        async with running(agent_with(), model=SilentModel(kind)) as talk:
            heard = talk.realtime.hear()
            talk.realtime.transcribe(heard, "good")
            await idle()
            await talk.replace(without=['user "good"'])
            talk.realtime.transcribe(heard, "day")
            await idle()
            assert name_items(talk.local.items)[-1:] == ['user "day"']

    @still_lost("the snapshot of the next message still has it")
    async def test_unheard_reply_whose_deletion_a_silent_provider_did_not_acknowledge(self) -> None:
        async with running(agent_with(), model=silent()) as talk:
            await talk.text_turn("hello")
            unheard = await talk.unheard_reply()
            push = talk.realtime.hold()
            talk.interrupt()
            await push.entered.wait()
            push.time_out(lost=True)
            await idle()
            await talk.text_turn("and now?")
            await talk.expect(HELLO, 'user "and now?"', gone=[unheard])


class TestWhatIsRecorded:
    @needs("1.8.9")  # from which on a realtime model is told
    async def test_spoken_message_is_recorded_once(self) -> None:
        async with running(agent_with()) as talk:
            push = talk.realtime.hold()
            talk.say("Welcome.")
            await idle()
            assert name_items(talk.local.items).count('assistant "Welcome."') == 1
            push.release()
            await talk.expect()

    @needs("1.7.0")  # before, a transcript is recorded at the end
    async def test_turn_that_a_silent_provider_understood_late_stands_where_it_was_said(
        self,
    ) -> None:
        async with running(agent_with(), model=silent()) as talk:
            heard = talk.realtime.hear()
            await talk.text_turn("hello")
            talk.realtime.transcribe(heard, "good day")
            await talk.expect(HEARD, HELLO)

    async def test_item_that_is_told_of_before_the_mirror_has_it(self) -> None:
        async with running(agent_with(), model=SilentModel(HastySession)) as talk:
            await talk.replace(note("before"))
            await talk.text_turn("hello")
            await talk.expect(BEFORE, HELLO)
            talk.realtime.hear()
            await talk.expect(BEFORE, HELLO, 'user ""')

    async def test_own_message_stays_the_agents_when_it_is_acknowledged(self) -> None:
        async with running(agent_with()) as talk:
            own = llm.ChatMessage(role="user", content=["before"], extra={"of": "the agent"})
            await talk.replace(own)
            [message] = [item for item in talk.local.items if item.id == own.id]
            assert message == own

    async def test_item_of_the_providers_is_copied(self) -> None:
        async with running(agent_with()) as talk:
            await talk.replace(note("before"))
            told: list[llm.ChatItem] = []
            session: Any = talk.realtime
            session.on("remote_item_added", lambda ev: told.append(ev.item))
            talk.realtime.hear()
            await idle()
            items = talk.activity.agent._chat_ctx.items
            assert [item.id for item in items if item.type == "message"][-1] == told[0].id
            assert all(item is not told[0] for item in items)


async def test_nothing_keeps_a_session_that_is_over() -> None:
    async with running(agent_with()) as talk:
        await talk.text_turn("hello")
        session = weakref.ref(talk.realtime)
    del talk
    gc.collect()
    assert session() is None


async def test_session_that_outlives_its_agent(caplog: pytest.LogCaptureFixture) -> None:
    async with running(agent_with()) as talk:
        first = talk.realtime
        activity = weakref.ref(talk.activity)
        talk.hand_off(agent_with())
        await idle()
    del talk
    gc.collect()
    assert activity() is None
    caplog.clear()
    first.add_item(note("late"))
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []
