"""For tests in which the time matters: it passes only when nothing else is left to do."""

from __future__ import annotations

import asyncio
import functools
import gc
from collections.abc import Callable, Coroutine
from typing import Any

from ctxlock.explorer.clock import VirtualLoop, virtual_clock
from ctxlock.races.harness import idle

__all__ = ["now", "timed", "until"]


def timed(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test from second 0 on, and fails it if the event loop complains."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        loop, complaints = VirtualLoop(), list[str]()
        loop.set_exception_handler(lambda _, context: complaints.append(str(context)))
        try:
            with virtual_clock():
                loop.complete(test(*args, **kwargs))
                gc.collect()  # a task's unretrieved exception is reported when the task goes
                loop.drain()
        finally:
            loop.close()
        assert not complaints, f"the event loop complained: {complaints}"

    return run


def now() -> float:
    """The second that it is."""
    return asyncio.get_running_loop().time()


async def until(second: float) -> None:
    """Lets the time pass, and has all happen that is due by then."""
    await asyncio.sleep(second - now())
    await idle()
