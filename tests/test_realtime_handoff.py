"""Handoffs, whose session start replaces the whole context, and what is under way meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from _realtime_support import (
    BEYOND_THE_LOCK,
    SHARES_SESSIONS,
    VERSION,
    closed_by_full,
    fails_on_stock,
    needs,
)

from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.releases import Releases
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import LostUpdate, check

if VERSION not in Releases("1.5.3"):
    pytest.skip("these releases open a session per agent", allow_module_level=True)

from livekit.agents import Agent
from livekit.agents.voice import AgentTask

beyond_the_lock = needs(BEYOND_THE_LOCK, SHARES_SESSIONS)


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
    lookup, errands = tool_with_errand()
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


Between = Callable[[Harness], Awaitable[object]]


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


lost_between = closed_by_full(
    "what arrives while no activity is attached is told to none, and the next start deletes it"
)


@beyond_the_lock
@lost_between
@pytest.mark.parametrize("history", [True, False], ids=["history", "no-history"])
@pytest.mark.parametrize(
    ("between", "heard"),
    [
        pytest.param(hear, 'user ""', id="heard"),
        pytest.param(hear_and_understand, 'user "good day"', id="understood"),
    ],
)
async def test_item_that_arrives_between_two_activities(
    between: Between, heard: str, history: bool
) -> None:
    async with running(agent_with()) as talk:
        before = note("before")
        await talk.replace(before)
        agent = await with_history(talk) if history else agent_with()
        await hand_off(talk, agent, between)
        await talk.expect(heard, gone=[] if history else [before.id])
        await talk.text_turn("hello")
        await talk.expect(heard, 'user "hello"')


@beyond_the_lock
@lost_between
async def test_item_that_arrives_between_two_activities_and_goes_with_the_second() -> None:
    async with running(agent_with()) as talk:
        await hand_off(talk, agent_with(), hear)
        heard = [item.id for item in talk.realtime.server.items]
        if len(heard) != 1:
            raise LostUpdate("What arrived between two activities is not there.")
        talk.session.update_agent(agent_with())
        await talk.expect(gone=heard)


@beyond_the_lock
async def test_update_of_the_old_agent_that_is_acknowledged_between_two_activities() -> None:
    async with running(agent_with()) as talk:
        push = talk.realtime.hold()
        replacement = talk.replace(note("A"))
        await push.entered.wait()

        async def acknowledge(talk: Harness) -> None:
            push.release()
            await idle()

        await hand_off(talk, agent_with(), acknowledge)
        push.release()
        await replacement
        await talk.expect(gone=[item.id for item in push.creates])


@beyond_the_lock
@closed_by_full("a waiter outlives its activity's session")
async def test_replacement_that_waits_when_a_handoff_takes_the_session() -> None:
    async with running(agent_with()) as talk:
        push = talk.realtime.hold()
        talk.replace(note("A"))
        await push.entered.wait()
        talk.replace(note("B"))
        await idle()
        talk.session.update_agent(agent_with())
        await idle()
        push.release()
        await talk.expect()
        await talk.text_turn("hello")
        await talk.expect('user "hello"')


@beyond_the_lock
async def test_replacements_of_a_task_and_of_the_agent_that_awaits_it() -> None:
    lookup, errands = tool_with_errand()
    async with running(agent_with(lookup)) as talk:
        parent = talk.activity
        await talk.replace(note("before"))
        await talk.call(lookup)
        push = talk.realtime.hold()
        talk.replace(note("of the task"))
        await push.entered.wait()
        await talk.replace(note("of the agent"), activity=parent)
        errands[0].end()
        await idle()
        push.release()
        output = "function_call_output of lookup"
        await talk.expect('user "before"', 'user "of the agent"', output)


@beyond_the_lock
@closed_by_full("what was not acknowledged in time is with the agent alone")
async def test_history_whose_push_was_not_acknowledged_goes_with_the_next_update() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        agent = await with_history(talk)
        context = agent.chat_ctx.copy()
        context.items.append(note("handed over"))
        await agent.update_chat_ctx(context)
        push = talk.realtime.hold()
        talk.session.update_agent(agent)
        await push.entered.wait()
        push.time_out(lost=True)
        await idle()
        await talk.text_turn("hello")
        await talk.expect('user "before"', 'user "handed over"', 'user "hello"')


@beyond_the_lock
@closed_by_full("what is understood of an old agent's turn is recorded with the new one alone")
async def test_turn_of_an_earlier_agent_that_is_understood_late() -> None:
    async with running(agent_with()) as talk:
        heard = talk.realtime.hear()
        await idle()
        talk.session.update_agent(agent_with())
        await idle()
        talk.realtime.transcribe(heard, "good day")
        await talk.expect(gone=[heard])
