"""An update that takes long, or for ever: it is left alone, and who waits goes on after 15 s.

The clock is virtual. The provider's client makes one update at a time, as most do, or several.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest
from _realtime_support import (
    ANSWERS_WHEN_INTERRUPTED,
    BEYOND_THE_LOCK,
    LOCK_ALONE,
    SHARES_SESSIONS,
    TELLS_OF_ITEMS,
    VERSION,
    closed_by_full,
    fails_on_stock,
    needs,
    waits,
)
from silent_provider import SilentModel
from virtual_time import now, timed, until

from ctxlock.races.fake_realtime import FakeRealtimeSession
from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.push import Push
from ctxlock.races.releases import Releases, has_full_scope, is_patched
from ctxlock.races.scenario import UNTIL_THE_LOCK, agent_with, note
from ctxlock.races.verdict import LostUpdate, check

pytestmark = needs(BEYOND_THE_LOCK)

LIMIT, SLOW = 15.0, 17.0
A, BEFORE, HELLO = 'user "A"', 'user "before"', 'user "hello"'
OUTPUT = "function_call_output of lookup"
SPOKEN = 'assistant "hello"'

STOCK = not is_patched(VERSION)
UPSTREAMS_OWN = STOCK and VERSION in Releases(UNTIL_THE_LOCK)
HELD_UP = "an update that is never acknowledged holds up all that come after it"

CUT_OFF = "an interruption's limit ends the task that waits with its output"

each_client = pytest.mark.parametrize(
    "several", [pytest.param(False, id="one-at-a-time"), pytest.param(True, id="several")]
)


class DeafSession(FakeRealtimeSession):
    """A provider that ends no update when its session is closed."""

    async def aclose(self) -> None:
        self.closed = True


@asynccontextmanager
async def talking(
    *tools: GatedTool, several: bool = False, kind: type[FakeRealtimeSession] = FakeRealtimeSession
) -> AsyncIterator[Harness]:
    """A session with a note in it, over a client that makes several updates at a time, or not."""
    async with running(agent_with(*tools), model=SilentModel(kind)) as talk:
        await talk.replace(note("before"))
        if several:
            realtime: Any = talk.realtime
            realtime.engine._lock = nullcontext()
        try:
            yield talk
        finally:
            for push in talk.realtime.pushes:
                push.release()


async def hold_up(talk: Harness, *, release_at: float | None = None) -> Push:
    """The application adds a note, and the provider takes its time, or for ever."""
    push = talk.realtime.hold()
    talk.replace(note("A"))
    await push.entered.wait()
    if release_at is not None:
        asyncio.get_running_loop().call_at(release_at, push.release)
    return push


def replies_of(talk: Harness) -> list[float]:
    """When the model is asked for a reply, from now on."""
    realtime: Any = talk.realtime
    generate, seconds = realtime.generate_reply, list[float]()

    def generate_reply(**options: Any) -> Any:
        seconds.append(now())
        return generate(**options)

    realtime.generate_reply = generate_reply
    return seconds


def function_of(site: str) -> str:
    return site.split(",")[0].removesuffix("_impl")


def logged(caplog: pytest.LogCaptureFixture, level: int) -> list[tuple[str, str]]:
    """What the lock has logged: the functions that waited, and those that they waited for."""
    return [
        (function_of(vars(record)["site"]), function_of(vars(record)["waited_for"]))
        for record in caplog.records
        if record.module == "_realtime_context" and record.levelno == level
    ]


def one_warning(waited: str, waited_for: str) -> list[tuple[str, str]]:
    """What is logged when somebody goes on beside another; elsewhere nobody does."""
    return [(waited, waited_for)] if has_full_scope() else []


async def _text_turn(talk: Harness, lookup: GatedTool) -> None:
    talk.text_turn("hello")


async def _replacement(talk: Harness, lookup: GatedTool) -> None:
    talk.replace(note("hello"))


async def _tool_output(talk: Harness, lookup: GatedTool) -> None:
    await talk.call(lookup)
    lookup.finish()


async def _interrupted_tool_output(talk: Harness, lookup: GatedTool) -> None:
    await talk.call_and_interrupt(lookup)
    lookup.finish()


async def _spoken_message(talk: Harness, lookup: GatedTool) -> None:
    talk.say("hello")


async def _session_start(talk: Harness, lookup: GatedTool) -> None:
    talk.hand_off(agent_with())


Update = Callable[[Harness, GatedTool], Awaitable[None]]
UPDATES: dict[Update, tuple[str, str, str]] = {
    _text_turn: ("1.0.0", HELLO, "_realtime_reply_task"),
    _replacement: ("1.0.0", HELLO, "update_chat_ctx"),
    _tool_output: ("1.0.0", OUTPUT, "_realtime_generation_task"),
    _interrupted_tool_output: (ANSWERS_WHEN_INTERRUPTED, OUTPUT, "_realtime_generation_task"),
    _spoken_message: (UNTIL_THE_LOCK, SPOKEN, "_tts_task"),
    _session_start: (SHARES_SESSIONS, "", "_start_session"),
}
"""Ways to update, since when there is each, what it adds, and in which function it is made."""

BARE = (_spoken_message, _session_start)
"""Those that upstream's own lock leaves out."""


def updates(*without: Update, frozen: bool = False) -> Iterator[object]:
    """Each with what it adds and where it is made.

    Args:
        without: Those to leave out.
        frozen: Whether the test is of what waits for ever, with any lock but that of `full`.
    """
    for update, (since, name, site) in UPDATES.items():
        marks = [needs(since)]
        if frozen:
            marks.append(waits(LOCK_ALONE or (UPSTREAMS_OWN and update not in BARE), HELD_UP))
        if update not in without:
            yield pytest.param(update, name, site, id=named(update), marks=marks)


def named(update: Update) -> str:
    return update.__name__.strip("_").replace("_", "-")


def behind_a_slow_one(*, that_removes: bool) -> Iterator[object]:
    """What may wait for a slow update, and whether the client makes several at a time."""
    for (update, (since, name, _)), several in itertools.product(UPDATES.items(), (False, True)):
        marks = [needs(since)]
        at_the_end = update in (_text_turn, _spoken_message)  # and not behind its call
        if update is _interrupted_tool_output:
            marks.append(waits(LOCK_ALONE or UPSTREAMS_OWN or (STOCK and not several), CUT_OFF))
        elif update is _spoken_message and not (that_removes or several):
            marks.append(closed_by_full("stock deletes; with the lock, its place is another"))
        elif not several or (that_removes and at_the_end):
            bare_until = None if update in BARE else UNTIL_THE_LOCK
            marks.append(fails_on_stock(before=bare_until))
        if update not in (_session_start, _replacement):
            case = f"{named(update)}-{'several' if several else 'one'}-at-a-time"
            yield pytest.param(update, name, several, id=case, marks=marks)


class TestSlow:
    """17 s, as Phonic may take until it is ready."""

    @each_client
    @timed
    async def test_update_succeeds(self, several: bool) -> None:
        async with talking(several=several) as talk:
            push = talk.realtime.hold()
            pending = talk.replace(note("A"))
            await push.entered.wait()
            await until(SLOW)
            assert not pending.done()
            push.release()
            await pending
            await talk.expect(BEFORE, A)

    @pytest.mark.parametrize(
        ("update", "name", "several"), list(behind_a_slow_one(that_removes=False))
    )
    @timed
    async def test_what_comes_after_it_does_not_delete_it(
        self, update: Update, name: str, several: bool
    ) -> None:
        lookup = GatedTool("lookup")
        async with talking(lookup, several=several) as talk:
            push = await hold_up(talk)
            await update(talk, lookup)
            await until(SLOW)
            push.release()
            await talk.expect(BEFORE, A, name, ordered=not several)

    @pytest.mark.parametrize(
        ("update", "name", "several"), list(behind_a_slow_one(that_removes=True))
    )
    @timed
    async def test_what_comes_after_it_does_not_bring_back_what_it_deletes(
        self, update: Update, name: str, several: bool
    ) -> None:
        lookup, unwanted = GatedTool("lookup"), note("unwanted")
        async with talking(lookup, several=several) as talk:
            await talk.replace(unwanted)
            push = talk.realtime.hold()
            talk.replace(without=['user "unwanted"'])
            await push.entered.wait()
            await update(talk, lookup)
            await until(SLOW)
            push.release()
            await talk.expect(BEFORE, name, gone=[unwanted.id])

    @needs(TELLS_OF_ITEMS)
    @each_client
    @pytest.mark.parametrize(("update", "name", "site"), list(updates(_session_start)))
    @timed
    async def test_replacement_after_it_keeps_what_it_adds(
        self, update: Update, name: str, site: str, several: bool
    ) -> None:
        lookup = GatedTool("lookup")
        async with talking(lookup, several=several) as talk:
            push = talk.realtime.hold()
            await update(talk, lookup)
            await push.entered.wait()
            talk.replace(note("A"))
            await until(SLOW)
            push.release()
            await talk.expect(BEFORE, name, A, ordered=False)


class TestNeverAcknowledged:
    @pytest.mark.parametrize(
        ("update", "name", "site"),
        list(updates(_interrupted_tool_output, frozen=True)),  # an interruption has its own limit
    )
    @timed
    async def test_replacement_goes_on_beside_it(
        self, update: Update, name: str, site: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        lookup = GatedTool("lookup")
        async with talking(lookup, several=True) as talk:
            push = talk.realtime.hold()
            await update(talk, lookup)
            await push.entered.wait()
            talk.replace(note("A"))
            await until(LIMIT - 1.0)
            assert not has_full_scope() or talk.realtime.pushes[-1] is push
            assert logged(caplog, logging.WARNING) == []
            await until(LIMIT)
            check(talk.realtime, kept=[A])
            assert not push.settled
            await until(10 * LIMIT)
            assert logged(caplog, logging.WARNING) == one_warning("update_chat_ctx", site)

    @pytest.mark.parametrize(
        ("update", "name", "site"),
        list(updates(_interrupted_tool_output, _session_start, frozen=True)),
    )
    @timed
    async def test_what_comes_after_it_goes_on_beside_it(
        self, update: Update, name: str, site: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        lookup = GatedTool("lookup")
        async with talking(lookup, several=True) as talk:
            await hold_up(talk)
            await update(talk, lookup)
            await until(LIMIT)
            check(talk.realtime, kept=[BEFORE, name])
            assert logged(caplog, logging.WARNING) == one_warning(site, "update_chat_ctx")

    @needs(SHARES_SESSIONS)
    @timed
    async def test_handoff_waits_as_a_whole(self) -> None:
        """On stock, and with the lock alone, each agent's updates have a lock of their own."""
        async with talking(several=True) as talk:
            given = list[float]()
            realtime: Any = talk.realtime
            update = realtime.update_instructions

            async def update_instructions(instructions: str) -> None:
                given.append(now())
                await update(instructions)

            realtime.update_instructions = update_instructions
            await hold_up(talk)
            talk.hand_off(agent_with())
            await until(LIMIT)
            assert given == [LIMIT if has_full_scope() else 0.0]
            await talk.text_turn("hello")
            check(talk.realtime, kept=[HELLO])

    @waits(LOCK_ALONE or UPSTREAMS_OWN, "whoever waits outlives the session")
    @timed
    async def test_session_that_closes(self, caplog: pytest.LogCaptureFixture) -> None:
        async with talking(several=True, kind=DeafSession) as talk:
            push, lock = await hold_up(talk), talk.lock
            waiting = talk.replace(note("B"))
            await idle()
            await talk.session.aclose()
            await until(2 * LIMIT)
            if not waiting.done():
                raise LostUpdate("What waits for the lock outlives the session.")
            assert logged(caplog, logging.WARNING) == []
            push.release()
            await idle()
            assert lock is None or not lock.locked()


class TestCallerThatGivesUp:
    """By `wait_for`, as on stock: the next turn is asked for when it is there."""

    @timed
    async def test_on_its_own_update(self) -> None:
        async with talking() as talk:
            replies, push = replies_of(talk), talk.realtime.hold()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(talk.replace(note("A")), 1.0)
            push.pending.clear()
            await talk.text_turn("hello")
            assert replies == [1.0]
            check(talk.realtime, kept=[BEFORE, HELLO])

    @fails_on_stock(before=UNTIL_THE_LOCK)
    @timed
    async def test_while_it_waits(self) -> None:
        async with talking() as talk:
            replies = replies_of(talk)
            await hold_up(talk, release_at=3.0)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(talk.replace(note("B")), 1.0)
            await talk.text_turn("hello")
            assert replies == [3.0]
            check(talk.realtime, kept=[BEFORE, A, HELLO])


@pytest.mark.skipif(not has_full_scope(), reason="only the scope full logs it")
class TestLogging:
    @timed
    async def test_update_that_had_to_wait_says_so_once(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "livekit.agents")
        async with talking() as talk:
            await hold_up(talk, release_at=3.0)
            await talk.text_turn("hello")
            await talk.expect(BEFORE, A, HELLO)
        assert logged(caplog, logging.DEBUG) == [("_realtime_reply_task", "update_chat_ctx")]
        [record] = [r for r in caplog.records if r.module == "_realtime_context"]
        assert vars(record)["seconds"] == 3.0

    @timed
    async def test_update_that_did_not_wait_says_nothing(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "livekit.agents")
        async with talking() as talk:
            await talk.text_turn("hello")
            await talk.replace(note("A"))
            await talk.expect(BEFORE, HELLO, A)
        assert [r for r in caplog.records if r.module == "_realtime_context"] == []
