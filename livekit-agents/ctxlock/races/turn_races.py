"""Races between text turns, tool outputs, replacements and cleanups."""

from __future__ import annotations

from .harness import GatedTool, running
from .releases import Releases
from .scenario import UNTIL_THE_LOCK, agent_with, note, scenario

_ALWAYS = Releases()
_ALWAYS_UNTIL_THE_LOCK = Releases(before=UNTIL_THE_LOCK)
_INTERRUPTED = Releases("1.7.0")
_INTERRUPTED_UNTIL_THE_LOCK = Releases("1.7.0", before=UNTIL_THE_LOCK)


@scenario(
    "text turn during a tool output",
    "the user types while a tool's output awaits its acknowledgement",
    applies=_ALWAYS,
    broken=_ALWAYS_UNTIL_THE_LOCK,
)
async def _text_turn_during_tool_output() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.call(lookup)
        await talk.overlap(lookup.finish, lambda: talk.text_turn("hello"))
        await talk.expect("function_call_output of lookup", 'user "hello"')


@scenario(
    "text turn during an interrupted tool output",
    "as above, but the response that called two tools was interrupted after one had finished",
    applies=_INTERRUPTED,
    broken=_INTERRUPTED_UNTIL_THE_LOCK,
)
async def _text_turn_during_interrupted_tool_output() -> None:
    quick, slow = GatedTool("quick"), GatedTool("slow")
    quick.finish()
    async with running(agent_with(quick, slow)) as talk:
        await talk.call_and_interrupt(quick, slow)
        await talk.overlap(slow.finish, lambda: talk.text_turn("hello"))
        outputs = ["function_call_output of quick", "function_call_output of slow"]
        await talk.expect(*outputs, 'user "hello"')


@scenario(
    "text turn during a replacement",
    "the user types while agent.update_chat_ctx awaits its acknowledgement",
    applies=_ALWAYS,
    broken=_ALWAYS_UNTIL_THE_LOCK,
)
async def _text_turn_during_replacement() -> None:
    async with running(agent_with()) as talk:
        await talk.overlap(lambda: talk.replace(note("A")), lambda: talk.text_turn("hello"))
        await talk.expect('user "A"', 'user "hello"')


@scenario(
    "tool output during a replacement",
    "a tool finishes while agent.update_chat_ctx awaits its acknowledgement",
    applies=_ALWAYS,
    broken=_ALWAYS_UNTIL_THE_LOCK,
)
async def _tool_output_during_replacement() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.call(lookup)
        await talk.overlap(lambda: talk.replace(note("A")), lookup.finish)
        await talk.expect('user "A"', "function_call_output of lookup")


@scenario(
    "tool output during another",
    "tools of two responses finish, the second while the first output is unacknowledged",
    applies=_ALWAYS,
    broken=_ALWAYS_UNTIL_THE_LOCK,
)
async def _tool_output_during_another() -> None:
    first, second = GatedTool("first"), GatedTool("second")
    async with running(agent_with(first, second)) as talk:
        await talk.call(first)
        await talk.call(second)
        await talk.overlap(first.finish, second.finish)
        await talk.expect("function_call_output of first", "function_call_output of second")


@scenario(
    "interrupted tool output during a text turn",
    "a tool of an interrupted response finishes while the user's text is unacknowledged",
    applies=_INTERRUPTED,
    broken=_INTERRUPTED_UNTIL_THE_LOCK,
)
async def _interrupted_tool_output_during_text_turn() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.call_and_interrupt(lookup)
        await talk.overlap(lambda: talk.text_turn("hello"), lookup.finish)
        await talk.expect('user "hello"', "function_call_output of lookup", ordered=False)


@scenario(
    "interrupted tool output during never-played cleanup",
    "a reply nobody heard is being deleted when a tool of an earlier response finishes",
    applies=_INTERRUPTED,
    broken=_INTERRUPTED_UNTIL_THE_LOCK,
)
async def _interrupted_tool_output_during_cleanup() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.call_and_interrupt(lookup)
        unheard = await talk.unheard_reply()
        await talk.overlap(talk.interrupt, lookup.finish)
        await talk.expect("function_call_output of lookup", gone=[unheard])
