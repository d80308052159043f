"""Handoffs, whose session start replaces the whole context, and what is under way meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from _realtime_support import VERSION, closed_by_full, fails_on_stock

from ctxlock.races.harness import GatedTool, idle, running
from ctxlock.races.releases import Releases
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import check

if VERSION not in Releases("1.5.3"):
    pytest.skip("these releases open a session per agent", allow_module_level=True)

from livekit.agents.voice import AgentTask


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


async def test_handoff_reuses_the_session() -> None:
    async with running(agent_with()) as talk:
        talk.session.update_agent(agent_with())
        await talk.expect()
        assert len(talk.model.sessions) == 1


async def test_tool_that_hands_off() -> None:
    async def leave() -> Any:
        return agent_with()

    lookup = GatedTool("lookup", leave)
    async with running(agent_with(lookup)) as talk:
        before = talk.activity
        await talk.call(lookup)
        await talk.expect()
        assert talk.activity is not before


async def test_tool_that_hands_off_while_an_update_is_pending() -> None:
    async def leave() -> Any:
        return agent_with()

    lookup = GatedTool("lookup", leave)
    async with running(agent_with(lookup)) as talk:
        before = talk.activity
        push = talk.realtime.hold()
        pending = talk.replace(note("A"))
        await push.entered.wait()
        await talk.call(lookup)
        push.release()
        await pending
        await idle()
        check(talk.realtime)
        assert talk.activity is not before
        assert before._rt_session is None


async def test_agent_task_awaited_in_a_tool() -> None:
    async def errand() -> Any:
        return await Errand()

    lookup = GatedTool("lookup", errand)
    async with running(agent_with(lookup)) as talk:
        before = talk.activity
        await talk.replace(note("A"))
        await talk.call(lookup)
        await talk.expect('user "A"', "function_call_output of lookup")
        assert talk.activity is before


async def test_agent_task_whose_session_start_is_pending_when_the_tool_resumes() -> None:
    async def errand() -> Any:
        return await Errand()

    lookup = GatedTool("lookup", errand)
    async with running(agent_with(lookup)) as talk:
        await talk.replace(note("A"))
        push = talk.realtime.hold()  # the task's own context is empty: its start deletes
        await talk.call(lookup)
        await push.entered.wait()
        push.release()
        await talk.expect('user "A"', "function_call_output of lookup")


@fails_on_stock(since="1.5.3")
async def test_replacement_during_a_resume() -> None:
    errands: list[Errand] = []

    async def errand() -> Any:
        errands.append(Errand(at_once=False))
        return await errands[0]

    lookup = GatedTool("lookup", errand)
    async with running(agent_with(lookup)) as talk:
        parent = talk.activity
        await talk.call(lookup)
        assert talk.activity is not parent
        talk.realtime.instructions_gate.clear()
        talk.realtime.instructions_entered.clear()
        errands[0].end()
        await talk.realtime.instructions_entered.wait()
        assert talk.activity is parent
        talk.replace(note("A"))
        await idle()
        talk.realtime.instructions_gate.set()
        await talk.expect('user "A"', "function_call_output of lookup")


async def test_replacement_on_an_agent_that_was_handed_off_is_local() -> None:
    async with running(agent_with()) as talk:
        before = talk.activity
        talk.session.update_agent(agent_with())
        await idle()
        await talk.replace(note("A"), activity=before)
        await talk.expect()
        assert talk.realtime.pushes == []


@closed_by_full(
    "the old agent's update is acknowledged to the new one, which takes the item for the server's "
    "own; the session start that was asked for before deletes it again",
    since="1.5.3",
    closed_in=["2.0.0b1"],  # there the history goes along
)
async def test_handoff_while_a_replacement_is_pending() -> None:
    async with running(agent_with()) as talk:
        await talk.overlap(
            lambda: talk.replace(note("A")), lambda: talk.session.update_agent(agent_with())
        )
        await talk.expect()
