"""Long calls: what one event costs when the conversation is long already.

It runs in the environment of one release, as `probes` does, and prints JSON. Without an option it
measures times of the processor; with ``--count`` it counts, which gives the same numbers each time.
The provider is one that costs next to nothing, however long the conversation is: what is seen is
what livekit-agents does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from ctxlock.races.fake_realtime import FakeRealtimeModel, FakeRealtimeSession
from ctxlock.races.harness import Harness, idle, local_context, running, update_chat_ctx
from ctxlock.races.scenario import note
from livekit.agents import Agent, llm

__all__ = ["CONNECTIONS", "COUNTED", "EVENTS", "LENGTHS", "Meter", "main"]

LENGTHS = (100, 1_000, 10_000)
"""Items in the conversation when something happens in it."""

CONNECTIONS = (100, 500, 2_000)
"""Items in the conversation that a connection begins with."""

COUNTED = (100, 10_000)
"""The two lengths at which the counts are compared."""

REPEATED = 9


class ShortcutSession(FakeRealtimeSession):
    """A provider's session that takes each context as it is, and looks at no item of it."""

    def __init__(self, model: FakeRealtimeModel) -> None:
        super().__init__(model)
        self.held = llm.ChatContext.empty()
        self.own = True  # whether nobody else has that list

    @property
    def chat_ctx(self) -> llm.ChatContext:
        """The very context that it holds."""
        return self.held

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        """Holds that context from now on; it suspends once, as every provider does."""
        self.held, self.own = chat_ctx, False
        await asyncio.sleep(0)

    def cut(self) -> None:
        """Loses the connection and has it again; every item is there again, one by one."""
        repeated = self.held.items
        self.held, self.own = llm.ChatContext.empty(), True
        self.emit("session_reconnected", llm.RealtimeSessionReconnectedEvent())
        for item in repeated:
            self._emit_item_added(None, item)

    def _emit_item_added(self, previous_id: str | None, item: llm.ChatItem) -> None:
        last = self.held.items[-1].id if self.held.items else None
        if not self.own:  # what was handed over may be the agent's own context
            self.held, self.own = llm.ChatContext([*self.held.items]), True
        self.held.items.append(item)
        super()._emit_item_added(last, item)


class ShortcutModel(FakeRealtimeModel):
    """Opens sessions of that kind."""

    def session(self, **_: Any) -> ShortcutSession:
        """Opens a session."""
        session = ShortcutSession(self)
        self.sessions.append(session)
        return session


class Meter:
    """Counts, while it is switched on, what is done with items, contexts and tasks.

    Attributes:
        visited: Times that a field of an item was read.
        compared: Times that two items were compared.
        copied: Times that an item or a context was copied.
        tasks: Tasks that were made.
    """

    def __init__(self) -> None:
        self.visited = self.compared = self.copied = self.tasks = 0

    def as_json(self) -> dict[str, int]:
        """The four counts."""
        return dict(vars(self))

    @contextmanager
    def on(self) -> Iterator[None]:
        """Counts in its block."""
        with contextlib.ExitStack() as stack:
            for kind in (llm.ChatMessage, llm.FunctionCall, llm.FunctionCallOutput):
                fields = frozenset(kind.model_fields)
                stack.enter_context(_wrapped(kind, "__getattribute__", self._visits(fields)))
                stack.enter_context(_wrapped(kind, "__eq__", self._notes("compared")))
                for way in ("__copy__", "__deepcopy__"):
                    stack.enter_context(_wrapped(kind, way, self._notes("copied")))
            stack.enter_context(_wrapped(llm.ChatContext, "copy", self._notes("copied")))
            stack.enter_context(self._tasks())
            yield

    def _visits(self, fields: frozenset[str]) -> Callable[..., None]:
        def noted(_: object, name: str) -> None:
            self.visited += name in fields

        return noted

    def _notes(self, name: str) -> Callable[..., None]:
        def noted(*_: object, **__: object) -> None:
            setattr(self, name, getattr(self, name) + 1)

        return noted

    @contextmanager
    def _tasks(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def make(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
            self.tasks += 1
            return asyncio.Task(work, loop=loop, **options)

        loop.set_task_factory(make)
        try:
            yield
        finally:
            loop.set_task_factory(None)


@contextmanager
def _wrapped(kind: type, name: str, noted: Callable[..., None]) -> Iterator[None]:
    """Has a method of `kind` note each call."""
    inner = getattr(kind, name)

    def outer(self: Any, *args: Any, **kwargs: Any) -> Any:
        noted(self, *args, **kwargs)
        return inner(self, *args, **kwargs)

    own = name in vars(kind)
    setattr(kind, name, outer)
    try:
        yield
    finally:
        if own:
            setattr(kind, name, inner)
        else:
            delattr(kind, name)


Step = Callable[[], Awaitable[object]]
"""What is measured; all that it needs has been made before."""


def update(talk: Harness) -> Step:
    """The application adds a message to the context."""
    longer = local_context(talk.activity)
    longer.items.append(note("added"))

    async def step() -> None:
        await update_chat_ctx(talk.activity, longer)
        await idle()

    return step


def told_item(talk: Harness) -> Step:
    """The provider tells of an item that it has added."""
    item = llm.ChatMessage(role="assistant", content=["told"])

    async def step() -> None:
        talk.realtime.add_item(item)
        await idle()

    return step


def transcript(talk: Harness) -> Step:
    """The provider has understood what the user said before."""
    heard = talk.realtime.hear()

    async def step() -> None:
        talk.realtime.transcribe(heard, "hello")
        await idle()

    return step


def typed_turn(talk: Harness) -> Step:
    """The user types something, and the model answers nothing."""

    async def step() -> None:
        await talk.text_turn("hello")
        await idle()

    return step


def spoken_turn(talk: Harness) -> Step:
    """The user says something, and the model answers."""

    async def step() -> None:
        talk.realtime.transcribe(talk.realtime.hear(), "hello")
        response = talk.realtime.respond()
        response.message("hello to you")
        response.done()
        await idle()

    return step


EVENTS: dict[str, Callable[[Harness], Step]] = {
    "update": update,
    "told item": told_item,
    "transcript": transcript,
    "typed turn": typed_turn,
    "spoken turn": spoken_turn,
}


def long_agent(length: int, **options: Any) -> Agent:
    """An agent with so many items."""
    items: list[llm.ChatItem] = [
        llm.ChatMessage(role="assistant" if n % 2 else "user", content=[f"message {n}"])
        for n in range(length)
    ]
    return Agent(instructions="Answer briefly.", chat_ctx=llm.ChatContext(items), **options)


Measure = Callable[[Step], Awaitable[Any]]
"""Runs a step, and returns what was measured."""


async def events(length: int, measure: Measure, repeated: int) -> dict[str, list[Any]]:
    """What each event measures in a conversation of so many items, so many times."""
    found: dict[str, list[Any]] = {name: [] for name in EVENTS}
    async with running(long_agent(length), model=ShortcutModel(), looking=False) as talk:
        for _ in range(repeated):
            for name, prepare in EVENTS.items():
                step = prepare(talk)
                await idle()
                found[name].append(await measure(step))
        # an event that went by unnoticed would cost nothing
        grown = len(local_context(talk.activity).items) - length
        assert grown >= repeated * (len(EVENTS) - 1), f"only {grown} items came"
    return found


async def connections(
    length: int, measure: Measure, *, reconnecting: bool = True
) -> dict[str, Any]:
    """What the beginning of a connection measures in a conversation of so many items."""
    first, second = ShortcutModel(), ShortcutModel()
    agent = long_agent(length)
    context = running(agent, model=first, looking=False)
    found = {"start": await measure(context.__aenter__)}
    try:
        assert len(first.sessions[-1].chat_ctx.items) >= length

        async def reconnection() -> None:
            first.sessions[-1].cut()
            await idle()

        if reconnecting:
            found["reconnection"] = await measure(reconnection)
        successor = long_agent(length, llm=second)

        async def handoff() -> None:
            agent.session.update_agent(successor)
            await idle()

        found["handoff to a new session"] = await measure(handoff)
        assert len(second.sessions[-1].chat_ctx.items) >= length
    finally:
        await context.__aexit__(None, None, None)
    return found


async def processor_time(step: Step) -> float:
    """Microseconds of the processor."""
    before = time.process_time()
    await step()
    return (time.process_time() - before) * 1e6


async def longest_loop_step(step: Step) -> float:
    """Microseconds of the processor that the longest callback of the event loop takes."""
    longest = 0.0
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        nonlocal longest
        before = time.process_time()
        run(handle)
        longest = max(longest, time.process_time() - before)

    asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]
    try:
        await step()
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
    return longest * 1e6


async def counted(step: Step) -> dict[str, int]:
    """What is counted."""
    meter = Meter()
    with meter.on():
        await step()
    return meter.as_json()


async def counts() -> dict[str, dict[str, dict[str, int]]]:
    """The counts of every event and of every connection, by its name and the length.

    A reconnection is left out: it is as many told items as the conversation has.
    """
    found: dict[str, dict[str, dict[str, int]]] = {}
    for length in COUNTED:
        once = {name: each[0] for name, each in (await events(length, counted, 1)).items()}
        for name, count in (once | await connections(length, counted, reconnecting=False)).items():
            found.setdefault(name, {})[str(length)] = count
    return found


async def times() -> dict[str, float]:
    """Microseconds, by what was measured; the quickest of a few, as others were disturbed."""
    found: dict[str, float] = {}
    for length in CONNECTIONS:
        rounds = [await connections(length, processor_time) for _ in range(REPEATED)]
        for name in rounds[0]:
            found[f"{name}, {length:,} items"] = min(each[name] for each in rounds)
    for length in LENGTHS:
        for name, each in (await events(length, processor_time, REPEATED)).items():
            found[f"{name}, {length:,} items"] = min(each)
    steps = await events(LENGTHS[-1], longest_loop_step, REPEATED)
    found[f"longest loop step, {LENGTHS[-1]:,} items"] = max(min(each) for each in steps.values())
    return found


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", action="store_true", help="count instead of measuring times")
    wanted = counts if parser.parse_args().count else times
    logging.disable(logging.CRITICAL)
    measured = asyncio.run(wanted())
    json.dump({"version": version("livekit-agents"), "measured": measured}, sys.stdout)


if __name__ == "__main__":
    main()
