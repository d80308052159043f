"""Azure Voice Live: a conversation as OpenAI's, from which the plugin never deletes."""

from __future__ import annotations

import asyncio
import base64
import itertools
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from aiohttp import web

from ..script import SILENCE, Answer, answer_for, answer_for_output, greeting_for
from ..websocket import Connection, WebSocketFarEnd

if TYPE_CHECKING:
    from livekit.agents import llm

__all__ = ["Provider"]


class _Talk:
    """What the server knows of one connection: it begins with an empty conversation."""

    def __init__(self) -> None:
        self.instructions = ""
        self.items: list[dict[str, Any]] = []
        self.reply: _Reply | None = None

    def index(self, item_id: str | None) -> int | None:
        ids = [item["id"] for item in self.items]
        return ids.index(item_id) if item_id in ids else None


class _Reply:
    """A response that is being generated."""

    def __init__(self, response_id: str, metadata: Any) -> None:
        self.id = response_id
        self.metadata = metadata
        self.stopped = asyncio.Event()


class Provider(WebSocketFarEnd):
    """The server detects turns: it answers what is spoken by itself, and stops when talked over."""

    name = "azure_voice_live"
    requirements = ("livekit-plugins-azure[realtime]",)
    traits = frozenset({"never_deletes", "reuses_ids", "ready_late"})

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._talks: dict[int, _Talk] = {}
        self._numbers = itertools.count(1)

    def model(self) -> llm.RealtimeModel:
        """The plugin's model; its client takes an address that is not encrypted."""
        from livekit.plugins.azure.realtime import RealtimeModel

        return RealtimeModel(endpoint=f"http://{self.address}", api_key="none is needed")

    def about(self, request: web.Request) -> Any:
        """The path and what is asked for, without the versions of the client's platform."""
        asked = dict(parse_qsl(request.query_string))
        asked.pop("x-ms-client-sdk", None)
        return {"path": request.path, **asked}

    def frame_fact(self, frame: Any) -> Any:
        """Sound by its length."""
        if frame["type"] == "input_audio_buffer.append":
            return {**frame, "audio": len(base64.b64decode(frame["audio"]))}
        return frame

    # -- what happens at the provider

    async def user_says(self, text: str | None) -> None:
        """The user is heard; a reply that plays is stopped by the server."""
        connection = self.connection
        talk = self._talks[connection.number]
        item_id = self._next_id("srv")
        heard = {"item_id": item_id}
        await connection.send({"type": "input_audio_buffer.speech_started", **heard})
        if talk.reply is not None:
            talk.reply.stopped.set()
        await asyncio.sleep(0.5)  # as long as the words take; the client has reacted by then
        await connection.send({"type": "input_audio_buffer.speech_stopped", **heard})
        await connection.send({"type": "input_audio_buffer.committed", **heard})
        sound = {"type": "input_audio", "transcript": None}
        await self._add(connection, talk, {**_message(item_id, "user"), "content": [sound]})
        if text is not None:
            talk.items[-1]["content"] = [{"type": "input_audio", "transcript": text}]
        reply = await self._begin(connection, talk, None)
        if text is not None:
            event = "conversation.item.input_audio_transcription.completed"
            await connection.send({"type": event, **heard, "content_index": 0, "transcript": text})
        answer = answer_for(text or "")
        await self._speak(connection, talk, reply, answer)

    async def go_away(self) -> None:
        """The server ends the session in good order, as it does with old ones."""
        await self.connection.close(1000, "The session has reached its limit.")

    # -- what is answered

    async def connected(self, connection: Connection) -> None:
        """The server speaks first, and reads nothing before it is ready."""
        if "reuses_ids" in self.setting.traits:
            self._numbers = itertools.count(1)
        self._talks[connection.number] = _Talk()
        await self.becoming_ready()
        session = {"id": f"session_{connection.number}", "object": "realtime.session"}
        await connection.send({"type": "session.created", "session": session})

    async def read(self, connection: Connection, frame: Any) -> None:
        """Answers one event."""
        talk = self._talks[connection.number]
        kind = frame["type"]
        if kind == "session.update":
            talk.instructions = frame["session"].get("instructions", talk.instructions)
            await self.acknowledging()
            await connection.send({"type": "session.updated", "session": frame["session"]})
        elif kind == "conversation.item.create":
            await self._create(connection, talk, frame)
        elif kind == "conversation.item.delete":
            await self._delete(connection, talk, frame)
        elif kind == "response.create":
            await self._respond(connection, talk, frame)
        elif kind == "response.cancel":
            if talk.reply is None:
                message = "There is no active response to cancel."
                await _refuse(connection, frame, "response_cancel_not_active", message)
            else:
                talk.reply.stopped.set()

    async def _create(self, connection: Connection, talk: _Talk, frame: Any) -> None:
        item, after = frame["item"], frame.get("previous_item_id")
        await self.acknowledging()
        if talk.index(item["id"]) is not None:
            code = "item_create_duplicate_item_id"
            await _refuse(connection, frame, code, f"There is an item {item['id']} already.")
        elif after is not None and talk.index(after) is None:
            await _refuse(connection, frame, "invalid_value", f"There is no item {after}.")
        else:
            await self._add(connection, talk, item, after)

    async def _delete(self, connection: Connection, talk: _Talk, frame: Any) -> None:
        if "never_deletes" in self.setting.traits:
            return
        await self.acknowledging()
        if (index := talk.index(frame["item_id"])) is None:
            code = "item_delete_invalid_item_id"
            await _refuse(connection, frame, code, f"There is no item {frame['item_id']}.")
        else:
            del talk.items[index]
            deleted = {"type": "conversation.item.deleted", "item_id": frame["item_id"]}
            await connection.send(deleted)

    async def _respond(self, connection: Connection, talk: _Talk, frame: Any) -> None:
        if talk.reply is not None:
            code = "conversation_already_has_active_response"
            await _refuse(connection, frame, code, "Another response is being generated.")
            return
        last = talk.items[-1] if talk.items else {}
        if asked := frame.get("additional_instructions"):
            answer = answer_for(asked)
        elif last.get("type") == "function_call_output":
            answer = answer_for_output(last["output"])
        elif last.get("role") == "user":
            answer = answer_for(_text_of(last))
        else:
            answer = greeting_for(talk.instructions)
        reply = await self._begin(connection, talk, frame["response"].get("metadata"))
        self.start(self._speak(connection, talk, reply, answer), "reply")

    # -- a reply

    async def _begin(self, connection: Connection, talk: _Talk, metadata: Any) -> _Reply:
        reply = talk.reply = _Reply(self._next_id("response"), metadata)
        await self.acknowledging()
        await connection.send({"type": "response.created", "response": _payload(reply)})
        return reply

    async def _speak(
        self, connection: Connection, talk: _Talk, reply: _Reply, answer: Answer
    ) -> None:
        of = {"response_id": reply.id, "output_index": 0}
        if answer.text:
            item = _message(self._next_id("srv"), "assistant")
            await connection.send({"type": "response.output_item.added", **of, "item": item})
            await self._add(connection, talk, item)
            at = {**of, "item_id": item["id"], "content_index": 0}
            part = {"type": "audio", "transcript": ""}
            await connection.send({"type": "response.content_part.added", **at, "part": part})
            first, space, rest = answer.text.partition(" ")
            said = first + space
            words = "response.audio_transcript.delta"
            await connection.send({"type": words, **at, "delta": said})
            sound = base64.b64encode(SILENCE).decode()
            await connection.send({"type": "response.audio.delta", **at, "delta": sound})
            await self._until_it_may_end(reply)
            if rest and not reply.stopped.is_set():
                said += rest
                await connection.send({"type": words, **at, "delta": rest})
            item["content"] = [{"type": "audio", "transcript": said}]
            await connection.send({"type": "response.audio.done", **at})
            done = {"type": "response.audio_transcript.done", **at, "transcript": said}
            await connection.send(done)
            await connection.send({"type": "response.output_item.done", **of, "item": item})
        if answer.tool and not reply.stopped.is_set():
            call = {
                "id": self._next_id("srv"),
                "type": "function_call",
                "call_id": self._next_id("call"),
                "name": answer.tool,
                "arguments": "",
            }
            await connection.send({"type": "response.output_item.added", **of, "item": call})
            await self._add(connection, talk, call)
            call["arguments"] = answer.arguments
            at = {**of, "item_id": call["id"], "call_id": call["call_id"]}
            given = "response.function_call_arguments"
            await connection.send({"type": f"{given}.delta", **at, "delta": answer.arguments})
            done = {"type": f"{given}.done", **at, "name": answer.tool}
            await connection.send({**done, "arguments": answer.arguments})
            await connection.send({"type": "response.output_item.done", **of, "item": call})
        status = "cancelled" if reply.stopped.is_set() else "completed"
        talk.reply = None
        await connection.send({"type": "response.done", "response": _payload(reply, status)})

    async def _until_it_may_end(self, reply: _Reply) -> None:
        held = self.start(self.held(), "a held reply")
        stopped = self.start(reply.stopped.wait(), "an interruption")
        await asyncio.wait((held, stopped), return_when=asyncio.FIRST_COMPLETED)
        held.cancel()
        stopped.cancel()

    async def _add(
        self, connection: Connection, talk: _Talk, item: dict[str, Any], after: str | None = None
    ) -> None:
        index = talk.index(after)
        at = len(talk.items) if index is None else index + 1
        talk.items.insert(at, item)
        previous = talk.items[at - 1]["id"] if at else None
        event = {"type": "conversation.item.created", "previous_item_id": previous}
        await connection.send({**event, "item": {"status": "completed", **item}})

    def _next_id(self, what: str) -> str:
        return f"{what}_{next(self._numbers)}"


def _message(item_id: str, role: str) -> dict[str, Any]:
    return {"id": item_id, "type": "message", "role": role, "content": []}


def _text_of(item: dict[str, Any]) -> str:
    return " ".join(part.get("text") or part.get("transcript") or "" for part in item["content"])


def _payload(reply: _Reply, status: str = "in_progress") -> dict[str, Any]:
    about = {"id": reply.id, "object": "realtime.response", "status": status, "output": []}
    return about if reply.metadata is None else {**about, "metadata": reply.metadata}


async def _refuse(connection: Connection, frame: Any, code: str, message: str) -> None:
    error = {"type": "invalid_request_error", "code": code, "message": message}
    about = {**error, "event_id": frame.get("event_id")}
    await connection.send({"type": "error", "error": about})
