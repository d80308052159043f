"""What an operation is: what it needs, how it starts, what it should do."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from livekit.agents import llm

from ..races.engine import conversation_items
from ..races.harness import GatedTool, Harness
from ..races.releases import Releases
from ..races.verdict import name_items
from .history import State

__all__ = ["FINAL", "Effect", "Operation", "label_items", "names_of", "spoken"]

_NOTHING: State = frozenset()


@dataclass(frozen=True)
class Effect:
    """What an operation should do to the remote context, known as soon as it starts."""

    adds: State = frozenset()
    removes: State = frozenset()
    captured: State | None = None

    def deletes(self, name: str) -> bool:
        """Whether it is the operation's business to delete that item."""
        left_out = self.captured is not None and name not in self.captured
        return left_out or name in self.removes


def spoken(number: int) -> str:
    """The id of what the user says; it is named by that, as its text comes later."""
    return f"speech {number}"


FINAL = " (final)"
"""What a label ends in if a tool went on in the background after an output that said so."""


def label_items(items: Sequence[llm.ChatItem]) -> list[str]:
    """Names items as `name_items` does, but what the user says by its id, and final calls apart."""
    return [_label(item, name) for item, name in zip(items, name_items(items), strict=True)]


def _label(item: llm.ChatItem, name: str) -> str:
    if item.id.startswith("speech "):
        return f"user {item.id}"
    return name + FINAL if getattr(item, "call_id", "").endswith("_final") else name


def names_of(chat_ctx: llm.ChatContext) -> State:
    """The names of what a provider gets to see of a context."""
    return frozenset(label_items(conversation_items(chat_ctx)))


class Operation(ABC):
    """One update of the realtime context, from the application's or the model's side.

    Attributes:
        kind: What sort of operation it is; with the number behind it, its name.
        applies: The releases that have it.
        phase: The order in which operations are prepared; the model makes one response at a time.
        alone: Whether there can be only one of its kind at a time.
        cancellable: Whether it can be cancelled in a session that goes on.
        interrupts: Whether what is being said, or is about to be, ends with its start.
        interruptible: Whether it may come to nothing then.
        initiates: The items that the server adds by itself.
        forgets: The items that cannot be had back, once it has started, whatever the agent does.
    """

    kind: ClassVar[str]
    applies: ClassVar[Releases] = Releases()
    phase: ClassVar[int] = 0
    alone: ClassVar[bool] = False
    cancellable: ClassVar[bool] = True
    interrupts: ClassVar[bool] = False
    interruptible: ClassVar[bool] = False

    def __init__(self, number: int) -> None:
        self.number = number
        self.name = f"{self.kind} {number}"
        self.tools: list[GatedTool] = []
        self.initiates: State = _NOTHING
        self.forgets: State = _NOTHING

    async def prepare(self, talk: Harness) -> None:  # noqa: B027  (most need nothing)
        """Does what must have happened before."""

    def ready(self, talk: Harness) -> bool:
        """Whether it can be started now."""
        return True

    @abstractmethod
    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        """Starts it; what follows is up to the event loop.

        Args:
            talk: The session.
            tools: The tools of all operations, for agents made on the way.
        """

    def further(self, talk: Harness) -> dict[str, Callable[[], Effect | None]]:
        """The steps of its own that are open, once it has been started, by name.

        Each may return what the operation should do from then on, if that is more than before.
        """
        return {}

    def over(self, tasks: Iterable[asyncio.Task[Any]]) -> bool:
        """Whether it has come to its end, by the tasks that were started on its behalf."""
        return all(task.done() for task in tasks)
