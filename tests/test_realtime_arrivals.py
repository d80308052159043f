"""What the user says during a handoff: those who take over then have it, and no later agent."""

from __future__ import annotations

import logging

import pytest
from _realtime_support import BEYOND_THE_LOCK, CATCHES_FAILED_UPDATES, closed_by_full, needs
from handoffs import hand_off, handoffs_done, hear_and_understand, reply_once, tool_with_errand

from ctxlock.races.fake_realtime import FakeRealtimeModel
from ctxlock.races.harness import Harness, idle, running
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import check, name_items
from livekit.agents import llm

pytestmark = needs(BEYOND_THE_LOCK, CATCHES_FAILED_UPDATES)

BEFORE, HEARD = 'user "before"', 'user "good day"'


@closed_by_full("what arrives while no activity is attached is told to none")
async def test_between_two_activities_when_a_third_is_asked_for() -> None:
    async with running(agent_with()) as talk:
        before = talk.activity
        close = before.aclose

        async def aclose() -> None:
            await hear_and_understand(talk)
            talk.hand_off(agent_with())
            await close()

        before.aclose = aclose
        talk.hand_off(agent_with())
        first = talk.session._update_activity_atask
        await idle()
        await handoffs_done(talk)
        assert talk.session._update_activity_atask is not first
        await talk.expect(HEARD)


async def test_reply_between_two_activities_is_nobodys(caplog: pytest.LogCaptureFixture) -> None:
    said = llm.ChatMessage(role="assistant", content=["Well."])

    async def reply(talk: Harness) -> None:
        talk.realtime.add_item(said)
        await idle()

    async with running(agent_with()) as talk:
        await hand_off(talk, agent_with(), reply)
        await talk.expect(gone=[said.id])
        assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []


async def test_call_between_two_activities_is_nobodys() -> None:
    call = llm.FunctionCall(name="lookup", call_id="a", arguments="{}")

    async def reply(talk: Harness) -> None:
        talk.realtime.add_item(call)
        await idle()

    async with running(agent_with()) as talk:
        await hand_off(talk, agent_with(), reply)
        await talk.expect(gone=[call.id])


async def test_what_an_earlier_session_adds_is_nobodys() -> None:
    lookup, errands = tool_with_errand()
    model = FakeRealtimeModel(mutable_chat_context=False)
    async with running(agent_with(lookup), model=model) as talk:
        first = talk.realtime
        await talk.call(lookup)
        errands[0].end()
        await idle()
        assert talk.realtime is not first
        first.add_item(note("late"))
        await idle()
        assert 'user "late"' not in name_items(talk.local.items)


@pytest.mark.parametrize("earlier", [False, True], ids=["first-handoff", "after-another"])
async def test_at_the_start_of_a_task_it_is_not_for_a_later_agent(earlier: bool) -> None:
    lookup, errands = tool_with_errand()
    async with running(agent_with(*([] if earlier else [lookup]))) as talk:
        if earlier:
            talk.hand_off(agent_with(lookup))
            await idle()
        await talk.replace(note("before"))
        push = talk.realtime.hold()  # the task's session start, which deletes
        await talk.call(lookup)
        await push.entered.wait()
        heard = await hear_and_understand(talk)
        push.release()
        await idle()
        check(talk.realtime, kept=[HEARD])
        errands[0].end()
        await idle()
        talk.hand_off(agent_with())
        await talk.expect(gone=[heard])


@closed_by_full("the next agent has no note of what was typed before, or deletes it")
async def test_reply_of_the_agent_that_is_left_is_not_the_next_ones() -> None:
    async with running(agent_with()) as talk:
        push = talk.realtime.hold()
        talk.text_turn("hello")
        await push.entered.wait()
        talk.hand_off(agent_with())
        await idle()
        silent = reply_once(talk)
        push.release()
        await handoffs_done(talk)
        assert talk.realtime.on_reply is silent, "there was no reply"
        await talk.expect('user "hello"')
        assert name_items(talk.realtime.server.items) == ['user "hello"']
