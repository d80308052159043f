"""What the user said aloud reaches the agent while an update waits, and stays with the model."""

from __future__ import annotations

from _realtime_support import needs

from ctxlock.races.fake_realtime import FakeRealtimeSession
from ctxlock.races.harness import Harness, idle, running
from ctxlock.races.scenario import agent_with, note
from livekit.agents import llm


def hear(talk: Harness, text: str) -> None:
    """The provider adds what the user said, and has transcribed it at once."""
    assert isinstance(talk.realtime, FakeRealtimeSession)
    item = llm.ChatMessage(role="user", content=[text])
    talk.realtime.add_item(item)
    transcribed = llm.InputTranscriptionCompleted(item_id=item.id, transcript=text, is_final=True)
    talk.realtime.emit("input_audio_transcription_completed", transcribed)


@needs("1.7.0")
async def test_cleanup_that_waits_keeps_what_the_user_says_meanwhile() -> None:
    async with running(agent_with()) as talk:
        await talk.text_turn("hello")
        unheard = await talk.unheard_reply()
        push = talk.realtime.hold()
        talk.replace(note("A"))
        await push.entered.wait()
        talk.session.interrupt()
        await idle()
        hear(talk, "wait")
        push.release()
        await idle()
        await talk.expect('user "A"', 'user "wait"', gone=[unheard], ordered=False)
