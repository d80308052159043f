"""An application on the virtual clock: an `AgentSession`, and the words for what is done to it.

A step is one coroutine. It runs in a task of its own, the caller, and the step is over when
nothing is left to do but to wait for the next one.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

from ctxlock.explorer.clock import virtual_clock
from lab.speaker import Speaker
from lab.watch import logging_to
from livekit.agents import Agent, AgentSession, llm

from .loop import CountingLoop
from .provider import Answer, RecordingModel, silence
from .recorder import Recorder, Step

__all__ = ["LabAgent", "Restless", "Talk", "on_the_virtual_clock"]

_STATES = ("user_state_changed", "agent_state_changed", "error", "close")
_SPOKEN = ("user_input_transcribed", "conversation_item_added", "speech_created")
_WORKED = ("function_tools_executed", "tool_execution_updated", "session_usage_updated")


class Restless(Exception):
    """A step went on and on; nothing can be done after it."""


class LabAgent(Agent):
    """An agent that may greet, with the id it is told.

    Args:
        name: Its id.
        greets: Whether it asks for a reply when it enters.
    """

    def __init__(self, name: str, *, greets: bool = False, **options: Any) -> None:
        super().__init__(id=name, instructions=f"You are {name}.", **options)
        self._greets = greets

    async def on_enter(self) -> None:
        """Greets."""
        if self._greets:
            self.session.generate_reply(instructions="Greet the user.")


@contextmanager
def on_the_virtual_clock() -> Iterator[Recorder]:
    """Opens a loop, records what is logged and what nobody catches, and closes the loop.

    Garbage is collected before and after, so that an error which nobody asked for is not told of in
    whichever step the collector happens to run.
    """
    loop = CountingLoop()
    asyncio.set_event_loop(loop)
    recorder = Recorder(loop)

    def unhandled(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        recorder.note("raised", recorder.text(f"unhandled: {context['message']} {error!r}"))

    loop.set_exception_handler(unhandled)
    gc.collect()
    gc.disable()
    try:
        with virtual_clock(), logging_to(recorder.logged):
            yield recorder
            gc.collect()
    finally:
        gc.enable()
        asyncio.set_event_loop(None)
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.drain()
        loop.set_exception_handler(lambda *_: None)
        loop.close()


class Talk:
    """A session over a recording model, in which steps are done.

    Attributes:
        model: The one that the session began with.
        agents: Every agent so far.
        session: The newest `AgentSession`.
    """

    def __init__(self, recorder: Recorder, model: RecordingModel) -> None:
        self.recorder = recorder
        self.loop = recorder.loop
        self.model = model
        self.models = [model]
        self.agents: list[Agent] = recorder.agents
        self._waiting: list[asyncio.Task[Any]] = []
        self._handles: list[Any] = []
        self._activities: WeakSet[Any] = WeakSet()
        self.session: Any = None

    @property
    def realtime(self) -> Any:
        """The newest session of the model of the agent that has the floor."""
        return self.model_now.sessions[-1]

    @property
    def agent(self) -> Any:
        """The agent that has the floor."""
        return self.session.current_agent

    def step(self, name: str, do: Callable[[], Awaitable[object]]) -> Step:
        """Does something, waits until all is quiet, and records how things stand then."""
        self.recorder.begin(name)

        async def caller() -> None:
            await do()

        task = self.loop.create_task(caller())
        rests = self.loop.settle()
        if not rests:
            self.recorder.note("raised", "it does not come to rest")
        for model in self.models:
            model.answers.clear()  # what nobody asked for is not for the next step
        if not task.done():
            self._waiting.append(task)
            self.recorder.note("raised", "the step has not ended")
        elif task.cancelled():
            self.recorder.note("raised", "the step was cancelled")
        elif (error := task.exception()) is not None:
            self.recorder.note("raised", self.recorder.text(repr(error)))
        self._look()
        if not rests:
            raise Restless(name)
        return self.recorder.steps[-1]

    async def start(self, agent: Agent) -> None:
        """Starts a session."""
        self.session = AgentSession(
            llm=self.model,
            vad=None,
            user_away_timeout=None,
            aec_warmup_duration=None,
            turn_handling={"turn_detection": "realtime_llm"},
        )
        for event in (*_STATES, *_SPOKEN, *_WORKED):
            self.session.on(event, self._happened)
        if self.model.audio:
            self.session.output.audio = Speaker(begins=1.0)  # earlier than every item
        self.agents.append(agent)
        await self.session.start(agent)

    async def typed(
        self, text: str, *answers: Answer, interrupted_after: float | None = None
    ) -> None:
        """The user types something, and interrupts the reply so many seconds after it began."""
        model = self.model_now
        model.answers.extend(answers)
        model.replies.clear()
        handle = self.session.generate_reply(user_input=text)
        self._handles.append(handle)
        if interrupted_after is not None:
            await self.reply_begins(model)
            await asyncio.sleep(interrupted_after)
            self.session.interrupt()
        await handle

    async def reply_begins(self, model: RecordingModel) -> None:
        """Returns when a reply begins, or never will; clear the event `replies` before."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(model.replies.wait(), 40)

    def say(self, text: str) -> Any:
        """The application has something said; where replies are spoken, with a sound of its own."""

        async def sound() -> AsyncIterator[Any]:
            for _ in range(3):
                yield silence()

        own = self.model.audio and not self.model_now.capabilities.supports_say
        return self.session.say(text, **({"audio": sound()} if own else {}))

    async def hand_off(self, agent: Agent) -> None:
        """Another agent takes over."""
        self.agents.append(agent)
        self.session.update_agent(agent)

    async def edit(self, change: Callable[[list[llm.ChatItem]], object]) -> None:
        """The application changes a copy of the context, and replaces the context with it."""
        chat_ctx = self.agent.chat_ctx.copy()
        change(chat_ctx.items)
        await self.agent.update_chat_ctx(chat_ctx)

    @property
    def model_now(self) -> RecordingModel:
        """The model of the agent that has the floor."""
        own = self.agent.llm
        return own if isinstance(own, RecordingModel) else self.model

    async def close(self) -> None:
        """Ends the session, and records which tasks and timers are left at once, and not later."""
        await self.session.aclose()
        left = asyncio.all_tasks(self.loop) - {asyncio.current_task(self.loop)}
        lines = sorted(self.loop.lineage(task) for task in left)
        lines += self.loop.timers()
        self.recorder.steps[-1]["left"].extend(f"when it is closed: {line}" for line in lines)

    def end(self) -> None:
        """Closes the session as the last step, and records which tasks and activities are left."""
        self.step("close", self.close)
        for task in self._waiting:
            task.cancel()
        self.loop.settle()
        left = sorted(self.loop.lineage(task) for task in asyncio.all_tasks(self.loop))
        gc.collect()
        left.append(f"{len(self._activities)} activities in memory")
        self.recorder.steps[-1]["left"].extend(left)

    def _happened(self, event: Any) -> None:
        self.recorder.note("events", f"{self.recorder.at()} {self._event(event)}")

    def _event(self, event: Any) -> str:
        name, kind = self.recorder, event.type
        if kind in ("user_state_changed", "agent_state_changed"):
            return f"{kind} {event.old_state} to {event.new_state}"
        if kind == "user_input_transcribed":
            return f"{kind} {event.transcript!r} of {name.text(event.item_id)}"
        if kind == "conversation_item_added":
            return f"{kind} {name.item(event.item)}, {self._held(event.item)}"
        if kind == "function_tools_executed":
            items = [*event.function_calls, *event.function_call_outputs]
            return f"{kind} {name.items(items)}"
        if kind == "speech_created":
            self._handles.append(event.speech_handle)
            return f"{kind} {event.source} {event.user_initiated}"
        if kind == "tool_execution_updated":
            return f"{kind} {event.update.type}"
        if kind == "error":
            return f"{kind} {name.text(repr(getattr(event.error, 'error', event.error)))}"
        if kind == "close":
            return f"{kind} {event.reason.value}"
        return str(kind)

    def _held(self, item: Any) -> str:
        """Whether a listener finds an item with the agent, as the very object that it is told."""
        own = self.agent._chat_ctx.get_by_id(item.id)
        if own is None:
            return "not with the agent"
        return "the agent's" if own is item else "a copy of the agent's"

    def _look(self) -> None:
        recorder = self.recorder
        activity = self.session._activity if self.session else None
        if activity is not None:
            self._activities.add(activity)
        current = self.session.current_agent if activity is not None else None
        for agent in self.agents:
            floor = " has the floor" if agent is current else ""
            recorder.note("agent", f"{agent.id}{floor}")
            for item in agent._chat_ctx.items:
                recorder.note("agent", recorder.item(item))
        for session in [session for model in self.models for session in model.sessions]:
            recorder.note("model", session.name)
            for item in session.items:
                recorder.note("model", recorder.item(item))
        if self.session is not None:
            for item in self.session.history.items:
                recorder.note("history", recorder.item(item))
        handles = {id(handle): handle for handle in self._handles}
        for handle in handles.values():
            items = ", ".join(recorder.text(item.id) for item in handle.chat_items)
            cut = ", interrupted" if handle.interrupted else ""
            recorder.note("speeches", f"[{items}]{cut}")
            if not handle.done():
                recorder.note("raised", "a speech has not ended")
            elif (error := handle.exception()) is not None:
                recorder.note("raised", recorder.text(f"speech: {error!r}"))
        self._handles = [handle for handle in handles.values() if not handle.done()]
