"""Outputs of function tools, which a model waits for and must not lose."""

from __future__ import annotations

from _realtime_support import fails_on_stock, needs

from ctxlock.races.harness import GatedTool, idle, running
from ctxlock.races.scenario import agent_with, note

FIRST = "function_call_output of first"
SECOND = "function_call_output of second"


async def test_parallel_calls_of_one_response_both_get_their_output() -> None:
    first, second = GatedTool("first"), GatedTool("second")
    async with running(agent_with(first, second)) as talk:
        await talk.call(first, second)
        second.finish()
        await idle()
        first.finish()
        await talk.expect(FIRST, SECOND)


@fails_on_stock(before="1.8.9")
async def test_three_updates_that_wait_for_one_all_stay() -> None:
    first, second = GatedTool("first"), GatedTool("second")
    async with running(agent_with(first, second)) as talk:
        await talk.call(first)
        await talk.call(second)
        push = talk.realtime.hold()
        talk.replace(note("A"))
        await push.entered.wait()
        first.finish()
        await idle()
        second.finish()
        await idle()
        talk.text_turn("hello")
        await idle()
        push.release()
        await talk.expect('user "A"', FIRST, SECOND, 'user "hello"')


@fails_on_stock(before="1.8.9")
async def test_text_turn_between_two_acknowledgements_of_one_push() -> None:
    first, second = GatedTool("first"), GatedTool("second")
    async with running(agent_with(first, second)) as talk:
        await talk.call(first, second)
        first.finish()
        push = talk.realtime.hold()
        second.finish()
        await push.entered.wait()
        push.release(1)
        talk.text_turn("hello")
        await idle()
        push.release()
        await talk.expect(FIRST, SECOND, 'user "hello"')


@needs("1.7.0")
@fails_on_stock(since="1.7.0", before="1.8.9")
async def test_outputs_of_two_interrupted_responses_both_stay() -> None:
    first, second = GatedTool("first"), GatedTool("second")
    async with running(agent_with(first, second)) as talk:
        await talk.call_and_interrupt(first)
        await talk.call_and_interrupt(second)
        await talk.overlap(first.finish, second.finish)
        await talk.expect(FIRST, SECOND)


@fails_on_stock(before="1.2.15")  # later ones have the output wait for its turn to speak
async def test_tool_output_waits_for_a_text_turn_and_both_stay() -> None:
    first = GatedTool("first")
    async with running(agent_with(first)) as talk:
        await talk.call(first)
        await talk.overlap(lambda: talk.text_turn("hello"), first.finish)
        await talk.expect('user "hello"', FIRST, ordered=False)
