"""The scripted server, as the OpenAI engine finds it: what it answers, refuses, holds and hears."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from _realtime_support import has_engine, needs

if not has_engine():
    pytest.skip("no livekit-plugins-openai that is scripted here", allow_module_level=True)

from loopback_talk import connected, context, ids

from ctxlock.races.harness import idle
from ctxlock.races.loopback.response import WireResponse
from ctxlock.races.verdict import name_items
from livekit import rtc
from livekit.agents import llm

RATE = 24000
NEWER = "1.7.1"  # older engines wait in vain for what was refused, and lose what came too early


class TestUpdates:
    async def test_creates_and_deletes(self) -> None:
        async with connected() as talk:
            await talk.engine.update_chat_ctx(context("A", "C"))
            await talk.engine.update_chat_ctx(context("A", "B", "C"))
            talk.assert_agreed("A", "B", "C")
            await talk.engine.update_chat_ctx(context("C"))
            talk.assert_agreed("C")

    async def test_an_update_is_one_push(self) -> None:
        async with connected() as talk:
            await talk.engine.update_chat_ctx(context(*"ABCDEFGH"))
            await talk.engine.update_chat_ctx(context(*"AXB"))
            first, second = talk.far_end.pushes
            assert ids_of(first) == [*"ABCDEFGH"]
            assert (second.deletes, ids_of(second)) == ([*"CDEFGH"], ["X"])

    @needs(NEWER)
    async def test_acknowledgements_in_another_order(self) -> None:
        async with connected() as talk:
            push = talk.far_end.hold()
            update = asyncio.create_task(talk.engine.update_chat_ctx(context("A", "B")))
            await push.entered.wait()
            push.apply()
            await idle()
            assert ids(talk.far_end.server) == ["A", "B"] and not talk.engine.chat_ctx.items
            push.acknowledge("B", "A")
            await update
            talk.assert_agreed("A", "B")

    async def test_acknowledgement_that_is_dropped(self) -> None:
        async with connected() as talk:
            push = talk.far_end.hold()
            update = asyncio.create_task(talk.engine.update_chat_ctx(context("A", "B")))
            await push.entered.wait()
            push.drop("B")
            push.release()
            await idle()
            assert ids(talk.engine.chat_ctx) == ["A"]
            push.time_out()
            with pytest.raises(llm.RealtimeError, match="timed out"):
                await update
            # the engine will ask for it once more, which is refused, and takes that for success
            await talk.engine.update_chat_ctx(context("A", "B"))
            assert ids(talk.far_end.server) == ["A", "B"]

    async def test_without_an_anchor_an_item_goes_to_the_tail(self) -> None:
        async with connected() as talk:
            await talk.engine.update_chat_ctx(context("A", "B"))
            talk.send("conversation.item.create", item=text_item("C"))
            await idle()
            talk.send("conversation.item.create", item=text_item("D"), previous_item_id="root")
            await idle()
            talk.assert_agreed("D", "A", "B", "C")

    @pytest.mark.parametrize(
        ("kind", "fields", "code"),
        [
            ("create", {"id": "A"}, "item_create_duplicate_item_id"),
            ("create", {"id": "B", "after": "nobody"}, "invalid_value"),
            ("delete", {"id": "nobody"}, "item_delete_invalid_item_id"),
            ("truncate", {"id": "nobody"}, "item_truncate_invalid_item_id"),
            ("truncate", {"id": "A"}, "item_truncate_invalid_item_id"),
            ("retrieve", {"id": "A"}, "invalid_value"),
        ],
    )
    async def test_refusals(self, kind: str, fields: dict[str, str], code: str) -> None:
        async with connected() as talk:
            await talk.engine.update_chat_ctx(context("A"))
            name = fields["id"]
            more: dict[str, Any] = {"item_id": name, "audio_end_ms": 1, "content_index": 0}
            if kind == "create":
                more = {"item": text_item(name), "previous_item_id": fields.get("after", "root")}
            talk.send(f"conversation.item.{kind}", event_id="request", **more)
            await idle()
            assert talk.refusals() == [code]
            assert talk.errors[0].body.event_id == "request"
            talk.assert_agreed("A")


def ids_of(push: Any) -> list[str]:
    return [item.id for item in push.creates]


def text_item(name: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": name.lower()}]
    return {"type": "message", "role": "user", "id": name, "content": content}


class TestResponses:
    async def test_text_and_call(self) -> None:
        def fill(response: WireResponse) -> None:
            response.message("Hi.", item_id="said")
            response.call("lookup", '{"a": 1}', call_id="call")
            response.done()

        async with connected() as talk:
            talk.far_end.on_reply = fill
            event = await talk.engine.generate_reply()
            assert event.user_initiated
            texts = [
                "".join([part async for part in m.text_stream]) async for m in event.message_stream
            ]
            calls = [(c.call_id, c.name, c.arguments) async for c in event.function_stream]
            assert (texts, calls) == (["Hi."], [("call", "lookup", '{"a": 1}')])
            await idle()
            assert name_items(talk.engine.chat_ctx.items) == [
                'assistant "Hi."',
                "function_call lookup",
            ]
            assert not talk.errors

    async def test_speech_and_its_truncation(self) -> None:
        async with connected(spoken=True) as talk:
            made: list[llm.GenerationCreatedEvent] = []
            talk.engine.on("generation_created", made.append)
            response = talk.far_end.respond()
            spoken = response.message(item_id="spoken")
            spoken.write("Good morning.")
            spoken.speak(bytes(2 * RATE))
            response.done()
            await idle()
            [stream] = [message async for message in made[0].message_stream]
            seconds = sum([frame.duration async for frame in stream.audio_stream])
            assert (seconds, await stream.modalities) == (1.0, ["audio", "text"])
            heard: dict[str, Any] = {"message_id": "spoken", "modalities": ["audio", "text"]}
            talk.engine.truncate(**heard, audio_end_ms=500)
            await idle()
            assert talk.far_end.truncated == {"spoken": 500}
            assert name_items(talk.far_end.server.items) == ['assistant ""']
            talk.engine.truncate(**heard, audio_end_ms=0)  # nothing was heard of it
            await idle()
            talk.assert_agreed()

    async def test_cancellation(self) -> None:
        async with connected() as talk:
            made: list[llm.GenerationCreatedEvent] = []
            talk.engine.on("generation_created", made.append)
            response = talk.far_end.respond()
            response.message(item_id="half").write("Good mor")
            await idle()
            talk.engine.interrupt()
            await idle()
            assert response.finished
            assert [m.message_id async for m in made[0].message_stream] == ["half"]
            assert name_items(talk.engine.chat_ctx.items) == ['assistant "Good mor"']
            talk.send("response.cancel")  # there is nothing left to cancel: the engine forgives it
            await idle()
            assert not talk.errors
            refused = [e for e in talk.far_end.requests if e["type"] == "response.cancel"]
            assert len(refused) == 2

    @needs(NEWER)
    async def test_one_at_a_time(self) -> None:
        async with connected() as talk:
            talk.far_end.respond()
            with pytest.raises(llm.RealtimeError, match="active response"):
                await talk.engine.generate_reply()


class TestAudioInput:
    async def test_what_is_heard_is_committed_and_transcribed(self) -> None:
        options: Any = {"input_audio_transcription": {"model": "whisper-1"}}
        async with connected(**options) as talk:
            said: list[llm.InputTranscriptionCompleted] = []
            talk.engine.on("input_audio_transcription_completed", said.append)
            frame = rtc.AudioFrame(bytes(RATE), RATE, 1, RATE // 2)
            talk.engine.push_audio(frame)
            await idle()
            assert len(talk.far_end.audio) == RATE
            talk.engine.commit_audio()
            await idle()
            [heard] = talk.far_end.server.items
            talk.assert_agreed(heard.id)
            talk.far_end.transcribe(heard.id, "Hello.")
            await idle()
            assert [(s.item_id, s.transcript, s.is_final) for s in said] == [
                (heard.id, "Hello.", False),
                (heard.id, "Hello.", True),
            ]
            assert name_items(talk.engine.chat_ctx.items) == ['user "Hello."']

    async def test_speech_that_the_server_detects(self) -> None:
        async with connected() as talk:
            heard: list[str] = []
            for name in ("input_speech_started", "input_speech_stopped"):
                talk.engine.on(name, lambda _, name=name: heard.append(name))
            item_id = talk.far_end.hear()
            await idle()
            assert heard == ["input_speech_started", "input_speech_stopped"]
            talk.assert_agreed(item_id)

    async def test_nothing_to_commit(self) -> None:
        async with connected() as talk:
            talk.engine.push_audio(rtc.AudioFrame(bytes(RATE), RATE, 1, RATE // 2))
            talk.engine.clear_audio()
            talk.send("input_audio_buffer.commit")
            await idle()
            assert talk.refusals() == ["input_audio_buffer_commit_empty"]
            talk.assert_agreed()
