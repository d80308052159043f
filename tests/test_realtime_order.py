"""What the application put in an order stays in it, on both sides, between acknowledgements too."""

from __future__ import annotations

import pytest
from talks import own_items

from ctxlock.races.fake_realtime import FakeRealtimeSession
from ctxlock.races.harness import GatedTool, Harness, idle, running, update_chat_ctx
from ctxlock.races.names import name_items
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import LostUpdate, OutOfOrder

BEFORE, A, B, C, D = (f'user "{text}"' for text in ("before", "A", "B", "C", "D"))


def names(talk: Harness) -> list[str]:
    return [name for name in name_items(own_items(talk)) if name.startswith("user")]


async def test_three_that_are_acknowledged_one_by_one() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        push = talk.realtime.hold()
        talk.replace(note("A"), note("B"), note("C"))
        await push.entered.wait()
        for sent in (1, 2, 3):
            push.release(1)
            await idle()
            assert names(talk) == [BEFORE, A, B, C], f"when {sent} of three were acknowledged"
        await talk.expect(BEFORE, A, B, C)


@pytest.mark.parametrize("sent", [1, 2])
async def test_copy_that_is_taken_when_three_are_half_acknowledged(sent: int) -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        push = talk.realtime.hold()
        talk.replace(note("A"), note("B"), note("C"))
        await push.entered.wait()
        push.release(sent)
        await idle()
        talk.replace(note("D"))
        await idle()
        push.release()
        await talk.expect(BEFORE, A, B, C, D)
        assert names(talk) == [BEFORE, A, B, C, D]


async def test_outputs_that_are_acknowledged_one_by_one() -> None:
    one, two = GatedTool("one"), GatedTool("two")
    async with running(agent_with(one, two)) as talk:
        await talk.call(one, two)
        push = talk.realtime.hold()
        two.finish()
        await idle()
        one.finish()
        await push.entered.wait()
        for _ in range(2):
            push.release(1)
            await idle()
            held = [item.call_id for item in own_items(talk) if item.type.endswith("_output")]
            calls = [item.call_id for item in own_items(talk) if item.type == "function_call"]
            if held:  # the oldest releases keep no tool items with the agent
                assert held == calls[::-1]
        outputs = "function_call_output of two", "function_call_output of one"
        await talk.expect(*outputs)
        said = [name for name in name_items(talk.realtime.server.items) if name in outputs]
        assert said == [*outputs]


class TestExpect:
    """It is no better than what it catches."""

    async def test_agent_whose_items_are_moved_for_a_while(self) -> None:
        async with running(agent_with()) as talk:
            a, b = note("A"), note("B")
            await talk.replace(a, b)
            items = own_items(talk)
            kept = list(items)
            items.append(items.pop(items.index(a)))
            await idle()
            items[:] = kept
            with pytest.raises(OutOfOrder, match=f"for a while, the agent has {B} before {A}"):
                await talk.expect(A, B)

    async def test_model_whose_items_are_moved_for_a_while(self) -> None:
        async with running(agent_with()) as talk:
            assert isinstance(talk.realtime, FakeRealtimeSession)
            await talk.replace(note("A"), note("B"))
            talk.realtime.server.items.reverse()
            await idle()
            talk.realtime.server.items.reverse()
            with pytest.raises(OutOfOrder, match=f"for a while, the model has {B} before {A}"):
                await talk.expect(A, B)

    async def test_both_sides_in_the_same_wrong_order(self) -> None:
        async with running(agent_with()) as talk:
            await talk.replace(note("A"), note("B"))
            wrong = talk.local
            wrong.items.append(wrong.items.pop(-2))
            await update_chat_ctx(talk.activity, wrong)  # not as the application asked
            with pytest.raises(OutOfOrder, match=f"the model has {B} before {A}"):
                await talk.expect(A, B)

    async def test_what_is_lost_comes_first(self) -> None:
        async with running(agent_with()) as talk:
            await talk.replace(note("A"), note("B"))
            own_items(talk).reverse()
            await idle()
            with pytest.raises(LostUpdate, match='user "C" is lost') as raised:
                await talk.expect(A, B, C)
            assert not isinstance(raised.value, OutOfOrder)

    async def test_order_that_the_application_changes(self) -> None:
        async with running(agent_with()) as talk:
            a, b = note("A"), note("B")
            await talk.replace(a, b)
            await talk.replace(without=[A])
            await talk.replace(a)
            await talk.expect(B, A)
            assert names(talk) == [B, A]
