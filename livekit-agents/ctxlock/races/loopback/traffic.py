"""What is on its way over the loopback device, counted at both ends; and the engine's clock."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["Traffic", "advance"]


class Traffic:
    """Counts what each end has sent and seen, so that the other can be waited for without sleeping.

    Counts belong to a connection: what is under way when that is cut never arrives.
    """

    def __init__(self) -> None:
        self._missing = 0
        self._balance: dict[tuple[str, object], int] = {}
        self._changed = asyncio.Event()

    @property
    def settled(self) -> bool:
        """Whether both ends have seen all, and nobody is about to connect."""
        return not self._missing and not any(self._balance.values())

    async def wait(self) -> None:
        """Returns when something has arrived, connected or ended."""
        if not self.settled:
            self._changed.clear()
            await self._changed.wait()

    def expect_connection(self) -> None:
        """Notes that an engine is about to connect."""
        self._missing += 1

    def connected(self) -> None:
        """Notes that one has."""
        self._missing -= 1
        self._changed.set()

    def requested(self, connection: object) -> None:
        """Notes that the engine has sent an event."""
        self._count("up", connection, 1)

    def arrived(self, connection: object) -> None:
        """Notes that the server has handled one."""
        self._count("up", connection, -1)

    def sent(self, connection: object) -> None:
        """Notes that the server has sent an event."""
        self._count("down", connection, 1)

    def seen(self, connection: object) -> None:
        """Notes that the engine is about to handle one."""
        self._count("down", connection, -1)

    def incoming(self, connection: object) -> int:
        """How many events are on their way to the server."""
        return self._balance.get(("up", connection), 0)

    def ended(self, connection: object) -> None:
        """Forgets what was under way on a connection."""
        for direction in ("up", "down"):
            self._balance.pop((direction, connection), None)
        self._changed.set()

    def _count(self, direction: str, connection: object, change: int) -> None:
        key = (direction, connection)
        self._balance[key] = self._balance.get(key, 0) + change
        self._changed.set()


def advance(seconds: float) -> None:
    """Sets the event loop's clock forward, so that timers end that nobody wants to wait for."""
    loop: Any = asyncio.get_running_loop()
    clock = loop.time
    loop.time = lambda: clock() + seconds
