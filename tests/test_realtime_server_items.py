"""What the server adds of its own accord: the agent has it, in its place, once, from then on.

The agent's context then often ends in an item that no provider sees, of a change of its tools, its
instructions or a handoff, and what the server adds stands behind another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from _realtime_support import BEYOND_THE_LOCK, TELLS_OF_ITEMS, closed_by_full, needs

from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import LostUpdate, name_items
from livekit.agents import llm

pytestmark = needs(BEYOND_THE_LOCK, TELLS_OF_ITEMS)

HEARD = 'user ""'  # what was said has no text until it is understood

not_recorded = closed_by_full(
    "the item does not stand behind the last one of the agent's context, which takes no note of it"
)


def assert_recorded(talk: Harness, *names: str) -> None:
    """The agent has these, each once.

    Raises:
        LostUpdate: If it has not.
    """
    local = name_items(talk.local.items)
    for name in names:
        if local.count(name) != 1:
            raise LostUpdate(f"The agent has {name} {local.count(name)} times, in {local}.")


async def _nothing(talk: Harness) -> None:
    # the start of a session puts an item at the end that no provider sees, before anything else
    await talk.replace(note("before"))


async def _tools(talk: Harness) -> None:
    await talk.replace(note("before"))
    await talk.activity.agent.update_tools([GatedTool("another").tool])


async def _instructions(talk: Harness) -> None:
    await talk.replace(note("before"))
    await talk.activity.agent.update_instructions("Answer at length.")


async def _handoff(talk: Harness) -> None:
    await talk.replace(note("before"))
    agent = agent_with()
    await agent.update_chat_ctx(talk.local)
    talk.session.update_agent(agent)
    await idle()


async def _handoff_item(talk: Harness) -> None:
    await talk.replace(note("before"), llm.AgentHandoff(new_agent_id="another"))


async def _handoff_from_nothing(talk: Harness) -> None:
    await talk.replace(note("of the old agent"))
    talk.session.update_agent(agent_with())
    await idle()
    await talk.replace(note("before"), llm.AgentHandoff(new_agent_id="another"))


CHANGES = [_tools, _instructions, _handoff, _handoff_item, _handoff_from_nothing]

changed = pytest.mark.parametrize(
    "change", [pytest.param(c, id=c.__name__.strip("_").replace("_", "-")) for c in CHANGES]
)
Change = Callable[[Harness], Awaitable[None]]


async def test_spoken_turn_that_the_next_replacement_keeps() -> None:
    async with running(agent_with()) as talk:
        await _nothing(talk)
        talk.realtime.hear()
        await idle()
        await talk.replace(note("A"))
        await talk.expect('user "before"', HEARD, 'user "A"')


@not_recorded
@changed
async def test_spoken_turn_after_a_change(change: Change) -> None:
    async with running(agent_with()) as talk:
        await change(talk)
        talk.realtime.hear()
        await idle()
        assert_recorded(talk, HEARD)
        await talk.replace(note("A"))
        await talk.expect('user "before"', HEARD, 'user "A"')


@not_recorded
@changed
async def test_replacement_after_a_change_and_a_spoken_turn(change: Change) -> None:
    async with running(agent_with()) as talk:
        await change(talk)
        talk.realtime.hear()
        await idle()
        await talk.replace(note("A"))
        await talk.expect('user "before"', HEARD, 'user "A"')


@not_recorded
@changed
async def test_spoken_turn_that_is_understood_after_a_replacement(change: Change) -> None:
    async with running(agent_with()) as talk:
        await change(talk)
        heard = talk.realtime.hear()
        await idle()
        await talk.replace(note("A"))
        talk.realtime.transcribe(heard, "good day")
        await idle()
        await talk.expect('user "before"', 'user "good day"', 'user "A"')


@not_recorded
@changed
async def test_two_spoken_turns_after_a_change(change: Change) -> None:
    async with running(agent_with()) as talk:
        await change(talk)
        first, second = talk.realtime.hear(), talk.realtime.hear()
        await idle()
        talk.realtime.transcribe(second, "two")
        await idle()
        await talk.replace(note("A"))
        talk.realtime.transcribe(first, "one")
        await idle()
        await talk.expect('user "before"', 'user "one"', 'user "two"', 'user "A"')


@not_recorded
@changed
async def test_replacement_while_the_model_still_writes_its_reply(change: Change) -> None:
    async with running(agent_with()) as talk:
        await change(talk)
        response = talk.realtime.respond()
        message = response.message()
        await idle()
        await talk.replace(note("A"))
        message.write("Hello.")
        response.done()
        await idle()
        await talk.expect('user "before"', 'assistant "Hello."', 'user "A"')


@not_recorded
async def test_spoken_turn_behind_a_typed_message_whose_push_has_not_returned() -> None:
    async with running(agent_with()) as talk:
        await _tools(talk)
        push = talk.realtime.hold()
        talk.text_turn("hello")
        await push.entered.wait()
        push.release()  # acknowledged, but the turn does not know yet
        talk.realtime.add_item(llm.ChatMessage(role="user", content=[]))
        await idle()
        assert_recorded(talk, 'user "hello"', HEARD)
        await talk.replace(note("A"))
        await talk.expect('user "before"', 'user "hello"', HEARD, 'user "A"')


@not_recorded
async def test_spoken_turn_that_overtakes_a_typed_message() -> None:
    async with running(agent_with()) as talk:
        await _tools(talk)
        push = talk.realtime.hold()
        talk.text_turn("hello")
        await push.entered.wait()
        talk.realtime.add_item(llm.ChatMessage(role="user", content=[]))
        await idle()
        push.release()
        await idle()
        await talk.replace(note("A"))
        await talk.expect('user "before"', 'user "hello"', HEARD, 'user "A"')


@not_recorded
async def test_function_call_after_a_change_stands_where_the_model_has_it() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await _instructions(talk)
        talk.realtime.hear()
        await idle()
        await talk.call(lookup)
        lookup.finish()
        output = "function_call_output of lookup"
        await talk.expect('user "before"', HEARD, "function_call lookup", output)


@closed_by_full("what is understood of a turn is recorded, though the model forgot the turn")
async def test_turn_that_is_understood_after_its_placeholder_was_removed() -> None:
    async with running(agent_with()) as talk:
        await _nothing(talk)
        heard = talk.realtime.hear()
        await idle()
        await talk.replace(note("A"), without=[HEARD])
        await talk.expect('user "before"', 'user "A"', gone=[heard])
        talk.realtime.transcribe(heard, "good day")
        await talk.expect('user "before"', 'user "good day"', 'user "A"')
