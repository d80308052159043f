"""A response as the protocol streams it, under the caller's control."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from ..server import ServerConversation
from .items import FunctionCall, Item, Message
from .wire import Event, payload_of

__all__ = ["WireMessage", "WireResponse"]

Send = Callable[[Event], None]


class WireMessage:
    """An assistant message that is being generated, as text or as speech with its transcript."""

    def __init__(self, response: WireResponse, item: Message) -> None:
        self.id = item.id
        self.item = item
        self.text = ""
        self.closed = False
        self._response = response
        self._place = {"item_id": item.id, "output_index": 0, "content_index": 0}
        kind = "audio" if response.spoken else "text"
        self._stem = (
            "response.output_audio_transcript" if response.spoken else ("response.output_text")
        )
        self._say("response.content_part.added", part={"type": kind})

    def write(self, text: str) -> None:
        """Streams some more text."""
        if not self.closed:
            self.text += text
            self._say(f"{self._stem}.delta", delta=text)

    def speak(self, pcm: bytes) -> None:
        """Streams some sound, 16 bits a sample, 24,000 samples a second."""
        if not self.closed:
            self._say("response.output_audio.delta", delta=base64.b64encode(pcm).decode())

    def close(self, status: str = "completed") -> None:
        """Ends the message."""
        if self.closed:
            return
        self.closed = True
        if self.text:
            self.item.content[:] = [self.text]
        if self._response.spoken:
            self._say("response.output_audio.done")
        self._say(f"{self._stem}.done", text=self.text, transcript=self.text)
        self._say("response.content_part.done", part={"type": "text", "text": self.text})
        self._response.item_done(self.item, status)

    def _say(self, kind: str, **more: Any) -> None:
        self._response.say(kind, **self._place, **more)


class WireResponse:
    """One response; `call` and `message` add items at the tail, `done` ends it.

    Args:
        send: Sends an event to the client.
        server: The conversation that the items join.
        metadata: What the client gave along with its request, if it made one.
        spoken: Whether messages are speech.
    """

    _numbers = itertools.count(1)

    def __init__(
        self,
        send: Send,
        server: ServerConversation[Item],
        *,
        metadata: Mapping[str, Any] | None = None,
        spoken: bool = False,
    ) -> None:
        self.id = f"resp_{next(self._numbers)}"
        self.finished = False
        self.spoken = spoken
        self.user_initiated = metadata is not None
        self._send = send
        self._server = server
        self._metadata = metadata
        self._messages: list[WireMessage] = []
        self._output: list[Event] = []
        self._send({"type": "response.created", "response": self._as_payload("in_progress")})

    def message(self, text: str | None = None, *, item_id: str | None = None) -> WireMessage:
        """Adds a message; with ``text`` it is complete, without it is left open to write to."""
        item = Message(item_id or self._item_id(), "assistant")
        self._add(item)
        message = WireMessage(self, item)
        self._messages.append(message)
        if text is not None:
            message.write(text)
            message.close()
        return message

    def call(self, name: str, arguments: str = "{}", *, call_id: str | None = None) -> str:
        """Adds a complete function call and returns its ``call_id``."""
        call = FunctionCall(
            id=self._item_id(),
            call_id=call_id or f"call_{self._item_id()}",
            name=name,
            arguments="",
        )
        self._add(call)
        call.arguments = arguments
        place = {"item_id": call.id, "output_index": 0, "call_id": call.call_id}
        self.say("response.function_call_arguments.delta", **place, delta=arguments)
        self.say("response.function_call_arguments.done", **place, arguments=arguments)
        self.item_done(call, "completed")
        return call.call_id

    def done(self, status: str = "completed") -> None:
        """Ends the response; texts so far become the items' contents."""
        if self.finished:
            return
        self.finished = True
        for message in self._messages:
            message.close("completed" if status == "completed" else "incomplete")
        self._send({"type": "response.done", "response": self._as_payload(status)})

    def cancel(self) -> None:
        """Ends the response as its client asked for."""
        self.done("cancelled")

    def say(self, kind: str, **more: Any) -> None:
        """Sends an event about this response."""
        self._send({"type": kind, "response_id": self.id, **more})

    def item_done(self, item: Item, status: str) -> None:
        """Sends that an item is complete."""
        payload = payload_of(item, status)
        self._output.append(payload)
        self.say("response.output_item.done", output_index=0, item=payload)
        self._send({"type": "conversation.item.done", "item": payload})

    def _add(self, item: Item) -> None:
        payload = payload_of(item, "in_progress")
        previous_id = self._server.append(item)
        self.say("response.output_item.added", output_index=0, item=payload)
        self._send(
            {
                "type": "conversation.item.added",
                "previous_item_id": previous_id,
                "item": payload,
            }
        )

    def _item_id(self) -> str:
        return f"item_{self.id}_{next(self._numbers)}"

    def _as_payload(self, status: str) -> Event:
        return {
            "id": self.id,
            "object": "realtime.response",
            "status": status,
            "status_details": None if status == "in_progress" else {"type": status},
            "output": list(self._output),
            "metadata": dict(self._metadata) if self._metadata else None,
        }
