"""What tests of a handoff share: how one comes about, and what happens meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from _realtime_support import VERSION

from ctxlock.races.backend import Response
from ctxlock.races.harness import GatedTool, Harness, idle
from ctxlock.races.releases import Releases
from ctxlock.races.scenario import agent_with

if VERSION not in Releases("1.5.3"):
    pytest.skip("these releases open a session per agent", allow_module_level=True)

from livekit.agents import Agent
from livekit.agents.voice import AgentTask

Between = Callable[[Harness], Awaitable[object]]
"""What happens between the two activities of a handoff."""


class Errand(AgentTask[str]):
    """A task that is done when the test says so, or as soon as it has begun."""

    def __init__(self, *, at_once: bool = True) -> None:
        super().__init__(instructions="Run an errand.")
        self._at_once = at_once

    async def on_enter(self) -> None:
        if self._at_once:
            self.end()

    def end(self) -> None:
        # since 2.0 there is no public way but a tool's result
        complete = "complete" if hasattr(self, "complete") else "_complete"
        getattr(self, complete)("done")


def tool_with_errand() -> tuple[GatedTool, list[Errand]]:
    """A tool that awaits a task until the task is ended, and that task, once there is one."""
    errands: list[Errand] = []

    async def errand() -> Any:
        errands.append(Errand(at_once=False))
        return await errands[0]

    return GatedTool("lookup", errand), errands


async def hand_off(talk: Harness, agent: Agent, between: Between) -> None:
    """Hands off, and does something when the old activity has let go of the session already."""
    before = talk.activity
    close = before.aclose

    async def aclose() -> None:
        assert before._rt_session is None
        await between(talk)
        await close()

    before.aclose = aclose
    talk.session.update_agent(agent)
    handoff: Any = talk.session._update_activity_atask
    await handoff
    await idle()
    assert talk.activity is not before


async def hear(talk: Harness) -> None:
    """The user speaks; what was said is not understood yet."""
    talk.realtime.hear()
    await idle()


async def hear_and_understand(talk: Harness) -> str:
    """The user speaks and is understood; returns the id."""
    heard: str = talk.realtime.hear()
    await idle()
    talk.realtime.transcribe(heard, "good day")
    await idle()
    return heard


async def with_history(talk: Harness) -> Agent:
    agent = agent_with()
    await agent.update_chat_ctx(talk.local)
    return agent


def reply_once(talk: Harness) -> Callable[[Response], object]:
    """The model answers the next request in words; returns how it answers those that follow."""
    silent = talk.realtime.on_reply

    def reply(response: Response) -> None:
        talk.realtime.on_reply = silent
        response.message("Done.")
        response.done()

    talk.realtime.on_reply = reply
    return silent


async def handoffs_done(talk: Harness) -> None:
    handoff: Any = talk.session._update_activity_atask
    await handoff
    await idle()
