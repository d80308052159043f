"""The far end of a realtime session, with the words of a test and its counts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from livekit.agents import llm

from .provider import Provider
from .traffic import Traffic
from .wire import Event

if TYPE_CHECKING:
    from .server import Connection

__all__ = ["FarEnd"]


class FarEnd(Provider):
    """Has the words of the fake provider's session, and those that only a connection has.

    After a cut connection the engine connects again and repeats what it knows.

    Attributes:
        engine: The real engine's session.
        instructions_gate: There for the fake's sake: this engine does not wait for instructions.
        closed: Whether the engine has closed the connection.
    """

    def __init__(self, engine: llm.RealtimeSession[Any], traffic: Traffic, *, spoken: bool) -> None:
        super().__init__(spoken=spoken)
        self.engine = engine
        self.instructions_gate = asyncio.Event()
        self.closed = False
        self._traffic = traffic
        engine.on("openai_client_event_queued", self._requested)
        engine.on("openai_server_event_received", self._seen)

    @property
    def chat_ctx(self) -> llm.ChatContext:
        """A copy of the engine's mirror."""
        return self.engine.chat_ctx

    @property
    def receiving(self) -> bool:
        """Whether an update is being received."""
        return self._updates.gathering

    def release_all(self) -> None:
        """Releases whatever is held."""
        self.instructions_gate.set()
        super().release_all()

    def incoming(self) -> int:
        """How many of the engine's events are on their way."""
        return self._traffic.incoming(self.connection)

    def attach(self, connection: Connection) -> None:
        """Begins a new conversation."""
        super().attach(connection)
        self._traffic.connected()

    def detach(self, *, closed: bool) -> None:
        """Notes that the connection has ended, for good if it was the engine that closed it."""
        self._traffic.ended(self.connection)
        super().detach(closed=closed)
        self.closed = closed
        if not closed:
            self._traffic.expect_connection()

    def send(self, event: Event) -> None:
        """Puts an event on its way, if there is a connection."""
        if self.connection is not None:
            self._traffic.sent(self.connection)
        super().send(event)

    def receive(self, event: Event) -> None:
        """Handles an event of the engine's."""
        super().receive(event)
        self._traffic.arrived(self.connection)

    def _requested(self, _: object) -> None:
        if self.connection is not None:
            self._traffic.requested(self.connection)

    def _seen(self, _: object) -> None:
        if self.connection is not None:
            self._traffic.seen(self.connection)
