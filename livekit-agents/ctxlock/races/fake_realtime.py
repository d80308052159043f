"""A realtime provider without a network, for any release of livekit-agents."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable
from typing import Any

from livekit.agents import llm, utils

from .engine import Engine
from .instrumentation import watch_session
from .push import Push
from .response import Response, build
from .server import ServerConversation
from .trace import note

__all__ = ["FakeRealtimeModel", "FakeRealtimeSession"]

# What the model can do, by the names of the newest release; older ones know fewer.
_CAPABLE = frozenset(
    [
        "message_truncation",
        "manual_function_calls",
        "per_response_tool_choice",
        "mutable_chat_context",
        "mutable_instructions",
        "mutable_tools",
    ]
)


class FakeRealtimeModel(llm.RealtimeModel):
    """Makes sessions and keeps them; text only, no voice, no turn detection.

    Args:
        capabilities: Overrides of the release's capability flags; unknown ones are ignored.
    """

    def __init__(self, **capabilities: bool) -> None:
        flags = {
            field.name: capabilities.get(field.name, field.name in _CAPABLE)
            for field in dataclasses.fields(llm.RealtimeCapabilities)
        }
        super().__init__(capabilities=llm.RealtimeCapabilities(**flags))
        self.sessions: list[FakeRealtimeSession] = []

    def session(self, **_: Any) -> FakeRealtimeSession:
        """Opens a session, whatever the release asks of it."""
        session = FakeRealtimeSession(self)
        watch_session(session)
        self.sessions.append(session)
        return session

    async def aclose(self) -> None:
        """Has nothing to close."""


class FakeRealtimeSession(llm.RealtimeSession[Any]):
    """One connection, whose updates go through an `Engine`.

    Attributes:
        responses: Every response begun, in order.
        on_reply: What a requested reply consists of; called with the response, ends it itself.
        instructions_entered: Set by each update of the instructions.
        instructions_gate: Clear it to make updates of the instructions wait.
        closed: Whether the agent has closed the connection.
    """

    def __init__(self, model: FakeRealtimeModel) -> None:
        super().__init__(model)
        self.responses: list[Response] = []
        self.on_reply: Callable[[Response], object] = Response.done
        self.instructions_entered = asyncio.Event()
        self.instructions_gate = asyncio.Event()
        self.instructions_gate.set()
        self.closed = False
        self._heard: dict[str, float] = {}
        self._engine = Engine(self._emit_item_added)
        self._tools = llm.ToolContext([])

    @property
    def engine(self) -> Engine:
        """The client's half of the protocol."""
        return self._engine

    @property
    def server(self) -> ServerConversation[llm.ChatItem]:
        """What the model sees."""
        return self._engine.server

    @property
    def pushes(self) -> list[Push]:
        """Every update that asked for something, in the order of their turns."""
        return self._engine.pushes

    def hold(self) -> Push:
        """Returns the next update that will ask for something, to be released by the caller."""
        return self._engine.hold()

    def release_all(self) -> None:
        """Releases whatever is held."""
        self.instructions_gate.set()
        self._engine.release_all()

    def respond(self) -> Response:
        """Begins a response nobody asked for, as a provider with turn detection does."""
        response = Response(self._engine, user_initiated=False)
        self.responses.append(response)
        self.emit("generation_created", response.event)
        return response

    def add_item(self, item: llm.ChatItem) -> None:
        """Has the server add an item of its own making, such as what the user said."""
        self._engine.add(item)

    def hear(self, item_id: str | None = None) -> str:
        """Hears the user speak and commits what was said; returns the id of the new item."""
        item_id = item_id or utils.shortuuid("item_heard_")
        item = llm.ChatMessage(id=item_id, role="user", content=[])
        self._heard[item.id] = time.time()
        self.emit("input_speech_started", build(llm.InputSpeechStartedEvent))
        stopped = build(llm.InputSpeechStoppedEvent, user_transcription_enabled=False)
        self.emit("input_speech_stopped", stopped)
        self.add_item(item)
        return item.id

    def hears(self, item_id: str) -> bool:
        """Whether what was said is still to be understood."""
        return item_id in self._heard

    def transcribe(self, item_id: str, text: str) -> None:
        """Has understood what was said; the transcript joins the item."""
        for item in self._engine.both_sides(item_id):
            item.content.append(text)
        understood = build(
            llm.InputTranscriptionCompleted,
            item_id=item_id,
            transcript=text,
            is_final=True,
            turn_started_at=self._heard.pop(item_id, None),
        )
        self.emit("input_audio_transcription_completed", understood)

    def cut(self) -> None:
        """Loses the connection; the engine connects again and repeats what was acknowledged.

        That is acknowledged in turn before anything else is done, or when the test says so that has
        asked to hold it.
        """
        for response in self.responses:
            if not response.finished:
                response.break_off()
        self._heard.clear()
        again = self._engine.reconnect()
        if reconnected := getattr(llm, "RealtimeSessionReconnectedEvent", None):
            self.emit("session_reconnected", reconnected())
        if again is not None:
            again.release()

    def _emit_item_added(self, previous_id: str | None, item: llm.ChatItem) -> None:
        if added := getattr(llm, "RemoteItemAddedEvent", None):
            self.emit("remote_item_added", added(previous_item_id=previous_id, item=item))

    # -- upstream's interface

    @property
    def chat_ctx(self) -> llm.ChatContext:
        """A copy of the engine's mirror."""
        return self._engine.mirror

    @property
    def tools(self) -> llm.ToolContext:
        """The tools last set."""
        return self._tools

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        """Makes the remote context equal to ``chat_ctx``, when its turn has come."""
        await self._engine.update(chat_ctx)

    async def update_instructions(self, instructions: str) -> None:
        """Takes note of nothing; can be made to wait, as with a provider that acknowledges."""
        self.instructions_entered.set()
        if not self.instructions_gate.is_set():
            note("held", text="the new instructions")
            await self.instructions_gate.wait()
            note("acknowledged", text="the new instructions")

    async def update_tools(self, tools: list[Any]) -> None:
        """Sets the tools."""
        self._tools = llm.ToolContext(tools)

    def update_options(self, **_: Any) -> None:
        """Takes note of nothing."""

    def generate_reply(self, **_: Any) -> asyncio.Future[llm.GenerationCreatedEvent]:
        """Begins a response on the loop's next turn, filled in by `on_reply`."""
        loop = asyncio.get_running_loop()
        created: asyncio.Future[llm.GenerationCreatedEvent] = loop.create_future()

        def begin() -> None:
            if created.cancelled():
                return
            response = Response(self._engine, user_initiated=True)
            self.responses.append(response)
            created.set_result(response.event)
            self.emit("generation_created", response.event)
            self.on_reply(response)

        loop.call_soon(begin)
        return created

    def interrupt(self) -> None:
        """Cancels the response in progress; the server ends it a little later."""
        for response in self.responses:
            if not response.finished:
                asyncio.get_running_loop().call_soon(response.done)

    def truncate(self, *, message_id: str, audio_transcript: Any = None, **_: Any) -> None:
        """Cuts a text down to what was shown of it, on both sides, once it is complete."""
        for item in self._engine.both_sides(message_id):
            if item.content and isinstance(audio_transcript, str):
                item.content = [audio_transcript]

    def push_audio(self, frame: Any) -> None:
        """Hears nothing."""

    def push_video(self, frame: Any) -> None:
        """Sees nothing."""

    def commit_audio(self) -> None:
        """Has no audio to commit."""

    def clear_audio(self) -> None:
        """Has no audio to clear."""

    async def aclose(self) -> None:
        """Closes the connection; nothing stays held."""
        self.closed = True
        self.release_all()
        for response in self.responses:
            response.done()
