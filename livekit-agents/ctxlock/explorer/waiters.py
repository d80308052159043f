"""The locks that updates wait for, and who waits for one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from ..races.instrumentation import LOCK

__all__ = ["first_waiting", "locks_of"]


def locks_of(activity: Any) -> Iterator[tuple[str, Any]]:
    """The locks around an activity's updates, by name."""
    yield from ((name, v) for name, v in vars(activity).items() if name.startswith(LOCK))


def first_waiting(
    tasks: Sequence[asyncio.Task[Any]], locks: Sequence[Any]
) -> asyncio.Task[Any] | None:
    """The first of the tasks that waits for one of the locks, if one does."""
    waited = [waiter for lock in locks for waiter in lock._waiters or ()]
    for task in tasks:
        if any(getattr(task, "_fut_waiter", None) is waiter for waiter in waited):
            return task
    return None
