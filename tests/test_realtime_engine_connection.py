"""Connections that are cut, and the engine's way of taking up what was under way; and their end."""

from __future__ import annotations

import asyncio

import pytest
from _realtime_support import RESENDS, fails_on_stock, has_engine, needs

if not has_engine():
    pytest.skip("no livekit-plugins-openai that is scripted here", allow_module_level=True)

from loopback_talk import connected, context, ids
from reconnections import let_it_repeat

from ctxlock.races import backend
from ctxlock.races.harness import Harness, idle, running
from ctxlock.races.loopback.far_end import FarEnd
from ctxlock.races.loopback.model import serving
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import check


async def lost_connection(talk: Harness) -> FarEnd:
    far_end = talk.realtime
    assert isinstance(far_end, FarEnd)
    far_end.cut()
    await let_it_repeat()
    assert far_end.connection is not None
    return far_end


class TestCutConnections:
    async def test_what_was_acknowledged_is_repeated(self) -> None:
        async with connected() as talk:
            await talk.engine.update_chat_ctx(context("A", "B"))
            talk.far_end.cut()
            await idle()
            talk.assert_agreed("A", "B")

    @needs(RESENDS)
    @pytest.mark.parametrize("acknowledged", [0, 1, 2])
    async def test_what_was_not_is_sent_again(self, acknowledged: int) -> None:
        async with connected() as talk:
            push = talk.far_end.hold()
            update = asyncio.create_task(talk.engine.update_chat_ctx(context("A", "B", "C")))
            await push.entered.wait()
            push.release(acknowledged)
            await idle()
            talk.far_end.cut()
            await update
            await idle()
            talk.assert_agreed("A", "B", "C")

    @needs(RESENDS)
    async def test_lost_acknowledgements(self) -> None:
        async with connected() as talk:
            push = talk.far_end.hold()
            update = asyncio.create_task(talk.engine.update_chat_ctx(context("A")))
            await push.entered.wait()
            push.apply()
            talk.far_end.cut()
            await update
            talk.assert_agreed("A")

    @needs(RESENDS)
    @fails_on_stock(before="1.8.9")
    async def test_text_turn_while_a_replacement_loses_its_connection(self) -> None:
        with backend.over(serving):
            async with running(agent_with()) as talk:
                push = talk.realtime.hold()
                talk.replace(note("A"), note("B"))
                await push.entered.wait()
                talk.text_turn("hello")
                await idle()
                push.release(1)
                await lost_connection(talk)
                await talk.expect('user "A"', 'user "B"', 'user "hello"')

    async def test_text_turn_after_a_lost_connection(self) -> None:
        with backend.over(serving):
            async with running(agent_with()) as talk:
                await talk.replace(note("A"))
                await lost_connection(talk)
                await talk.text_turn("hello")
                await talk.expect('user "A"', 'user "hello"')


async def test_everything_ends_with_the_server() -> None:
    before = asyncio.all_tasks()
    async with serving() as model:
        address = model._opts.base_url
        engine = model.session()
        await idle()
        await engine.aclose()
    await idle()
    assert asyncio.all_tasks() == before
    host, _, port = address.removeprefix("http://").removesuffix("/v1").partition(":")
    with pytest.raises(OSError):
        await asyncio.open_connection(host, int(port))


async def test_two_sessions_have_a_far_end_each() -> None:
    async with serving() as model:
        first, second = model.session(), model.session()
        await idle()
        await first.update_chat_ctx(context("A"))
        await second.update_chat_ctx(context("B"))
        one, other = model.sessions
        check(one, kept=['user "a"'])
        check(other, kept=['user "b"'])
        assert (ids(one.server), ids(other.server)) == (["A"], ["B"])
        await first.aclose()
        await second.aclose()
        await idle()
        assert one.closed and other.closed
