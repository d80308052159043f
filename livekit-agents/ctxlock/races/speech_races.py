"""Races with what ``session.say()`` said, which a realtime model is told of from 1.8.9 on."""

from __future__ import annotations

from .harness import GatedTool, running
from .releases import Releases
from .scenario import agent_with, note, scenario

_TOLD = Releases("1.8.9")

# What was said goes where its time puts it, and the engine's mirror gives an item the time of its
# acknowledgement. An item that is acknowledged after the speech began stands before it with the
# agent and behind it with the model, hence ``ordered=False``; stock 1.8.9 is no different.


@scenario(
    "spoken message during a tool output",
    "session.say() ends while a tool's output awaits its acknowledgement",
    applies=_TOLD,
)
async def _spoken_message_during_tool_output() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.call(lookup)
        await talk.overlap(lookup.finish, lambda: talk.say("One moment."))
        await talk.expect(
            "function_call_output of lookup", 'assistant "One moment."', ordered=False
        )


@scenario(
    "tool output during a spoken message",
    "a tool finishes while what session.say() said awaits its acknowledgement",
    applies=_TOLD,
)
async def _tool_output_during_spoken_message() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.call(lookup)
        await talk.overlap(lambda: talk.say("One moment."), lookup.finish)
        await talk.expect('assistant "One moment."', "function_call_output of lookup")


@scenario(
    "text turn during a spoken message",
    "the user types while what session.say() said awaits its acknowledgement",
    applies=_TOLD,
)
async def _text_turn_during_spoken_message() -> None:
    async with running(agent_with()) as talk:
        await talk.overlap(lambda: talk.say("Welcome."), lambda: talk.text_turn("hello"))
        await talk.expect('assistant "Welcome."', 'user "hello"')


@scenario(
    "spoken message during a replacement",
    "session.say() ends while agent.update_chat_ctx awaits its acknowledgement",
    applies=_TOLD,
)
async def _spoken_message_during_replacement() -> None:
    async with running(agent_with()) as talk:
        await talk.overlap(lambda: talk.replace(note("A")), lambda: talk.say("Welcome."))
        await talk.expect('user "A"', 'assistant "Welcome."', ordered=False)
