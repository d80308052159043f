"""A provider that never acknowledges: the wait is bounded, and later turns go on.

The limit is far longer than that of the OpenAI engine, so it is made shorter here.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from _realtime_support import (
    ANSWERS_WHEN_INTERRUPTED,
    BEYOND_THE_LOCK,
    SHARES_SESSIONS,
    closed_by_full,
    needs,
)

from ctxlock.races.fake_realtime import FakeRealtimeModel
from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.loopback.push import TIMEOUT
from ctxlock.races.loopback.traffic import advance
from ctxlock.races.push import Push
from ctxlock.races.releases import has_full_scope
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import LostUpdate, check
from livekit import agents
from livekit.agents import llm

pytestmark = needs(BEYOND_THE_LOCK)

LIMIT = 1.0  # far less than any engine's own
HELLO = 'user "hello"'

frozen = closed_by_full("an update that is never acknowledged freezes all that come after it")


class Heard(logging.Handler):
    """Keeps what the module that the scope `full` adds says of updates that it gave up."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.module == "_realtime_context" and record.msg.startswith("gave up"):
            self.said.append(record.getMessage())


@contextmanager
def limited() -> Iterator[list[str]]:
    """Makes the limit short where there is one, and yields what is warned of."""
    heard = Heard()
    logger = logging.getLogger("livekit.agents")
    logger.addHandler(heard)
    module: Any = agents  # any will do where there is no limit
    if has_full_scope():
        module = importlib.import_module("livekit.agents.voice._realtime_context")
    before, module.HOLD_LIMIT = getattr(module, "HOLD_LIMIT", None), LIMIT
    try:
        yield heard.said
    finally:
        module.HOLD_LIMIT = before
        logger.removeHandler(heard)
        advance(TIMEOUT)  # no engine needs to be waited for


def ignore_cancellation(talk: Harness, error: Exception | None) -> asyncio.Event:
    """The provider's next update ends with what is returned, not before; in the error, if any."""
    realtime: Any = talk.realtime
    update, end = realtime.update_chat_ctx, asyncio.Event()

    async def update_chat_ctx(chat_ctx: llm.ChatContext) -> None:
        realtime.update_chat_ctx = update  # only the first time
        while not end.is_set():
            with suppress(asyncio.CancelledError):
                await end.wait()
        if error is not None:
            raise error

    realtime.update_chat_ctx = update_chat_ctx
    return end


async def pass_the_limit() -> None:
    await idle()
    advance(LIMIT)
    await idle()


async def acknowledge_during_the_next_turn(talk: Harness, late: Push) -> None:
    """The update that was given up is acknowledged while a typed turn awaits the same.

    Raises:
        LostUpdate: If the turn is never sent.
    """
    following = talk.realtime.hold()
    talk.text_turn("hello")
    await idle()
    if not following.entered.is_set():
        raise LostUpdate("The turn that follows was never sent.")
    late.release()
    await idle()
    following.release()


def type_hello(talk: Harness) -> None:
    """The user types.

    Raises:
        LostUpdate: If the session takes no message, as a handoff is under way.
    """
    try:
        talk.text_turn("hello")
    except RuntimeError as error:
        raise LostUpdate(str(error)) from error


async def _text_turn(talk: Harness, lookup: GatedTool) -> Push:
    push = talk.realtime.hold()
    talk.text_turn("the update that hangs")
    return push


async def _replacement(talk: Harness, lookup: GatedTool) -> Push:
    push = talk.realtime.hold()
    talk.replace(note("the update that hangs"))
    return push


async def _tool_outputs(talk: Harness, lookup: GatedTool) -> Push:
    await talk.call(lookup)
    push = talk.realtime.hold()
    lookup.finish()
    return push


async def _interrupted_tool_outputs(talk: Harness, lookup: GatedTool) -> Push:
    await talk.call_and_interrupt(lookup)
    push = talk.realtime.hold()
    lookup.finish()
    return push


async def _spoken_message(talk: Harness, lookup: GatedTool) -> Push:
    push = talk.realtime.hold()
    talk.say("The update that hangs.")
    return push


async def _session_start(talk: Harness, lookup: GatedTool) -> Push:
    push = talk.realtime.hold()
    talk.session.update_agent(agent_with())  # without history: its start deletes
    return push


SITES = {
    _text_turn: "1.0.0",
    _replacement: "1.0.0",
    _tool_outputs: "1.0.0",
    _interrupted_tool_outputs: ANSWERS_WHEN_INTERRUPTED,
    _spoken_message: "1.8.9",
    _session_start: SHARES_SESSIONS,
}


def _sites() -> Iterator[object]:
    for begin, since in SITES.items():
        site = begin.__name__.strip("_")
        yield pytest.param(begin, id=site.replace("_", "-"), marks=needs(since))


@frozen
@pytest.mark.parametrize("begin", list(_sites()))
async def test_later_turns_go_on(begin: Callable[[Harness, GatedTool], Awaitable[Push]]) -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        with limited() as warnings:
            await talk.replace(note("before"))
            push = await begin(talk, lookup)
            await push.entered.wait()
            await pass_the_limit()
            type_hello(talk)
            await idle()
            check(talk.realtime, kept=[HELLO])
            site = begin.__name__.strip("_").replace("_", " ")
            [warning] = warnings
            assert site in warning and f"{LIMIT:g} seconds" in warning


@frozen
async def test_whoever_waited_goes_on_and_takes_it_along() -> None:
    async with running(agent_with()) as talk:
        with limited():
            await talk.replace(note("before"))
            push = talk.realtime.hold()
            talk.text_turn("lost?")
            await push.entered.wait()
            talk.replace(note("A"))
            await idle()
            push.pending.clear()  # it never arrives
            await pass_the_limit()
            await talk.expect('user "before"', 'user "lost?"', 'user "A"', ordered=False)


@frozen
async def test_all_of_many_that_hang_are_there_in_the_end() -> None:
    async with running(agent_with()) as talk:
        with limited() as warnings:
            for text in ("one", "two", "three"):
                push = talk.realtime.hold()
                talk.text_turn(text)
                await idle()
                if not push.entered.is_set():
                    raise LostUpdate(f"The turn {text!r} was never sent.")
                push.pending.clear()
                await pass_the_limit()
            await talk.text_turn("four")
            await talk.expect('user "one"', 'user "two"', 'user "three"', 'user "four"')
            assert len(warnings) == 3


@frozen
async def test_late_acknowledgement_harms_nobody() -> None:
    async with running(agent_with()) as talk:
        with limited():
            push = talk.realtime.hold()
            talk.text_turn("late")
            await push.entered.wait()
            await pass_the_limit()
            await acknowledge_during_the_next_turn(talk, push)
            await talk.expect('user "late"', HELLO, ordered=False)


@frozen
async def test_late_deletion_harms_nobody() -> None:
    async with running(agent_with()) as talk:
        with limited():
            unwanted = note("unwanted")
            await talk.replace(note("before"), unwanted)
            push = talk.realtime.hold()
            talk.replace(without=['user "unwanted"'])
            await push.entered.wait()
            await pass_the_limit()
            await acknowledge_during_the_next_turn(talk, push)
            await talk.expect('user "before"', HELLO, gone=[unwanted.id])


@needs(SHARES_SESSIONS)
@frozen
async def test_handoff_after_an_update_that_hangs() -> None:
    async with running(agent_with()) as talk:
        with limited():
            push = talk.realtime.hold()
            pending = talk.replace(note("A"))
            await push.entered.wait()
            talk.session.update_agent(agent_with())
            await pass_the_limit()
            type_hello(talk)
            await idle()
            check(talk.realtime, kept=[HELLO])
            push.release()
            await talk.expect(HELLO)
            with pytest.raises(Exception, match="not acknowledged"):
                await pending


@needs(SHARES_SESSIONS)
@frozen
async def test_history_of_an_agent_whose_session_start_hangs() -> None:
    async with running(agent_with()) as talk:
        with limited():
            await talk.replace(note("before"))
            agent = agent_with()
            context = talk.local
            context.items.append(note("handed over"))
            await agent.update_chat_ctx(context)
            push = talk.realtime.hold()
            talk.session.update_agent(agent)
            await push.entered.wait()
            push.pending.clear()
            await pass_the_limit()
            type_hello(talk)
            await talk.expect('user "before"', 'user "handed over"', HELLO)


@frozen
@pytest.mark.parametrize(
    "error", [None, ConnectionError("the line is dead")], ids=["and-ends", "and-fails"]
)
async def test_provider_that_ignores_being_cancelled(error: Exception | None) -> None:
    async with running(agent_with(), model=FakeRealtimeModel()) as talk:
        with limited():
            end = ignore_cancellation(talk, error)
            talk.text_turn("lost?")
            await pass_the_limit()
            talk.text_turn("hello")
            try:
                await talk.expect('user "lost?"', HELLO)
            finally:
                end.set()
            await idle()  # the loop would complain of a failure that nobody heard of


async def test_session_that_closes_with_an_update_that_hangs() -> None:
    async with running(agent_with()) as talk:
        with limited() as warnings:
            lock = talk.lock
            push = talk.realtime.hold()
            pending = talk.replace(note("A"))
            await push.entered.wait()
            waiting = talk.replace(note("B"))
            await idle()
            closing = asyncio.create_task(talk.session.aclose())
            for _ in (pending, waiting):  # elsewhere it is the engine's time that runs out
                await idle()
                advance(TIMEOUT)
            await closing
            await asyncio.gather(pending, waiting, return_exceptions=True)
            assert lock is None or not lock.locked()
            assert warnings == []
