"""A real session with some operations to overlap, and the steps that are open at each moment.

Every update is held until a step releases it, one item at a time, so that every point of
acknowledgement is a step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from livekit.agents import llm

from .clock import VirtualLoop
from .fake_realtime import FakeRealtimeSession
from .harness import GatedTool, Harness, running
from .operations import Operation
from .progress import OwnedPush, Progress, on_behalf_of, owner
from .push import Push
from .scenario import agent_with, note
from .watching import LOCK

__all__ = ["LOCK", "World"]

Step = Callable[[], object]


class World:
    """A session on a loop of its own, made for one schedule.

    Args:
        loop: The loop; nothing else may run on it.
        operations: What is to overlap.
        disturbances: How many of them may be disturbed.

    Attributes:
        initial: What the model saw when the session was opened.
        progress: How far each operation has come.
        disturbed: How many disturbances there have been.
        complaints: What the event loop complained of.
        pushes: Every update since the session was opened.
    """

    def __init__(
        self, loop: VirtualLoop, operations: Sequence[Operation], disturbances: int
    ) -> None:
        self.initial: list[llm.ChatItem] = []
        self.progress = [Progress(operation) for operation in operations]
        self.disturbed = 0
        self.complaints: list[str] = []
        self._by_name = {p.operation.name: p for p in self.progress}
        self._loop = loop
        self._disturbances = disturbances
        self._step = 0
        self.pushes: list[OwnedPush] = []
        self._activities: list[Any] = []
        self._tools: list[GatedTool] = [t for o in operations for t in o.tools]
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[Harness] = loop.create_future()
        loop.set_task_factory(self._make_task)
        loop.set_exception_handler(lambda _, context: self.complaints.append(_told(context)))

    def open(self) -> None:
        """Starts the session, and prepares the operations; nothing is held back yet."""
        self._running = self._loop.create_task(self._run())
        self.talk = self._loop.complete(self._ready)
        for progress in sorted(self.progress, key=lambda p: p.operation.phase):
            operation = progress.operation
            on_behalf_of(operation.name, self._loop.complete, operation.prepare(self.talk))
        self.initial = list(self.realtime.server.items)
        self.realtime.engine.new_push = self._hold
        self.realtime.instructions_gate.clear()
        self.realtime.instructions_entered.clear()

    def close(self) -> None:
        """Ends the session.

        Raises:
            NotAtRest: If a task outlives it.
            Stuck: If it does not end.
        """
        self.realtime.engine.new_push = lambda: Push(held=False)
        self._closing.set()
        self._loop.complete(self._running)

    def steps(self) -> dict[str, Step]:
        """The steps that are open now, by name: starts first, disturbances last."""
        steps: dict[str, Step] = {}
        for progress in self.progress:
            if progress.began is None:
                steps[f"start {progress.operation.name}"] = lambda p=progress: self._start(p)  # type: ignore[misc]
        sent = [push for push in self.pushes if push.pending]
        for push in sent:
            late = "late " if push.settled else ""
            steps.setdefault(f"acknowledge {late}{push.owner}", lambda p=push: p.release(1))  # type: ignore[misc]
        realtime = self.realtime
        if realtime.instructions_entered.is_set():
            steps["acknowledge instructions"] = self._acknowledge_instructions
        if self.disturbed < self._disturbances:
            for push in sent:
                if not push.settled:
                    steps |= self._disturbing(push)
            for progress, task in self._waiters():
                steps[f"cancel waiting {progress.operation.name}"] = (
                    lambda p=progress, t=task: self._disturb(p, t.cancel)  # type: ignore[misc]
                )
        return steps

    def take(self, step: Step) -> None:
        """Takes a step, and runs the loop until nothing is left to do."""
        self._step += 1
        self._loop.call_soon(step)
        self._loop.drain()
        if self.talk.activity not in self._activities:
            self._activities.append(self.talk.activity)
        for progress in self.progress:
            if progress.began is not None and progress.ended is None and self._is_over(progress):
                progress.ended = self._step

    @property
    def realtime(self) -> FakeRealtimeSession:
        """The connection to the fake provider; a handoff keeps it."""
        realtime = self.talk.realtime
        assert isinstance(realtime, FakeRealtimeSession)
        return realtime

    @property
    def dropped(self) -> set[str]:
        """The ids of the items of which a disturbance kept something from the server."""
        return {item_id for push in self.pushes for item_id in push.dropped}

    @property
    def held_locks(self) -> list[str]:
        """The locks around updates that are held."""
        return [
            name
            for activity in self._activities
            for name, lock in _locks_of(activity)
            if lock.locked()
        ]

    def errors(self) -> Iterator[tuple[Progress, BaseException]]:
        """Exceptions in which something ended that was done on an operation's behalf.

        A disturbed operation may end in the error that the disturbance raises.
        """
        for progress in self.progress:
            for task in progress.tasks:
                if not task.done() or task.cancelled() or (error := task.exception()) is None:
                    continue
                if progress.certain or type(error).__name__ != "RealtimeError":
                    yield progress, error

    # -- the session's life

    async def _run(self) -> None:
        async with running(agent_with(*self._tools)) as talk:
            await talk.replace(note("before"))
            self._ready.set_result(talk)
            await self._closing.wait()

    # -- steps

    def _start(self, progress: Progress) -> None:
        progress.began = self._step
        start = progress.operation.start
        try:
            progress.effect = on_behalf_of(progress.operation.name, start, self.talk, self._tools)
        except RuntimeError:  # upstream takes nothing new while a handoff is under way
            if not any(other.overlaps_handoff(progress) for other in self.progress):
                raise
            progress.ended = self._step

    def _acknowledge_instructions(self) -> None:
        realtime = self.realtime
        realtime.instructions_entered.clear()
        realtime.instructions_gate.set()
        # whoever comes next waits again
        self._loop.call_soon(realtime.instructions_gate.clear)

    def _disturbing(self, push: OwnedPush) -> dict[str, Step]:
        def reject() -> None:
            push.drop()
            push.reject()

        def lose() -> None:
            push.drop()
            push.time_out(lost=True)

        def time_out() -> None:
            push.given_up = True
            push.time_out()

        def cancel() -> None:
            push.given_up = True
            assert push.task is not None
            push.task.cancel()

        progress = self._by_name[push.owner]
        ways: dict[str, Step] = {"reject": reject, "lose": lose, "time out": time_out}
        if progress.operation.cancellable:
            ways["cancel"] = cancel
        return {
            f"{way} {push.owner}": lambda step=step: self._disturb(progress, step)  # type: ignore[misc]
            for way, step in ways.items()
        }

    def _disturb(self, progress: Progress, step: Step) -> None:
        self.disturbed += 1
        progress.certain = False
        step()

    # -- who does what

    def _hold(self) -> Push:
        push = OwnedPush()
        self.pushes.append(push)
        return push

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, work: Any, **kwargs: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=loop, **kwargs)
        if progress := self._by_name.get(owner()):
            progress.tasks.append(task)
        return task

    def _is_over(self, progress: Progress) -> bool:
        return progress.operation.over(progress.tasks)

    def _waiters(self) -> Iterable[tuple[Progress, asyncio.Task[Any]]]:
        """Who waits for a lock, and can be cancelled."""
        locks = [self.realtime.engine.lock]
        for activity in self._activities:
            locks += [lock for _, lock in _locks_of(activity)]
        waited = [waiter for lock in locks for waiter in lock._waiters or ()]
        for progress in self.progress:
            for task in progress.tasks if progress.operation.cancellable else ():
                if any(getattr(task, "_fut_waiter", None) is waiter for waiter in waited):
                    yield progress, task
                    break


def _locks_of(activity: Any) -> Iterator[tuple[str, asyncio.Lock]]:
    yield from ((name, v) for name, v in vars(activity).items() if name.startswith(LOCK))
    context = getattr(activity, "_rt_context", None)
    if context is not None and context.lock is not None:
        yield "realtime context", context.lock


def _told(context: dict[str, Any]) -> str:
    error = context.get("exception")
    return f"{context['message']}" + (f" ({error!r})" if error else "")
