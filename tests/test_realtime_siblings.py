"""Siblings of the lost items: replies that are cut short, and what is under way meanwhile."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from _realtime_support import ANSWERS_WHEN_INTERRUPTED, needs, still_lost
from siblings import both_ways, through, websocket_alone

from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.loopback.model import serving
from ctxlock.races.push import Push
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import check
from livekit import rtc
from livekit.agents.voice import io

BEFORE, HELLO = 'user "before"', 'user "hello"'
OUTPUT = "function_call_output of lookup"
WHOLE, SHOWN = 'assistant "Good morning, Sir."', 'assistant "Good morning, "'
SECOND = bytes(2 * 24000)


class Screen(io.TextOutput):
    """Shows the first words of a reply, and waits with the rest for good."""

    def __init__(self) -> None:
        super().__init__(label="screen", next_in_chain=None)
        self._shown = 0

    async def capture_text(self, text: str) -> None:
        self._shown += 1
        if self._shown > 1:
            await asyncio.Event().wait()

    def flush(self) -> None:
        """Has nothing to flush."""


class Speaker(io.AudioOutput):
    """Begins to play what it is given, and is cut off before anything of it can be heard."""

    def __init__(self) -> None:
        capabilities = io.AudioOutputCapabilities(pause=False)
        super().__init__(label="speaker", capabilities=capabilities)
        self._playing = False

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        if not self._playing:
            self._playing = True
            self.on_playback_started(created_at=1.0)

    def clear_buffer(self) -> None:
        if self._playing:
            self._playing = False
            self.on_playback_finished(
                playback_position=0.0, interrupted=True, synchronized_transcript=""
            )

    def flush(self) -> None:
        super().flush()


async def half_shown_reply(talk: Harness) -> str:
    """The model has written a reply, of which only the beginning is shown; returns its id."""
    talk.session.output.transcription = Screen()
    response = talk.realtime.respond()
    message = response.message()
    await idle()
    for words in ("Good ", "morning, ", "Sir."):
        message.write(words)
        await idle()
    response.done()
    await idle()
    return message.id


def assert_has(talk: Harness, name: str) -> None:
    """The model has it; what the agent has besides is no matter here.

    Raises:
        LostUpdate: If it has not.
    """
    check(talk.realtime, kept=[name])


async def interrupt(talk: Harness) -> None:
    talk.interrupt()
    await idle()


async def _replacement(talk: Harness, lookup: GatedTool) -> tuple[Push, str]:
    push = talk.realtime.hold()
    talk.replace(note("hello"))
    await push.entered.wait()
    return push, HELLO


async def _tool_output(talk: Harness, lookup: GatedTool) -> tuple[Push, str]:
    await talk.call(lookup)
    push = talk.realtime.hold()
    lookup.finish()
    await push.entered.wait()
    return push, OUTPUT


class TestWrittenReplies:
    @both_ways
    @pytest.mark.parametrize("update", [_replacement, _tool_output])
    async def test_cut_short_while_an_update_is_under_way(self, over: Any, update: Any) -> None:
        lookup = GatedTool("lookup")
        with through(over):
            async with running(agent_with(lookup)) as talk:
                await talk.replace(note("before"))
                push, updated = await update(talk, lookup)
                await half_shown_reply(talk)
                await interrupt(talk)
                push.release()
                # over the websocket the model has the reply first, and the agent what it pushes:
                # nothing that it has is moved
                ordered = over is None
                await talk.expect(BEFORE, updated, SHOWN, ordered=ordered)
                await talk.text_turn("and now?")
                await talk.replace(note("A"))
                kept = (BEFORE, updated, SHOWN, 'user "and now?"', 'user "A"')
                await talk.expect(*kept, ordered=ordered)

    @both_ways
    @still_lost("a reply is recorded when it is over, and cut short past the lock")
    async def test_cut_short_while_it_is_removed(self, over: Any) -> None:
        with through(over):
            async with running(agent_with()) as talk:
                await talk.replace(note("before"))
                reply = await half_shown_reply(talk)
                push = talk.realtime.hold()
                talk.replace(without=[WHOLE])
                await push.entered.wait()
                await interrupt(talk)
                push.release()
                await talk.expect(BEFORE, gone=[reply])

    @websocket_alone
    @still_lost("its shorter text goes past the lock, to stand behind what is being deleted")
    async def test_cut_short_while_what_is_before_it_is_removed(self, over: Any) -> None:
        with through(over):
            async with running(agent_with()) as talk:
                await talk.replace(note("before"))
                await half_shown_reply(talk)
                push = talk.realtime.hold()
                talk.replace(without=[BEFORE])
                await push.entered.wait()
                await interrupt(talk)
                push.release()
                await talk.expect(SHOWN)


class TestSpokenRepliesOfWhichNothingWasHeard:
    """The engine has the provider delete them, past the lock and without waiting."""

    async def unheard(self, talk: Harness, *tools: GatedTool) -> str:
        talk.session.output.audio = Speaker()
        response: Any = talk.realtime.respond()
        for tool in tools:
            response.call(tool.name)
            await tool.started.wait()
        message = response.message()
        await idle()
        message.write("Good morning.")
        message.speak(SECOND)
        await idle()
        response.done()
        await idle()
        reply: str = message.id
        return reply

    @still_lost("it is sent to stand behind the reply, which the provider deletes before")
    async def test_typed_message_right_after_one(self) -> None:
        with through(partial(serving, spoken=True)):
            async with running(agent_with()) as talk:
                await self.unheard(talk)
                talk.interrupt()
                talk.text_turn("hello")
                await idle()
                assert_has(talk, HELLO)

    @needs(ANSWERS_WHEN_INTERRUPTED)
    @still_lost("it is sent to stand behind the reply, which the provider deletes before")
    async def test_tool_output_right_after_one(self) -> None:
        lookup = GatedTool("lookup")
        with through(partial(serving, spoken=True)):
            async with running(agent_with(lookup)) as talk:
                await self.unheard(talk, lookup)
                talk.interrupt()
                lookup.finish()
                await idle()
                assert_has(talk, OUTPUT)

    @still_lost("the agent keeps it, whole, as its placeholder shares its text with the mirror's")
    async def test_next_replacement_does_not_bring_one_back(self) -> None:
        with through(partial(serving, spoken=True)):
            async with running(agent_with()) as talk:
                reply = await self.unheard(talk)
                await interrupt(talk)
                await talk.replace(note("A"))
                await talk.expect('user "A"', gone=[reply])
