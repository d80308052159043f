"""Handoffs, whose session start replaces the whole context, and what is under way meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from _realtime_support import (
    BEYOND_THE_LOCK,
    SHARES_SESSIONS,
    closed_by_full,
    fails_on_stock,
    needs,
    still_lost,
)
from handoffs import (
    Between,
    Errand,
    hand_off,
    hear,
    hear_and_understand,
    tool_with_errand,
    with_history,
)

from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import LostUpdate, check

beyond_the_lock = needs(BEYOND_THE_LOCK, SHARES_SESSIONS)


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
@still_lost("what was not acknowledged in time is not sent again with the next update")
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
        await talk.expect(gone=[heard])
        talk.realtime.transcribe(heard, "good day")
        await talk.expect('user "good day"')
        await talk.text_turn("hello")
        await talk.replace(note("A"))
        await talk.expect('user "good day"', 'user "hello"', 'user "A"')
