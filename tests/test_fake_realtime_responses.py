"""The fake provider's other half: the responses it streams and the server that has the items."""

from __future__ import annotations

import pytest

from ctxlock.races.fake_realtime import FakeRealtimeModel
from ctxlock.races.harness import idle
from ctxlock.races.response import Response
from ctxlock.races.server import Refused, ServerConversation
from ctxlock.races.verdict import name_items
from livekit.agents import llm


def say_hi(response: Response) -> None:
    response.message("Hi.")
    response.done()


class TestResponses:
    async def test_items_join_the_conversation_as_they_are_begun(self) -> None:
        realtime = FakeRealtimeModel().session()
        response = realtime.respond()
        opened = response.message()
        response.call("lookup", call_id="call")
        assert name_items(realtime.server.items) == ['assistant ""', "function_call lookup"]
        opened.write("Hi.")
        response.done()
        assert name_items(realtime.chat_ctx.items) == ['assistant "Hi."', "function_call lookup"]

    async def test_what_the_agent_reads(self) -> None:
        realtime = FakeRealtimeModel().session()
        seen: list[llm.GenerationCreatedEvent] = []
        realtime.on("generation_created", seen.append)
        response = realtime.respond()
        response.message("Hi.")
        response.call("lookup")
        response.done()
        [event] = seen
        texts = [
            "".join([part async for part in m.text_stream]) async for m in event.message_stream
        ]
        names = [call.name async for call in event.function_stream]
        assert (texts, names, event.user_initiated) == (["Hi."], ["lookup"], False)

    async def test_a_requested_reply_is_filled_in_by_the_test(self) -> None:
        realtime = FakeRealtimeModel().session()
        realtime.on_reply = say_hi
        event = await realtime.generate_reply()
        assert event.user_initiated
        assert name_items(realtime.server.items) == ['assistant "Hi."']

    async def test_a_cancelled_request_begins_nothing(self) -> None:
        realtime = FakeRealtimeModel().session()
        realtime.generate_reply().cancel()
        await idle()
        assert realtime.responses == []

    async def test_interruption_ends_the_response_a_little_later(self) -> None:
        realtime = FakeRealtimeModel().session()
        response = realtime.respond()
        response.message().write("Hi")
        realtime.interrupt()
        assert not response.finished
        await idle()
        assert response.finished
        assert name_items(realtime.server.items) == ['assistant "Hi"']


class TestServer:
    def test_refuses_what_does_not_fit(self) -> None:
        server: ServerConversation[llm.ChatItem] = ServerConversation()
        a, b = (llm.ChatMessage(id=name, role="user", content=[]) for name in "AB")
        server.create(None, a)
        with pytest.raises(Refused) as duplicate:
            server.create(None, a)
        assert duplicate.value.duplicate
        with pytest.raises(Refused, match="insert B after"):
            server.create("C", b)
        with pytest.raises(Refused, match="to delete"):
            server.delete("B")
