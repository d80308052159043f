"""Virtual time: an event loop that never waits, and a wall clock that only counts.

Import this before livekit.agents, whose items take hold of ``time.time`` when it is imported.
Outside of a run on a `VirtualLoop` the clock is the real one.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["Stuck", "VirtualLoop", "virtual_clock"]

T = TypeVar("T")

_POLLING = 24
"""Rounds of the loop in which the same tasks run again and again, until they count as waiting."""

_PATIENCE = 200
"""How often a coroutine may have to be helped on before it counts as stuck."""

_real_time = time.time
_ticks: Iterator[int] | None = None


def _time() -> float:
    return _real_time() if _ticks is None else 1e9 + next(_ticks) / 1024


time.time = _time


@contextmanager
def virtual_clock() -> Iterator[None]:
    """Has ``time.time()`` count its calls, so that a later call always returns a later time."""
    global _ticks
    before, _ticks = _ticks, itertools.count()
    try:
        yield
    finally:
        _ticks = before


class Stuck(Exception):
    """A coroutine waits for what will never happen."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that is run by hand, until there is nothing left to do, and never sleeps."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__()

    def time(self) -> float:
        """The virtual time, which moves only when `complete` has nothing else to do."""
        return self._now

    def drain(self) -> None:
        """Runs all that can run; a task that polls counts as waiting after some rounds."""
        busy: object = None
        rounds = 0
        while self._is_busy():
            now = self._tasks_to_run()
            rounds = rounds + 1 if now and now == busy else 0
            if rounds == _POLLING:
                return
            busy = now
            self.stop()  # after one round
            self.run_forever()

    def next_limit(self) -> float | None:
        """When the next timer fires, if there is one."""
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return min((timer.when() for timer in timers if not timer.cancelled()), default=None)

    def pass_time(self, until: float) -> None:
        """Has it be a later time, at which what is due fires."""
        self._now = max(self._now, until)

    def complete(self, work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
        """Runs ``work`` to its end, and lets time pass when there is nothing else to do.

        Raises:
            Stuck: If it will never end.
        """
        task = work if isinstance(work, asyncio.Future) else self.create_task(work)
        for _ in range(_PATIENCE):
            self.drain()
            if task.done():
                return task.result()
            if not self._ready:  # type: ignore[attr-defined]
                if not self._scheduled:  # type: ignore[attr-defined]
                    break
                self._now = self._next_timer()
        task.cancel()
        self.drain()
        raise Stuck(f"{task} waits for what will never happen.")

    def _is_busy(self) -> bool:
        return bool(self._ready) or self._next_timer() <= self._now  # type: ignore[attr-defined]

    def _next_timer(self) -> float:
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return timers[0].when() if timers else float("inf")

    def _tasks_to_run(self) -> set[int]:
        handles: list[Any] = list(self._ready)  # type: ignore[attr-defined]
        return {id(getattr(handle._callback, "__self__", handle)) for handle in handles}
