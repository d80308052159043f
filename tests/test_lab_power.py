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


def changed(
    monkeypatch: pytest.MonkeyPatch, name: str, make: Callable[[Any], Callable[..., Any]]
) -> tuple[str, ...]:
    stock = trace_of(TOOL)
    monkeypatch.setattr(RealtimeSession, name, make(getattr(RealtimeSession, name)))
    return differing(stock, trace_of(TOOL))


def test_a_frame_that_is_lost_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(send: Any) -> Any:
        def lossy(self: Any, event: Any) -> None:
            if "function_call_output" not in str(event):
                send(self, event)

        return lossy

    assert "connection 1" in channels(changed(monkeypatch, "send_event", make))


def test_a_frame_that_is_sent_twice_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(send: Any) -> Any:
        def twice(self: Any, event: Any) -> None:
            send(self, event)
            if "function_call_output" in str(event):
                send(self, event)

        return twice

    assert "connection 1" in channels(changed(monkeypatch, "send_event", make))


def test_a_push_one_step_of_the_loop_later_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(update: Any) -> Any:
        async def late(self: Any, chat_ctx: Any) -> None:
            await asyncio.sleep(0)
            await update(self, chat_ctx)

        return late

    assert "calls" in channels(changed(monkeypatch, "update_chat_ctx", make))


def test_a_push_from_another_task_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(update: Any) -> Any:
        async def apart(self: Any, *given: Any, **named: Any) -> None:
            await asyncio.create_task(update(self, *given, **named))

        return apart

    assert "calls" in channels(changed(monkeypatch, "_update_session", make))


def test_an_item_that_moves_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(update: Any) -> Any:
        async def mixed(self: Any, chat_ctx: Any) -> None:
            chat_ctx.items.sort(key=lambda item: item.type == "message")
            await update(self, chat_ctx)

        return mixed

    assert "connection 1" in channels(changed(monkeypatch, "update_chat_ctx", make))


def test_a_task_that_is_left_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(update: Any) -> Any:
        async def leaving(self: Any, chat_ctx: Any) -> None:
            self.left = asyncio.create_task(asyncio.Event().wait())
            await update(self, chat_ctx)

        return leaving

    assert "tasks left" in channels(changed(monkeypatch, "update_chat_ctx", make))


def closing(monkeypatch: pytest.MonkeyPatch, leave: Callable[[Any], None]) -> tuple[str, ...]:
    stock, close = trace_of(TOOL), AgentActivity.aclose

    async def leaving(self: Any) -> None:
        await close(self)
        leave(self)

    monkeypatch.setattr(AgentActivity, "aclose", leaving)
    return differing(stock, trace_of(TOOL))


def test_a_task_that_is_left_for_a_moment_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(self: Any) -> None:
        self.left = asyncio.create_task(asyncio.sleep(0.1))

    lines = closing(monkeypatch, leave)
    assert [*channels(lines)] == ["tasks left"] and "at once" in str(lines)


def test_an_error_that_an_object_of_the_session_keeps_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def leave(self: Any) -> None:
        self.left = asyncio.get_running_loop().create_future()
        self.left.set_exception(ValueError("nobody asks for it"))

    assert [*channels(closing(monkeypatch, leave))] == ["log"]


def test_a_speech_without_its_items_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    stock = trace_of(TOOL)
    monkeypatch.setattr(SpeechHandle, "chat_items", [])
    assert [*channels(differing(stock, trace_of(TOOL)))] == ["speeches"]
