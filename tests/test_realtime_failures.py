"""When an update fails, the next one proceeds, and on what has been acknowledged by then."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from _realtime_support import (
    ANSWERS_WHEN_INTERRUPTED,
    BEYOND_THE_LOCK,
    closed_by_full,
    fails_on_stock,
    needs,
)
from patience import PATIENCE, impatient

from ctxlock.races.fake_realtime import FakeRealtimeModel
from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.loopback.traffic import advance
from ctxlock.races.push import Push
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import check, name_items
from livekit.agents import llm

Failure = Callable[[Push, "asyncio.Task[None]"], object]

FAILURES: dict[str, tuple[Failure, type[BaseException] | None]] = {
    "rejected": (lambda push, _: push.reject(), None),
    "timed-out": (lambda push, _: push.time_out(lost=True), llm.RealtimeError),
    "raised": (lambda push, _: push.fail(ConnectionError("the line is dead")), ConnectionError),
    "cancelled": (lambda _, holder: holder.cancel(), asyncio.CancelledError),
}

failing = pytest.mark.parametrize(
    ("fail", "error"), [pytest.param(*case, id=name) for name, case in FAILURES.items()]
)


def assert_lock_is_free(talk: Harness) -> None:
    assert talk.lock is None or not talk.lock.locked()


@failing
@fails_on_stock(before="1.8.9")
async def test_waiter_proceeds_on_a_fresh_snapshot(
    fail: Failure, error: type[BaseException] | None
) -> None:
    async with running(agent_with()) as talk:
        push = talk.realtime.hold()
        holder = talk.replace(note("A"), note("B"))
        await push.entered.wait()
        talk.text_turn("hello")
        await idle()
        push.release(1)  # A is acknowledged, B never will be
        fail(push, holder)
        await idle()
        [outcome] = await asyncio.gather(holder, return_exceptions=True)
        assert outcome is None if error is None else isinstance(outcome, error)
        check(talk.realtime, kept=['user "A"', 'user "hello"'])
        assert_lock_is_free(talk)


@failing
async def test_next_update_proceeds_after_a_failure(
    fail: Failure, error: type[BaseException] | None
) -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        push = talk.realtime.hold()
        holder = talk.replace(note("A"))
        await push.entered.wait()
        fail(push, holder)
        await asyncio.gather(holder, return_exceptions=True)
        assert_lock_is_free(talk)
        await talk.text_turn("hello")
        check(talk.realtime, kept=['user "before"', 'user "hello"'])


async def test_late_acknowledgement_after_a_timeout() -> None:
    async with running(agent_with()) as talk:
        push = talk.realtime.hold()
        holder = talk.replace(note("A"))
        await push.entered.wait()
        talk.text_turn("hello")
        await idle()
        push.time_out()
        with pytest.raises(llm.RealtimeError):
            await holder
        await talk.expect('user "A"', 'user "hello"', ordered=False)


@fails_on_stock(before="1.8.9")
async def test_writer_behind_a_cancelled_waiter_proceeds_on_a_fresh_snapshot() -> None:
    async with running(agent_with()) as talk:
        push = talk.realtime.hold()
        talk.replace(note("A"))
        await push.entered.wait()
        waiter = talk.replace(note("B"))
        await idle()
        talk.text_turn("hello")
        await idle()
        waiter.cancel()
        await idle()
        assert len(talk.realtime.pushes) == 1
        push.release()
        await idle()
        check(talk.realtime, kept=['user "A"', 'user "hello"'])
        assert_lock_is_free(talk)


@needs(BEYOND_THE_LOCK)
@closed_by_full("the agent has it, and nobody pushes it")
async def test_replacement_that_is_cancelled_while_it_waits_is_pushed() -> None:
    async with running(agent_with()) as talk:
        push = talk.realtime.hold()
        talk.replace(note("A"))
        await push.entered.wait()
        waiter = talk.replace(note("B"))
        await idle()
        waiter.cancel()
        await idle()
        assert len(talk.realtime.pushes) == 1
        push.release()
        await talk.expect('user "A"', 'user "B"')


@needs(BEYOND_THE_LOCK, ANSWERS_WHEN_INTERRUPTED)
@closed_by_full("an interruption's limit ends the task that waits with its output")
async def test_output_whose_task_is_ended_while_it_waits_is_pushed() -> None:
    lookup = GatedTool("lookup")
    with impatient():
        async with running(agent_with(lookup)) as talk:
            push = talk.realtime.hold()
            talk.replace(note("A"))
            await push.entered.wait()
            await talk.call_and_interrupt(lookup)
            lookup.finish()
            await idle()
            advance(PATIENCE)
            await idle()
            push.release()
            await talk.expect('user "A"', "function_call lookup", "function_call_output of lookup")


async def _text_turn(talk: Harness, lookup: GatedTool) -> Push:
    push = talk.realtime.hold()
    talk.text_turn("the update that fails")
    return push


async def _tool_output(talk: Harness, lookup: GatedTool) -> Push:
    await talk.call(lookup)
    push = talk.realtime.hold()
    lookup.finish()
    return push


async def _interrupted_tool_output(talk: Harness, lookup: GatedTool) -> Push:
    await talk.call_and_interrupt(lookup)
    push = talk.realtime.hold()
    lookup.finish()
    return push


async def _cleanup(talk: Harness, lookup: GatedTool) -> Push:
    await talk.unheard_reply()
    push = talk.realtime.hold()
    talk.session.interrupt()
    return push


async def _spoken_message(talk: Harness, lookup: GatedTool) -> Push:
    push = talk.realtime.hold()
    talk.say("The update that fails.")
    return push


async def _session_start(talk: Harness, lookup: GatedTool) -> Push:
    # whether the history goes along or not, the two sides must differ for it to send anything
    refused = talk.realtime.hold()
    talk.replace(note("refused"))
    await refused.entered.wait()
    refused.reject()
    push = talk.realtime.hold()
    talk.session.update_agent(agent_with())
    return push


SITES = {
    _text_turn: "1.0.0",
    _tool_output: "1.0.0",
    _interrupted_tool_output: "1.7.0",
    _cleanup: "1.7.0",
    _spoken_message: "1.8.9",
    _session_start: "1.5.3",
}
"""The ways to begin the update that fails, and since when there is each."""


def _failing_sites() -> Iterator[object]:
    for (begin, since), how in itertools.product(SITES.items(), ("rejected", "timed-out")):
        if begin is _text_turn and how == "timed-out":
            since = "1.2.0"  # until then nobody retrieves its task's error, and the loop complains
        name = f"{begin.__name__.strip('_').replace('_', '-')}-{how}"
        yield pytest.param(begin, how, id=name, marks=needs(since))


@pytest.mark.parametrize(("begin", "how"), list(_failing_sites()))
async def test_every_site_lets_go_of_the_lock(
    begin: Callable[[Harness, GatedTool], Awaitable[Push]], how: str
) -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.replace(note("before"))
        push = await begin(talk, lookup)
        await push.entered.wait()
        if how == "timed-out":
            push.time_out(lost=True)
        else:
            push.reject()
        await idle()
        assert_lock_is_free(talk)
        await talk.text_turn("hello")
        check(talk.realtime, kept=['user "hello"'])


@needs(BEYOND_THE_LOCK)
async def test_item_that_its_provider_cannot_take_harms_no_later_update() -> None:
    async with running(agent_with(), model=FakeRealtimeModel()) as talk:
        realtime: Any = talk.realtime
        update = realtime.update_chat_ctx

        async def update_chat_ctx(chat_ctx: llm.ChatContext) -> None:
            if any(item.id == poison.id for item in chat_ctx.items):
                raise ValueError("no such thing can be sent")
            await update(chat_ctx)

        realtime.update_chat_ctx = update_chat_ctx
        poison = note("poison")
        await talk.replace(note("before"))
        with pytest.raises(ValueError, match="no such thing"):
            await talk.replace(poison)
        await talk.text_turn("hello")
        check(talk.realtime, kept=['user "before"', 'user "hello"'])
        assert_lock_is_free(talk)


@needs(BEYOND_THE_LOCK)
async def test_message_whose_turn_fails_is_with_neither_side() -> None:
    async with running(agent_with(), model=FakeRealtimeModel()) as talk:
        push = talk.realtime.hold()
        talk.text_turn("lost")
        await push.entered.wait()
        push.fail(ConnectionError("the line is dead"))
        await talk.expect()
        await talk.text_turn("hello")
        await talk.expect('user "hello"')
        assert name_items(talk.realtime.server.items) == ['user "hello"']
