"""What is not often done: calls removed while they run, turns around a task, pictures."""

from __future__ import annotations

from typing import Any

from _realtime_support import (
    BEYOND_THE_LOCK,
    RECORDS_CALLS_AGAIN,
    TELLS_OF_ITEMS,
    fails_on_stock,
    needs,
    still_lost,
)
from handoffs import Errand

from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import LostUpdate, name_items
from livekit.agents import llm

pytestmark = needs(BEYOND_THE_LOCK, TELLS_OF_ITEMS)

CALL, OUTPUT = "function_call lookup", "function_call_output of lookup"
HEARD = 'user ""'


def assert_in_order(talk: Harness, *names: str) -> None:
    """The model has these, one behind the other."""
    remote = [name for name in name_items(talk.realtime.server.items) if name in names]
    if remote != list(names):
        raise LostUpdate(f"The model has {remote}, and should have {list(names)}.")


@needs(RECORDS_CALLS_AGAIN)
@still_lost("the output is sent behind no call")
async def test_call_that_is_removed_while_it_runs_returns_with_its_output() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.replace(note("before"))
        await talk.call(lookup)
        await talk.replace(without=[CALL])
        lookup.finish()
        await talk.expect('user "before"', CALL, OUTPUT)
        assert_in_order(talk, CALL, OUTPUT)


@needs(RECORDS_CALLS_AGAIN)
@still_lost("the output is sent behind no call")
async def test_one_of_two_parallel_calls_that_is_removed() -> None:
    lookup, other = GatedTool("lookup"), GatedTool("other")
    async with running(agent_with(lookup, other)) as talk:
        await talk.call(lookup, other)
        await talk.replace(note("A"), without=[CALL])
        other.finish()
        await idle()
        lookup.finish()
        await talk.expect(
            *('user "A"', CALL, OUTPUT, "function_call_output of other"), ordered=False
        )
        assert_in_order(talk, CALL, OUTPUT)


@needs(RECORDS_CALLS_AGAIN)
@fails_on_stock(before="1.8.9")
async def test_call_that_is_removed_while_its_output_waits() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.call(lookup)
        push = talk.realtime.hold()
        talk.replace(note("A"))
        await push.entered.wait()
        talk.replace(without=[CALL])
        await idle()
        lookup.finish()
        await idle()
        push.release()
        await talk.expect('user "A"', CALL, OUTPUT, ordered=False)
        assert_in_order(talk, CALL, OUTPUT)


async def test_output_that_is_removed_and_added_again() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.call(lookup)
        lookup.finish()
        await idle()
        before = talk.local
        await talk.replace(without=[CALL, OUTPUT])
        await talk.activity.update_chat_ctx(before)
        await talk.text_turn("hello")
        await talk.expect(CALL, OUTPUT, 'user "hello"')


async def test_spoken_turns_around_a_task_in_a_tool() -> None:
    errands: list[Errand] = []

    async def errand() -> Any:
        errands.append(Errand(at_once=False))
        return await errands[-1]

    lookup = GatedTool("lookup", errand)
    async with running(agent_with(lookup)) as talk:
        parent = talk.activity
        await talk.replace(note("before"))
        heard = talk.realtime.hear()
        await idle()
        talk.realtime.transcribe(heard, "good day")
        await idle()
        await talk.call(lookup)
        await talk.replace(note("of the task"))
        talk.realtime.add_item(llm.ChatMessage(role="user", content=[]))
        await talk.expect('user "of the task"', HEARD)
        await talk.replace(note("of the task too"))
        await talk.expect('user "of the task"', HEARD, 'user "of the task too"')
        errands[0].end()
        await talk.expect('user "before"', 'user "good day"', CALL, OUTPUT, ordered=False)
        assert talk.activity is parent


async def test_picture_stays_where_it_is() -> None:
    picture = llm.ImageContent(image="data:image/png;base64,aGVsbG8=")
    async with running(agent_with()) as talk:
        await talk.replace(llm.ChatMessage(role="user", content=[picture]), note("what is this?"))
        await talk.text_turn("hello")
        talk.realtime.hear()
        await idle()
        await talk.replace(note("A"))
        local = [item.id for item in talk.local.items if item.type == "message"]
        assert local == [item.id for item in talk.realtime.server.items]
        assert len(local) == 5


async def test_item_that_the_server_adds_at_the_head() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("A"), note("B"))
        push = talk.realtime.hold()
        context = talk.local
        context.items.insert(0, note("first"))
        talk.start(talk.activity.update_chat_ctx(context))
        await push.entered.wait()
        talk.realtime.hear()
        await idle()
        push.release()
        await talk.expect('user "first"', 'user "A"', 'user "B"', HEARD)
