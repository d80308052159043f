"""The operations whose overlaps are explored: what each needs, how it starts, what it should do."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from livekit.agents import Agent, llm

from .engine import conversation_items
from .harness import GatedTool, Harness, local_context
from .history import State
from .releases import Releases, installed
from .scenario import note
from .verdict import name_items

__all__ = ["KINDS", "Effect", "Operation", "kinds_of", "make_operations", "names_of"]


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


def names_of(chat_ctx: llm.ChatContext) -> State:
    """The names of what a provider gets to see of a context."""
    return frozenset(name_items(conversation_items(chat_ctx)))


class Operation(ABC):
    """One update of the realtime context, from the application's or the model's side.

    Attributes:
        kind: What sort of operation it is; with the number behind it, its name.
        applies: The releases that have it.
        phase: The order in which operations are prepared; the model makes one response at a time.
        alone: Whether there can be only one of its kind at a time.
        cancellable: Whether it can be cancelled in a session that goes on.
    """

    kind: ClassVar[str]
    applies: ClassVar[Releases] = Releases()
    phase: ClassVar[int] = 0
    alone: ClassVar[bool] = False
    cancellable: ClassVar[bool] = True

    def __init__(self, number: int) -> None:
        self.number = number
        self.name = f"{self.kind} {number}"
        self.tools: list[GatedTool] = []

    async def prepare(self, talk: Harness) -> None:  # noqa: B027  (most need nothing)
        """Does what must have happened before."""

    @abstractmethod
    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        """Starts it; what follows is up to the event loop.

        Args:
            talk: The session.
            tools: The tools of all operations, for agents made on the way.
        """

    def over(self, tasks: Iterable[asyncio.Task[Any]]) -> bool:
        """Whether it has come to its end, by the tasks that were started on its behalf."""
        return all(task.done() for task in tasks)


class TextTurn(Operation):
    """The user types."""

    kind = "text turn"

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        talk.text_turn(f"text {self.number}")
        return Effect(adds=frozenset([f'user "text {self.number}"']))


class ToolOutput(Operation):
    """A tool finishes, whose response has ended in the ordinary way."""

    kind = "tool output"
    phase = 2

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.tools = [GatedTool(f"tool_{number}")]

    async def prepare(self, talk: Harness) -> None:
        await talk.call(*self.tools)

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        [tool] = self.tools
        tool.finish()
        return Effect(adds=frozenset([f"function_call_output of {tool.name}"]))


class InterruptedToolOutput(ToolOutput):
    """A tool finishes, whose response was interrupted."""

    kind = "interrupted tool output"
    applies = Releases("1.7.0")
    phase = 1

    async def prepare(self, talk: Harness) -> None:
        await talk.call_and_interrupt(*self.tools)


class AddingReplacement(Operation):
    """The application replaces the context by what the agent has and one message more."""

    kind = "adding replacement"

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        added = note(f"note {self.number}")
        captured = names_of(talk.local) | {added_name := f'user "note {self.number}"'}
        talk.replace(added)
        return Effect(adds=frozenset([added_name]), captured=captured)


class DeletingReplacement(Operation):
    """The application replaces the context by what the agent has and one message less."""

    kind = "deleting replacement"

    @property
    def _unwanted(self) -> str:
        return f'user "unwanted {self.number}"'

    async def prepare(self, talk: Harness) -> None:
        await talk.replace(note(f"unwanted {self.number}"))

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        captured = names_of(talk.local) - {self._unwanted}
        talk.replace(without=[self._unwanted])
        return Effect(removes=frozenset([self._unwanted]), captured=captured)


class Cleanup(Operation):
    """A reply is interrupted before anybody heard of it, and deleted."""

    kind = "never-played cleanup"
    applies = Releases("1.7.0")
    phase = 3
    alone = True

    async def prepare(self, talk: Harness) -> None:
        await talk.unheard_reply()
        self._speech = talk.session.current_speech

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        assert self._speech is not None, "the reply is not being played"
        # not the session's interrupt, which would take waiting text turns along
        self._speech.interrupt()
        return Effect(removes=frozenset(['assistant ""']))


class SpokenMessage(Operation):
    """The agent says a given text."""

    kind = "spoken message"
    applies = Releases("1.8.9", before="2.0.0")

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        talk.say(f"words {self.number}")
        return Effect(adds=frozenset([f'assistant "words {self.number}"']))


class SessionStart(Operation):
    """A handoff: another agent takes the realtime session over, with the history and a note."""

    kind = "session start"
    applies = Releases("1.5.3")
    cancellable = False

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        chat_ctx = local_context(talk.activity)
        chat_ctx.items.append(note(f"handed over {self.number}"))
        agent = Agent(
            instructions="Answer at length.", tools=[t.tool for t in tools], chat_ctx=chat_ctx
        )
        talk.session.update_agent(agent)
        self._handoff = talk.session._update_activity_atask
        added = frozenset([f'user "handed over {self.number}"'])
        return Effect(adds=added, captured=names_of(agent.chat_ctx))

    def over(self, tasks: Iterable[asyncio.Task[Any]]) -> bool:
        # what it starts on the new agent's behalf goes on
        assert self._handoff is not None
        return self._handoff.done()


KINDS: tuple[type[Operation], ...] = (
    TextTurn,
    ToolOutput,
    InterruptedToolOutput,
    AddingReplacement,
    DeletingReplacement,
    Cleanup,
    SpokenMessage,
    SessionStart,
)
"""All kinds, in the order in which tables show them."""


def kinds_of(version: str | None = None) -> list[type[Operation]]:
    """The kinds that a release has, by default the installed one."""
    return [kind for kind in KINDS if (version or installed()) in kind.applies]


def make_operations(kinds: Sequence[str]) -> list[Operation]:
    """Makes one operation for each name of a kind, numbered from 1."""
    by_name = {kind.kind: kind for kind in KINDS}
    return [by_name[kind](number) for number, kind in enumerate(kinds, 1)]
