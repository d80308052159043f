"""A typed message: once its push has begun it is recorded, whatever becomes of the task."""

from __future__ import annotations

from typing import Any

from _realtime_support import (
    BEYOND_THE_LOCK,
    CATCHES_FAILED_UPDATES,
    TELLS_OF_ITEMS,
    closed_by_full,
    fails_on_stock,
    needs,
)
from patience import PATIENCE, impatient

from ctxlock.races.harness import Harness, idle, running
from ctxlock.races.loopback.traffic import advance
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import LostUpdate, name_items

pytestmark = needs(BEYOND_THE_LOCK)

HELLO = 'user "hello"'

interrupted = closed_by_full("the interruption's time runs out while the message is sent")


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


@fails_on_stock(before="1.8.9")
async def test_agent_has_it_when_its_push_ends() -> None:
    async with running(agent_with()) as talk:
        first, second = talk.realtime.hold(), talk.realtime.hold()
        talk.replace(note("A"))
        await first.entered.wait()
        talk.text_turn("hello")
        await idle()
        first.release()
        await second.entered.wait()
        assert HELLO not in name_items(talk.local.items)
        second.release()
        await talk.expect('user "A"', HELLO)
        assert_known(talk, HELLO)


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
            await talk.expect('user "A"')
            assert HELLO not in name_items([*talk.realtime.server.items, *talk.local.items])


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
            push.release()  # it is late by now, so that the model has it in another place
            await talk.expect(HELLO, 'user "are you there?"', ordered=False)
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
async def test_what_was_never_acknowledged_goes_with_the_next_replacement_alone() -> None:
    async with running(agent_with()) as talk:
        for text in ("one", "two"):
            push = talk.realtime.hold()
            talk.text_turn(text)
            await push.entered.wait()
            push.time_out(lost=True)
            await idle()
        await talk.text_turn("three")
        assert name_items(talk.realtime.server.items) == ['user "three"']
        assert_known(talk, 'user "one"', 'user "two"', 'user "three"')
        await talk.replace(note("A"))
        await talk.expect('user "one"', 'user "two"', 'user "three"', 'user "A"')


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
@closed_by_full("the agent is told of what was taken out meanwhile, and records it again")
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
        await idle()
        if HELLO in name_items(talk.local.items):
            raise LostUpdate("The agent has again what was taken out.")
        await talk.replace(note("A"))
        await talk.expect('user "before"', 'user "A"', gone=[item.id for item in push.creates])
