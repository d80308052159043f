"""``agent.update_chat_ctx``: it deletes what its caller left out, and nothing else."""

from __future__ import annotations

from _realtime_support import closed_by_full, fails_on_stock

from ctxlock.races.harness import GatedTool, idle, running
from ctxlock.races.scenario import agent_with, note

OUTPUT = "function_call_output of lookup"


async def test_replacement_can_delete_a_tool_output() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.call(lookup)
        lookup.finish()
        await idle()
        output = talk.realtime.pushes[-1].creates[-1]
        await talk.replace(without=["function_call lookup", OUTPUT])
        await talk.expect(gone=[output.id])


@fails_on_stock(before="1.8.9")
async def test_what_a_replacement_deletes_a_waiting_text_turn_does_not_bring_back() -> None:
    async with running(agent_with()) as talk:
        unwanted = note("unwanted")
        await talk.replace(unwanted)
        await talk.overlap(
            lambda: talk.replace(without=['user "unwanted"']), lambda: talk.text_turn("hello")
        )
        await talk.expect('user "hello"', gone=[unwanted.id])


@fails_on_stock(before="1.8.9")
async def test_what_a_replacement_deletes_a_waiting_tool_output_does_not_bring_back() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        unwanted = note("unwanted")
        await talk.replace(unwanted)
        await talk.call(lookup)
        await talk.overlap(lambda: talk.replace(without=['user "unwanted"']), lookup.finish)
        await talk.expect(OUTPUT, gone=[unwanted.id])


async def test_replacement_that_waits_for_a_text_turn_keeps_the_text() -> None:
    # its context is the agent's from the start, and the text joins that when acknowledged
    async with running(agent_with()) as talk:
        await talk.overlap(lambda: talk.text_turn("hello"), lambda: talk.replace(note("A")))
        await talk.expect('user "hello"', 'user "A"')


async def test_of_two_replacements_the_later_wins() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        first, second = note("first"), note("second")
        await talk.overlap(
            lambda: talk.replace(first),
            lambda: talk.replace(second, without=['user "first"']),
        )
        await talk.expect('user "before"', 'user "second"', gone=[first.id])


@closed_by_full(
    "the agent takes the acknowledged item for the server's own, since it joins behind the last "
    "item of the later context, and adds it to that",
    since="1.5.0",
)
async def test_replacement_that_takes_back_one_still_unacknowledged() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        first = note("first")
        await talk.overlap(
            lambda: talk.replace(first), lambda: talk.replace(without=['user "first"'])
        )
        await talk.expect('user "before"', gone=[first.id])
