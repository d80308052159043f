"""A replacement that waits: what neither side held when it was asked for stays, the rest goes.

The caller cannot have left out on purpose what it could not see.
"""

from __future__ import annotations

from _realtime_support import BEYOND_THE_LOCK, TELLS_OF_ITEMS, closed_by_full, needs

from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.push import Push
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import name_items
from livekit.agents import llm

pytestmark = needs(BEYOND_THE_LOCK)

HEARD = 'user ""'
OUTPUT = "function_call_output of lookup"

deleted = closed_by_full("a replacement that waits deletes what the server added meanwhile")


async def pending(talk: Harness) -> Push:
    """An update that the replacement is to wait for."""
    await talk.replace(note("before"))
    push = talk.realtime.hold()
    talk.replace(note("A"))
    await push.entered.wait()
    return push


@needs(TELLS_OF_ITEMS)
@deleted
async def test_spoken_turn_while_a_replacement_waits() -> None:
    async with running(agent_with()) as talk:
        push = await pending(talk)
        talk.replace(note("B"))
        await idle()
        talk.realtime.hear()
        await idle()
        push.release()
        await talk.expect('user "before"', 'user "A"', HEARD, 'user "B"', ordered=False)


@needs(TELLS_OF_ITEMS)
@deleted
async def test_spoken_turn_that_is_understood_while_a_replacement_waits() -> None:
    async with running(agent_with()) as talk:
        push = await pending(talk)
        talk.replace(note("B"))
        await idle()
        heard = talk.realtime.hear()
        await idle()
        push.release()
        await idle()
        talk.realtime.transcribe(heard, "good day")
        await talk.expect('user "before"', 'user "A"', 'user "good day"', 'user "B"', ordered=False)


@needs(TELLS_OF_ITEMS)
@deleted
async def test_reply_that_begins_while_a_replacement_waits() -> None:
    async with running(agent_with()) as talk:
        push = await pending(talk)
        talk.replace(note("B"))
        await idle()
        response = talk.realtime.respond()
        message = response.message()
        await idle()
        push.release()
        await idle()
        message.write("Hello.")
        response.done()
        await talk.expect('user "A"', 'user "B"', 'assistant "Hello."', ordered=False)


@needs(TELLS_OF_ITEMS)
@deleted
async def test_spoken_turn_while_two_replacements_wait() -> None:
    async with running(agent_with()) as talk:
        push = await pending(talk)
        talk.replace(note("B"))
        await idle()
        talk.realtime.hear()
        await idle()
        talk.replace(note("C"))  # made of a context that has it, if the agent recorded it
        await idle()
        push.release()
        await talk.expect(HEARD, 'user "A"', 'user "B"', 'user "C"', ordered=False)


@needs(TELLS_OF_ITEMS)
@deleted
async def test_spoken_turn_while_a_replacement_that_deletes_waits() -> None:
    async with running(agent_with()) as talk:
        unwanted = note("unwanted")
        await talk.replace(unwanted)
        push = await pending(talk)
        talk.replace(without=['user "unwanted"'])
        await idle()
        talk.realtime.hear()
        await idle()
        push.release()
        await talk.expect('user "A"', HEARD, gone=[unwanted.id], ordered=False)


async def test_typed_message_that_waits_in_front_of_a_replacement() -> None:
    async with running(agent_with()) as talk:
        push = await pending(talk)
        talk.text_turn("hello")
        await idle()
        talk.replace(note("B"))
        await idle()
        push.release()
        await talk.expect('user "A"', 'user "hello"', 'user "B"', ordered=False)


async def test_what_the_agent_held_and_the_caller_left_out_goes() -> None:
    async with running(agent_with()) as talk:
        push = await pending(talk)
        talk.replace(note("B"), without=['user "before"', 'user "A"'])
        await idle()
        push.release()
        removed = [item.id for item in push.creates]
        await talk.expect('user "B"', gone=removed)


async def test_tool_output_that_was_recorded_and_left_out_goes() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.call(lookup)
        push = await pending(talk)
        lookup.finish()  # the agent has it at once, though the model must wait
        await idle()
        talk.replace(note("B"), without=["function_call lookup", OUTPUT])
        await idle()
        push.release()
        await talk.expect('user "before"', 'user "A"', 'user "B"', ordered=False)
        assert OUTPUT not in name_items([*talk.realtime.server.items, *talk.local.items])


async def test_item_that_is_added_again_under_its_id_stays() -> None:
    async with running(agent_with()) as talk:
        again = note("again")
        await talk.replace(again)
        push = await pending(talk)
        talk.replace(without=['user "again"'])
        await idle()
        talk.replace(again)
        await idle()
        push.release()
        await talk.expect('user "before"', 'user "A"', 'user "again"', ordered=False)
        await talk.text_turn("hello")
        await talk.expect('user "again"', 'user "hello"', ordered=False)


async def test_picture_that_the_application_adds_while_another_replacement_waits() -> None:
    async with running(agent_with()) as talk:
        push = await pending(talk)
        talk.replace(note("B"))
        await idle()
        picture = llm.ImageContent(image="data:image/png;base64,aGVsbG8=")
        talk.replace(llm.ChatMessage(role="user", content=[picture, "what is this?"]))
        await idle()
        push.release()
        await talk.expect('user "A"', 'user "B"', 'user "what is this?"', ordered=False)
        await talk.text_turn("hello")
        await talk.expect('user "what is this?"', 'user "hello"', ordered=False)
