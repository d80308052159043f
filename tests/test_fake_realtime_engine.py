"""The fake against the OpenAI engine: the same steps give the same requests and the same contexts.

So what the fake shows holds for the engine. Sequences are written out where they mean something,
and generated where they do not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from _realtime_support import RESENDS, has_engine, needs
from hypothesis import HealthCheck, given, settings, strategies as st

if not has_engine():
    pytest.skip("no livekit-plugins-openai that is scripted here", allow_module_level=True)

from ctxlock.races.backend import Realtime, idle
from ctxlock.races.fake_realtime import FakeRealtimeModel
from ctxlock.races.loopback.model import serving
from ctxlock.races.push import Create, Push
from livekit.agents import llm

PICTURE = "data:image/png;base64,aGVsbG8="
ROLES = {"u": "user", "v": "user", "a": "assistant", "s": "system"}


def item(name: str, text: str | None = None) -> llm.ChatItem:
    """The item of that id, whose first letter says what it is."""
    if name[0] == "f":
        return llm.FunctionCall(id=name, call_id="call", name="lookup", arguments="{}")
    if name[0] == "o":
        output = text or "done"
        return llm.FunctionCallOutput(
            id=name, call_id="call", name="lookup", output=output, is_error=True
        )
    if name[0] == "h":
        return llm.AgentHandoff(id=name, new_agent_id="another")
    if name[0] == "i":
        return llm.ChatMessage(id="lk.agent_task.instructions", role="system", content=["brief"])
    if name[0] == "p":
        content: list[llm.ChatContent] = [llm.ImageContent(image=PICTURE)]
        return llm.ChatMessage(id=name, role="user", content=content + ([text] if text else []))
    role: Any = ROLES[name[0]]
    return llm.ChatMessage(id=name, role=role, content=[] if text is None else [text])


@dataclass(frozen=True)
class Wanted:
    """A whole context: ids, and the texts of messages; one without a text is empty."""

    names: Sequence[str]
    texts: dict[str, str] = field(default_factory=dict)

    def context(self) -> llm.ChatContext:
        return llm.ChatContext([item(name, self.texts.get(name)) for name in self.names])


# what can happen, to a session and the provider's end of it
Step = Callable[[Any, Realtime], Awaitable[None]]
Ending = Callable[[Push, "asyncio.Task[None]"], object]


def update(wanted: Wanted) -> Step:
    async def step(session: Any, realtime: Realtime) -> None:
        await session.update_chat_ctx(wanted.context())

    return step


def overlap(wanted: Sequence[Wanted], ending: Ending) -> Step:
    """Updates at once, the first of which is held if it asks for something, and then ended."""

    async def step(session: Any, realtime: Realtime) -> None:
        push = realtime.hold()
        tasks = [asyncio.create_task(session.update_chat_ctx(w.context())) for w in wanted]
        await idle()
        if push.entered.is_set():
            ending(push, tasks[0])
            await idle()
        push.release()
        await asyncio.gather(*tasks, return_exceptions=True)
        await idle()

    return step


def reply(name: str, text: str, finished: bool) -> Step:
    async def step(session: Any, realtime: Realtime) -> None:
        response = realtime.respond()
        message = response.message(item_id=name)
        await idle()
        message.write(text)
        if finished:
            response.done()
        await idle()
        # an open message is still without its text in the mirror
        await session.update_chat_ctx(session.chat_ctx)
        response.done()
        await idle()

    return step


def appear(name: str) -> Step:
    async def step(session: Any, realtime: Realtime) -> None:
        realtime.add_item(item(name, "unasked"))
        await idle()

    return step


def hear(name: str, text: str | None) -> Step:
    """Something is said, and understood or not."""

    async def step(session: Any, realtime: Realtime) -> None:
        assert realtime.hear(name) == name
        await idle()
        if text is not None:
            realtime.transcribe(name, text)
            await idle()

    return step


async def cut(session: Any, realtime: Realtime) -> None:
    realtime.cut()
    await idle()


def cut_during(wanted: Wanted, acknowledged: int, *, given_up: bool = False) -> Step:
    """The connection is lost with an update under way; what is repeated is held, then released."""

    async def step(session: Any, realtime: Realtime) -> None:
        push, again = realtime.hold(), realtime.hold()
        task = asyncio.create_task(session.update_chat_ctx(wanted.context()))
        await idle()
        push.release(acknowledged)
        if given_up:
            push.time_out()
        await idle()
        realtime.cut()
        await idle()
        assert session.chat_ctx.items == [] and task.done() == given_up
        again.release(1)
        await idle()
        again.release()
        await asyncio.gather(task, return_exceptions=True)
        await idle()

    return step


ENDINGS: dict[str, Ending] = {
    "acknowledged": lambda push, _: push.release(),
    "one at first": lambda push, _: push.release(1),
    "rejected": lambda push, _: push.reject(),
    "partly rejected": lambda push, _: push.reject(push.operations[-1].item_id),
    "its first rejected": lambda push, _: push.reject(push.operations[0].item_id),
    "timed out": lambda push, _: push.time_out(lost=True),
    "late": lambda push, _: push.time_out(),
    "cancelled": lambda _, task: task.cancel(),
}


@dataclass(frozen=True)
class Record:
    """What a provider was asked for, and what both ends have afterwards."""

    requests: list[list[tuple[Any, ...]]]
    server: list[tuple[Any, ...]]
    mirror: list[tuple[Any, ...]]


def told(item: llm.ChatItem) -> tuple[Any, ...]:
    """What a provider is told of an item."""
    if item.type == "message":
        # a server keeps no pictures here; that a mirror does is seen from its requests
        return (item.id, item.role, *(part for part in item.content if isinstance(part, str)))
    if item.type == "function_call":
        return (item.id, item.call_id, item.name, item.arguments)
    assert item.type == "function_call_output"
    return (item.id, item.call_id, item.output)


def kept(item: llm.ChatItem) -> tuple[Any, ...]:
    """What a mirror keeps of it."""
    if item.type == "function_call_output":
        return (*told(item), item.name, item.is_error)
    return told(item)


def requests(push: Push) -> list[tuple[Any, ...]]:
    return [
        ("create", op.previous_id, told(op.item))
        if isinstance(op, Create)
        else ("delete", op.item_id)
        for op in push.operations
    ]


async def play(session: Any, realtime: Realtime, steps: Sequence[Step]) -> Record:
    for step in steps:
        await step(session, realtime)
        await idle()
    return Record(
        [requests(push) for push in realtime.pushes],
        [told(item) for item in realtime.server.items],
        [kept(item) for item in realtime.chat_ctx.items],
    )


async def on_fake(steps: Sequence[Step]) -> Record:
    session = FakeRealtimeModel().session()
    return await play(session, session, steps)


async def on_engine(steps: Sequence[Step]) -> Record:
    async with serving() as model:
        session = model.session()
        await idle()
        try:
            return await play(session, model.sessions[0], steps)
        finally:
            await session.aclose()


def compare(steps: Sequence[Step]) -> Record:
    fake = asyncio.run(on_fake(steps), debug=True)
    engine = asyncio.run(on_engine(steps), debug=True)
    assert fake == engine
    return engine


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    """What both log about refusals and cancellations is expected, and there is a lot of it."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


SEQUENCES: dict[str, list[Step]] = {
    "from nothing": [update(Wanted(["u", "f", "o"], {"u": "hello"}))],
    "in between": [
        update(Wanted(["u", "v"], {"u": "1", "v": "3"})),
        update(Wanted(["u", "a", "v"], {"u": "1", "a": "2", "v": "3"})),
    ],
    "left out": [
        update(Wanted(["u", "f", "o", "v"], {"u": "1", "v": "2"})),
        update(Wanted(["v"], {"v": "2"})),
    ],
    "turned round": [
        update(Wanted(["u", "v", "a"], {"u": "1", "v": "2", "a": "3"})),
        update(Wanted(["a", "v", "u"], {"u": "1", "v": "2", "a": "3"})),
    ],
    "new text": [
        update(Wanted(["u", "v"], {"u": "1", "v": "2"})),
        update(Wanted(["u"], {"u": "3"})),
    ],
    "placeholders": [
        update(Wanted(["u", "a", "v"], {"v": "1"})),
        reply("a2", "said", finished=True),
        update(Wanted(["v", "a2"], {"v": "1"})),
    ],
    "a text that is empty": [
        update(Wanted(["u", "a", "s"], {"u": "", "a": "", "s": ""})),
        update(Wanted(["u", "a", "s"], {"u": "now", "a": "now", "s": "now"})),
    ],
    "a picture": [
        update(Wanted(["p", "u"], {"u": "1"})),
        update(Wanted(["p", "u"], {"u": "1"})),
        update(Wanted(["p", "u"], {"p": "look", "u": "1"})),
    ],
    "not for the provider": [update(Wanted(["i", "h", "u"], {"u": "1"}))],
    "a reply of no words": [
        reply("a", "", finished=True),
        update(Wanted(["a"], {"a": "words after all"})),
    ],
    "an open reply": [
        reply("a", "half", finished=False),
        update(Wanted(["u", "a"], {"u": "1", "a": "half"})),
    ],
    "heard": [
        update(Wanted(["v"], {"v": "1"})),
        hear("u", None),
        hear("u2", "2"),
        update(Wanted(["v", "u", "u2", "a"], {"v": "1", "u": "?", "u2": "2", "a": "3"})),
    ],
    "cut": [
        update(Wanted(["u", "f", "o", "s"], {"u": "1", "s": ""})),
        reply("a2", "", finished=True),
        hear("u2", "2"),
        hear("v", None),
        cut,
        cut,
        update(Wanted(["u", "f", "o", "u2", "a"], {"u": "1", "u2": "2", "a": "3"})),
    ],
    "cut with nothing said": [cut, update(Wanted(["u"], {"u": "1"}))],
    "unasked": [appear("u"), update(Wanted(["u", "v"], {"u": "unasked", "v": "1"}))],
}


@pytest.mark.parametrize(
    "name",
    # earlier engines repeat an empty reply on a new connection otherwise
    [pytest.param(name, marks=needs(RESENDS) if name == "cut" else ()) for name in SEQUENCES],
)
def test_same_in_sequence(name: str) -> None:
    assert compare(SEQUENCES[name]).requests or name == "unasked"


@pytest.mark.parametrize("ending", ENDINGS)
def test_same_when_they_overlap(ending: str) -> None:
    before = Wanted(["u"], {"u": "1"})
    first = Wanted(["u", "v", "f"], {"u": "1", "v": "2"})
    second = Wanted(["u", "a"], {"u": "1", "a": "3"})
    record = compare([update(before), overlap([first, second], ENDINGS[ending]), update(before)])
    assert len(record.requests) >= 3


@needs(RESENDS)
@pytest.mark.parametrize("acknowledged", [0, 1, 2])
@pytest.mark.parametrize("given_up", [False, True], ids=["awaited", "given up"])
def test_same_when_cut_during_an_update(acknowledged: int, given_up: bool) -> None:
    before = Wanted(["u", "f"], {"u": "1"})
    during = Wanted(["f", "a", "v"], {"a": "2", "v": "3"})  # deletes one, creates two
    after = Wanted(["f", "a", "v", "s"], {"a": "2", "v": "3", "s": "4"})
    compare([update(before), cut_during(during, acknowledged, given_up=given_up), update(after)])


TEXTS = st.sampled_from(["", "one", "two"])
NAMES = ["u1", "u2", "v", "a1", "a2", "s", "p", "f", "o", "h", "i"]
WANTED = st.builds(
    Wanted,
    st.lists(st.sampled_from(NAMES), unique=True, max_size=7),
    st.dictionaries(st.sampled_from(NAMES), TEXTS, max_size=6),
)
STEPS = st.one_of(
    st.builds(update, WANTED),
    st.builds(
        overlap, st.lists(WANTED, min_size=1, max_size=3), st.sampled_from([*ENDINGS.values()])
    ),
)


@settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, min_size=1, max_size=6))
def test_same_whatever_is_wanted(steps: list[Step]) -> None:
    compare(steps)
