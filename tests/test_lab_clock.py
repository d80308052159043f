from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Coroutine
from typing import Any

from lab.clock import Counted, LabLoop


def run(work: Coroutine[Any, Any, Any]) -> Any:
    loop = LabLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


def test_time_passes_when_nothing_is_left_to_do() -> None:
    async def work() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert run(work()) == 3600.0


def test_timers_fire_in_their_order() -> None:
    said = []

    async def say(after: float) -> None:
        await asyncio.sleep(after)
        said.append(after)

    async def work() -> None:
        await asyncio.gather(*(say(after) for after in (0.3, 0.1, 0.2)))

    run(work())
    assert said == [0.1, 0.2, 0.3]


def test_what_is_on_its_way_arrives_before_the_next_timer() -> None:
    async def work() -> list[str]:
        loop = asyncio.get_running_loop()
        said = []
        left, right = socket.socketpair()
        left.setblocking(False)
        right.setblocking(False)

        async def there_and_back() -> None:
            for _ in range(50):
                await loop.sock_sendall(left, b"x")
                await loop.sock_recv(right, 1)
            said.append("arrived")

        async def timer() -> None:
            await asyncio.sleep(1e-6)
            said.append("timer")

        await asyncio.gather(there_and_back(), timer())
        left.close()
        right.close()
        return said

    assert run(work()) == ["arrived", "timer"]


def test_the_clock_stands_still_while_a_thread_is_at_work() -> None:
    async def work() -> list[str]:
        loop = asyncio.get_running_loop()
        said: list[str] = []

        async def thread() -> None:
            await loop.run_in_executor(None, time.sleep, 0.05)
            said.append("thread")

        async def timer() -> None:
            await asyncio.sleep(0.001)
            said.append("timer")

        await asyncio.gather(thread(), timer())
        return said

    assert run(work()) == ["thread", "timer"]


def test_a_step_of_a_task_is_counted_and_reading_from_a_socket_is_one() -> None:
    async def steps(more: int) -> int:
        loop = asyncio.get_running_loop()
        left, right = socket.socketpair()
        right.setblocking(False)
        loop.call_later(1, left.send, b"x")
        await loop.sock_recv(right, 1)
        for _ in range(more):
            await asyncio.sleep(0)
        left.close()
        right.close()
        task = asyncio.current_task()
        assert task is not None
        work = task.get_coro()
        assert isinstance(work, Counted)
        return work.steps

    assert [run(steps(more)) for more in (0, 1, 2)] == [2, 3, 4]


def test_a_task_fails_and_is_cancelled_as_any_other() -> None:
    async def fails() -> None:
        raise ValueError("so it is")

    async def waits() -> str:
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            return "cancelled"
        return "not"

    async def work() -> tuple[Any, Any]:
        failing, waiting = asyncio.create_task(fails()), asyncio.create_task(waits())
        await asyncio.sleep(1)
        waiting.cancel()
        return (await asyncio.gather(failing, waiting, return_exceptions=True))[0], await waiting

    failed, said = run(work())
    assert isinstance(failed, ValueError)
    assert said == "cancelled"
