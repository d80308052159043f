"""The far end of a realtime session as the protocol has it: what a service does when asked."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..server import ServerConversation
from .items import Item, Message
from .push import WirePush
from .response import WireResponse
from .updates import Updates, error_event
from .wire import Event, payload_of, request_of

if TYPE_CHECKING:
    from .server import Connection

__all__ = ["Provider"]


class Provider:
    """Answers a client's events; imports nothing of livekit.agents.

    Each connection has a conversation of its own, which begins empty, as with the real service.

    Attributes:
        responses: Every response begun, in order.
        on_reply: What a requested reply consists of; called with the response, ends it itself.
        instructions_entered: Set by each update of the instructions.
        requests: Every event the client has sent, in order.
        audio: The sound in the input buffer, uncommitted.
        truncated: How many milliseconds of a message are left, by its id.
        connection: The connection, while there is one.

    Args:
        spoken: Whether messages are speech; else they are written.
        take: Answers an update that nobody asked to hold; by default that is done at once.
        pause: Seconds of silence, three times over, that end an update.
    """

    def __init__(
        self, *, spoken: bool, take: Callable[[WirePush], None] | None = None, pause: float = 0
    ) -> None:
        self.responses: list[WireResponse] = []
        self.on_reply: Callable[[Any], object] = WireResponse.done
        self.instructions_entered = asyncio.Event()
        self.requests: list[Event] = []
        self.audio = bytearray()
        self.truncated: dict[str, int] = {}
        self.connection: Connection | None = None
        self._numbers = 0
        self._spoken = spoken
        self._updates = Updates(self.send, self.incoming, take, pause)

    # -- what a caller does

    @property
    def server(self) -> ServerConversation[Item]:
        """What the model sees."""
        return self._updates.server

    @property
    def pushes(self) -> list[WirePush]:
        """Every update, in the order received."""
        return self._updates.pushes

    def hold(self) -> WirePush:
        """Returns the next update, to be released by the caller."""
        return self._updates.hold()

    def release_all(self) -> None:
        """Releases whatever is held."""
        self._updates.release_all()

    def respond(self) -> WireResponse:
        """Begins a response nobody asked for, as a provider with turn detection does."""
        return self._respond(None)

    def add_item(self, item: Any) -> None:
        """Adds an item of the server's own making."""
        at = {"previous_item_id": self.server.append(item), "item": payload_of(item)}
        self.send({"type": "conversation.item.added", **at})
        self.send({"type": "conversation.item.done", **at})

    def hear(self, item_id: str | None = None) -> str:
        """Hears the user speak and commits what was said; returns the id of the new item."""
        item_id = item_id or self._next("item_heard")
        self.send({"type": "input_audio_buffer.speech_started", "item_id": item_id})
        self.send({"type": "input_audio_buffer.speech_stopped", "item_id": item_id})
        return self._commit(item_id)

    def transcribe(self, item_id: str, text: str) -> None:
        """Has understood what was said; the transcript joins the item."""
        at = {"item_id": item_id, "content_index": 0}
        stem = "conversation.item.input_audio_transcription"
        heard = self.server.get(item_id)
        if isinstance(heard, Message):
            heard.content.append(text)
        self.send({"type": f"{stem}.delta", **at, "delta": text})
        usage = {"type": "duration", "seconds": 1.0}
        self.send({"type": f"{stem}.completed", **at, "transcript": text, "usage": usage})

    def cut(self) -> None:
        """Ends the connection without a word; the client will connect again."""
        if self.connection is not None:
            self.connection.cut()

    # -- what another far end may have otherwise

    def incoming(self) -> int:
        """How many of the client's events are known to be on their way; nobody knows here."""
        return 0

    # -- what the connection does

    def attach(self, connection: Connection) -> None:
        """Begins a new conversation."""
        self.connection = connection
        self._updates.restart()
        self.audio.clear()
        for response in self.responses:
            response.finished = True
        self.send({"type": "session.created", "session": {"object": "realtime.session"}})

    def detach(self, *, closed: bool) -> None:
        """Notes that the connection has ended, for good if it was the client that closed it."""
        self.connection = None

    def send(self, event: Event) -> None:
        """Puts an event on its way, if there is a connection."""
        if self.connection is not None:
            self.connection.send({"event_id": self._next("event"), **event})

    def read(self, text: str) -> None:
        """Handles an event of the client's as it was written."""
        self.receive(json.loads(text))

    def receive(self, event: Event) -> None:
        """Handles an event of the client's."""
        self.requests.append(event)
        kind = event["type"]
        if kind in ("conversation.item.create", "conversation.item.delete"):
            self._updates.receive(request_of(event))
        else:
            self._updates.complete()
            handle = getattr(self, "_on_" + kind.replace(".", "_"), None)
            if handle is None:
                event_id = event.get("event_id")
                self.send(error_event(f"Unknown event: {kind}", "invalid_value", event_id))
            else:
                handle(event)

    # -- what is done when asked

    def _on_session_update(self, event: Event) -> None:
        if "instructions" in event["session"]:
            self.instructions_entered.set()
        self.send({"type": "session.updated", "session": event["session"]})

    def _on_response_create(self, event: Event) -> None:
        if self._speaking():
            message = "Conversation already has an active response"
            code = "conversation_already_has_active_response"
            self.send(error_event(message, code, event.get("event_id")))
        else:
            self.on_reply(self._respond(event.get("response", {}).get("metadata") or {}))

    def _on_response_cancel(self, event: Event) -> None:
        wanted = event.get("response_id")
        active = [r for r in self._speaking() if wanted in (None, r.id)]
        if not active:
            message = "Cancellation failed: no active response found"
            self.send(error_event(message, "response_cancel_not_active", event.get("event_id")))
        for response in active:
            response.cancel()

    def _on_conversation_item_truncate(self, event: Event) -> None:
        item = self.server.get(event["item_id"])
        if not isinstance(item, Message) or item.role != "assistant":
            message = f"there is no spoken message {event['item_id']} to truncate"
            code = "item_truncate_invalid_item_id"
            self.send(error_event(message, code, event.get("event_id")))
            return
        # no transcript is left, as nobody knows how many of its words were heard
        item.content.clear()
        self.truncated[item.id] = event["audio_end_ms"]
        copied = {name: event[name] for name in ("item_id", "content_index", "audio_end_ms")}
        self.send({"type": "conversation.item.truncated", **copied})

    def _on_input_audio_buffer_append(self, event: Event) -> None:
        self.audio += base64.b64decode(event["audio"])

    def _on_input_audio_buffer_clear(self, _: Event) -> None:
        self.audio.clear()
        self.send({"type": "input_audio_buffer.cleared"})

    def _on_input_audio_buffer_commit(self, event: Event) -> None:
        if self.audio:
            self._commit(self._next("item_heard"))
        else:
            code = "input_audio_buffer_commit_empty"
            self.send(error_event("the buffer is empty", code, event.get("event_id")))

    def _commit(self, item_id: str) -> str:
        self.audio.clear()
        item = Message(item_id, "user")
        at = {"previous_item_id": self.server.append(item)}
        sound = [{"type": "input_audio", "transcript": None}]
        payload = {**payload_of(item), "content": sound}
        self.send({"type": "input_audio_buffer.committed", **at, "item_id": item_id})
        self.send({"type": "conversation.item.added", **at, "item": payload})
        self.send({"type": "conversation.item.done", **at, "item": payload})
        return item_id

    def _respond(self, metadata: Mapping[str, Any] | None) -> WireResponse:
        response = WireResponse(self.send, self.server, metadata=metadata, spoken=self._spoken)
        self.responses.append(response)
        return response

    def _speaking(self) -> list[WireResponse]:
        return [response for response in self.responses if not response.finished]

    def _next(self, stem: str) -> str:
        self._numbers += 1
        return f"{stem}_{self._numbers}"
