from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from ctxlock.explorer.clock import Stuck, VirtualLoop, virtual_clock


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.close()


def test_the_clock_only_counts() -> None:
    real = time.time()
    with virtual_clock():
        times = [time.time() for _ in range(3)]
    assert times == sorted(set(times)) and times[-1] < real
    with virtual_clock():
        assert [time.time() for _ in range(3)] == times
    assert time.time() >= real


def test_draining_leaves_timers_alone(loop: VirtualLoop) -> None:
    ran: list[str] = []
    loop.call_later(5, ran.append, "later")
    loop.call_soon(lambda: loop.call_soon(ran.append, "now"))
    loop.drain()
    assert ran == ["now"]


def test_completing_lets_time_pass(loop: VirtualLoop) -> None:
    started = time.monotonic()
    assert loop.complete(asyncio.sleep(3600, "slept")) == "slept"
    assert loop.time() == 3600
    assert time.monotonic() - started < 60


def test_what_never_ends_is_stuck(loop: VirtualLoop) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        loop.complete(wait())


def test_a_task_that_polls_counts_as_waiting(loop: VirtualLoop) -> None:
    done = False

    async def poll() -> None:
        while not done:
            await asyncio.sleep(0)

    task = loop.create_task(poll())
    loop.drain()
    assert not task.done()
    done = True
    loop.drain()
    assert task.done()
