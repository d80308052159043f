"""A typed message: once sent it is recorded, whatever becomes of the task that sent it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from _realtime_support import (
    BEYOND_THE_LOCK,
    CATCHES_FAILED_UPDATES,
    TELLS_OF_ITEMS,
    closed_by_full,
    fails_on_stock,
    needs,
)

from ctxlock.races.harness import Harness, idle, running
from ctxlock.races.loopback.traffic import advance
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import LostUpdate, name_items
from livekit.agents.voice import speech_handle

pytestmark = needs(BEYOND_THE_LOCK)

HELLO = 'user "hello"'
PATIENCE = 0.5  # of an interruption; far less than that of a provider's engine

interrupted = closed_by_full("the interruption's time runs out while the message waits or is sent")


def assert_known(talk: Harness, *names: str) -> None:
    """Both the agent and the session's history have these, once each.

    Raises:
        LostUpdate: If one of them has not.
    """
    for whose, items in (("agent", talk.local.items), ("history", talk.session.history.items)):
        known = name_items(items)
        for name in names:
            if known.count(name) != 1:
                raise LostUpdate(f"The {whose} has {name} {known.count(name)} times, in {known}.")


async def cancel_by_interrupting(talk: Harness, speech: Any) -> None:
    """Interrupts a speech and lets the time pass after which its tasks are cancelled."""
    speech.interrupt()
    await idle()
    advance(PATIENCE)
    await idle()


@contextmanager
def impatient() -> Iterator[None]:
    """Has the time of interruptions run out before any engine's does."""
    before, speech_handle.INTERRUPTION_TIMEOUT = speech_handle.INTERRUPTION_TIMEOUT, PATIENCE
    try:
        yield
    finally:
        speech_handle.INTERRUPTION_TIMEOUT = before


@closed_by_full("the agent gets it only after its push returns")
async def test_agent_has_it_as_soon_as_it_is_sent() -> None:
    async with running(agent_with()) as talk:
        push = talk.realtime.hold()
        talk.text_turn("hello")
        await push.entered.wait()
        if HELLO not in name_items(talk.local.items):
            raise LostUpdate(f"The agent lacks {HELLO}, which has been sent.")
        push.release()
        await talk.expect(HELLO)
        assert_known(talk, HELLO)


@fails_on_stock(before="1.8.9")
async def test_agent_has_it_no_earlier() -> None:
    async with running(agent_with()) as talk:
        push = talk.realtime.hold()
        talk.replace(note("A"))
        await push.entered.wait()
        talk.text_turn("hello")
        await idle()
        assert HELLO not in name_items(talk.local.items)
        push.release()
        await talk.expect('user "A"', HELLO)
        assert_known(talk, HELLO)


@interrupted
async def test_interrupted_while_it_waits() -> None:
    with impatient():
        async with running(agent_with()) as talk:
            push = talk.realtime.hold()
            talk.replace(note("A"))
            await push.entered.wait()
            speech = talk.text_turn("hello")
            await idle()
            await cancel_by_interrupting(talk, speech)
            push.release()
            await talk.expect('user "A"', HELLO)
            assert_known(talk, HELLO)


@interrupted
async def test_interrupted_while_it_is_sent() -> None:
    with impatient():
        async with running(agent_with()) as talk:
            push = talk.realtime.hold()
            speech = talk.text_turn("hello")
            await push.entered.wait()
            await cancel_by_interrupting(talk, speech)
            push.release()
            await talk.expect(HELLO)
            assert_known(talk, HELLO)


@interrupted
async def test_next_message_after_an_interrupted_one() -> None:
    with impatient():
        async with running(agent_with()) as talk:
            push = talk.realtime.hold()
            speech = talk.text_turn("hello")
            await push.entered.wait()
            await cancel_by_interrupting(talk, speech)
            talk.text_turn("are you there?")
            await idle()
            push.release()
            await talk.expect(HELLO, 'user "are you there?"')
            assert_known(talk, HELLO, 'user "are you there?"')


@interrupted
async def test_replacement_after_an_interrupted_message() -> None:
    with impatient():
        async with running(agent_with()) as talk:
            await talk.replace(note("before"))
            push = talk.realtime.hold()
            speech = talk.text_turn("hello")
            await push.entered.wait()
            await cancel_by_interrupting(talk, speech)
            talk.replace(note("A"))
            await idle()
            push.release()
            await talk.expect('user "before"', HELLO, 'user "A"')


@needs(CATCHES_FAILED_UPDATES)
@closed_by_full("what was not acknowledged in time is with the agent alone")
async def test_next_writer_sends_again_what_was_never_acknowledged() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        push = talk.realtime.hold()
        talk.text_turn("hello")
        await push.entered.wait()
        push.time_out(lost=True)
        await idle()
        assert_known(talk, HELLO)
        await talk.text_turn("are you there?")
        await talk.expect('user "before"', HELLO, 'user "are you there?"')
        assert_known(talk, HELLO, 'user "are you there?"')


@closed_by_full("what was not acknowledged in time is with the agent alone")
async def test_two_that_were_never_acknowledged_go_along_with_the_third() -> None:
    async with running(agent_with()) as talk:
        for text in ("one", "two"):
            push = talk.realtime.hold()
            talk.text_turn(text)
            await push.entered.wait()
            push.time_out(lost=True)
            await idle()
        await talk.text_turn("three")
        await talk.expect('user "one"', 'user "two"', 'user "three"')


@needs(CATCHES_FAILED_UPDATES)
async def test_late_acknowledgement_before_the_next_writer() -> None:
    async with running(agent_with()) as talk:
        push = talk.realtime.hold()
        talk.text_turn("hello")
        await push.entered.wait()
        push.time_out()
        await idle()
        push.release()
        await talk.expect(HELLO)
        await talk.text_turn("are you there?")
        await talk.expect(HELLO, 'user "are you there?"')
        assert_known(talk, HELLO, 'user "are you there?"')


async def test_late_acknowledgement_during_the_next_writer() -> None:
    async with running(agent_with()) as talk:
        push = talk.realtime.hold()
        talk.text_turn("hello")
        await push.entered.wait()
        push.time_out()
        await idle()
        following = talk.realtime.hold()
        talk.text_turn("are you there?")
        await following.entered.wait()
        push.release()
        await idle()
        following.release()
        await talk.expect(HELLO, 'user "are you there?"', ordered=False)


@needs(TELLS_OF_ITEMS)
@closed_by_full("a late acknowledgement brings back what was taken out meanwhile")
async def test_late_acknowledgement_of_a_message_that_was_removed() -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        push = talk.realtime.hold()
        talk.text_turn("hello")
        await push.entered.wait()
        push.time_out()
        await idle()
        await talk.replace(without=[HELLO])
        push.release()
        await talk.expect('user "before"', gone=[item.id for item in push.creates])
