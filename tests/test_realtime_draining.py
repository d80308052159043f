"""What ends, or waits, while a handoff drains: the next agent has it, and the model keeps it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from _realtime_support import CATCHES_FAILED_UPDATES, closed_by_full, needs
from handoffs import handoffs_done, reply_once
from siblings import both_ways, through

from ctxlock.races.fake_realtime import FakeRealtimeModel
from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import LostUpdate, name_items
from livekit.agents import Agent, RunContext
from livekit.agents.llm import function_tool

pytestmark = needs(CATCHES_FAILED_UPDATES)

REPORTS = "1.6.0"
"""From then on a tool can report before it returns."""

BEFORE, HELLO = 'user "before"', 'user "hello"'
CALL, OUTPUT = "function_call lookup", "function_call_output of lookup"

left_behind = closed_by_full("the next agent's context was copied before, and its start deletes it")


def copying(talk: Harness, *tools: GatedTool) -> Agent:
    """An agent that begins with a copy of what the one before has now."""
    context = talk.session.current_agent.chat_ctx.copy()
    return Agent(instructions="Go on.", tools=[t.tool for t in tools], chat_ctx=context)


class Search(GatedTool):
    """A tool that reports once, by which the model's turn ends, and returns what it found later."""

    def __init__(self) -> None:
        super().__init__("lookup")

        async def run(context: RunContext[Any]) -> str:
            self.started.set()
            await context.update("still searching")
            await self.gate.wait()
            return "found"

        body: Any = run  # the base class has a tool without parameters
        self.tool = function_tool(body, name=self.name, description="Searches.")


def assert_found(talk: Harness) -> None:
    """The agent has what the tool reported, and what it found.

    Raises:
        LostUpdate: If it has not.
    """
    outputs = [item for item in talk.local.items if item.type == "function_call_output"]
    if [item.call_id.endswith("_final") for item in outputs] != [False, True]:
        raise LostUpdate("The next agent lacks what the tool found.")


@asynccontextmanager
async def calling(over: Any, *tools: GatedTool) -> AsyncIterator[Harness]:
    """The model has called the tools, and they are running."""
    with through(over):
        async with running(agent_with(*tools)) as talk:
            await talk.replace(note("before"))
            await talk.call(*tools)
            yield talk


@both_ways
class TestToolThatEnds:
    @left_behind
    async def test_output_goes_to_an_agent_that_has_its_call(self, over: Any) -> None:
        lookup = GatedTool("lookup")
        async with calling(over, lookup) as talk:
            talk.hand_off(copying(talk, lookup))
            await idle()
            lookup.finish()
            await handoffs_done(talk)
            await talk.expect(BEFORE, CALL, OUTPUT)
            await talk.text_turn("hello")
            await talk.replace(note("A"))
            await talk.expect(BEFORE, CALL, OUTPUT, HELLO, 'user "A"')

    @left_behind
    async def test_both_outputs_of_one_response(self, over: Any) -> None:
        one, two = GatedTool("one"), GatedTool("two")
        outputs = ("function_call_output of one", "function_call_output of two")
        async with calling(over, one, two) as talk:
            one.finish()
            await idle()
            talk.hand_off(copying(talk, one, two))
            await idle()
            two.finish()
            await handoffs_done(talk)
            await talk.expect(BEFORE, "function_call one", "function_call two", *outputs)

    async def test_output_does_not_go_to_an_agent_that_lacks_its_call(self, over: Any) -> None:
        lookup = GatedTool("lookup")
        async with calling(over, lookup) as talk:
            talk.hand_off(agent_with())
            await idle()
            lookup.finish()
            await handoffs_done(talk)
            await talk.expect()
            assert name_items(talk.realtime.server.items) == []

    @left_behind
    async def test_through_two_handoffs(self, over: Any) -> None:
        lookup = GatedTool("lookup")
        async with calling(over, lookup) as talk:
            talk.hand_off(copying(talk, lookup))
            await idle()
            talk.hand_off(copying(talk, lookup))
            await idle()
            lookup.finish()
            await handoffs_done(talk)
            await talk.expect(BEFORE, CALL, OUTPUT)

    @needs(REPORTS)
    @left_behind
    async def test_what_it_says_after_its_report(self, over: Any) -> None:
        search = Search()
        async with calling(over, search) as talk:
            await talk.expect(BEFORE, CALL, OUTPUT)
            talk.hand_off(copying(talk, search))
            await idle()
            search.finish()
            await handoffs_done(talk)
            assert_found(talk)
            await talk.expect(BEFORE)


@both_ways
class TestTypedTurn:
    @pytest.mark.parametrize("history", [True, False], ids=["history", "no-history"])
    @left_behind
    async def test_asked_for_just_before(self, over: Any, history: bool) -> None:
        with through(over):
            async with running(agent_with()) as talk:
                await talk.replace(note("before"))
                agent = copying(talk) if history else agent_with()
                silent = reply_once(talk)
                turn = talk.text_turn("hello")
                talk.hand_off(agent)
                await handoffs_done(talk)
                await talk.expect(*[BEFORE][: int(history)], HELLO)
                assert turn.done()
                assert talk.realtime.on_reply is silent or turn.exception() is not None

    @left_behind
    async def test_that_waits_for_an_update(self, over: Any) -> None:
        with through(over):
            async with running(agent_with()) as talk:
                push = talk.realtime.hold()
                talk.replace(note("before"))
                await push.entered.wait()
                turn = talk.text_turn("hello")
                await idle()
                talk.hand_off(copying(talk))
                await idle()
                push.release()
                await handoffs_done(talk)
                await talk.expect(BEFORE, HELLO)
                assert turn.done()


class TestNewSession:
    """The provider cannot change its context, so that the next agent has a session of its own."""

    @left_behind
    async def test_typed_turn_and_output(self) -> None:
        lookup = GatedTool("lookup")
        model = FakeRealtimeModel(mutable_chat_context=False)
        async with running(agent_with(lookup), model=model) as talk:
            await talk.call(lookup)
            talk.text_turn("hello")
            talk.hand_off(copying(talk, lookup))
            await idle()
            lookup.finish()
            await handoffs_done(talk)
            assert len(model.sessions) == 2
            await talk.expect(CALL, OUTPUT, HELLO, ordered=False)

    @needs(REPORTS)
    @left_behind
    async def test_what_a_tool_says_after_its_report(self) -> None:
        search = Search()
        async with running(
            agent_with(search), model=FakeRealtimeModel(mutable_chat_context=False)
        ) as talk:
            await talk.call(search)
            talk.hand_off(copying(talk, search))
            await idle()
            search.finish()
            await handoffs_done(talk)
            assert_found(talk)
