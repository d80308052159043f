"""Updates made from within others' work: everything ends, and nothing is lost on the way."""

from __future__ import annotations

import asyncio
from typing import Any

from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.scenario import agent_with, note

OUTPUT = "function_call_output of lookup"


async def test_tool_that_replaces_the_context() -> None:
    talk: Harness

    async def remember() -> Any:
        await talk.replace(note("A"))
        return "remembered"

    lookup = GatedTool("lookup", remember)
    async with running(agent_with(lookup)) as talk:
        await talk.call(lookup)
        await talk.expect('user "A"', OUTPUT)


async def test_tool_that_replaces_the_context_while_an_update_is_pending() -> None:
    talk: Harness

    async def remember() -> Any:
        await talk.replace(note("A"))
        return "remembered"

    lookup = GatedTool("lookup", remember)
    async with running(agent_with(lookup)) as talk:
        push = talk.realtime.hold()
        talk.replace(note("before"))
        await push.entered.wait()
        await talk.call(lookup)
        push.release()
        await talk.expect('user "before"', 'user "A"', OUTPUT, ordered=False)


async def test_parallel_tools_that_replace_the_context() -> None:
    talk: Harness

    async def remember_a() -> Any:
        await talk.replace(note("A"))

    async def remember_b() -> Any:
        await talk.replace(note("B"))

    first, second = GatedTool("first", remember_a), GatedTool("second", remember_b)
    async with running(agent_with(first, second)) as talk:
        await talk.call(first, second)
        outputs = ["function_call_output of first", "function_call_output of second"]
        await talk.expect('user "A"', 'user "B"', *outputs)


async def test_tool_of_an_interrupted_response_that_replaces_the_context() -> None:
    talk: Harness
    told = asyncio.Event()

    async def remember() -> Any:
        await told.wait()
        await talk.replace(note("A"))
        return "remembered"

    lookup = GatedTool("lookup", remember)
    async with running(agent_with(lookup)) as talk:
        await talk.call_and_interrupt(lookup)
        await talk.overlap(lambda: talk.text_turn("hello"), told.set)
        await talk.expect('user "A"', 'user "hello"', ordered=False)


async def test_session_that_closes_while_an_update_is_pending() -> None:
    async with running(agent_with()) as talk:
        lock = talk.lock
        push = talk.realtime.hold()
        pending = talk.replace(note("A"))
        await push.entered.wait()
        waiting = talk.replace(note("B"))
        await idle()
        await talk.session.aclose()
        await asyncio.gather(pending, waiting, return_exceptions=True)
        assert lock is None or not lock.locked()
