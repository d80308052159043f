"""Realtime models that are each as legal on stock as the next, and an agent that is.

What they have in common is what they do not promise: no identity, no hash, no weak reference, no
context to be read, no word of what was added, no order of the events of a start.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from ctxlock.races.engine import conversation_items
from livekit.agents import Agent, llm

from .provider import RecordingModel, RecordingSession
from .recorder import Recorder
from .steps import PUSHED, note
from .talk import LabAgent, Talk

__all__ = ["VARIANTS", "Variant"]

VARIANTS: dict[str, type[Variant]] = {}
"""Every variant, by the name of its class."""


class Variant:
    """A model, and the agents that use it; the base is the ordinary one."""

    kind: ClassVar[type[RecordingSession]] = RecordingSession
    model_kind: ClassVar[type[RecordingModel]] = RecordingModel
    capabilities: ClassVar[dict[str, bool]] = {}
    agent_kind: ClassVar[type[LabAgent]] = LabAgent
    audio: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        VARIANTS[cls.__name__] = cls

    def model(self, recorder: Recorder, name: str) -> RecordingModel:
        """Makes a model."""
        return self.model_kind(recorder, self.kind, name=name, **self.capabilities)

    def agent(self, name: str, **options: Any) -> LabAgent:
        """Makes an agent."""
        return self.agent_kind(name, **options)

    def prepare(self, talk: Talk) -> None:
        """Does what has to be done before the session starts."""


class Plain(Variant):
    """Tells of every item, shows its conversation, can all that can be changed."""


class Speaking(Variant):
    """Its replies are spoken, and played by an audio output."""

    capabilities: ClassVar = {"audio_output": True}
    audio = True


class Immutable(Variant):
    """Nothing of it can be changed once it has begun: each handoff opens a session."""

    capabilities: ClassVar = {
        "mutable_chat_context": False,
        "mutable_instructions": False,
        "mutable_tools": False,
    }


class AnswersToolsItself(Variant):
    """Goes on by itself after a tool's output."""

    capabilities: ClassVar = {"auto_tool_reply_generation": True}

    class kind(RecordingSession):
        """Begins a reply when an output was sent."""

        def accept(self, item: llm.ChatItem) -> llm.ChatItem:
            """Replies to an output."""
            if item.type == "function_call_output":
                self.later(0.1, lambda: self.respond(self.model.next_answer()))
            return super().accept(item)


class Says(Variant):
    """Can say a given text, and knows tools only for the whole session."""

    capabilities: ClassVar = {"supports_say": True, "per_response_tool_choice": False}


class NeverSuspends(Variant):
    """Takes no time for an update."""

    class kind(RecordingSession):
        """Does not wait."""

        async def acknowledge(self) -> None:
            """Is done already."""


class GivesAFuture(Variant):
    """Its updates are no coroutines."""

    class kind(RecordingSession):
        """Makes a future of it."""

        def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> asyncio.Future[None]:  # type: ignore[override]
            """Begins at once, awaited or not."""
            return asyncio.ensure_future(super().update_chat_ctx(chat_ctx))


class _SameModel(RecordingModel):
    """Has one session, and gives it to whoever asks."""

    def session(self, **options: Any) -> Any:
        """Gives the one it has, with an empty conversation."""
        if not self.sessions:
            return super().session(**options)
        self.recorder.call(self.name, "session")
        self.sessions[0].items.clear()
        return self.sessions[0]


class SameSession(Variant):
    """A second AgentSession gets the object that the first one had."""

    model_kind = _SameModel


class SameSessionAtHandoff(Variant):
    """A handoff that closes the session opens the same object again."""

    model_kind = _SameModel
    capabilities = Immutable.capabilities


class Unhashable(Variant):
    """Its sessions have no hash."""

    class kind(RecordingSession):
        """Compares by identity, and says nothing of a hash."""

        def __eq__(self, other: object) -> bool:
            return self is other

        __hash__ = None  # type: ignore[assignment]


class Equal(Variant):
    """Its sessions are all equal."""

    class kind(RecordingSession):
        """Is equal to every other one."""

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self))

        def __hash__(self) -> int:
            return 7


class _Behind:
    """Passes on what it is asked for, whatever that is."""

    def __init__(self, session: RecordingSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class _DuckModel(RecordingModel):
    """Hands out something that is no RealtimeSession, but does all that one does."""

    def handed_out(self, session: RecordingSession) -> Any:
        """Wraps it."""
        return _Behind(session)


class Duck(Variant):
    """Its sessions are no instances of RealtimeSession."""

    model_kind = _DuckModel


class _Slots:
    """Has no dictionary, and nothing that a weak reference could use."""

    __slots__ = ("_session",)

    def __init__(self, session: RecordingSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class _SlotsModel(RecordingModel):
    """Hands out something that no weak reference can refer to."""

    def handed_out(self, session: RecordingSession) -> Any:
        """Wraps it."""
        return _Slots(session)


class Slotted(Variant):
    """Its sessions have slots, and none for weak references."""

    model_kind = _SlotsModel


class NoContext(Variant):
    """Its context cannot be read."""

    class kind(RecordingSession):
        """Knows no context."""

        def mirror(self) -> llm.ChatContext:
            """Is not to be had."""
            raise NotImplementedError("the context of this model cannot be read")


class EmptyContext(Variant):
    """Its context reads as empty, always."""

    class kind(RecordingSession):
        """Shows nothing."""

        def mirror(self) -> llm.ChatContext:
            """Has none of it."""
            return llm.ChatContext([])


class FreshContext(Variant):
    """Its context is a copy each time, and so are its items."""

    class kind(RecordingSession):
        """Shows copies."""

        def mirror(self) -> llm.ChatContext:
            """Copies all of it."""
            return llm.ChatContext([item.model_copy(deep=True) for item in self.items])


class GivenContext(Variant):
    """Its context is the very object that was given last."""

    class kind(RecordingSession):
        """Keeps what it was given."""

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


class TellsNothing(Variant):
    """Tells of no item."""

    class kind(RecordingSession):
        """Keeps silent."""

        def tell(self, before: str | None, item: llm.ChatItem, *, own: bool) -> None:
            """Does not."""


class TellsItsOwn(Variant):
    """Tells of the items that it adds by itself."""

    class kind(RecordingSession):
        """Keeps silent on the rest."""

        def tell(self, before: str | None, item: llm.ChatItem, *, own: bool) -> None:
            """Does so for its own."""
            if own:
                super().tell(before, item, own=own)


class RepeatsRemoved(Variant):
    """Tells of the items that were removed, again, after each update."""

    class kind(RecordingSession):
        """Never forgets."""

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


class Renames(Variant):
    """Gives what it was sent an id of its own."""

    class kind(RecordingSession):
        """Knows both ids."""

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


class ReusesIds(Variant):
    """Counts from one again when nothing is left, or the connection is another one."""

    class kind(RecordingSession):
        """Has ids of the same form in every session."""

        def new_id(self) -> str:
            """Counts what there is."""
            if not self.items:
                self._made = 0
            self._made += 1
            return f"item-{self._made}"


class Slow(Variant):
    """Takes 17 seconds for an update, which then succeeds."""

    class kind(RecordingSession):
        """Takes its time."""

        latency = 17.0


class RaisesValueError(Variant):
    """Every update that asks for something ends in a ValueError."""

    class kind(RecordingSession):
        """Does not do it."""

        async def acknowledge(self) -> None:
            """Fails, and not at once."""
            await super().acknowledge()
            raise ValueError("the items do not fit")


class RaisesRealtimeError(Variant):
    """Every update that asks for something ends in a RealtimeError."""

    class kind(RecordingSession):
        """Does not do it."""

        async def acknowledge(self) -> None:
            """Fails, and not at once."""
            await super().acknowledge()
            raise llm.RealtimeError("the update was refused")


class StartsInOneGo(Variant):
    """Sets instructions, context and tools in one request of its own."""

    class kind(RecordingSession):
        """Overrides what the base does in three."""

        async def _update_session(
            self, *, instructions: Any = None, chat_ctx: Any = None, tools: Any = None
        ) -> None:
            asked, handed = self.recorder.context(chat_ctx)
            self.recorder.call(self.name, "_update_session", f"{instructions!r}, {asked}", handed)
            if isinstance(chat_ctx, llm.ChatContext):
                await self.take(chat_ctx)


class FailsToStart(Variant):
    """Its own way to start raises a RealtimeError."""

    class kind(RecordingSession):
        """Does not start."""

        async def _update_session(self, **given: Any) -> None:
            self.recorder.call(self.name, "_update_session")
            raise llm.RealtimeError("there is no such model")


class FailsAtHandoff(Variant):
    """Its own way to start raises a RealtimeError from the second time on."""

    class kind(RecordingSession):
        """Starts once."""

        _started = False

        async def _update_session(self, **given: Any) -> None:
            self.recorder.call(self.name, "_update_session")
            if self._started:
                raise llm.RealtimeError("this connection has begun already")
            self._started = True
            await super()._update_session(**given)


class UpdatesInItsStart(Variant):
    """Has the application add to the context from within its start, and waits for that."""

    class kind(RecordingSession):
        """Asks who is there before it goes on."""

        _started = False

        async def update_instructions(self, instructions: str) -> None:
            """Waits for the application, the first time."""
            await super().update_instructions(instructions)
            if not self._started:
                self._started = True
                assert isinstance(self.model, _Inquiring)
                await self.model.talk.agents[-1].update_chat_ctx(
                    llm.ChatContext([note("added in the start")])
                )

    def model(self, recorder: Recorder, name: str) -> RecordingModel:
        """Makes one that knows its application."""
        return _Inquiring(recorder, self.kind, name=name)

    def prepare(self, talk: Talk) -> None:
        """Has the models know the application."""
        for model in talk.models:
            assert isinstance(model, _Inquiring)
            model.talk = talk


class _Inquiring(RecordingModel):
    """Knows its application."""

    talk: Talk


class ReconnectsWithoutArgument(Variant):
    """Tells of a reconnection, and hands nothing over."""

    class kind(RecordingSession):
        """Emits the bare event."""

        def announce_reconnection(self) -> None:
            """Tells."""
            self.emit("session_reconnected")


class ReadOnlyContext(Variant):
    """Its context cannot be changed, neither what it shows nor what the model has."""

    capabilities: ClassVar = {"mutable_chat_context": False}

    class kind(RecordingSession):
        """Shows what nobody can change."""

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


class SetsAContextVariable(Variant):
    """Leaves something in the context of its caller."""

    class kind(RecordingSession):
        """Sets a variable."""

        async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
            """Sets it when it is done."""
            await super().update_chat_ctx(chat_ctx)
            PUSHED.set(self.name)


class _Redacting(LabAgent):
    """Shows its context with what the user said blacked out."""

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


class Redacts(Variant):
    """An agent that overrides `chat_ctx`: the provider gets what the property gives."""

    agent_kind = _Redacting
