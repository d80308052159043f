"""How long an update takes, who waits for it, and who hears of its failure."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from _realtime_support import BEYOND_THE_LOCK, CATCHES_FAILED_UPDATES, closed_by_full, needs
from test_realtime_hold_limit import limited
from test_realtime_reconnection import send_in_vain
from test_realtime_silent_provider import SilentModel
from test_realtime_updates import asked, full_alone

from ctxlock.races.fake_realtime import FakeRealtimeSession
from ctxlock.races.harness import Harness, idle, running
from ctxlock.races.loopback.traffic import advance
from ctxlock.races.push import Push
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import LostUpdate, check
from livekit.agents import llm
from livekit.agents.voice import SpeechHandle

pytestmark = needs(BEYOND_THE_LOCK, CATCHES_FAILED_UPDATES)

BEFORE, HELLO = 'user "before"', 'user "hello"'

frozen = closed_by_full("an update that is never acknowledged freezes all that come after it")


class DeafSession(FakeRealtimeSession):
    """A provider that ends no update when its session is closed."""

    async def aclose(self) -> None:
        self.closed = True


@frozen
async def test_limit_is_longer_than_that_of_any_provider() -> None:
    async with running(agent_with()) as talk:
        push = talk.realtime.hold()
        talk.text_turn("lost?")
        await push.entered.wait()
        talk.replace(note("A"))
        await idle()
        advance(10.0)
        await idle()
        assert len(talk.realtime.pushes) == 1
        push.pending.clear()
        advance(5.0)
        await talk.expect('user "lost?"', 'user "A"', ordered=False)


@closed_by_full("an update that nobody ends outlives the session")
async def test_closing_the_session_ends_every_update() -> None:
    async with running(agent_with(), model=SilentModel(DeafSession)) as talk:
        with limited() as warnings:
            updates = asked(talk)
            push = talk.realtime.hold()
            pending = talk.replace(note("A"))
            await push.entered.wait()
            waiting = talk.replace(note("B"))
            await idle()
            await talk.session.aclose()
            await idle()
            if not (pending.done() and waiting.done()):
                raise LostUpdate("An update outlives the session.")
            assert len(updates) == 1
            assert warnings == []


@full_alone
async def test_session_start_goes_on_without_whoever_asked_for_it() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        context, session = talk.activity._rt_context, cast(Any, talk.realtime)
        talk.activity.agent._chat_ctx.items.append(note("A"))
        push = talk.realtime.hold()
        start = talk.start(context.start(session._update_session, talk.local))
        await push.entered.wait()
        start.cancel()
        await idle()
        assert talk.lock is not None and talk.lock.locked()
        push.release()
        await talk.expect(BEFORE, 'user "A"')


@closed_by_full("what was not acknowledged in time is with the agent alone")
async def test_reconnection_whose_update_fails() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        await send_in_vain(talk, "hello")
        again, push = talk.realtime.hold(), talk.realtime.hold()
        talk.realtime.cut()
        await idle()
        if not push.entered.is_set():
            raise LostUpdate(f"{HELLO} is not sent again.")
        push.fail(ConnectionError("the line is dead"))
        await idle()
        again.release()
        await talk.text_turn("and now?")
        await talk.expect(BEFORE, HELLO, 'user "and now?"')


@full_alone
async def test_caller_that_is_cancelled_ends_so_and_its_update_goes_on() -> None:
    async with running(agent_with()) as talk:
        context, push = talk.activity._rt_context, talk.realtime.hold()
        message = llm.ChatContext([note("hello")])
        caller = talk.start(context.append(message, "text turn"))
        await push.entered.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        push.release()
        await talk.expect(HELLO)


async def turn_after_a_lost_replacement(talk: Harness) -> tuple[SpeechHandle, Push]:
    """A turn is acknowledged, and the first item of a replacement that was not is sent again."""
    await talk.replace(note("before"))
    lost = talk.realtime.hold()
    talk.replace(note("A"), note("B"))
    await lost.entered.wait()
    lost.pending.clear()
    lost.time_out()
    await idle()
    push = talk.realtime.hold()
    turn = talk.text_turn("hello")
    await push.entered.wait()
    again = talk.realtime.hold()
    push.release()
    await again.entered.wait()
    return turn, again


@full_alone
async def test_turn_does_not_wait_for_what_is_sent_again_after_it() -> None:
    async with running(agent_with()) as talk:
        turn, again = await turn_after_a_lost_replacement(talk)
        await idle()
        assert turn.done(), "the turn waits for the acknowledgement of another's item"
        again.release()
        await talk.expect(BEFORE, 'user "A"', 'user "B"', 'user "hello"', ordered=False)


@full_alone
async def test_what_is_sent_again_ends_with_the_first_that_fails() -> None:
    async with running(agent_with()) as talk:
        _, again = await turn_after_a_lost_replacement(talk)
        updates = asked(talk)
        again.pending.clear()
        again.time_out()
        await idle()
        assert updates == []
        await talk.text_turn("and now?")
        await idle()
        check(talk.realtime, kept=[BEFORE, 'user "B"', 'user "hello"', 'user "and now?"'])
