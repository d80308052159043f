"""The lock of the scope `full` by itself: whose turn it is, and who has waited for long enough.

No session is needed for that. Time passes only when a test says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from added_module import added_module
from hypothesis import given, strategies as st

from ctxlock.explorer.clock import VirtualLoop

full: Any = added_module()
LIMIT: float = full.HOLD_LIMIT


class Line:
    """Tasks that take turns; each has its turn until it is told to leave.

    What the tests do takes effect when they look: all that is done before is done in one step.
    """

    def __init__(self, loop: VirtualLoop) -> None:
        self.turns = full.Turns()
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._loop = loop
        self._told: dict[str, asyncio.Event] = {}
        self._entered: list[str] = []
        self._inside: list[str] = []

    @property
    def entered(self) -> str:
        """Who has had a turn so far, in order."""
        self._loop.drain()
        return "".join(self._entered)

    @property
    def inside(self) -> str:
        """Who is inside, whether it is its turn or not any more."""
        self._loop.drain()
        return "".join(self._inside)

    def ask(self, names: str) -> None:
        for name in names:
            self._told[name] = asyncio.Event()
            self.tasks[name] = self._loop.create_task(self._take_a_turn(name))

    def leave(self, names: str) -> None:
        for name in names:
            self._told[name].set()

    def cancel(self, names: str) -> None:
        for name in names:
            self.tasks[name].cancel()

    def do(self, what: Callable[[Any], object], whom: object) -> None:
        """Does something in the loop, in front of whatever comes of it."""
        self._loop.call_soon(what, whom)

    def wait_until(self, time: float) -> None:
        """Lets time pass, and what is due until then happen."""
        self._loop.drain()
        while (due := self._loop.next_limit()) is not None and due <= time:
            self._loop.pass_time(due)
            self._loop.drain()
        self._loop.pass_time(time)

    async def _take_a_turn(self, name: str) -> None:
        await self.turns.acquire(full.this_task(), (f"of {name}", 7))
        self._entered.append(name)
        self._inside.append(name)
        try:
            await self._told[name].wait()
        finally:
            self._inside.remove(name)
            self.turns.release(full.this_task())


@contextmanager
def new_line() -> Iterator[Line]:
    loop = VirtualLoop()
    complaints: list[str] = []
    loop.set_exception_handler(lambda _, context: complaints.append(str(context)))
    line = Line(loop)
    yield line
    line.cancel("".join(line.tasks))
    loop.drain()
    loop.close()
    assert not complaints


@pytest.fixture
def line() -> Iterator[Line]:
    with new_line() as line:
        yield line


def logged(caplog: pytest.LogCaptureFixture, level: int) -> list[tuple[object, ...]]:
    """The structured fields of what was logged."""
    fields = ("site", "waited_for", "seconds")
    return [
        tuple(vars(record)[field] for field in fields if field in vars(record))
        for record in caplog.records
        if record.levelno == level
    ]


def take(turns: Any, task: object) -> None:
    """Takes a turn in one step, and without a loop.

    Raises:
        AssertionError: If it has to wait.
    """
    with pytest.raises(StopIteration):
        turns.acquire(task, ("here", 1)).send(None)


class TestTaking:
    def test_a_free_one_is_taken_in_one_step(self) -> None:
        turns, task = full.Turns(), object()
        assert not turns.locked()
        take(turns, task)
        assert turns.locked()
        turns.release(task)
        assert not turns.locked()

    def test_its_holder_takes_it_again_and_lets_go_as_often(self) -> None:
        turns, task = full.Turns(), object()
        for _ in range(3):
            take(turns, task)
        for _ in range(2):
            turns.release(task)
            assert turns.locked()
        turns.release(task)
        assert not turns.locked()

    def test_a_task_that_the_holder_has_started_waits(self, line: Line) -> None:
        async def hold_and_start_another() -> None:
            await line.turns.acquire(full.this_task(), ("outside", 1))
            line.ask("a")  # it inherits the context, and is another task all the same
            await asyncio.sleep(0)
            await line.turns.acquire(full.this_task(), ("inside", 2))
            line.turns.release(full.this_task())
            assert not line._entered
            line.turns.release(full.this_task())

        holder = line._loop.create_task(hold_and_start_another())
        assert line.entered == "a"
        holder.result()

    def test_in_the_order_in_which_they_asked(self, line: Line) -> None:
        line.ask("abc")
        assert line.entered == "a"
        line.leave("c")
        assert line.entered == "a"
        line.leave("a")
        assert line.entered == "ab"
        line.leave("b")
        assert line.entered == "abc"
        assert not line.turns.locked()

    def test_nobody_overtakes_whose_turn_it_is_about_to_be(self, line: Line) -> None:
        line.ask("ab")
        assert line.entered == "a"
        line.leave("a")
        line.ask("c")  # before b runs
        assert line.entered == "ab"

    def test_it_is_somebody_elses_to_release(self, line: Line) -> None:
        line.ask("ab")
        assert line.entered == "a"
        line.turns.release(line.tasks["b"])
        assert line.entered == "a"


class TestCancelling:
    def test_a_holder_lets_go_at_once(self, line: Line) -> None:
        line.ask("ab")
        assert line.entered == "a"
        line.cancel("a")
        assert line.entered == "ab"
        assert line.inside == "b"

    @pytest.mark.parametrize(
        ("cancelled", "rest"),
        [("b", "acd"), ("c", "abd"), ("d", "abc"), ("bc", "ad"), ("bcd", "a")],
    )
    def test_who_waits_does_not_come_in(self, line: Line, cancelled: str, rest: str) -> None:
        line.ask("abcd")
        assert line.entered == "a"
        line.cancel(cancelled)
        line.leave("abcd")
        assert line.entered == rest
        assert not line.turns.locked()

    @pytest.mark.parametrize("first", ["its turn comes", "it is cancelled"])
    def test_both_in_one_step(self, line: Line, first: str) -> None:
        take(line.turns, line)
        line.ask("bc")
        assert line.entered == ""
        if first == "it is cancelled":
            line.do(line.cancel, "b")
        line.do(line.turns.release, line)
        if first == "its turn comes":
            line.do(line.cancel, "b")
        assert line.entered == "c"

    def test_somebody_who_has_asked_and_not_begun(self, line: Line) -> None:
        line.ask("ab")
        line.cancel("a")
        assert line.entered == "b"


class TestLimit:
    def test_who_is_first_in_line_waits_no_longer(self, line: Line) -> None:
        line.ask("ab")
        line.wait_until(LIMIT - 0.1)
        assert line.entered == "a"
        line.wait_until(LIMIT)
        assert line.entered == "ab"
        assert line.inside == "ab"  # the holder is left alone

    def test_the_time_is_from_when_one_is_first(self, line: Line) -> None:
        line.ask("ab")
        line.wait_until(5.0)
        line.ask("c")
        line.wait_until(10.0)
        line.leave("a")  # b has waited for ten seconds, and c is first from now on
        assert line.entered == "ab"
        line.wait_until(10.0 + LIMIT - 0.1)
        assert line.entered == "ab"
        line.wait_until(10.0 + LIMIT)
        assert line.entered == "abc"

    def test_each_has_its_whole_time(self, line: Line) -> None:
        line.ask("abc")
        line.wait_until(2 * LIMIT - 0.1)
        assert line.entered == "ab"
        line.wait_until(2 * LIMIT)
        assert line.entered == "abc"

    def test_who_becomes_first_as_another_gives_up_has_its_whole_time(self, line: Line) -> None:
        line.ask("abc")
        line.wait_until(10.0)
        line.cancel("b")
        line.wait_until(10.0 + LIMIT - 0.1)
        assert line.entered == "a"
        line.wait_until(10.0 + LIMIT)
        assert line.entered == "ac"

    def test_another_that_gives_up_takes_no_time_from_the_first(self, line: Line) -> None:
        line.ask("abc")
        line.wait_until(10.0)
        line.cancel("c")
        line.wait_until(LIMIT)
        assert line.entered == "ab"

    def test_a_late_holder_lets_nobody_in(self, line: Line) -> None:
        line.ask("abc")
        line.wait_until(LIMIT)
        assert line.inside == "ab"
        line.leave("a")
        assert line.entered == "ab"
        assert line.turns.locked()
        line.leave("b")
        assert line.entered == "abc"

    def test_a_late_holder_takes_its_turn_like_others(self, line: Line) -> None:
        leave = asyncio.Event()

        async def hold_for_long() -> None:
            await line.turns.acquire(full.this_task(), ("late", 1))
            await leave.wait()
            await line.turns.acquire(full.this_task(), ("again", 2))
            line._entered.append("!")
            line.turns.release(full.this_task())
            line.turns.release(full.this_task())

        line._loop.create_task(hold_for_long())
        line.ask("ab")
        line.wait_until(LIMIT)
        leave.set()
        assert line.entered == "a"
        line.leave("ab")
        assert line.entered == "ab!"
        assert not line.turns.locked()

    def test_a_late_holder_is_late_until_its_outermost_release(self, line: Line) -> None:
        leave = asyncio.Event()

        async def hold_twice() -> None:
            task = full.this_task()
            await line.turns.acquire(task, ("outside", 1))
            await line.turns.acquire(task, ("inside", 2))
            await leave.wait()
            line.turns.release(task)
            line._entered.append("!" if line.turns.holds(task) else "?")
            line.turns.release(task)
            line._entered.append("!" if line.turns.holds(task) else "?")

        line._loop.create_task(hold_twice())
        line.ask("a")
        line.wait_until(LIMIT)
        leave.set()
        assert line.entered == "a!?"

    def test_nobody_in_line_and_no_timer(self, line: Line) -> None:
        line.ask("ab")
        assert line.entered == "a"
        assert line._loop.next_limit() == LIMIT
        line.cancel("b")
        assert line.entered == "a"
        assert line._loop.next_limit() is None
        line.ask("c")
        assert line.entered == "a"
        assert line._loop.next_limit() == LIMIT
        line.leave("a")
        assert line.entered == "ac"
        assert line._loop.next_limit() is None

    def test_who_is_cancelled_just_before_does_not_come_in(
        self, line: Line, caplog: pytest.LogCaptureFixture
    ) -> None:
        line.ask("abc")
        assert line.entered == "a"
        line._loop.call_at(LIMIT - 1.0, line.cancel, "b")
        line._loop.pass_time(LIMIT)  # so that both are due in one step
        assert line.entered == "a"
        line.wait_until(2 * LIMIT - 0.1)
        assert line.entered == "a"
        assert logged(caplog, logging.WARNING) == []
        line.wait_until(2 * LIMIT)
        assert line.entered == "ac"

    def test_who_is_cancelled_just_after_passes_it_on(self, line: Line) -> None:
        line.ask("abc")
        assert line.entered == "a"
        line._loop.call_at(LIMIT + 1.0, line.cancel, "b")
        line._loop.pass_time(LIMIT + 1.0)
        assert line.entered == "ac"


class TestClosing:
    def test_everybody_goes_on_in_order(self, line: Line) -> None:
        line.ask("abc")
        assert line.entered == "a"
        line.do(full.Turns.close, line.turns)
        assert line.entered == "abc"
        line.ask("d")
        assert line.entered == "abcd"
        line.leave("abcd")
        assert line.inside == ""
        assert not line.turns.locked()
        assert line._loop.next_limit() is None

    def test_nobody_waits_afterwards(self, line: Line) -> None:
        line.turns.close()
        line.ask("ab")
        assert line.entered == "ab"
        assert not line.turns.locked()


class TestTelling:
    def test_who_has_waited_says_so_once(
        self, line: Line, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "livekit.agents")
        line.ask("ab")
        line.wait_until(3.0)
        line.ask("c")
        line.leave("a")
        line.wait_until(5.0)
        line.leave("bc")
        assert line.entered == "abc"
        assert logged(caplog, logging.DEBUG) == [
            ("of b, line 7", "of a, line 7", 3.0),
            ("of c, line 7", "of a, line 7", 2.0),
        ]
        assert logged(caplog, logging.WARNING) == []

    def test_who_has_not_waited_or_gives_up_says_nothing(
        self, line: Line, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "livekit.agents")
        line.ask("ab")
        assert line.entered == "a"
        line.cancel("b")
        line.leave("a")
        line.wait_until(LIMIT)
        assert [record.name for record in caplog.records if record.name != "asyncio"] == []

    def test_who_goes_on_beside_the_holder_warns_once(
        self, line: Line, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "livekit.agents")
        line.ask("ab")
        line.wait_until(10 * LIMIT)
        line.leave("a")
        assert line.entered == "ab"
        assert logged(caplog, logging.WARNING) == [("of b, line 7", "of a, line 7")]
        assert logged(caplog, logging.DEBUG) == [("of b, line 7", "of a, line 7", LIMIT)]
        [warning] = [r for r in caplog.records if r.levelno == logging.WARNING]
        assert f"not acknowledged in {LIMIT:g} seconds" in warning.getMessage()


def test_who_is_thrown_away_after_the_loop_has_ended_says_nothing() -> None:
    lock = full.RealtimeContextLock(SimpleNamespace(_rt_session=None))

    async def hold() -> None:
        async with lock:
            await asyncio.Event().wait()

    loop, thrown_away = VirtualLoop(), hold()
    task = loop.create_task(thrown_away)
    loop.drain()
    loop.close()
    thrown_away.close()
    assert lock.locked()
    task._log_destroy_pending = False  # type: ignore[attr-defined]


NAMES = "abcdefgh"
STEPS = st.tuples(st.sampled_from(["leave", "cancel", "look"]), st.sampled_from(NAMES))


@given(st.lists(STEPS, max_size=24), st.integers(1, len(NAMES)))
def test_whatever_happens(steps: Sequence[tuple[str, str]], many: int) -> None:
    """One at a time, in order; who is not cancelled comes in, and in the end it is free."""
    names = NAMES[:many]
    with new_line() as line:
        line.ask(names)
        cancelled = set()
        for step, name in steps:
            if step == "look":
                assert len(line.inside) <= 1
                assert line.turns.locked() or not line.turns._waiters
            elif name in names:
                getattr(line, step)(name)
                cancelled |= {name} if step == "cancel" else set()
        line.leave(names)
        came = line.entered
        assert list(came) == sorted(came)
        assert set(names) - cancelled <= set(came)
        assert not line.turns.locked() and not line.turns._waiters
        assert line._loop.next_limit() is None
