"""A real session with some operations to overlap, and the steps that are open at each moment.

Every update is held until a step releases it, one item at a time, so that every point of
acknowledgement is a step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from livekit.agents import llm

from ..races.fake_realtime import FakeRealtimeSession
from ..races.harness import GatedTool, Harness, running
from ..races.push import Push
from ..races.scenario import agent_with, note
from .clock import VirtualLoop
from .disturbances import Disturbance, disturbances_of
from .operation import Effect, Operation, label_items, names_of
from .progress import OwnedPush, Progress, on_behalf_of, owner
from .session_events import Interruption
from .waiters import first_waiting, locks_of

__all__ = ["Simulation"]


class Simulation:
    """A session on a loop of its own, made for one schedule.

    Args:
        loop: The loop; nothing else may run on it.
        operations: What is to overlap.
        disturbances: How many of them may be disturbed.
        integrity: Whether a provider may be silent, so that limits of time matter.

    Attributes:
        initial: What the model saw when the session was opened.
        progress: How far each operation has come.
        disturbed: How many disturbances there have been.
        complaints: What the event loop complained of.
        pushes: Every update since the session was opened.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        operations: Sequence[Operation],
        disturbances: int,
        integrity: bool = False,
    ) -> None:
        self.initial: list[llm.ChatItem] = []
        self.progress = [Progress(operation) for operation in operations]
        self.disturbed = 0
        self.complaints: list[str] = []
        self._by_name = {p.operation.name: p for p in self.progress}
        self._loop = loop
        self._disturbances = disturbances
        self._integrity = integrity
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
        self.talk.name = label_items
        for progress in sorted(self.progress, key=lambda p: p.operation.phase):
            operation = progress.operation
            on_behalf_of(operation.name, self._loop.complete, operation.prepare(self.talk))
        self.initial = list(self.realtime.server.items)
        self.talk.look()
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

    def steps(self) -> dict[str, Disturbance]:
        """The steps that are open now, by name: starts first, disturbances last."""
        steps: dict[str, Disturbance] = {}
        for progress in self.progress:
            if progress.began is None and progress.operation.ready(self.talk):
                steps[f"start {progress.operation.name}"] = lambda p=progress: self._start(p)  # type: ignore[misc]
        for progress in self.progress:
            if progress.began is not None and not progress.refused:
                for name, step in progress.operation.further(self.talk).items():
                    steps[name] = lambda p=progress, s=step: self._go_on(p, s)  # type: ignore[misc]
        sent = self._under_way()
        for push in sent:
            late = "late " if push.settled else ""
            steps.setdefault(
                f"acknowledge {late}{push.owner}",
                lambda p=push: p.release(None if p.repeats else 1),  # type: ignore[misc]
            )
        realtime = self.realtime
        if realtime.instructions_entered.is_set():
            steps["acknowledge instructions"] = self._acknowledge_instructions
        waits = self._waits_for_time() or (not steps and self.held_locks)
        if waits and (limit := self._loop.next_limit()) is not None:
            steps["time passes"] = lambda: self._loop.pass_time(limit)
        if self.disturbed < self._disturbances:
            for push in sent:
                if not push.settled and not push.repeats:
                    steps |= self._disturbing(push)
            for progress, task in self._waiters():
                steps[f"cancel waiting {progress.operation.name}"] = lambda p=progress, t=task: (
                    self._disturb(  # type: ignore[misc]
                        p, lambda: self._cancel(p, t)
                    )
                )
        return steps

    def take(self, step: Disturbance) -> None:
        """Takes a step, and runs the loop until nothing is left to do."""
        self._step += 1
        self._loop.call_soon(step)
        self._loop.drain()
        if self.talk.activity not in self._activities:
            self._activities.append(self.talk.activity)
        for push in self.pushes:
            push.given_up = push.given_up or (push.settled and bool(push.pending))
        for progress in self.progress:
            if progress.began is not None and progress.ended is None and self._is_over(progress):
                progress.ended = self._step
        self.talk.look()

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
        locks = [named for activity in self._activities for named in locks_of(activity)]
        return [name for name, lock in locks if lock.locked()]

    @property
    def locks(self) -> list[Any]:
        """The locks around updates."""
        return [lock for activity in self._activities for _, lock in locks_of(activity)]

    async def _run(self) -> None:
        async with running(agent_with(*self._tools)) as talk:
            await talk.replace(note("before"))
            self._ready.set_result(talk)
            await self._closing.wait()

    def _start(self, progress: Progress) -> None:
        progress.began = self._step
        progress.held = names_of(self.talk.local), names_of(self.realtime.chat_ctx)
        start = progress.operation.start
        if progress.operation.interrupts:
            for other in self.progress:
                if other.began is not None and other.ended is None:
                    other.interrupted = other.interrupted or other.operation.interruptible
        try:
            progress.effect = on_behalf_of(progress.operation.name, start, self.talk, self._tools)
        except RuntimeError:  # upstream takes nothing new while a handoff is under way
            if not any(other.overlaps_handoff(progress) for other in self.progress):
                raise
            progress.refused, progress.ended = True, self._step
        self.talk.order.ask([item.id for item in self.initial], progress.effect.adds)
        for earlier in self.progress:
            if earlier.ended is not None and earlier.as_event().precedes(progress.as_event()):
                self.talk.order.ask(earlier.effect.adds, progress.effect.adds)

    def _go_on(self, progress: Progress, step: Disturbance) -> None:
        effect = on_behalf_of(progress.operation.name, step)
        if isinstance(effect, Effect):
            progress.effect = effect

    def _under_way(self) -> list[OwnedPush]:
        """What may be acknowledged next, in the order sent."""
        sent = [push for push in self.pushes if push.pending and (push.settled or not push.silent)]
        # before anything else on a new connection comes what is repeated there
        return [push for push in sent if push.repeats] or sent

    def _waits_for_time(self) -> bool:
        """Whether something goes on, if ever, when a limit is reached."""
        return any(push.silent and not push.settled for push in self.pushes) or any(
            isinstance(p.operation, Interruption) and p.began is not None and p.ended is None
            for p in self.progress
        )

    def _acknowledge_instructions(self) -> None:
        realtime = self.realtime
        realtime.instructions_entered.clear()
        realtime.instructions_gate.set()
        # whoever comes next waits again
        self._loop.call_soon(realtime.instructions_gate.clear)

    def _disturbing(self, push: OwnedPush) -> dict[str, Disturbance]:
        progress = self._by_name.get(push.owner)
        if progress is None:  # nobody's: what a cancelled task has left behind
            return {}
        waits = progress.operation.cancellable and push.task is not None and not push.task.done()
        client = push.task if waits else None
        ways = disturbances_of(push, client=client, silence=self._integrity)
        return {
            f"{way} {push.owner}": lambda step=step: self._disturb(progress, step)  # type: ignore[misc]
            for way, step in ways.items()
        }

    def _disturb(self, progress: Progress, step: Disturbance) -> None:
        self.disturbed += 1
        progress.certain = False
        step()

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

    def _waiters(self) -> Iterator[tuple[Progress, asyncio.Task[Any]]]:
        """Who waits for a lock, and can be cancelled."""
        for progress in self.progress:
            tasks = progress.tasks if progress.operation.cancellable else []
            if client := first_waiting(tasks, [self.realtime.engine.lock, *self.locks]):
                yield progress, client

    def _cancel(self, progress: Progress, task: asyncio.Task[Any]) -> None:
        progress.cut_off = first_waiting([task], [self.realtime.engine.lock]) is not None
        task.cancel()


def _told(context: dict[str, Any]) -> str:
    error = context.get("exception")
    return f"{context['message']}" + (f" ({error!r})" if error else "")
