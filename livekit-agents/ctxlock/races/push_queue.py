"""Updates in the order of their turns: those that a test wants to hold, and those on their way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from .push import Operation, Push

__all__ = ["PushQueue"]

P = TypeVar("P", bound=Push)


class PushQueue(Generic[P]):
    """What both far ends do with updates, the fake one and the scripted server.

    Args:
        held: Makes an update that is held.
        hand_over: Lets the server see so many of an update's pending operations.

    Attributes:
        pushes: Every update that was sent, in the order of their turns.
    """

    def __init__(self, held: Callable[[], P], hand_over: Callable[[P, int], None]) -> None:
        self.pushes: list[P] = []
        self._make_held = held
        self._hand_over = hand_over
        self._held: deque[P] = deque()
        self._on_the_way: list[P] = []

    @property
    def on_the_way(self) -> Sequence[P]:
        """What was sent, and is not all with the server; in order."""
        return self._on_the_way

    def hold(self) -> P:
        """Returns the next update that will be sent, to be released by the caller."""
        push = self._make_held()
        self._held.append(push)
        return push

    def next_held(self) -> P | None:
        """Takes the update that was asked for by `hold` and is not sent yet, if there is one."""
        return self._held.popleft() if self._held else None

    def release_all(self) -> None:
        """Releases whatever is held, sent already or not."""
        for push in [*self._on_the_way, *self._held]:
            push.release()
        self._held.clear()

    def send(self, push: P, operations: Sequence[Operation]) -> asyncio.Future[None]:
        """Sends an update whose turn has come; returns what its client awaits."""
        self.pushes.append(push)
        self._on_the_way.append(push)
        return push.send(operations, partial(self._deliver, push))

    def lose(self) -> None:
        """Has nothing arrive of what is on the way."""
        for push in self._on_the_way:
            push.pending.clear()
        self._on_the_way.clear()

    def _deliver(self, push: P, count: int) -> None:
        # the connection keeps the order: what was given up on arrives before what came after it
        while self._on_the_way and self._on_the_way[0] is not push:
            earlier = self._on_the_way.pop(0)
            self._hand_over(earlier, len(earlier.pending))
        self._hand_over(push, count)
        if not push.pending and push in self._on_the_way:
            self._on_the_way.remove(push)
