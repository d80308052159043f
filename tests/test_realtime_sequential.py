"""Updates that do not overlap are made as by stock: the same operations, items, order and events.

The expectations are written down once, and the same ones hold on stock and on patched releases.
"""

from __future__ import annotations

from typing import Any

from _realtime_support import needs
from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.push import Create, Push
from ctxlock.races.response import Response
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import name_items

pytestmark = needs("1.7.0")

def operations(talk: Harness, push: Push) -> list[str]:
    """What a push asked for, with the item that each new one goes behind."""
    every = {i.id: i for p in talk.realtime.pushes for i in p.creates}
    every |= {item.id: item for item in talk.realtime.server.items}
    names = dict(zip(every, name_items(every.values()), strict=True))
    return [
        f"{names[op.item_id]} behind {names[op.previous_id] if op.previous_id else 'nothing'}"
        if isinstance(op, Create)
        else f"{names.get(op.item_id, 'the unheard reply')} deleted"
        for op in push.operations
    ]


def all_operations(talk: Harness) -> list[list[str]]:
    return [operations(talk, push) for push in talk.realtime.pushes]


def record_events(talk: Harness) -> list[str]:
    said: list[str] = []

    def item_added(event: Any) -> None:
        said.append(f"item: {name_items([event.item])[0]}")

    def speech_created(event: Any) -> None:
        said.append(f"speech: {event.source}")

    def tools_executed(event: Any) -> None:
        said.append(f"tools: {', '.join(call.name for call in event.function_calls)}")

    talk.session.on("conversation_item_added", item_added)
    talk.session.on("speech_created", speech_created)
    talk.session.on("function_tools_executed", tools_executed)
    return said


def answer(text: str) -> Any:
    def begin(response: Response) -> None:
        response.message(text)
        response.done()

    return begin


async def test_text_turn_and_its_reply() -> None:
    async with running(agent_with()) as talk:
        events = record_events(talk)
        talk.realtime.on_reply = answer("Hi.")
        await talk.text_turn("hello")
        await talk.expect('user "hello"', 'assistant "Hi."')
        await talk.text_turn("and now?")
        await idle()
        assert all_operations(talk) == [
            ['user "hello" behind nothing'],
            ['user "and now?" behind assistant "Hi."'],
        ]
        print(events)


async def test_tool_call_and_the_reply_to_its_output() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        events = record_events(talk)
        talk.realtime.on_reply = answer("Found it.")
        await talk.call(lookup)
        lookup.finish()
        await idle()
        print(events, all_operations(talk), name_items(talk.realtime.server.items))


async def test_interrupted_response_whose_tool_finishes_later() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        events = record_events(talk)
        await talk.call_and_interrupt(lookup)
        lookup.finish()
        await idle()
        await talk.text_turn("hello")
        await idle()
        print(events, all_operations(talk), name_items(talk.realtime.server.items))


async def test_replacements() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("A"), note("B"))
        await talk.replace(note("C"), without=['user "A"'])
        await talk.replace()
        print(all_operations(talk), name_items(talk.realtime.server.items))


async def test_cleanup_of_an_unheard_reply() -> None:
    async with running(agent_with()) as talk:
        events = record_events(talk)
        await talk.text_turn("hello")
        await talk.unheard_reply()
        talk.session.interrupt()
        await idle()
        print(events, all_operations(talk), name_items(talk.realtime.server.items))


@needs("1.8.9")
async def test_spoken_messages() -> None:
    async with running(agent_with()) as talk:
        events = record_events(talk)
        await talk.say("Welcome.")
        await talk.text_turn("hello")
        await talk.say("Goodbye.")
        await idle()
        print(events, all_operations(talk), name_items(talk.realtime.server.items))


async def test_handoff_with_a_history_of_its_own() -> None:
    async with running(agent_with()) as talk:
        events = record_events(talk)
        await talk.replace(note("A"))
        talk.session.update_agent(agent_with())
        await idle()
        await talk.text_turn("hello")
        await idle()
        print(events, all_operations(talk), name_items(talk.realtime.server.items))
