"""What a provider refuses, through the OpenAI engine as well: a turn is one request, at the end."""

from __future__ import annotations

from typing import Any

import pytest
from _realtime_support import RECORDS_CALLS_AGAIN, needs
from handoffs import tool_with_errand
from siblings import both_ways, through

from ctxlock.races.harness import Harness, idle, running
from ctxlock.races.push import Create, Push
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import name_items

pytestmark = needs(RECORDS_CALLS_AGAIN)

each_error = pytest.mark.parametrize("named", [True, False], ids=["event-named", "event-not-named"])


def refuse(push: Push, *, named: bool) -> None:
    """Has the server refuse all of an update.

    Args:
        push: The update.
        named: Whether the error names the event that it is about. If it does not, the engine learns
            of it when its own time has run out.
    """
    if named:
        push.reject()
    else:
        push.time_out(lost=True)


async def turns_of(talk: Harness, *texts: str) -> list[list[type[Any]]]:
    """What each typed turn asked the provider for."""
    before = len(talk.realtime.pushes)
    for text in texts:
        talk.text_turn(text)
        await idle()
    return [[type(op) for op in push.operations] for push in talk.realtime.pushes[before:]]


@both_ways
@each_error
async def test_turns_of_a_task_whose_start_could_delete_nothing(over: Any, named: bool) -> None:
    lookup, errands = tool_with_errand()
    with through(over):
        async with running(agent_with(lookup)) as talk:
            await talk.replace(note("before"))
            refused = talk.realtime.hold()
            response = talk.realtime.respond()
            response.call("lookup")
            await lookup.started.wait()
            response.done()
            await refused.entered.wait()
            assert refused.deletes and not refused.creates
            refuse(refused, named=named)
            await idle()
            for push in await turns_of(talk, "one", "two", "three"):
                assert [issubclass(kind, Create) for kind in push] == [True]
            assert name_items(talk.realtime.server.items) == [
                *('user "before"', "function_call lookup"),
                *('user "one"', 'user "two"', 'user "three"'),
            ]
            errands[0].end()


@both_ways
@each_error
async def test_turns_after_a_message_was_refused(over: Any, named: bool) -> None:
    """It is not sent again with them."""
    with through(over):
        async with running(agent_with()) as talk:
            await talk.replace(note("before"))
            refused = talk.realtime.hold()
            update = talk.replace(note("refused"))
            await refused.entered.wait()
            refuse(refused, named=named)
            await idle()
            assert update.done()
            assert (update.exception() is None) == named
            for push in await turns_of(talk, "one", "two"):
                assert [issubclass(kind, Create) for kind in push] == [True]
