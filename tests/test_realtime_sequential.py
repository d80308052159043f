"""Updates that do not overlap are made as by stock: the same operations, items, order and events.

The expectations are written down once, and the same ones hold on stock and on patched releases.
"""

from __future__ import annotations

from typing import Any

from _realtime_support import needs

from ctxlock.races.engine import conversation_items
from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.push import Create, Push
from ctxlock.races.response import Response
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import name_items

pytestmark = needs("1.7.0")

OUTPUT = "function_call_output of lookup"
HI = 'assistant "Hi."'


def remote(talk: Harness) -> list[str]:
    return name_items(talk.realtime.server.items)


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


async def test_text_turns_and_their_replies() -> None:
    async with running(agent_with()) as talk:
        events = record_events(talk)
        talk.realtime.on_reply = answer("Hi.")
        await talk.text_turn("hello")
        await talk.text_turn("and now?")
        await talk.expect('user "hello"', 'user "and now?"')
        assert all_operations(talk) == [
            ['user "hello" behind nothing'],
            ['user "and now?" behind assistant "Hi."'],
        ]
        assert remote(talk) == ['user "hello"', HI, 'user "and now?"', HI]
        assert events == [
            *("speech: generate_reply", 'item: user "hello"', f"item: {HI}"),
            *("speech: generate_reply", 'item: user "and now?"', f"item: {HI}"),
        ]


async def test_tool_call_and_the_reply_to_its_output() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        events = record_events(talk)
        talk.realtime.on_reply = answer("Hi.")
        await talk.call(lookup)
        lookup.finish()
        await talk.expect()
        assert all_operations(talk) == [[f"{OUTPUT} behind function_call lookup"]]
        assert remote(talk) == ["function_call lookup", OUTPUT, HI]
        assert events == ["speech: generate_reply", "tools: lookup", f"item: {HI}"]


async def test_interrupted_response_whose_tool_finishes_later() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        events = record_events(talk)
        await talk.call_and_interrupt(lookup)
        lookup.finish()
        await idle()
        await talk.text_turn("hello")
        await talk.expect()
        assert all_operations(talk) == [
            [f"{OUTPUT} behind function_call lookup"],
            [f'user "hello" behind {OUTPUT}'],
        ]
        assert remote(talk) == ["function_call lookup", OUTPUT, 'user "hello"']
        asked = "speech: generate_reply"
        assert events == [asked, "tools: lookup", asked, 'item: user "hello"']


async def test_replacements() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("A"), note("B"))
        await talk.replace(note("C"), without=['user "A"'])
        await talk.replace()
        await talk.expect()
        assert all_operations(talk) == [
            ['user "A" behind nothing', 'user "B" behind user "A"'],
            ['user "A" deleted', 'user "C" behind user "B"'],
        ]
        assert remote(talk) == ['user "B"', 'user "C"']


async def test_cleanup_of_an_unheard_reply() -> None:
    async with running(agent_with()) as talk:
        events = record_events(talk)
        await talk.text_turn("hello")
        await talk.unheard_reply()
        talk.session.interrupt()
        await talk.expect()
        assert all_operations(talk) == [
            ['user "hello" behind nothing'],
            ["the unheard reply deleted"],
        ]
        assert remote(talk) == ['user "hello"']
        asked = "speech: generate_reply"
        assert events == [asked, 'item: user "hello"', asked]


@needs("1.8.9")
async def test_spoken_messages() -> None:
    async with running(agent_with()) as talk:
        events = record_events(talk)
        await talk.say("Welcome.")
        await talk.text_turn("hello")
        await talk.say("Goodbye.")
        await talk.expect()
        said = ['assistant "Welcome."', 'user "hello"', 'assistant "Goodbye."']
        assert all_operations(talk) == [
            [f"{said[0]} behind nothing"],
            [f"{said[1]} behind {said[0]}"],
            [f"{said[2]} behind {said[1]}"],
        ]
        assert remote(talk) == said
        assert events == [
            *("speech: say", f"item: {said[0]}"),
            *("speech: generate_reply", f"item: {said[1]}"),
            *("speech: say", f"item: {said[2]}"),
        ]


async def test_handoff_replaces_the_context() -> None:
    async with running(agent_with()) as talk:
        events = record_events(talk)
        await talk.replace(note("A"))
        talk.session.update_agent(agent_with())
        await idle()
        # up to 1.8 an agent brings its own history along, since 2.0 that is the session's
        history = name_items(conversation_items(talk.local))
        await talk.text_turn("hello")
        await talk.expect()
        deletion = [] if history else [['user "A" deleted']]
        anchor = 'user "A"' if history else "nothing"
        assert all_operations(talk) == [
            ['user "A" behind nothing'],
            *deletion,
            [f'user "hello" behind {anchor}'],
        ]
        assert remote(talk) == [*history, 'user "hello"']
        assert events == ["item: agent_handoff", "speech: generate_reply", 'item: user "hello"']
