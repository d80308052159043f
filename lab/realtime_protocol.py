"""A far end that speaks OpenAI's realtime protocol, which several providers share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .script import Answer, answer_for, answer_for_output, encoded, greeting_for
from .websocket import Connection, WebSocketFarEnd

__all__ = ["Conversation", "RealtimeFarEnd"]

Event = dict[str, Any]


@dataclass
class Conversation:
    """What the model has on one connection.

    Attributes:
        connection: The connection.
        items: The items, as the protocol writes them.
        instructions: The session's.
        replying: The reply that is being generated.
        response: The id of that.
    """

    connection: Connection
    items: list[Event] = field(default_factory=list)
    instructions: str = ""
    replying: asyncio.Task[None] | None = None
    response: str = ""

    def has(self, item_id: str) -> bool:
        """Whether there is such an item."""
        return any(known["id"] == item_id for known in self.items)

    def place(self, item: Event, after: str | None = None) -> str | None:
        """Puts an item behind another, or at the end; returns the id of the one before it."""
        at = len(self.items)
        if after is not None:
            at = 0 if after == "root" else 1 + [known["id"] for known in self.items].index(after)
        self.items.insert(at, item)
        return self.items[at - 1]["id"] if at else None


class RealtimeFarEnd(WebSocketFarEnd):
    """Keeps a conversation for each connection and answers what comes last in it."""

    traits = frozenset({"never_deletes", "ready_late"})
    beta: ClassVar[bool] = False
    """Whether events have the names of the beta."""

    async def connected(self, connection: Connection) -> None:
        """A new conversation, which begins empty."""
        connection.talk = Conversation(connection)
        await self.becoming_ready()
        session = {"id": self.next_id("srv_session")}
        await self.tell(connection.talk, "session.created", session=session)

    def frame_fact(self, frame: Any) -> Any:
        """Sound is shortened to its length."""
        if frame.get("type") == "input_audio_buffer.append":
            return {**frame, "audio": len(frame["audio"])}
        return frame

    async def tell(self, talk: Conversation, kind: str, **more: Any) -> None:
        """Sends an event."""
        await talk.connection.tell(kind, event_id=self.next_id("srv_event"), **more)

    # -- what the client asks for

    async def read(self, connection: Connection, frame: Any) -> None:
        """Does what the client asks for, one thing after the other."""
        handler = getattr(self, "on_" + frame["type"].replace(".", "_"), None)
        if handler is not None:
            await handler(connection.talk, frame)

    async def on_session_update(self, talk: Conversation, f: Event) -> None:
        """The client changes the session."""
        await self.acknowledging()
        if "instructions" in f["session"]:
            talk.instructions = f["session"]["instructions"]
        await self.tell(talk, "session.updated", session=f["session"])

    async def on_conversation_item_create(self, talk: Conversation, f: Event) -> None:
        """The client adds an item."""
        await self.acknowledging()
        item = {**f["item"], "object": "realtime.item", "status": "completed"}
        item.setdefault("id", self.next_id("srv_item"))
        if talk.has(item["id"]):
            code = "item_create_duplicate_item_id"
            await self.refuse(talk, f, code, f"an item {item['id']} exists already")
            return
        try:
            before = talk.place(item, f.get("previous_item_id"))
        except ValueError:
            after = f.get("previous_item_id")
            await self.refuse(talk, f, "invalid_value", f"there is no item {after}")
            return
        await self.item_added(talk, item, before)

    async def on_conversation_item_delete(self, talk: Conversation, f: Event) -> None:
        """The client deletes an item."""
        if "never_deletes" in self.setting.traits:
            return
        await self.acknowledging()
        if not talk.has(f["item_id"]):
            code = "item_delete_invalid_item_id"
            await self.refuse(talk, f, code, f"there is no item {f['item_id']}")
            return
        talk.items[:] = [known for known in talk.items if known["id"] != f["item_id"]]
        await self.item_deleted(talk, f["item_id"])

    async def on_conversation_item_truncate(self, talk: Conversation, f: Event) -> None:
        """The client says how much of a message was heard."""
        await self.acknowledging()
        about = {name: f[name] for name in ("item_id", "content_index", "audio_end_ms")}
        await self.tell(talk, "conversation.item.truncated", **about)

    async def on_response_create(self, talk: Conversation, f: Event) -> None:
        """The client asks for a reply."""
        await self.acknowledging()
        if talk.replying is not None and not talk.replying.done():
            code = "conversation_already_has_active_response"
            await self.refuse(talk, f, code, "there is an active response")
            return
        wish = f.get("response") or {}
        self.reply(talk, self.answer(talk, wish), wish.get("metadata"))

    async def on_response_cancel(self, talk: Conversation, f: Event) -> None:
        """The client wants no more of the reply."""
        await self.acknowledging()
        if talk.replying is None or talk.replying.done():
            await self.refuse(talk, f, "response_cancel_not_active", "no active response")
            return
        await self.stop(talk.replying)

    async def refuse(self, talk: Conversation, f: Event, code: str, message: str) -> None:
        """Refuses what was asked for."""
        error: Event = {"type": "invalid_request_error", "code": code, "message": message}
        error["event_id"] = f.get("event_id")
        await self.tell(talk, "error", error=error)

    # -- what happens by itself

    async def user_says(self, text: str | None) -> None:
        """The user speaks; that interrupts a reply, and begins another."""
        talk: Conversation = self.connection.talk
        item = {"id": self.next_id("srv_item"), "type": "message", "role": "user"}
        item["object"], item["status"] = "realtime.item", "completed"
        spoken = {"type": "input_audio", "transcript": None}
        at = {"item_id": item["id"]}
        await self.tell(talk, "input_audio_buffer.speech_started", audio_start_ms=0, **at)
        await self.stop(talk.replying)
        await self.tell(talk, "input_audio_buffer.speech_stopped", audio_end_ms=500, **at)
        before = talk.place({**item, "content": [spoken]})
        committed = {**at, "previous_item_id": before}
        await self.tell(talk, "input_audio_buffer.committed", **committed)
        await self.item_added(talk, {**item, "content": [spoken]}, before)
        if text is not None:
            await asyncio.sleep(0.05)
            talk.items[-1]["content"] = [{**spoken, "transcript": text}]
            kind = "conversation.item.input_audio_transcription.completed"
            await self.tell(talk, kind, content_index=0, transcript=text, **at)
        self.reply(talk, answer_for(text or ""))

    async def go_away(self) -> None:
        """The session has lasted as long as one may."""
        talk: Conversation = self.connection.talk
        await self.refuse(talk, {}, "session_expired", "The session is over.")
        await talk.connection.close(1001)

    async def item_added(self, talk: Conversation, item: Event, before: str | None) -> None:
        """Tells of an item."""
        about = {"previous_item_id": before, "item": item}
        if self.beta:
            await self.tell(talk, "conversation.item.created", **about)
            return
        await self.tell(talk, "conversation.item.added", **about)
        await self.tell(talk, "conversation.item.done", **about)

    async def item_deleted(self, talk: Conversation, item_id: str) -> None:
        """Tells of a deletion."""
        await self.tell(talk, "conversation.item.deleted", item_id=item_id)

    # -- replies

    def answer(self, talk: Conversation, wish: Event) -> Answer:
        """What is to be said to what comes last in the conversation."""
        if wish.get("instructions"):
            return greeting_for(wish["instructions"])
        last = next((i for i in reversed(talk.items) if i.get("role") != "system"), None)
        if last is None or last.get("role") == "assistant":
            return greeting_for(talk.instructions)
        if last["type"] == "function_call_output":
            return answer_for_output(last["output"])
        parts = last.get("content") or [{}]
        return answer_for(str(parts[-1].get("text") or parts[-1].get("transcript") or ""))

    def reply(self, talk: Conversation, answer: Answer, metadata: Any = None) -> None:
        """Begins a reply, which runs beside."""
        talk.response = self.next_id("srv_response")
        talk.replying = self.start(self._reply(talk, answer, metadata), "reply")

    async def _reply(self, talk: Conversation, answer: Answer, metadata: Any) -> None:
        response: Event = {"id": talk.response, "object": "realtime.response"}
        response |= {"status": "in_progress", "output": [], "metadata": metadata}
        await self.tell(talk, "response.created", response=response)
        status = "completed"
        opened: list[tuple[Event, Event]] = []
        try:
            if answer.text:
                await self._speak(talk, answer.text, opened)
            if answer.tool is not None:
                await self._call(talk, answer)
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            status = "cancelled"
        for item, about in opened:
            await self._end_speech(talk, item, about, status)
        done = {**response, "status": status, "status_details": {"type": status}}
        await self.tell(talk, "response.done", response=done)

    async def _speak(self, talk: Conversation, text: str, opened: list[Any]) -> None:
        item: Event = {"id": self.next_id("srv_item"), "object": "realtime.item"}
        item |= {"type": "message", "role": "assistant", "status": "in_progress", "content": []}
        about = {"response_id": talk.response, "item_id": item["id"]}
        about |= {"output_index": 0, "content_index": 0}
        opened.append((item, about))
        await self._output_added(talk, item)
        part = {"type": "audio", "transcript": ""}
        await self.tell(talk, "response.content_part.added", **about, part=part)

        async def say(words: str) -> None:
            said = "".join(part["transcript"] for part in item["content"]) + words
            item["content"] = [{"type": "output_audio", "transcript": said}]
            await self.tell(talk, self.name_of("transcript.delta"), **about, delta=words)
            await self.tell(talk, self.name_of("delta"), **about, delta=encoded())

        await self.in_halves(text, say)
        opened.remove((item, about))
        await self._end_speech(talk, item, about, "completed")

    async def _end_speech(self, talk: Conversation, item: Event, about: Event, status: str) -> None:
        text = "".join(part["transcript"] for part in item["content"])
        await self.tell(talk, self.name_of("done"), **about)
        await self.tell(talk, self.name_of("transcript.done"), **about, transcript=text)
        part = {"type": "audio", "transcript": text}
        await self.tell(talk, "response.content_part.done", **about, part=part)
        item["status"] = "completed" if status == "completed" else "incomplete"
        await self._output_done(talk, item, about["response_id"])

    async def _call(self, talk: Conversation, answer: Answer) -> None:
        item: Event = {"id": self.next_id("srv_item"), "object": "realtime.item"}
        item |= {"type": "function_call", "name": answer.tool, "call_id": self.next_id("srv_call")}
        item |= {"status": "in_progress", "arguments": ""}
        await self._output_added(talk, item)
        item |= {"arguments": answer.arguments, "status": "completed"}
        about = {"response_id": talk.response, "item_id": item["id"], "call_id": item["call_id"]}
        kind = "response.function_call_arguments.done"
        await self.tell(talk, kind, **about, arguments=answer.arguments)
        await self._output_done(talk, item, talk.response)

    async def _output_added(self, talk: Conversation, item: Event) -> None:
        about = {"response_id": talk.response, "output_index": 0, "item": item}
        await self.tell(talk, "response.output_item.added", **about)
        before = talk.place(item)
        kind = "conversation.item.created" if self.beta else "conversation.item.added"
        await self.tell(talk, kind, previous_item_id=before, item=item)

    async def _output_done(self, talk: Conversation, item: Event, response: str) -> None:
        if not self.beta:
            await self.tell(talk, "conversation.item.done", item=item)
        about = {"response_id": response, "output_index": 0, "item": item}
        await self.tell(talk, "response.output_item.done", **about)

    def name_of(self, what: str) -> str:
        """What an event about sound or its transcript is called."""
        stem = "response.audio" if self.beta else "response.output_audio"
        return f"{stem}_{what}" if what.startswith("transcript") else f"{stem}.{what}"
