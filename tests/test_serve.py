"""The scripted server, as a client finds it."""

from __future__ import annotations

import pytest
from serving import call, output, served, user

from ctxlock.races.loopback.traffic import advance
from ctxlock.serve.acknowledgements import HOLD, Patience

LATE = 1000.0
HOLDING = Patience(hold_tool_outputs=True)


async def test_conversation_is_told() -> None:
    async with served() as server, server.client() as client:
        await client.create(user("A", "hello"))
        assert await client.acknowledged() == "A"
        [created] = server.heard.of("created")
        assert (created["connection"], created["text"]) == (1, '[1] created: user "hello"')
        assert server.heard.of("conversation")[-1]["text"] == '[1] the model has: user "hello"'


async def test_answers_in_words_or_speech() -> None:
    async with served() as server, server.client() as client:
        await client.send("response.create")
        await client.receive("response.output_audio.delta")  # speech, unless told otherwise
        await client.send("session.update", session={"output_modalities": ["text"]})
        await client.send("response.create")
        written = await client.receive("response.output_text.done")
        assert written["text"] == "Hello, this is the scripted model."


async def test_calls_an_offered_tool_unless_told_not_to() -> None:
    tools = [{"type": "function", "name": "lookup"}]
    async with served() as server, server.client() as client:
        await client.send("session.update", session={"tools": tools})
        await client.create(user("A", "Do a lookup"))
        await client.send("response.create", response={"tool_choice": "none"})
        await client.receive("response.done")
        assert not server.heard.of("called")
        await client.send("response.create")
        done = await client.receive("response.function_call_arguments.done")
        assert done["arguments"] == "{}"
        assert server.heard.of("called")[0]["name"] == "lookup"


class TestDeletions:
    @pytest.mark.parametrize(
        ("items", "then", "lost"),
        [
            pytest.param([call("1"), output("1")], [], True, id="its call stays"),
            pytest.param([output("1")], [], False, id="there was no call"),
            pytest.param([call("1"), output("1")], [output("1", "new")], False, id="replaced"),
            pytest.param(
                [call("1"), output("1")],
                [{**output("1"), "id": "another"}],
                False,
                id="replaced under another id",
            ),
            pytest.param(
                [call("1"), call("2"), output("1")], [output("2")], True, id="by that of another"
            ),
        ],
    )
    async def test_of_a_tool_output(self, items: list, then: list, lost: bool) -> None:  # type: ignore[type-arg]
        async with served() as server, server.client() as client:
            for item in items:
                await client.create(item)
            await client.receive("conversation.item.done")
            await client.send("conversation.item.delete", item_id="output_1")
            for item in then:
                await client.create(item)
            await client.receive("conversation.item.deleted")
            [deleted] = server.heard.of("deleted")
            assert deleted["lost"] is lost
            assert ("nothing replaces it" in deleted["text"]) is lost
            assert server.heard.lost == int(lost)

    async def test_of_a_call_and_its_output(self) -> None:
        async with served() as server, server.client() as client:
            await client.create(call("1"))
            await client.create(output("1"))
            await client.receive("conversation.item.done")
            for name in ("call_1", "output_1"):
                await client.send("conversation.item.delete", item_id=name)
            await client.receive("conversation.item.deleted")
            assert [e["lost"] for e in server.heard.of("deleted")] == [False, False]

    async def test_of_what_is_not_there(self) -> None:
        async with served() as server, server.client() as client:
            await client.send("conversation.item.delete", item_id="nobody")
            error = await client.receive("error")
            assert error["error"]["code"] == "item_delete_invalid_item_id"
            assert not server.heard.of("deleted") and server.heard.of("refused")


class TestAcknowledgements:
    async def test_late(self) -> None:
        async with served(patience=Patience(delay=LATE)) as server, server.client() as client:
            await client.create(user("A", "hello"))
            await server.heard.until("created")
            # it is done already, and the model sees it
            await client.send("response.create")
            await client.receive("response.done")
            advance(LATE)
            assert await client.acknowledged() == "A"

    async def test_held_until_asked_for(self) -> None:
        async with served(patience=HOLDING) as server, server.client() as client:
            await client.create(call("1"))
            assert await client.acknowledged() == "call_1"
            await client.create(output("1"))
            await server.heard.until("holding")
            server.lobby.release("you asked for it")
            assert await client.acknowledged() == "output_1"
            assert server.heard.of("released")[0]["reason"] == "you asked for it"

    async def test_held_until_the_next_text_and_in_order(self) -> None:
        async with served(patience=HOLDING) as server, server.client() as client:
            await client.create(output("1"))
            await server.heard.until("holding")
            await client.create({**user("B", "note"), "role": "system"})
            await server.heard.until("created", 2)
            assert not server.heard.of("released")
            await client.create(user("C", "hello"))
            assert [await client.acknowledged() for _ in range(3)] == ["output_1", "B", "C"]

    async def test_held_no_longer_than_a_client_waits(self) -> None:
        async with served(patience=HOLDING) as server, server.client() as client:
            await client.create(output("1"))
            await server.heard.until("holding")
            advance(HOLD)
            assert await client.acknowledged() == "output_1"
            assert server.heard.of("released")[0]["reason"] == "4 s have passed"

    async def test_held_and_late(self) -> None:
        patience = Patience(delay=LATE, hold_tool_outputs=True)
        async with served(patience=patience) as server, server.client() as client:
            await client.create(user("A", "hello"))
            await server.heard.until("created")
            await client.create(output("1"))
            await server.heard.until("holding")
            server.lobby.release("you asked for it")
            advance(LATE)
            assert [await client.acknowledged() for _ in range(2)] == ["A", "output_1"]


class TestConnections:
    async def test_each_has_a_conversation(self) -> None:
        async with served() as server, server.client() as first, server.client() as second:
            for client, name in ((first, "A"), (second, "B")):
                await client.create(user(name, name))
                assert await client.acknowledged() == name
            told = [(e["connection"], e["text"][4:]) for e in server.heard.of("conversation")]
            assert told == [(1, 'the model has: user "A"'), (2, 'the model has: user "B"')]
            assert server.heard.connections == 2

    async def test_one_that_goes_midway(self) -> None:
        async with served(patience=HOLDING) as server:
            async with server.client() as client:
                await client.create(output("1"))
                await server.heard.until("holding")
            await server.heard.until("disconnected")
            server.lobby.release("you asked for it")
            advance(HOLD)
            async with server.client() as another:
                await another.create(user("A", "hello"))
                assert await another.acknowledged() == "A"
            assert not server.heard.of("released")

    @pytest.mark.parametrize(
        "text",
        [
            "no JSON",
            "[]",
            "{}",
            '{"type": 1}',
            '{"type": "session.update"}',
            '{"type": "session.update", "session": 1}',
            '{"type": "conversation.item.create", "item": {"type": "message"}}',
            '{"type": "response.create", "response": {"tools": 1}}',
        ],
    )
    async def test_what_is_no_event_is_refused(self, text: str) -> None:
        async with served() as server, server.client() as client:
            await client.create(user("A", "hello"))
            await client.websocket.send_str(text)
            await client.receive("error")
            assert server.heard.of("refused")
            await client.send("response.create")
            await client.receive("response.done")
