"""A virtual clock: an event loop whose time passes only when nothing else is left to do.

Both ends of each connection live in one process and one loop. When no callback is ready, and no
socket has anything to read, nothing is on its way either: then the loop's time jumps to the next
timer. So ``await asyncio.sleep(5)`` means "until all that happens within 5 s has happened", costs
next to nothing, and gives the same order each time.

Call `install` before livekit.agents is imported, whose items take hold of ``time.time``.
"""

from __future__ import annotations

import asyncio
import itertools
import selectors
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

__all__ = ["Counted", "LabLoop", "install"]

_GRACE = 0.001
"""Seconds of real silence on all sockets after which nothing is on its way over loopback."""

_EPOCH = 1_700_000_000.0


class _Selector(selectors.DefaultSelector):
    """Lets the loop's time jump instead of waiting for it."""

    loop: LabLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As in the base class, but what is waited for is the next timer of a virtual clock."""
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        while True:
            if found := super().select(_GRACE):
                return found
            if self.loop.threads:
                continue  # what a thread does takes real time
            if timeout is None:
                return super().select(None)  # a watchdog ends this
            self.loop.pass_time(timeout)
            return []


class Counted(Coroutine[Any, Any, Any]):
    """A task's coroutine, which counts how often the task has run on.

    Unlike the loop's rounds, that does not depend on how much a socket has to read at a time: one
    ``sleep(0)`` more is one step more, whatever the network does.

    Attributes:
        inner: The coroutine itself.
        steps: How often it was resumed.
    """

    def __init__(self, inner: Coroutine[Any, Any, Any]) -> None:
        self.inner = inner
        self.steps = 0
        self.__name__ = getattr(inner, "__name__", type(inner).__name__)
        self.__qualname__ = getattr(inner, "__qualname__", type(inner).__qualname__)

    def send(self, value: Any) -> Any:
        """Runs it on."""
        self.steps += 1
        return self.inner.send(value)

    def throw(self, *given: Any) -> Any:
        """Runs it on with an exception."""
        self.steps += 1
        return self.inner.throw(*given)

    def close(self) -> None:
        """Ends it."""
        self.inner.close()

    def __await__(self) -> Any:
        return self.inner.__await__()


def _counting(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(Counted(work), loop=loop, **options)


class LabLoop(asyncio.SelectorEventLoop):
    """An event loop with a virtual clock.

    Attributes:
        threads: How many jobs other threads are at work on.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self.threads = 0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)
        self.set_task_factory(_counting)

    def time(self) -> float:
        """The virtual time, in seconds."""
        return self._now

    def pass_time(self, seconds: float) -> None:
        """Has it be that much later."""
        self._now += seconds

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        """As in the base class; the clock stands still until the job is done."""
        self.threads += 1
        future = super().run_in_executor(executor, func, *args)

        def done(_: Future[Any] | asyncio.Future[Any]) -> None:
            self.threads -= 1

        future.add_done_callback(done)
        return future


_ticks = itertools.count(1)


def _time() -> float:
    loop = asyncio._get_running_loop()
    now = loop.time() if isinstance(loop, LabLoop) else 0.0
    return _EPOCH + now + next(_ticks) * 1e-6


def install() -> None:
    """Has ``time.time()`` follow the running loop; a later call always returns a later time."""
    time.time = _time
