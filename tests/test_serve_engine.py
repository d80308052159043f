"""The OpenAI engine, unchanged, with the scripted server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from serving import Served, served

from ctxlock.serve.acknowledgements import Patience
from livekit.agents import llm
from livekit.agents.llm import function_tool
from livekit.plugins import openai


@function_tool
async def lookup(number: int) -> str:
    """Look something up."""
    raise AssertionError("the engine runs no tools")


@asynccontextmanager
async def engine(server: Served, **options: Any) -> AsyncIterator[Any]:
    model = openai.realtime.RealtimeModel(
        base_url=server.url, api_key="unused", http_session=server.http, **options
    )
    session = model.session()
    try:
        await session.update_tools([lookup])
        yield session
    finally:
        await session.aclose()
        await model.aclose()


async def reply(session: Any) -> tuple[list[str], list[llm.FunctionCall]]:
    event = await session.generate_reply()
    texts = ["".join([t async for t in m.text_stream]) async for m in event.message_stream]
    return texts, [call async for call in event.function_stream]


async def asked(session: Any) -> llm.FunctionCallOutput:
    """Has the model call the tool; returns an output for it."""
    context = session.chat_ctx.copy()
    context.add_message(role="user", content="Do a lookup")
    await session.update_chat_ctx(context)
    _, [call] = await reply(session)
    assert (call.name, call.arguments) == ("lookup", '{"number": 1}')
    return llm.FunctionCallOutput(
        call_id=call.call_id, name=call.name, output="found", is_error=False
    )


async def test_a_tool_is_called_and_its_result_said() -> None:
    async with served() as server, engine(server, modalities=["text"]) as session:
        output = await asked(session)
        context = session.chat_ctx.copy()
        context.items.append(output)
        await session.update_chat_ctx(context)
        assert await reply(session) == (["The result of lookup is: found"], [])
        assert not server.heard.of("deleted")


async def test_a_stale_push_is_told_and_heard() -> None:
    patience = Patience(hold_tool_outputs=True)
    async with served(patience=patience) as server, engine(server, modalities=["text"]) as session:
        output = await asked(session)
        fresh, stale = session.chat_ctx.copy(), session.chat_ctx.copy()
        fresh.items.append(output)
        stale.add_message(role="assistant", content="One moment.")
        first = asyncio.create_task(session.update_chat_ctx(fresh))
        await server.heard.until("holding")
        second = asyncio.create_task(session.update_chat_ctx(stale))
        server.lobby.release("you asked for it")
        await asyncio.gather(first, second)
        assert server.heard.lost == 1
        said, _ = await reply(session)
        assert said == ["I do not know: I called lookup, and have no result of it."]


async def test_speaks() -> None:
    async with served() as server, engine(server) as session:
        event = await session.generate_reply()
        [message] = [m async for m in event.message_stream]
        assert await message.modalities == ["audio", "text"]
        text = "".join([part async for part in message.text_stream])
        assert text == "Hello, this is the scripted model."
        assert sum([frame.duration async for frame in message.audio_stream]) > 1
