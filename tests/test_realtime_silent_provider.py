"""Providers that tell of no item, as older plugins do: nothing is sent twice, or left to them."""

from __future__ import annotations

from typing import Any

import pytest
from _realtime_support import BEYOND_THE_LOCK, CATCHES_FAILED_UPDATES, TELLS_OF_ITEMS, needs
from silent_provider import ForgetfulSession, SilentModel, SilentSession, silent

from ctxlock.races.fake_realtime import FakeRealtimeSession
from ctxlock.races.harness import GatedTool, idle, running
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import name_items
from livekit.agents import llm

pytestmark = needs(BEYOND_THE_LOCK, TELLS_OF_ITEMS)

CALL, OUTPUT = "function_call lookup", "function_call_output of lookup"


async def test_turns_and_tools_of_a_silent_provider() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup), model=silent()) as talk:
        await talk.text_turn("hello")
        response = talk.realtime.respond()
        response.message("Hello.")
        response.done()
        await idle()
        await talk.call(lookup)
        lookup.finish()
        await idle()
        await talk.text_turn("and now?")
        names = ('user "hello"', 'assistant "Hello."', CALL, OUTPUT, 'user "and now?"')
        await talk.expect(*names, ordered=False)


async def test_what_a_silent_provider_added_is_left_behind_at_a_handoff() -> None:
    async with running(agent_with(), model=silent()) as talk:
        await talk.text_turn("hello")
        response = talk.realtime.respond()
        response.message("Hello.")
        response.done()
        talk.realtime.hear()
        await idle()
        talk.session.update_agent(agent_with())
        await talk.expect()
        assert talk.realtime.server.items == []


async def test_replacement_that_deletes_from_a_silent_provider() -> None:
    async with running(agent_with(), model=silent()) as talk:
        unwanted = note("unwanted")
        await talk.replace(note("before"), unwanted)
        await talk.replace(without=['user "unwanted"'])
        await talk.text_turn("hello")
        await talk.expect('user "before"', 'user "hello"', gone=[unwanted.id])


@needs(CATCHES_FAILED_UPDATES)
async def test_message_that_a_silent_provider_did_not_acknowledge() -> None:
    async with running(agent_with(), model=silent()) as talk:
        push = talk.realtime.hold()
        talk.text_turn("hello")
        await push.entered.wait()
        push.time_out(lost=True)
        await idle()
        await talk.text_turn("and now?")
        assert name_items(talk.realtime.server.items) == ['user "and now?"']
        await talk.replace(note("A"))
        await talk.expect('user "hello"', 'user "and now?"', 'user "A"')


@pytest.mark.parametrize("kind", [SilentSession, ForgetfulSession])
async def test_nothing_is_sent_twice(kind: type[FakeRealtimeSession]) -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup), model=SilentModel(kind)) as talk:
        sent: list[list[str]] = []
        realtime: Any = talk.realtime
        update = realtime.update_chat_ctx

        async def update_chat_ctx(chat_ctx: llm.ChatContext) -> None:
            sent.append(name_items(chat_ctx.items))
            await update(chat_ctx)

        realtime.update_chat_ctx = update_chat_ctx
        await talk.text_turn("hello")
        await talk.call(lookup)
        lookup.finish()
        await idle()
        await talk.text_turn("and now?")
        if kind is ForgetfulSession:  # it takes what it is given for new
            assert [names[-1] for names in sent] == [
                'user "hello"',
                "function_call_output of lookup",
                'user "and now?"',
            ]
            assert all(len(names) == 1 for names in sent)
