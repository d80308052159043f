"""A realtime model of no company's, that records all that reaches its sessions.

Its sessions keep one ordered conversation. An update takes a little virtual time, and then
removes and inserts what differs, and tells of each item; replies come piece by piece. All of that
happens in callbacks, so that the tasks and the loop's steps that are counted are the framework's.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from ctxlock.races.engine import conversation_items
from ctxlock.races.response import build
from livekit import rtc
from livekit.agents import llm, utils
from livekit.agents.llm.utils import compute_chat_ctx_diff

from .recorder import Recorder

__all__ = ["Answer", "Part", "RecordingModel", "RecordingSession", "silence"]


def silence() -> rtc.AudioFrame:
    """A tenth of a second of sound."""
    return rtc.AudioFrame(bytes(2 * 2400), 24000, 1, 2400)


_ABLE = (
    *("message_truncation", "turn_detection", "user_transcription", "manual_function_calls"),
    *("per_response_tool_choice", "mutable_chat_context", "mutable_instructions", "mutable_tools"),
)


@dataclass(frozen=True)
class Part:
    """A piece of a reply: a message with its words one by one, or the call of a tool.

    Attributes:
        words: Those of a message; without any, it is begun and never gets a text.
        call: The name of a tool, which makes it a call.
        arguments: Those of the call, as JSON.
    """

    words: Sequence[str] = ()
    call: str | None = None
    arguments: str = "{}"


@dataclass(frozen=True)
class Answer:
    """What a reply consists of.

    Attributes:
        parts: Its pieces.
        endless: Whether it goes on until it is interrupted.
        fails: The error that asking for it ends in.
    """

    parts: Sequence[Part] = ()
    endless: bool = False
    fails: Exception | None = None


class RecordingModel(llm.RealtimeModel):
    """Makes sessions and keeps them; has answers ready for whoever asks for a reply.

    Args:
        recorder: Where what happens is recorded.
        kind: The class of its sessions.
        capabilities: Flags that differ from the usual ones.
    """

    audio = False
    """Whether replies are spoken."""

    def __init__(
        self,
        recorder: Recorder,
        kind: type[RecordingSession] | None = None,
        *,
        name: str = "model",
        **capabilities: bool,
    ) -> None:
        flags = {
            field.name: capabilities.get(field.name, field.name in _ABLE)
            for field in dataclasses.fields(llm.RealtimeCapabilities)
        }
        super().__init__(capabilities=llm.RealtimeCapabilities(**flags))
        self.recorder = recorder
        self.name = name
        self.audio = flags["audio_output"]
        self.sessions: list[RecordingSession] = []
        self.answers: deque[Answer] = deque()
        self.replies = asyncio.Event()
        self._kind = kind or RecordingSession

    def session(self, **options: Any) -> Any:
        """Opens a session, whatever the release asks of it."""
        self.recorder.call(self.name, "session", ", ".join(f"{k}={v}" for k, v in options.items()))
        session = self._kind(self)
        self.sessions.append(session)
        return self.handed_out(session)

    def handed_out(self, session: RecordingSession) -> Any:
        """What the framework gets for a session."""
        return session

    def next_answer(self) -> Answer:
        """The next reply."""
        if self.answers:
            return self.answers.popleft()
        return Answer([Part(["all ", "right"])])

    async def aclose(self) -> None:
        """Has nothing to close."""


@dataclass
class _Message:
    """A message of a reply, as the framework reads it while it grows."""

    id: str
    audio: bool
    text: str = ""
    texts: utils.aio.Chan[str] = field(default_factory=utils.aio.Chan)
    frames: utils.aio.Chan[rtc.AudioFrame] = field(default_factory=utils.aio.Chan)

    def generation(self) -> llm.MessageGeneration:
        kinds: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        kinds.set_result(["audio", "text"] if self.audio else ["text"])
        return build(
            llm.MessageGeneration,
            message_id=self.id,
            text_stream=self.texts,
            audio_stream=self.frames,
            modalities=kinds,
        )

    def say(self, word: str) -> None:
        if not self.texts.closed:
            self.text += word
            self.texts.send_nowait(word)
            if self.audio:
                for _ in range(2):
                    self.frames.send_nowait(silence())

    def end(self) -> None:
        self.texts.close()
        self.frames.close()


def _recorded(name: str) -> Callable[[RecordingSession], None]:
    return lambda session: session.recorder.call(session.name, name)


class RecordingSession(llm.RealtimeSession[Any]):
    """One connection, with the model's conversation at its end.

    Attributes:
        items: The conversation.
        latency: How many seconds an update takes.
    """

    latency = 0.1

    def __init__(self, model: RecordingModel) -> None:
        super().__init__(model)
        self.model = model
        self.recorder = model.recorder
        self.name = f"{model.name}.session{len(model.sessions) + 1}"
        self.items: list[llm.ChatItem] = []
        self._tools = llm.ToolContext([])
        self._made = 0
        self._current: Response | None = None
        # a provider's events come from a task of its own, and not from the one that asked
        self._home = copy_context()

    # -- what the application's side of the test does with it

    def later(self, seconds: float, work: Callable[[], object]) -> None:
        """Has something happen, from the provider's side."""
        asyncio.get_running_loop().call_later(seconds, work, context=self._home.copy())

    def new_id(self) -> str:
        """An id of the provider's making."""
        self._made += 1
        return f"{self.name}-{self._made}"

    def add(self, item: llm.ChatItem) -> None:
        """Adds an item of the provider's own making to the end."""
        before = self.items[-1].id if self.items else None
        self.items.append(item)
        self.tell(before, item, own=True)

    def respond(self, answer: Answer, *, asked: asyncio.Future[Any] | None = None) -> None:
        """Begins a reply, which somebody has asked for or nobody has."""
        self.model.replies.set()
        self._current = Response(self, answer, asked)

    def hear(self, transcript: str | None, *, late: bool = False, reply: bool = True) -> None:
        """Hears the user; understands what was said before or after the reply begins, or never."""
        item = llm.ChatMessage(id=self.new_id(), role="user", content=[])
        began = time.time()

        def stop() -> None:
            event = build(llm.InputSpeechStoppedEvent, user_transcription_enabled=True)
            self.emit("input_speech_stopped", event)
            self.add(item)

        def understand() -> None:
            assert transcript is not None
            item.content.append(transcript)  # of what was removed meanwhile, too
            event = build(
                llm.InputTranscriptionCompleted,
                item_id=item.id,
                transcript=transcript,
                is_final=True,
                turn_started_at=began if late else None,
            )
            self.emit("input_audio_transcription_completed", event)

        self.emit("input_speech_started", build(llm.InputSpeechStartedEvent))
        self.later(0.3, stop)
        if transcript is not None:
            self.later(1.5 if late else 0.4, understand)
        if reply:
            self.later(0.5, lambda: self.respond(self.model.next_answer()))

    def reconnect(self) -> None:
        """Loses the connection, begins anew, and repeats what has a content and is no system's."""
        if self._current is not None:
            self._current.end()
        kept = [
            item
            for item in self.items
            if item.type != "message" or (item.content and item.role in ("user", "assistant"))
        ]
        self.items = []
        self.announce_reconnection()

        def repeat() -> None:
            for item in kept:
                if all(mine.id != item.id for mine in self.items):
                    self.add(item)

        self.later(self.latency, repeat)

    # -- what variants change

    def announce_reconnection(self) -> None:
        """Tells that the connection is another one."""
        self.emit("session_reconnected", llm.RealtimeSessionReconnectedEvent())

    def tell(self, before: str | None, item: llm.ChatItem, *, own: bool) -> None:
        """Tells of an item that joined the conversation; its own, or one that was sent."""
        self.emit("remote_item_added", llm.RemoteItemAddedEvent(before, item))

    def mirror(self) -> llm.ChatContext:
        """What the property `chat_ctx` gives."""
        return llm.ChatContext(list(self.items))

    async def acknowledge(self) -> None:
        """Waits until an update has happened, or fails."""
        await asyncio.sleep(self.latency)

    def accept(self, item: llm.ChatItem) -> llm.ChatItem:
        """What becomes of an item that was sent."""
        return item.model_copy(deep=True)

    async def take(self, chat_ctx: llm.ChatContext) -> None:
        """Makes the conversation equal to a context."""
        wanted = llm.ChatContext(self.wanted(chat_ctx))
        diff = compute_chat_ctx_diff(llm.ChatContext(list(self.items)), wanted)
        if not diff.to_remove and not diff.to_create:
            return
        by_id = {item.id: item for item in wanted.items}
        await self.acknowledge()
        gone = set(diff.to_remove)
        self.items = [item for item in self.items if item.id not in gone]
        for before, item_id in diff.to_create:
            self._insert(before, self.accept(by_id[item_id]))

    def _insert(self, before: str | None, item: llm.ChatItem) -> None:
        ids = [mine.id for mine in self.items]
        at = 0 if before is None else ids.index(before) + 1 if before in ids else len(ids)
        self.items.insert(at, item)
        self.tell(ids[at - 1] if at else None, item, own=False)

    def wanted(self, chat_ctx: llm.ChatContext) -> list[llm.ChatItem]:
        """Which items of a context are to be in the conversation; each once."""
        known = {item.id for item in self.items}
        found: dict[str, llm.ChatItem] = {}
        for item in conversation_items(chat_ctx):
            if item.type != "message" or item.content or item.id in known:
                found.setdefault(item.id, item)
        return list(found.values())

    # -- upstream's interface

    def on(self, event: Any, callback: Any = None) -> Any:
        """Registers a listener; one besides the activity asks nothing of the provider."""
        self._listens("on", event, callback)
        return super().on(event, callback)

    def off(self, event: Any, callback: Any) -> None:
        """Takes a listener away."""
        self._listens("off", event, callback)
        super().off(event, callback)

    def _listens(self, how: str, event: Any, callback: Any) -> None:
        if type(getattr(callback, "__self__", None)).__name__ == "AgentActivity":
            self.recorder.read(self.name, f"{how} {event}")

    @property
    def chat_ctx(self) -> llm.ChatContext:
        """The conversation, as the variant shows it."""
        self.recorder.read(self.name, "chat_ctx")
        return self.mirror()

    @property
    def tools(self) -> llm.ToolContext:
        """The tools last set."""
        return self._tools

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        """Makes the conversation equal to ``chat_ctx``."""
        self.recorder.call(self.name, "update_chat_ctx", *self.recorder.context(chat_ctx))
        await self.take(chat_ctx)

    async def update_instructions(self, instructions: str) -> None:
        """Records them; takes no time."""
        self.recorder.call(self.name, "update_instructions", repr(instructions))

    async def update_tools(self, tools: list[Any]) -> None:
        """Sets the tools; takes no time."""
        names = ", ".join(tool.id for tool in tools)
        numbers = " ".join(self.recorder.object(tool) for tool in tools)
        self.recorder.call(self.name, "update_tools", names, numbers)
        self._tools = llm.ToolContext(tools)

    def update_options(self, **options: Any) -> None:
        """Records them."""
        self.recorder.call(self.name, "update_options", _named(options))

    def generate_reply(self, **options: Any) -> asyncio.Future[llm.GenerationCreatedEvent]:
        """Has the next answer of the model begin."""
        given = {name: value for name, value in options.items() if utils.is_given(value)}
        if "tools" in given:
            given["tools"] = [tool.id for tool in given["tools"]]
        self.recorder.call(self.name, "generate_reply", _named(given))
        return self._ask(self.model.next_answer())

    def say(self, text: Any) -> asyncio.Future[llm.GenerationCreatedEvent]:
        """Has the model say a text, where it can."""
        self.recorder.call(self.name, "say", repr(text))
        return self._ask(Answer([Part([text])]))

    def _ask(self, answer: Answer) -> asyncio.Future[llm.GenerationCreatedEvent]:
        created = asyncio.get_running_loop().create_future()

        def begin() -> None:
            if created.cancelled():
                return
            if answer.fails is not None:
                created.set_exception(answer.fails)
            else:
                self.respond(answer, asked=created)

        self.later(0.05, begin)
        return created

    def interrupt(self) -> None:
        """Ends the reply that is under way."""
        self.recorder.call(self.name, "interrupt")
        if self._current is not None:
            self.later(0, self._current.end)

    def truncate(self, *, message_id: str, audio_transcript: Any = None, **options: Any) -> None:
        """Cuts a message down to what was heard of it."""
        options = {"audio_transcript": audio_transcript, **options}
        asked = f"{self.recorder.text(message_id)}, {_named(options)}"
        self.recorder.call(self.name, "truncate", asked)
        for item in self.items:
            if item.id == message_id and item.type == "message" and audio_transcript:
                item.content = [audio_transcript]

    def push_audio(self, frame: Any) -> None:
        """Hears nothing."""

    def push_video(self, frame: Any) -> None:
        """Sees nothing."""

    start_user_activity = _recorded("start_user_activity")
    commit_audio = _recorded("commit_audio")
    clear_audio = _recorded("clear_audio")

    async def aclose(self) -> None:
        """Ends what is under way."""
        self.recorder.call(self.name, "aclose")
        if self._current is not None:
            self._current.end()


class Response:
    """A reply on its way; each piece comes a tenth of a second after the one before."""

    def __init__(
        self, session: RecordingSession, answer: Answer, asked: asyncio.Future[Any] | None
    ) -> None:
        self._session = session
        self._answer = answer
        self._messages: list[_Message] = []
        self._message_ch: utils.aio.Chan[llm.MessageGeneration] = utils.aio.Chan()
        self._function_ch: utils.aio.Chan[llm.FunctionCall] = utils.aio.Chan()
        self.ended = False
        event = build(
            llm.GenerationCreatedEvent,
            **{"message_stream": self._message_ch, "function_stream": self._function_ch},
            user_initiated=asked is not None,
            response_id=f"response-{session.new_id()}",
        )
        if asked is not None:
            asked.set_result(event)
        session.emit("generation_created", event)
        self._go_on(self._pieces())

    def _go_on(self, pieces: Generator[None, None, None]) -> None:
        def proceed() -> None:
            if not self.ended and next(pieces, self) is not self:
                self._session.later(0.1, proceed)

        proceed()

    def _pieces(self) -> Generator[None, None, None]:
        session = self._session
        for part in self._answer.parts:
            item_id = session.new_id()
            if part.call is not None:
                call = llm.FunctionCall(
                    id=item_id, call_id=f"call-{item_id}", name=part.call, arguments=part.arguments
                )
                session.add(call)
                self._function_ch.send_nowait(call.model_copy())
                yield
                continue
            session.add(llm.ChatMessage(id=item_id, role="assistant", content=[]))
            message = _Message(item_id, session.model.audio)
            self._messages.append(message)
            self._message_ch.send_nowait(message.generation())
            yield
            for word in part.words:
                message.say(word)
                yield
            if part.words:
                message.end()
        if not self._answer.endless:
            self.end()

    def end(self) -> None:
        """Ends it; the texts so far become the contents of its messages."""
        if self.ended:
            return
        self.ended = True
        for message in self._messages:
            for item in self._session.items:
                if item.id == message.id and item.type == "message" and not item.content:
                    item.content.append(message.text)
            message.end()
        self._message_ch.close()
        self._function_ch.close()


def _named(options: dict[str, Any]) -> str:
    shown: Iterable[tuple[str, Any]] = sorted(options.items())
    return ", ".join(f"{name}={value!r}" for name, value in shown if utils.is_given(value))
