"""How far each operation of a schedule has come, and which update belongs to which.

A context variable tells, which asyncio hands on to whatever is started on an operation's behalf.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

from ..races.push import Push
from .history import HistoryEntry, State
from .operation import Effect, Operation
from .operations import SessionStart

__all__ = ["OwnedPush", "Progress", "on_behalf_of", "owner"]

_owner: contextvars.ContextVar[str] = contextvars.ContextVar("owner", default="")


class OwnedPush(Push):
    """A held update that knows who sent it.

    Attributes:
        owner: The operation's name.
        task: Who waits for the acknowledgement.
        dropped: What the server will never see of it.
        given_up: Whether its client no longer waits, though the server may still see it.
        silent: Whether the server says nothing about it for as long as its client waits.
    """

    def __init__(self) -> None:
        super().__init__(held=True)
        self.owner = _owner.get()
        self.task = asyncio.current_task()
        self.dropped: set[str] = set()
        self.given_up = False
        self.silent = False

    @property
    def repeats(self) -> bool:
        """Whether it is what a new connection begins with, so that nobody in particular sent it."""
        return self.task is None

    def drop(self) -> None:
        """Notes that the server will never see what is still pending."""
        self.dropped |= {operation.item_id for operation in self.pending}


def owner() -> str:
    """The name of the operation on whose behalf this runs, or nothing."""
    return _owner.get()


def on_behalf_of(name: str, call: Callable[..., Any], *args: Any) -> Any:
    """Calls something on behalf of an operation; what it starts counts as the operation's too."""
    context = contextvars.copy_context()
    context.run(_owner.set, name)
    return context.run(call, *args)


class Progress:
    """How far an operation has come.

    Attributes:
        tasks: Those started on its behalf.
        began: The step at which it started, or None.
        ended: The step at which it was seen to be over, or None.
        refused: Whether upstream took nothing new when it started.
        effect: What it should do.
        certain: Whether it was left alone, so that it must take effect.
        interrupted: Whether an interruption came before its end, so that it may come to nothing.
        held: What the agent held when it started, and what the session held.
        cut_off: Whether it was cancelled in the provider's client, before that sent anything.
    """

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.tasks: list[asyncio.Task[Any]] = []
        self.began: int | None = None
        self.ended: int | None = None
        self.refused = False
        self.effect = Effect()
        self.certain = True
        self.interrupted = False
        self.cut_off = False
        self.held: tuple[State, State] = (frozenset(), frozenset())

    def errors(self) -> Iterator[BaseException]:
        """In what its tasks ended; a disturbed one may do so in what the disturbance raises."""
        for task in self.tasks:
            if not task.done() or task.cancelled() or (error := task.exception()) is None:
                continue
            given_up = any(kind.__name__ == "RealtimeError" for kind in type(error).__mro__)
            if self.certain or not given_up:
                yield error

    def overlaps_handoff(self, other: Progress) -> bool:
        """Whether this is a handoff during which the other began."""
        return (
            isinstance(self.operation, SessionStart)
            and self.began is not None
            and other.began is not None
            and self.began < other.began
            and (self.ended is None or other.began <= self.ended)
        )

    def as_event(self) -> HistoryEntry:
        """The operation as part of a history."""
        assert self.began is not None, "it has not been started"
        return HistoryEntry(
            name=self.operation.name,
            began=self.began,
            ended=self.ended,
            adds=self.effect.adds,
            removes=self.effect.removes,
            captured=self.effect.captured,
            certain=self.certain and not self.interrupted,
        )
