"""Updates made from within others' work: everything ends, and nothing is lost on the way."""

from __future__ import annotations

import asyncio

from _realtime_support import needs

from ctxlock.races.harness import GatedTool, Harness, idle, running, update_chat_ctx
from ctxlock.races.scenario import agent_with, note

# before that an agent's context has no function calls, so that replacing it deletes the pending one
pytestmark = needs("1.3.1")

OUTPUT = "function_call_output of lookup"


async def remember(talk: Harness, text: str) -> str:
    """What a tool does that adds something to its agent's context, reading it when it writes."""
    chat_ctx = talk.local
    chat_ctx.items.append(note(text))
    await update_chat_ctx(talk.activity, chat_ctx)
    return f"remembered {text}"


async def test_tool_that_replaces_the_context() -> None:
    talk: Harness
    lookup = GatedTool("lookup", lambda: remember(talk, "A"))
    async with running(agent_with(lookup)) as talk:
        await talk.call(lookup)
        await talk.expect('user "A"', OUTPUT)


async def test_tool_that_replaces_the_context_while_an_update_is_pending() -> None:
    talk: Harness
    lookup = GatedTool("lookup", lambda: remember(talk, "A"))
    async with running(agent_with(lookup)) as talk:
        push = talk.realtime.hold()
        talk.replace(note("before"))
        await push.entered.wait()
        await talk.call(lookup)
        push.release()
        await talk.expect('user "before"', 'user "A"', OUTPUT, ordered=False)


async def test_parallel_tools_that_replace_the_context() -> None:
    talk: Harness
    first = GatedTool("first", lambda: remember(talk, "A"))
    second = GatedTool("second", lambda: remember(talk, "B"))
    async with running(agent_with(first, second)) as talk:
        push = talk.realtime.hold()
        await talk.call(first, second)
        await push.entered.wait()
        push.release()
        outputs = ["function_call_output of first", "function_call_output of second"]
        await talk.expect('user "A"', 'user "B"', *outputs)


@needs("1.7.0")
async def test_tool_of_an_interrupted_response_that_replaces_the_context() -> None:
    talk: Harness
    told = asyncio.Event()

    async def remember_when_told() -> str:
        await told.wait()
        return await remember(talk, "A")

    lookup = GatedTool("lookup", remember_when_told)
    async with running(agent_with(lookup)) as talk:
        await talk.call_and_interrupt(lookup)
        await talk.overlap(lambda: talk.text_turn("hello"), told.set)
        await talk.expect('user "A"', 'user "hello"', OUTPUT, ordered=False)


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
