"""Realtime models that are each as legal on stock as the next, and an agent that is.

What they have in common is what they do not promise: no identity, no hash, no weak reference, no
context to be read, no word of what was added, no order of the events of a start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ctxlock.races.engine import conversation_items
from livekit.agents import Agent, llm

from .provider import RecordingModel, RecordingSession
from .recorder import Recorder
from .steps import PUSHED, note
from .talk import LabAgent

__all__ = ["VARIANTS", "Variant"]

T = TypeVar("T", bound=type)


@dataclass(frozen=True)
class Variant:
    """A model, and the agents that use it; the ordinary one if nothing is given.

    Attributes:
        kind: The class of the model's sessions.
        model_kind: The class of the model.
        agent_kind: The class of the agents.
        capabilities: The model's flags that differ from the usual ones.
    """

    kind: type[RecordingSession] = RecordingSession
    model_kind: type[RecordingModel] = RecordingModel
    agent_kind: type[LabAgent] = LabAgent
    capabilities: Mapping[str, bool] = field(default_factory=dict)

    def model(self, recorder: Recorder, name: str) -> RecordingModel:
        """Makes a model."""
        return self.model_kind(recorder, self.kind, name=name, **self.capabilities)


IMMUTABLE = dict.fromkeys(("mutable_chat_context", "mutable_instructions", "mutable_tools"), False)
"""Nothing of it can be changed once it has begun: each handoff opens a session."""

VARIANTS = {
    "Plain": Variant(),
    "Speaking": Variant(capabilities={"audio_output": True}),
    "Immutable": Variant(capabilities=IMMUTABLE),
}
"""Every variant, by its name; most are a class of sessions, models or agents of that name."""

_PARTS = {"kind": RecordingSession, "model_kind": RecordingModel, "agent_kind": LabAgent}


def variant(**capabilities: bool) -> Callable[[T], T]:
    """Has a class be a variant; its docstring says what is special about it."""

    def made(cls: T) -> T:
        part = next(part for part, base in _PARTS.items() if issubclass(cls, base))
        given: dict[str, Any] = {part: cls, "capabilities": capabilities}
        VARIANTS[cls.__name__] = Variant(**given)
        return cls

    return made


@variant(auto_tool_reply_generation=True)
class AnswersToolsItself(RecordingSession):
    """Goes on by itself after a tool's output."""

    def accept(self, item: llm.ChatItem) -> llm.ChatItem:
        """Begins a reply when an output was sent."""
        if item.type == "function_call_output":
            self.later(0.1, lambda: self.respond(self.model.next_answer()))
        return super().accept(item)


# it can say a given text, and knows tools only for the whole session
VARIANTS["Says"] = Variant(capabilities={"supports_say": True, "per_response_tool_choice": False})


@variant()
class NeverSuspends(RecordingSession):
    """Takes no time for an update."""

    async def acknowledge(self) -> None:
        """Is done already."""


@variant()
class GivesAFuture(RecordingSession):
    """Its updates are no coroutines."""

    def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> asyncio.Future[None]:  # type: ignore[override]
        """Begins at once, awaited or not."""
        return asyncio.ensure_future(super().update_chat_ctx(chat_ctx))


@variant()
class SameSession(RecordingModel):
    """Has one session, and gives it to whoever asks: to a second AgentSession, too."""

    def session(self, **options: Any) -> Any:
        """Gives the one it has, with an empty conversation."""
        if not self.sessions:
            return super().session(**options)
        self.recorder.call(self.name, "session")
        self.sessions[0].items.clear()
        return self.sessions[0]


# a handoff that closes the session opens the same object again
VARIANTS["SameSessionAtHandoff"] = Variant(model_kind=SameSession, capabilities=IMMUTABLE)


@variant()
class Unhashable(RecordingSession):
    """Compares by identity, and has no hash."""

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]


@variant()
class Equal(RecordingSession):
    """Is equal to every other one."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    def __hash__(self) -> int:
        return 7


class _Slots:
    """Passes on what it is asked for; nothing of it could be a dictionary or a weak reference."""

    __slots__ = ("_session",)

    def __init__(self, session: RecordingSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class _Behind(_Slots):
    """The same, with a dictionary."""


@variant()
class Duck(RecordingModel):
    """Hands out something that is no RealtimeSession, but does all that one does."""

    def handed_out(self, session: RecordingSession) -> Any:
        """Wraps it."""
        return _Behind(session)


@variant()
class Slotted(RecordingModel):
    """Hands out something that has slots, and none for weak references."""

    def handed_out(self, session: RecordingSession) -> Any:
        """Wraps it."""
        return _Slots(session)


@variant()
class NoContext(RecordingSession):
    """Its context cannot be read."""

    def mirror(self) -> llm.ChatContext:
        """Is not to be had."""
        raise NotImplementedError("the context of this model cannot be read")


@variant()
class EmptyContext(RecordingSession):
    """Its context reads as empty, always."""

    def mirror(self) -> llm.ChatContext:
        """Has none of it."""
        return llm.ChatContext([])


@variant()
class FreshContext(RecordingSession):
    """Its context is a copy each time, and so are its items."""

    def mirror(self) -> llm.ChatContext:
        """Copies all of it."""
        return llm.ChatContext([item.model_copy(deep=True) for item in self.items])


@variant()
class GivenContext(RecordingSession):
    """Its context is the very object that was given last."""

    def __init__(self, model: RecordingModel) -> None:
        super().__init__(model)
        self._given = llm.ChatContext([])

    def mirror(self) -> llm.ChatContext:
        """Gives it back."""
        return self._given

    async def take(self, chat_ctx: llm.ChatContext) -> None:
        """Keeps it before it does anything with it."""
        self._given = chat_ctx
        await super().take(chat_ctx)


@variant()
class TellsNothing(RecordingSession):
    """Tells of no item."""

    def tell(self, before: str | None, item: llm.ChatItem, *, own: bool) -> None:
        """Does not."""


@variant()
class TellsItsOwn(RecordingSession):
    """Tells of the items that it adds by itself, and keeps silent on the rest."""

    def tell(self, before: str | None, item: llm.ChatItem, *, own: bool) -> None:
        """Does so for its own."""
        if own:
            super().tell(before, item, own=own)


@variant()
class RepeatsRemoved(RecordingSession):
    """Tells of the items that were removed, again, after each update."""

    def __init__(self, model: RecordingModel) -> None:
        super().__init__(model)
        self._ever: dict[str, llm.ChatItem] = {}

    async def take(self, chat_ctx: llm.ChatContext) -> None:
        """Tells of what is not there any more."""
        self._ever |= {item.id: item for item in self.items}
        await super().take(chat_ctx)
        here = {item.id for item in self.items}
        for item in [item for item in self._ever.values() if item.id not in here]:
            self.tell(self.items[-1].id if self.items else None, item, own=False)


@variant()
class Renames(RecordingSession):
    """Gives what it was sent an id of its own, and knows both."""

    def __init__(self, model: RecordingModel) -> None:
        super().__init__(model)
        self._ids: dict[str, str] = {}

    def accept(self, item: llm.ChatItem) -> llm.ChatItem:
        """Gives it another id."""
        self._ids[item.id] = self.new_id()
        return item.model_copy(update={"id": self._ids[item.id]}, deep=True)

    def wanted(self, chat_ctx: llm.ChatContext) -> list[llm.ChatItem]:
        """Takes the one that it has for the one that it was sent."""
        here = {item.id: item for item in self.items}
        known = llm.ChatContext(list(conversation_items(chat_ctx)))
        known.items[:] = [here.get(self._ids.get(i.id, i.id), i) for i in known.items]
        return super().wanted(known)


@variant()
class ReusesIds(RecordingSession):
    """Counts from one again when nothing is left, or the connection is another one."""

    def new_id(self) -> str:
        """Counts what there is; the ids have the same form in every session."""
        if not self.items:
            self._made = 0
        self._made += 1
        return f"item-{self._made}"


@variant()
class Slow(RecordingSession):
    """Takes 17 seconds for an update, which then succeeds."""

    latency = 17.0


@variant()
class RaisesValueError(RecordingSession):
    """Every update that asks for something ends in a ValueError."""

    error: Exception = ValueError("the items do not fit")

    async def acknowledge(self) -> None:
        """Fails, and not at once."""
        await super().acknowledge()
        raise type(self.error)(*self.error.args)


@variant()
class RaisesRealtimeError(RaisesValueError):
    """Every update that asks for something ends in a RealtimeError."""

    error = llm.RealtimeError("the update was refused")


@variant()
class StartsInOneGo(RecordingSession):
    """Sets instructions, context and tools in one request of its own, and not in three."""

    async def _update_session(
        self, *, instructions: Any = None, chat_ctx: Any = None, tools: Any = None
    ) -> None:
        asked, handed = self.recorder.context(chat_ctx)
        self.recorder.call(self.name, "_update_session", f"{instructions!r}, {asked}", handed)
        if isinstance(chat_ctx, llm.ChatContext):
            await self.take(chat_ctx)


@variant()
class FailsToStart(RecordingSession):
    """Its own way to start raises a RealtimeError."""

    async def _update_session(self, **given: Any) -> None:
        self.recorder.call(self.name, "_update_session")
        raise llm.RealtimeError("there is no such model")


@variant()
class FailsAtHandoff(RecordingSession):
    """Its own way to start raises a RealtimeError from the second time on."""

    _started = False

    async def _update_session(self, **given: Any) -> None:
        self.recorder.call(self.name, "_update_session")
        if self._started:
            raise llm.RealtimeError("this connection has begun already")
        self._started = True
        await super()._update_session(**given)


@variant()
class UpdatesInItsStart(RecordingSession):
    """Has the application add to the context from within its start, and waits for that."""

    _started = False

    async def update_instructions(self, instructions: str) -> None:
        """Waits for the application, the first time."""
        await super().update_instructions(instructions)
        if not self._started:
            self._started = True
            added = llm.ChatContext([note("added in the start")])
            await self.recorder.agents[-1].update_chat_ctx(added)


@variant()
class ReconnectsWithoutArgument(RecordingSession):
    """Tells of a reconnection, and hands nothing over."""

    def announce_reconnection(self) -> None:
        """Emits the bare event."""
        self.emit("session_reconnected")


@variant(mutable_chat_context=False)
class ReadOnlyContext(RecordingSession):
    """Its context cannot be changed, neither what it shows nor what the model has."""

    _began = False

    def mirror(self) -> llm.ChatContext:
        """Is of the kind that an agent shows."""
        return Agent(instructions="", chat_ctx=llm.ChatContext(list(self.items))).chat_ctx

    async def acknowledge(self) -> None:
        """Can do it once."""
        await super().acknowledge()
        if self._began:
            raise llm.RealtimeError("the context of this model cannot be changed")
        self._began = True


@variant()
class SetsAContextVariable(RecordingSession):
    """Leaves something in the context of its caller."""

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        """Sets a variable when it is done."""
        await super().update_chat_ctx(chat_ctx)
        PUSHED.set(self.name)


@variant()
class Redacts(LabAgent):
    """Shows its context with what the user said blacked out: the provider gets what it shows."""

    @property
    def chat_ctx(self) -> llm.ChatContext:
        """A copy without the user's words."""
        chat_ctx = super().chat_ctx.copy()
        chat_ctx.items[:] = [
            item.model_copy(update={"content": ["(redacted)"]})
            if item.type == "message" and item.role == "user"
            else item
            for item in chat_ctx.items
        ]
        return chat_ctx
