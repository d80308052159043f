"""The lab is no judge that lets everything pass: what is worse than stock is seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("livekit.plugins.openai")

from lab.compare import differing
from lab.providers.openai import Provider
from lab.steps import STEPS
from lab.trace import Trace
from lab.worker import run_step
from livekit.agents.voice import SpeechHandle
from livekit.agents.voice.agent_activity import AgentActivity
from livekit.plugins.openai.realtime import RealtimeSession

TOOL = "tool after typed turn"


def trace_of(step: str, delay: float = 0.0) -> Trace:
    return run_step(Provider, STEPS[step].setting(delay), STEPS[step].run)


def channels(lines: tuple[str, ...]) -> set[str]:
    return {line.partition(":")[0] for line in lines}


@pytest.mark.parametrize("step", [TOOL, "dropped connection", "handoff by a tool"])
@pytest.mark.parametrize("delay", [0.0, 0.03])
def test_two_runs_are_the_same(step: str, delay: float) -> None:
    first = trace_of(step, delay)
    assert first.outcome == "done"
    assert differing(first, trace_of(step, delay)) == ()


def test_a_step_does_what_its_name_says() -> None:
    trace = trace_of(TOOL)
    said = "\n".join(trace.channels["context"])
    assert "rain is forty-two" in said and "The tool says: rain is forty-two" in said
    sent = "\n".join(trace.channels["connection 1"])
    assert '"function_call_output"' in sent and sent.count('"response.create"') == 3
    assert "exceptions" not in trace.channels and "tasks left" not in trace.channels


async def late(update: Any, self: Any, *given: Any) -> None:
    await asyncio.sleep(0)
    await update(self, *given)


async def apart(update: Any, self: Any, *given: Any, **named: Any) -> None:
    await asyncio.create_task(update(self, *given, **named))


async def mixed(update: Any, self: Any, chat_ctx: Any) -> None:
    chat_ctx.items.sort(key=lambda item: item.type == "message")
    await update(self, chat_ctx)


async def leaving(update: Any, self: Any, chat_ctx: Any) -> None:
    self.left = asyncio.create_task(asyncio.Event().wait())
    await update(self, chat_ctx)


def lossy(send: Any, self: Any, event: Any) -> None:
    if "function_call_output" not in str(event):
        send(self, event)


def twice(send: Any, self: Any, event: Any) -> None:
    send(self, event)
    if "function_call_output" in str(event):
        send(self, event)


@pytest.mark.parametrize(
    ("name", "instead", "channel"),
    [
        pytest.param("send_event", lossy, "connection 1", id="a frame that is lost"),
        pytest.param("send_event", twice, "connection 1", id="a frame that is sent twice"),
        pytest.param("update_chat_ctx", late, "calls", id="a push one step of the loop later"),
        pytest.param("_update_session", apart, "calls", id="a push from another task"),
        pytest.param("update_chat_ctx", mixed, "connection 1", id="an item that moves"),
        pytest.param("update_chat_ctx", leaving, "tasks left", id="a task that is left"),
    ],
)
def test_what_a_session_does_otherwise_is_seen(
    monkeypatch: pytest.MonkeyPatch, name: str, instead: Callable[..., Any], channel: str
) -> None:
    stock, usual = trace_of(TOOL), getattr(RealtimeSession, name)
    # of the same kind as the usual one, which watch.py looks at
    if asyncio.iscoroutinefunction(instead):

        async def other(self: Any, *given: Any, **named: Any) -> None:
            await instead(usual, self, *given, **named)
    else:

        def other(self: Any, *given: Any, **named: Any) -> None:  # type: ignore[misc]
            instead(usual, self, *given, **named)

    monkeypatch.setattr(RealtimeSession, name, other)
    assert channel in channels(differing(stock, trace_of(TOOL)))


def a_task_for_a_moment(self: Any) -> None:
    self.left = asyncio.create_task(asyncio.sleep(0.1))


def an_error_nobody_asks_for(self: Any) -> None:
    self.left = asyncio.get_running_loop().create_future()
    self.left.set_exception(ValueError("nobody asks for it"))


@pytest.mark.parametrize(
    ("leave", "channel", "said"),
    [(a_task_for_a_moment, "tasks left", "at once"), (an_error_nobody_asks_for, "log", "")],
)
def test_what_is_left_by_a_close_is_seen(
    monkeypatch: pytest.MonkeyPatch, leave: Callable[[Any], None], channel: str, said: str
) -> None:
    stock, close = trace_of(TOOL), AgentActivity.aclose

    async def closing(self: Any) -> None:
        await close(self)
        leave(self)

    monkeypatch.setattr(AgentActivity, "aclose", closing)
    lines = differing(stock, trace_of(TOOL))
    assert [*channels(lines)] == [channel] and said in str(lines)


def test_a_speech_without_its_items_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    stock = trace_of(TOOL)
    monkeypatch.setattr(SpeechHandle, "chat_items", [])
    assert [*channels(differing(stock, trace_of(TOOL)))] == ["speeches"]
