"""Siblings of the lost items: the frames of a video, and what a provider refuses."""

from __future__ import annotations

from typing import Any

import pytest
from _realtime_support import closed_by_full, still_lost
from siblings import both_ways, through

from ctxlock.races.fake_realtime import FakeRealtimeModel
from ctxlock.races.harness import Harness, idle, running
from ctxlock.races.loopback.model import serving
from ctxlock.races.loopback.push import TIMEOUT
from ctxlock.races.loopback.traffic import advance
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.server import Refused
from ctxlock.races.verdict import LostUpdate, check
from livekit import rtc
from livekit.agents import llm

BEFORE, HELLO, NEXT = 'user "before"', 'user "hello"', 'user "and now?"'


def see(talk: Harness, over: Any) -> None:
    """The agent sees a frame; the fake has no eyes, so its server adds the item by itself."""
    if over is serving:
        talk.activity.push_video(rtc.VideoFrame(2, 2, rtc.VideoBufferType.RGBA, bytes(16)))
    else:
        image = llm.ImageContent(image="data:image/png;base64,AAAA")
        talk.realtime.add_item(llm.ChatMessage(role="user", content=[image]))


def assert_frames(talk: Harness, count: int) -> None:
    """Both sides have so many messages with a picture in them.

    Raises:
        LostUpdate: If one of them has not.
    """
    for whose, items in (("agent", talk.local.items), ("model", talk.realtime.chat_ctx.items)):
        messages = [item for item in items if item.type == "message"]
        frames = [m for m in messages if any(isinstance(p, llm.ImageContent) for p in m.content)]
        if len(frames) != count:
            raise LostUpdate(f"The {whose} has {len(frames)} frames of {count}.")


@both_ways
class TestFrames:
    async def test_updates_and_a_handoff_with_history_keep_them(self, over: Any) -> None:
        with through(over):
            async with running(agent_with()) as talk:
                see(talk, over)
                await idle()
                await talk.replace(note("A"))
                see(talk, over)
                await idle()
                await talk.text_turn("hello")
                agent = agent_with()
                await agent.update_chat_ctx(talk.local)
                talk.session.update_agent(agent)
                await talk.expect('user "A"', HELLO)
                assert_frames(talk, 2)

    @closed_by_full("what arrives while a replacement waits is deleted by it")
    async def test_one_that_comes_while_a_replacement_waits(self, over: Any) -> None:
        with through(over):
            async with running(agent_with()) as talk:
                await talk.replace(note("before"))
                push = talk.realtime.hold()
                talk.replace(note("A"))
                await push.entered.wait()
                talk.replace(note("B"))
                await idle()
                see(talk, over)
                await idle()
                push.release()
                await talk.expect(BEFORE, 'user "A"', 'user "B"', ordered=False)
                assert_frames(talk, 1)


def refuse(talk: Harness, text: str) -> list[str]:
    """The server refuses a message each time; returns the ids of the refused, as they come."""
    server = talk.realtime.server
    create, refused = server.create, []

    def choosy(previous_id: str | None, item: Any) -> None:
        if item.type == "message" and item.text_content == text:
            refused.append(item.id)
            raise Refused("no such thing here")
        create(previous_id, item)

    server.create = choosy  # type: ignore[method-assign]
    return refused


class TestRefusals:
    @both_ways
    async def test_later_turns_go_without_it(self, over: Any) -> None:
        with through(over):
            async with running(agent_with()) as talk:
                refused = refuse(talk, "poison")
                await talk.replace(note("before"))
                await talk.text_turn("poison")
                times = len(refused)
                await talk.text_turn("hello")
                await talk.text_turn("and now?")
                check(talk.realtime, kept=[BEFORE, HELLO, NEXT])
                assert len(refused) == times

    @both_ways
    @still_lost("it is sent to stand behind what was refused, and so refused as well")
    @pytest.mark.parametrize("typed", [False, True], ids=["in-one", "behind-a-typed-message"])
    async def test_what_a_replacement_adds_behind_it(self, over: Any, typed: bool) -> None:
        with through(over):
            async with running(agent_with()) as talk:
                await talk.replace(note("before"))
                refuse(talk, "poison")
                if typed:
                    await talk.text_turn("poison")
                    await talk.replace(note("hello"))
                else:
                    await talk.replace(note("poison"), note("hello"))
                await idle()
                check(talk.realtime, kept=[HELLO])

    async def test_turn_after_a_refusal_that_names_no_request(self) -> None:
        with through(serving):
            async with running(agent_with()) as talk:
                far_end: Any = talk.realtime
                send = far_end.connection.send

                def send_nameless(event: dict[str, Any]) -> None:
                    if event["type"] == "error":
                        event["error"]["event_id"] = None
                    send(event)

                far_end.connection.send = send_nameless
                refuse(talk, "poison")
                talk.text_turn("poison")
                await idle()
                advance(TIMEOUT)  # the engine cannot tell that its request was refused
                await idle()
                talk.text_turn("hello")
                await idle()
                try:
                    check(talk.realtime, kept=[HELLO])
                finally:
                    advance(TIMEOUT)  # nothing is left that has to be waited for

    async def test_turn_after_a_message_that_a_provider_fails_with_each_time(self) -> None:
        async with running(agent_with(), model=FakeRealtimeModel()) as talk:
            realtime: Any = talk.realtime
            update = realtime.update_chat_ctx

            async def update_chat_ctx(chat_ctx: llm.ChatContext) -> None:
                if any(i.type == "message" and i.text_content == "poison" for i in chat_ctx.items):
                    raise llm.RealtimeError("no such thing here")
                await update(chat_ctx)

            realtime.update_chat_ctx = update_chat_ctx
            await talk.text_turn("poison")
            await talk.text_turn("hello")
            check(talk.realtime, kept=[HELLO])
