"""A loop on the virtual clock that counts its steps, and knows who made which task."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any
from weakref import WeakKeyDictionary

from ctxlock.explorer.clock import VirtualLoop

__all__ = ["CountingLoop"]

PATIENCE = 60.0
"""Seconds for which a step is waited for; longer than any update or limit of the lab."""

BUDGET = 3000
"""Iterations of the loop after which a step counts as one that never comes to rest."""


class CountingLoop(VirtualLoop):
    """Runs until nothing is left to do, lets time pass where that helps, and counts.

    Attributes:
        steps: Iterations of the loop so far.
        tasks_made: Tasks created so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.tasks_made = 0
        self._budget = float("inf")
        self._makers: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()
        self.set_task_factory(self._make_task)

    def settle(self) -> bool:
        """Runs what can run, and has time pass while a timer is due within `PATIENCE`.

        Returns:
            Whether it has come to rest within `BUDGET`.
        """
        limit, self._budget = self.time() + PATIENCE, self.steps + BUDGET
        while self.steps < self._budget:
            self.drain()
            due = self.next_limit()
            if due is None or due > limit:
                return True
            self.pass_time(due)
        return False

    def lineage(self, task: asyncio.Task[Any] | None) -> str:
        """Names a task by its coroutine, and by that of the task which made it."""
        if task is None:
            return "no task"
        made_by = self._makers.get(task)
        own = task.get_coro().__qualname__  # type: ignore[union-attr]
        return own if made_by is None else f"{own} made by {made_by}"

    def timers(self) -> list[str]:
        """How many seconds from now each timer is due."""
        pending: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        due = sorted(timer.when() - self.time() for timer in pending if not timer.cancelled())
        return [f"a timer of {seconds:.2f}s" for seconds in due]

    def _is_busy(self) -> bool:
        return self.steps < self._budget and super()._is_busy()

    def _run_once(self) -> None:
        self.steps += 1
        super()._run_once()  # type: ignore[misc]

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        **options: Any,
    ) -> asyncio.Task[Any]:
        self.tasks_made += 1
        try:
            maker = asyncio.current_task(loop)
        except RuntimeError:
            maker = None
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
        if maker is not None:
            self._makers[task] = maker.get_coro().__qualname__  # type: ignore[union-attr]
        return task
