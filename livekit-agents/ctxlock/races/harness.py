"""A real AgentSession over a provider, and the words in which races are told."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from livekit import agents
from livekit.agents import Agent, llm

from .backend import Model, Realtime, Response, backend, idle, witnesses
from .engine import conversation_items
from .fake_realtime import FakeRealtimeModel
from .gated_tool import GatedTool
from .names import name_items
from .order import AGENT, MODEL, OrderLog
from .trace import current, note
from .verdict import NotAtRest, check

if TYPE_CHECKING:
    from livekit.agents import AgentSession
    from livekit.agents.voice import SpeechHandle

__all__ = ["GatedTool", "Harness", "idle", "local_context", "running", "update_chat_ctx"]


def local_context(activity: Any) -> llm.ChatContext:
    """A copy of the context an activity's agent has; since 2.0 it is the activity's own."""
    owner = activity if hasattr(activity, "_chat_ctx") else activity.agent
    copy: llm.ChatContext = owner._chat_ctx.copy()
    return copy


def update_chat_ctx(activity: Any, chat_ctx: llm.ChatContext) -> Coroutine[Any, Any, None]:
    """The public call that replaces an agent's context; since 2.0 it is the activity's."""
    owner = activity.agent if hasattr(activity.agent, "update_chat_ctx") else activity
    update: Coroutine[Any, Any, None] = owner.update_chat_ctx(chat_ctx)
    return update


class Harness:
    """A running session, with one method for each thing that can happen to it.

    Attributes:
        order: The orders that replacements and handoffs asked for, and what was seen of them.
        name: Names the items there.
    """

    name: Callable[[Sequence[Any]], list[str]] = staticmethod(name_items)

    def __init__(self, session: AgentSession[Any], model: Model) -> None:
        self.session = session
        self.model = model
        self.order = OrderLog()
        self._tasks: list[asyncio.Task[Any]] = []
        self._tools: list[GatedTool] = []

    @property
    def activity(self) -> Any:
        """The activity of the agent that has the floor."""
        return self.session._activity

    @property
    def realtime(self) -> Realtime:
        """The newest connection to the provider."""
        return self.model.sessions[-1]

    @property
    def lock(self) -> asyncio.Lock | None:
        """The lock around the current activity's updates, where the release has one."""
        return getattr(self.activity, "_rt_chat_ctx_lock", None)

    @property
    def local(self) -> llm.ChatContext:
        """A copy of the agent's context; since 2.0 it belongs to the activity."""
        return local_context(self.activity)

    def text_turn(self, text: str) -> SpeechHandle:
        """The user types something and the model is asked for a reply."""
        note("acts", text=f'the user types "{text}"')
        return self.session.generate_reply(user_input=text)

    def say(self, text: str) -> SpeechHandle:
        """The agent says a given text."""
        note("acts", text=f'session.say("{text}")')
        return self.session.say(text)

    def interrupt(self) -> None:
        """The user interrupts whatever is being said or generated."""
        note("acts", text="the user interrupts")
        self.session.interrupt()

    def hand_off(self, agent: Agent) -> None:
        """Another agent takes over."""
        note("acts", text="a handoff to another agent begins")
        self.look()
        self.order.ask(*_each_id(agent.chat_ctx), whole=True)
        self.session.update_agent(agent)

    def replace(
        self, *added: llm.ChatItem, without: Sequence[str] = (), activity: Any = None
    ) -> asyncio.Task[None]:
        """The application replaces the whole context: items added, others left out by name."""
        activity = activity or self.activity
        chat_ctx = local_context(activity)
        named = zip(chat_ctx.items, name_items(chat_ctx.items), strict=True)
        chat_ctx.items[:] = [*(item for item, name in named if name not in without), *added]
        does = [f"adds {name}" for name in name_items(added)]
        does += [f"leaves out {name}" for name in without]
        note("acts", text=f"agent.update_chat_ctx {', '.join(does)}")
        self.look()
        self.order.ask(*_each_id(chat_ctx), whole=True)
        return self.start(update_chat_ctx(activity, chat_ctx))

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Runs something beside the test; `running` cancels what is left of it at the end."""
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    def look(self) -> None:
        """Notes in which order the agent and the model hold their items; `idle` calls it, too."""
        if self.activity is not None and self.model.sessions:
            own, remote = conversation_items(self.local), self.realtime.server.items
            self.order.see(AGENT, [item.id for item in own], self.name(own))
            self.order.see(MODEL, [item.id for item in remote], self.name(remote))

    async def call(self, *tools: GatedTool) -> list[str]:
        """The model calls these tools in a response of its own; returns the call ids.

        Returns when all of them have started and the response has ended.
        """
        response, call_ids = await self._respond_with_calls(tools)
        response.done()
        await idle()
        return call_ids

    async def call_and_interrupt(self, *tools: GatedTool) -> list[str]:
        """As `call`, but the response is interrupted while it is still being generated."""
        _, call_ids = await self._respond_with_calls(tools)
        self.interrupt()
        await idle()
        return call_ids

    async def _respond_with_calls(self, tools: Sequence[GatedTool]) -> tuple[Response, list[str]]:
        self._tools += tools
        response = self.realtime.respond()
        call_ids = [response.call(tool.name) for tool in tools]
        for tool in tools:
            await tool.started.wait()
        await idle()
        return response, call_ids

    async def unheard_reply(self) -> str:
        """The model begins a message whose first word is still to come; returns its id.

        The agent's context ends in an item that no provider sees, as after a handoff that brought
        the history along, so that it takes no note of the new one: interrupt now, and what nobody
        heard is deleted.
        """
        await self.replace(llm.AgentHandoff(new_agent_id="another"))
        message = self.realtime.respond().message()
        await idle()
        return message.id

    async def overlap(self, first: Callable[[], object], second: Callable[[], object]) -> None:
        """Starts ``second`` while the update of ``first`` awaits its acknowledgement."""
        push = self.realtime.hold()
        first()
        await push.entered.wait()
        second()
        await idle()
        push.release()
        await idle()

    async def expect(self, *kept: str, gone: Sequence[str] = (), ordered: bool = True) -> None:
        """Checks that the model sees what it should and the agent the same, and that all is done.

        And that what the application put in an order stayed in it, on both sides, whenever the
        loop was idle.

        Args:
            kept: Names of items that must be there.
            gone: Ids of items that must not.
            ordered: Whether both sides must agree on the order as well.

        Raises:
            LostUpdate: If the conversation is not as it should be.
            NotAtRest: If the lock is held though nothing is left to do.
        """
        await idle()
        disorder = self.order.problems()
        local, realtime = self.local, self.realtime
        check(realtime, kept=kept, gone=gone, local=local, ordered=ordered, disorder=disorder)
        if self.lock is not None and self.lock.locked():
            raise NotAtRest("The lock is still held.")

    async def close(self) -> None:
        """Ends the session, whatever state it is in."""
        if (recorder := current()) is not None:
            recorder.stop()
        for tool in self._tools:
            tool.gate.set()
        for session in self.model.sessions:
            session.release_all()
        await idle()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.session.aclose()


def _each_id(chat_ctx: llm.ChatContext) -> list[list[str]]:
    return [[item.id] for item in conversation_items(chat_ctx)]


def _session(model: Model) -> AgentSession[Any]:
    # no voice activity detector and no timer of any kind, where the release lets one say so
    wanted: dict[str, Any] = {"vad": None, "user_away_timeout": None, "aec_warmup_duration": None}
    wanted["turn_handling"] = {"turn_detection": None}
    # AgentSession is deprecated under that name since 2.0
    kind: type[AgentSession[Any]] = getattr(agents, "LiveSession", None) or agents.AgentSession
    known = inspect.signature(kind.__init__).parameters
    options = {name: value for name, value in wanted.items() if name in known}
    return kind(llm=cast(llm.RealtimeModel, model), **options)


@asynccontextmanager
async def running(
    agent: Agent, *, model: Model | None = None, looking: bool = True
) -> AsyncIterator[Harness]:
    """Starts a session for ``agent`` and ends it again, with everything held released.

    Args:
        agent: The first agent.
        model: The provider; by default the fake one, or the backend that was chosen with `over`.
        looking: Whether the order of items is looked at whenever nothing is left to do. It visits
            every item, which a measurement would count.

    Raises:
        NotAtRest: If a task outlives the session, and nothing else went wrong before.
    """
    before = asyncio.all_tasks()
    async with AsyncExitStack() as stack:
        if model is None:
            chosen = backend.get()
            model = await stack.enter_async_context(chosen()) if chosen else FakeRealtimeModel()
        harness = Harness(_session(model), model)
        others = witnesses.get()
        if looking:
            witnesses.set((*others, harness.look))
        try:
            await harness.session.start(agent)
            await idle()
            yield harness
        finally:
            witnesses.set(others)
            await harness.close()
    await idle()
    if left := asyncio.all_tasks() - before:
        raise NotAtRest(f"Left over: {', '.join(sorted(task.get_name() for task in left))}.")
