"""The fake provider: what it serialises, what it asks the server for, and how updates end."""

from __future__ import annotations

import asyncio

import pytest

from ctxlock.races.fake_realtime import FakeRealtimeModel, FakeRealtimeSession
from ctxlock.races.harness import idle
from ctxlock.races.push import Create, Delete
from livekit.agents import llm


def message(text: str, item_id: str) -> llm.ChatMessage:
    return llm.ChatMessage(id=item_id, role="user", content=[text] if text else [])


def context(*items: llm.ChatItem) -> llm.ChatContext:
    return llm.ChatContext(list(items))


def session() -> FakeRealtimeSession:
    return FakeRealtimeModel().session()


def remote(realtime: FakeRealtimeSession) -> list[str]:
    return [item.id for item in realtime.server.items]


A, B, C = message("a", "A"), message("b", "B"), message("c", "C")


class TestDifference:
    async def test_creates_in_order_behind_what_is_there(self) -> None:
        realtime = session()
        await realtime.update_chat_ctx(context(A))
        await realtime.update_chat_ctx(context(C, A, B))
        assert realtime.pushes[-1].operations == (Create(None, C), Create("A", B))
        assert remote(realtime) == ["C", "A", "B"]

    async def test_deletes_what_is_left_out_before_it_creates(self) -> None:
        realtime = session()
        await realtime.update_chat_ctx(context(A, B))
        await realtime.update_chat_ctx(context(B, C))
        assert realtime.pushes[-1].operations == (Delete("A"), Create("B", C))
        assert remote(realtime) == ["B", "C"]

    async def test_recreates_a_message_whose_text_is_another(self) -> None:
        realtime = session()
        await realtime.update_chat_ctx(context(A, B))
        await realtime.update_chat_ctx(context(message("new", "A"), B))
        if not realtime.pushes[1:]:
            pytest.skip("this release's difference does not look at texts")
        assert realtime.pushes[-1].deletes == ["A"]
        assert remote(realtime) == ["A", "B"]

    async def test_moves_an_item_by_deleting_and_creating_it(self) -> None:
        realtime = session()
        await realtime.update_chat_ctx(context(A, B))
        await realtime.update_chat_ctx(context(B, A))
        assert remote(realtime) == ["B", "A"]

    async def test_asks_for_nothing_when_nothing_differs(self) -> None:
        realtime = session()
        await realtime.update_chat_ctx(context(A))
        await realtime.update_chat_ctx(context(A))
        assert len(realtime.pushes) == 1

    async def test_leaves_out_placeholders_but_keeps_those_the_server_has(self) -> None:
        realtime = session()
        await realtime.update_chat_ctx(context(message("", "empty"), A))
        assert remote(realtime) == ["A"]
        realtime.add_item(message("", "spoken"))
        await realtime.update_chat_ctx(context(A, message("", "spoken")))
        assert remote(realtime) == ["A", "spoken"]

    async def test_leaves_out_instructions(self) -> None:
        realtime = session()
        instructions = message("be brief", "lk.agent_task.instructions")
        await realtime.update_chat_ctx(context(instructions, A))
        assert remote(realtime) == ["A"]


class TestSerialisation:
    async def test_the_second_waits_for_the_first_acknowledgement(self) -> None:
        realtime = session()
        first, second = realtime.hold(), realtime.hold()
        tasks = [
            asyncio.create_task(realtime.update_chat_ctx(context(A))),
            asyncio.create_task(realtime.update_chat_ctx(context(A, B))),
        ]
        await first.entered.wait()
        await idle()
        assert not second.entered.is_set()
        first.release()
        await second.entered.wait()
        second.release()
        await asyncio.gather(*tasks)
        assert remote(realtime) == ["A", "B"]

    async def test_the_difference_is_taken_when_the_turn_has_come(self) -> None:
        realtime = session()
        push = realtime.hold()
        first = asyncio.create_task(realtime.update_chat_ctx(context(A)))
        await push.entered.wait()
        stale = context(B)
        second = asyncio.create_task(realtime.update_chat_ctx(stale))
        await idle()
        stale.items.append(C)  # read at its turn as well
        push.release()
        await asyncio.gather(first, second)
        assert realtime.pushes[-1].deletes == ["A"]
        assert remote(realtime) == ["B", "C"]

    async def test_the_mirror_follows_the_acknowledgement(self) -> None:
        realtime = session()
        push = realtime.hold()
        task = asyncio.create_task(realtime.update_chat_ctx(context(A, B)))
        await push.entered.wait()
        assert remote(realtime) == [] and realtime.chat_ctx.items == []
        push.release(1)
        assert remote(realtime) == [item.id for item in realtime.chat_ctx.items] == ["A"]
        assert not push.settled
        push.release()
        await task
        assert [item.id for item in realtime.chat_ctx.items] == ["A", "B"]

    async def test_a_push_is_not_held_unless_asked(self) -> None:
        realtime = session()
        await asyncio.wait_for(realtime.update_chat_ctx(context(A)), 5)
        assert realtime.pushes[0].entered.is_set() and realtime.pushes[0].settled

    async def test_a_hold_is_for_an_update_that_asks_for_something(self) -> None:
        realtime = session()
        await realtime.update_chat_ctx(context(A))
        push = realtime.hold()
        await realtime.update_chat_ctx(context(A))
        assert not push.entered.is_set()

    async def test_a_hold_can_be_released_before_its_time(self) -> None:
        realtime = session()
        realtime.hold().release()
        await realtime.update_chat_ctx(context(A))
        assert remote(realtime) == ["A"]


class TestFailures:
    async def test_a_rejection_is_swallowed_and_the_rest_applied(self) -> None:
        realtime = session()
        push = realtime.hold()
        task = asyncio.create_task(realtime.update_chat_ctx(context(A, B)))
        await push.entered.wait()
        push.reject("B")
        await task
        assert remote(realtime) == ["A"]

    async def test_the_server_refuses_an_unknown_anchor(self) -> None:
        realtime = session()
        push = realtime.hold()
        task = asyncio.create_task(realtime.update_chat_ctx(context(A, B)))
        await push.entered.wait()
        push.reject("A")  # B was to go behind it
        await task
        assert remote(realtime) == []

    @pytest.mark.parametrize("lost", [False, True])
    async def test_a_timeout_leaves_the_request_under_way_or_loses_it(self, lost: bool) -> None:
        realtime = session()
        push = realtime.hold()
        task = asyncio.create_task(realtime.update_chat_ctx(context(A)))
        await push.entered.wait()
        push.time_out(lost=lost)
        with pytest.raises(llm.RealtimeError):
            await task
        assert remote(realtime) == []
        push.release()  # late
        assert remote(realtime) == ([] if lost else ["A"])

    async def test_what_was_given_up_on_arrives_before_what_is_sent_next(self) -> None:
        realtime = session()
        push = realtime.hold()
        task = asyncio.create_task(realtime.update_chat_ctx(context(A)))
        await push.entered.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await realtime.update_chat_ctx(context(B))
        # both went to the head; A was there first
        assert remote(realtime) == ["B", "A"]

    async def test_any_other_error(self) -> None:
        realtime = session()
        push = realtime.hold()
        task = asyncio.create_task(realtime.update_chat_ctx(context(A)))
        await push.entered.wait()
        push.fail(ConnectionError("the line is dead"))
        with pytest.raises(ConnectionError):
            await task
        await realtime.update_chat_ctx(context(B))
        assert remote(realtime) == ["B"]

    async def test_a_cancelled_waiter_asks_for_nothing(self) -> None:
        realtime = session()
        push = realtime.hold()
        first = asyncio.create_task(realtime.update_chat_ctx(context(A)))
        await push.entered.wait()
        second = asyncio.create_task(realtime.update_chat_ctx(context(B)))
        await idle()
        second.cancel()
        push.release()
        await asyncio.gather(first, second, return_exceptions=True)
        assert remote(realtime) == ["A"]
