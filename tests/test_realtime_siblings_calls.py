"""Siblings of the lost items: two tools of one response, and a task that is awaited in a tool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from _realtime_support import (
    ANSWERS_WHEN_INTERRUPTED,
    closed_by_full,
    fails_on_stock,
    needs,
)
from handoffs import Errand, hear_and_understand, reply_once, tool_with_errand
from siblings import both_ways, through

from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.push import Push
from ctxlock.races.scenario import agent_with, note

BEFORE, HELLO, HEARD = 'user "before"', 'user "hello"', 'user "good day"'
CALL, OUTPUT = "function_call lookup", "function_call_output of lookup"
CALLS = ("function_call one", "function_call two")
OUTPUTS = ("function_call_output of one", "function_call_output of two")


Act = Callable[[Harness], object]


def _text_turn(talk: Harness) -> None:
    talk.text_turn("hello")


def _replacement(talk: Harness) -> None:
    talk.replace(note("hello"))


@both_ways
@pytest.mark.parametrize("order", ["one two", "two one"])
class TestTwoToolsOfOneResponse:
    @pytest.mark.parametrize(
        "act",
        [
            pytest.param(_text_turn, id="text-turn", marks=fails_on_stock(before="1.8.9")),
            pytest.param(_replacement, id="replacement"),
        ],
    )
    @pytest.mark.parametrize(
        "interrupted",
        [
            pytest.param(False, id="heard-out"),
            pytest.param(True, id="interrupted", marks=needs(ANSWERS_WHEN_INTERRUPTED)),
        ],
    )
    async def test_update_that_overlaps_their_outputs(
        self, over: Any, order: str, act: Act, interrupted: bool
    ) -> None:
        tools = {name: GatedTool(name) for name in ("one", "two")}
        with through(over):
            async with running(agent_with(*tools.values())) as talk:
                await (talk.call_and_interrupt if interrupted else talk.call)(*tools.values())
                push = talk.realtime.hold()
                for name in order.split():
                    tools[name].finish()
                    await idle()
                await push.entered.wait()
                act(talk)
                await idle()
                push.release()
                await talk.expect(*CALLS, *OUTPUTS, HELLO)
                await talk.replace(note("A"))
                await talk.expect(*CALLS, *OUTPUTS, HELLO, 'user "A"')

    @pytest.mark.parametrize(
        "act",
        [
            pytest.param(_text_turn, id="text-turn"),
            pytest.param(_replacement, id="replacement", marks=fails_on_stock(before="1.8.9")),
        ],
    )
    async def test_one_ends_before_an_update_and_one_while_it_is_made(
        self, over: Any, order: str, act: Act
    ) -> None:
        tools = {name: GatedTool(name) for name in ("one", "two")}
        first, second = order.split()
        with through(over):
            async with running(agent_with(*tools.values())) as talk:
                await talk.call(*tools.values())
                tools[first].finish()
                await idle()
                push = talk.realtime.hold()
                act(talk)
                await push.entered.wait()
                tools[second].finish()
                await idle()
                push.release()
                # the agent has the first output before the update, and the model behind it
                await talk.expect(*CALLS, *OUTPUTS, HELLO, ordered=False)


given_too_early = closed_by_full(
    "the agent is given what the task has at its end, and not what comes later"
)


async def end_during_a_turn(talk: Harness, errands: list[Errand]) -> Push:
    """The task ends while the user's typed message is still on its way."""
    push = talk.realtime.hold()
    talk.text_turn("hello")
    await push.entered.wait()
    errands[0].end()
    await idle()
    return push


@asynccontextmanager
async def errand(over: Any) -> AsyncIterator[tuple[Harness, list[Errand]]]:
    """A tool has been called, and awaits a task."""
    lookup, errands = tool_with_errand()
    with through(over):
        async with running(agent_with(lookup)) as talk:
            await talk.replace(note("before"))
            await talk.call(lookup)
            yield talk, errands


@both_ways
class TestTaskAwaitedInATool:
    """What is said and typed to the task becomes part of the agent's context when it returns."""

    async def test_while_the_task_begins_and_after(self, over: Any) -> None:
        lookup, errands = tool_with_errand()
        with through(over):
            async with running(agent_with(lookup)) as talk:
                await talk.replace(note("before"))
                push = talk.realtime.hold()  # the task's session start, which deletes
                await talk.call(lookup)
                await push.entered.wait()
                await hear_and_understand(talk)
                push.release()
                await idle()
                await talk.text_turn("hello")
                errands[0].end()
                await talk.expect(BEFORE, CALL, HEARD, HELLO, OUTPUT)

    async def test_while_the_agent_takes_over_again(self, over: Any) -> None:
        async with errand(over) as (talk, errands):
            push = talk.realtime.hold()  # the agent's session start
            errands[0].end()
            await push.entered.wait()
            await hear_and_understand(talk)
            push.release()
            await talk.expect(BEFORE, CALL, HEARD, OUTPUT)
            await talk.text_turn("hello")
            await talk.replace(note("A"))
            await talk.expect(BEFORE, CALL, HEARD, OUTPUT, HELLO, 'user "A"')

    @closed_by_full("it is recorded once it is acknowledged, and the agent was given its by then")
    async def test_typed_message_that_is_under_way_at_its_end(self, over: Any) -> None:
        async with errand(over) as (talk, errands):
            push = await end_during_a_turn(talk, errands)
            push.release()
            await talk.expect(BEFORE, CALL, HELLO, OUTPUT)

    @given_too_early
    async def test_typed_message_that_waits_at_its_end(self, over: Any) -> None:
        async with errand(over) as (talk, errands):
            push = talk.realtime.hold()
            talk.replace(note("to the task"))
            await push.entered.wait()
            talk.text_turn("hello")
            await idle()
            errands[0].end()
            await idle()
            push.release()
            await talk.expect(BEFORE, CALL, 'user "to the task"', HELLO, OUTPUT)

    @closed_by_full("the agent was given what the task had at its end, and not what came later")
    async def test_spoken_turn_between_its_end_and_the_handoff(self, over: Any) -> None:
        async with errand(over) as (talk, errands):
            push = await end_during_a_turn(talk, errands)
            await hear_and_understand(talk)
            push.release()
            await talk.expect(BEFORE, CALL, HEARD, OUTPUT)

    @given_too_early
    async def test_last_reply_of_the_task(self, over: Any) -> None:
        async with errand(over) as (talk, errands):
            push = await end_during_a_turn(talk, errands)
            reply_once(talk)
            push.release()
            await talk.expect(BEFORE, CALL, 'assistant "Done."', OUTPUT)
