"""Who asked for an update, and the locks that updates wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from .harness import lock_of
from .watching import LOCK

__all__ = ["Clients", "locks_of"]

_OWN = "realtime "
"""How the names of the tasks begin in which the scope `full` makes an update for its client."""


def locks_of(activity: Any) -> Iterator[tuple[str, asyncio.Lock]]:
    """The locks around an activity's updates, by name, wherever its build has them."""
    yield from ((name, v) for name, v in vars(activity).items() if name.startswith(LOCK))
    if hasattr(activity, "_rt_context") and (lock := lock_of(activity)) is not None:
        yield "realtime context", lock


class Clients:
    """Tells which task asked for what another one does."""

    def __init__(self) -> None:
        self._creators: dict[asyncio.Task[Any], asyncio.Task[Any] | None] = {}

    def note(self, task: asyncio.Task[Any]) -> None:
        """Notes who made a task; to be called where that is done."""
        self._creators[task] = asyncio.current_task(task.get_loop())

    def of(self, task: asyncio.Task[Any] | None) -> asyncio.Task[Any] | None:
        """Whom the task works for: itself, unless it makes an update for a client.

        Returns:
            None if its client is done, or is no task.
        """
        creator = self._creators.get(task) if task is not None else None
        if creator is not None and creator.get_name().startswith(_OWN):
            task = creator
        if task is not None and task.get_name().startswith(_OWN):
            task = self._creators.get(task)
        return None if task is None or task.done() else task

    def first_waiting(
        self, tasks: Sequence[asyncio.Task[Any]], locks: Sequence[asyncio.Lock]
    ) -> asyncio.Task[Any] | None:
        """Whom the first of the tasks works for that waits for one of the locks, if one does."""
        waited = [waiter for lock in locks for waiter in lock._waiters or ()]
        for task in tasks:
            if any(getattr(task, "_fut_waiter", None) is waiter for waiter in waited):
                return self.of(task)
        return None
