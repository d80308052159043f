"""A real AgentSession over a far end, and the words in which steps are told."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from livekit import agents
from livekit.agents import Agent, llm

from .facts import fact_of, items_of, outcome_of
from .far_end import FarEnd
from .speaker import Speaker
from .trace import Recorder
from .watch import watch_model, watch_session

__all__ = ["LabAgent", "World", "done"]

SETTLE = 3.0
"""Virtual seconds in which everything that follows from one step has happened."""

LIMIT = 60.0
"""Virtual seconds that one act may take."""


class LabAgent(Agent):
    """An agent that does what it is told when it enters.

    Args:
        world: Where it lives.
        name: What it is called; stands in its instructions.
        on_entering: What it does on entering.
        options: Whatever an `Agent` takes.
    """

    def __init__(
        self,
        world: World,
        name: str,
        *,
        on_entering: Callable[[], Awaitable[Any]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(instructions=f"You are {name}.", **options)
        self.name = name
        self._world = world
        self._on_entering = on_entering

    async def on_enter(self) -> None:
        """Takes down that it has the floor, and does what it was told to."""
        self._world.recorder.note("acts", f"{self.name} enters")
        if self._on_entering is not None:
            await self._on_entering()

    async def on_exit(self) -> None:
        """Takes down that it leaves."""
        self._world.recorder.note("acts", f"{self.name} leaves")


class World:
    """What a step acts on.

    Attributes:
        recorder: Takes everything down.
        far_end: The provider.
        session: The agent's session.
        agents: All agents made so far.
    """

    def __init__(self, recorder: Recorder, far_end: FarEnd) -> None:
        self.recorder = recorder
        self.far_end = far_end
        self.agents: list[LabAgent] = []
        self._models: list[llm.RealtimeModel] = []
        self._before = asyncio.all_tasks()
        self.session = self._make_session()
        self._speeches = watch_session(self.session, recorder)

    # -- making things

    def model(self) -> llm.RealtimeModel:
        """One more model of the provider's, watched."""
        model = self.far_end.model()
        watch_model(model, self.recorder)
        self._models.append(model)
        return model

    def agent(self, name: str, **options: Any) -> LabAgent:
        """An agent; see `LabAgent`."""
        agent = LabAgent(self, name, **options)
        self.agents.append(agent)
        return agent

    async def greet(self) -> None:
        """What an agent does on entering that greets the caller."""
        self.session.generate_reply(instructions="Greet the caller.")

    # -- acts

    @property
    def current(self) -> Any:
        """The agent that has the floor."""
        return self.session.current_agent

    async def start(self, agent: Agent) -> None:
        """Starts the session; returns when all that follows has happened."""
        await self.attempt("start", self.session.start(agent))
        await self.settle("started")

    async def typed(self, *texts: str) -> None:
        """The user types something and waits for the reply, once or several times."""
        for text in texts:
            await self.reply(f"type: {text}", user_input=text)

    async def reply(self, what: str, **options: Any) -> None:
        """Asks for a reply and waits for its end."""
        self.recorder.note("acts", what)
        handle = self.asked(what, self.session.generate_reply, **options)
        if handle is not None:
            await self.attempt(what, done(handle))
            self.recorder.note("acts", {"replied": what, "interrupted": handle.interrupted})
        await self.settle(f"after: {what}")

    def asked(self, what: str, ask: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """The handle of a speech that is asked for; None if that fails, which is taken down."""
        try:
            return ask(*given, **options)
        except Exception as e:
            self.recorder.note("exceptions", {"in": what, "is": fact_of(e)})
            return None

    async def begun(self, text: str) -> None:
        """The user types something, and the reply begins to play; it goes on until it is ended."""
        self.far_end.hold_reply()
        self.session.generate_reply(user_input=text)
        await self.settle("it speaks", 0.35)

    async def spoken(self, *texts: str | None) -> None:
        """The user says something and waits for the reply, once or several times."""
        for text in texts:
            self.recorder.note("acts", f"say: {text}")
            await self.far_end.user_says(text)
            await self.settle(f"after: {text}")

    async def hurry(self) -> None:
        """Changes the agent's instructions."""
        change = self.current.update_instructions("You are Ann, and in a hurry.")
        await self.attempt("update the instructions", change)
        await self.settle("instructions updated")

    async def update(self, change: Callable[[llm.ChatContext], object], what: str) -> None:
        """Replaces the agent's context by a changed copy."""
        chat_ctx = self.current.chat_ctx.copy()
        change(chat_ctx)
        self.recorder.note("acts", what)
        await self.attempt(what, self.current.update_chat_ctx(chat_ctx))
        await self.settle(f"after: {what}")

    async def attempt(self, what: str, work: Awaitable[Any]) -> None:
        """Waits for something; how it fails is taken down, and that it does not end, too."""
        try:
            await asyncio.wait_for(work, LIMIT)
        except Exception as e:
            self.recorder.note("exceptions", {"in": what, "is": fact_of(e)})
        self.recorder.note("acts", {"ended": what})

    async def settle(self, label: str, seconds: float = SETTLE) -> None:
        """Lets everything happen that is about to, and takes down what there is then."""
        await asyncio.sleep(seconds)
        self.look(label)

    def look(self, label: str) -> None:
        """Takes down the agents' contexts, the history, the speeches and the provider's mirror."""
        for agent in self.agents:
            items = items_of(agent._chat_ctx.items)
            self.recorder.note("context", {label: agent.name, "has": items})
        for speech in self._speeches:
            self.recorder.note("speeches", {label: speech.id, **outcome_of(speech)})
        self.recorder.note("history", {label: items_of(self.session.history.items)})
        activity = getattr(self.session, "_activity", None)
        mirrored = getattr(activity, "_rt_session", None)
        if mirrored is not None:
            try:
                seen: Any = items_of(mirrored.chat_ctx.items)
            except Exception as e:
                seen = fact_of(e)
            self.recorder.note("mirror", {label: seen})

    # -- its end

    async def close(self) -> None:
        """Ends everything, and takes down the tasks that are left, at once and later."""
        self.recorder.note("acts", "close")
        await self.attempt("close", self.session.aclose())
        self._look_for_tasks("at once")
        await self.settle("closed")
        for model in self._models:
            await self.attempt("close a model", model.aclose())
        await asyncio.sleep(SETTLE)
        self._look_for_tasks("later")

    def _look_for_tasks(self, when: str) -> None:
        left = asyncio.all_tasks() - self._before - {asyncio.current_task()}
        names = [
            getattr(task.get_coro(), "__qualname__", "?")
            for task in left
            if not task.get_name().startswith("far end")
        ]
        ours = ("RequestHandler", "WebSocketFarEnd")
        for name in sorted(name for name in names if not name.startswith(ours)):
            self.recorder.note("tasks left", {when: name})

    def _make_session(self) -> Any:
        wanted: dict[str, Any] = {"vad": None, "user_away_timeout": None}
        wanted["aec_warmup_duration"] = None
        kind: Any = agents.AgentSession
        known = inspect.signature(kind.__init__).parameters
        options = {name: value for name, value in wanted.items() if name in known}
        session = kind(llm=self.model(), **options)
        session.output.audio = Speaker()
        return session


async def done(handle: Any) -> None:
    """Waits for the end of a speech."""
    await handle
