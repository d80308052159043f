"""The updates whose overlaps are explored."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from livekit.agents import Agent

from ..races.harness import GatedTool, Harness, local_context
from ..races.names import name_items
from ..races.releases import Releases
from ..races.scenario import note
from .operation import Effect, Operation, names_of

__all__ = ["KINDS", "SEVERAL"]


class TextTurn(Operation):
    """The user types."""

    kind = "text turn"
    interruptible = True

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        talk.text_turn(f"text {self.number}")
        return Effect(adds=frozenset([f'user "text {self.number}"']))


class ToolOutput(Operation):
    """A tool finishes, whose response has ended in the ordinary way."""

    kind = "tool output"
    phase = 2
    letters: ClassVar[str] = ""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.tools = [GatedTool(f"tool_{number}{letter}") for letter in self.letters or [""]]

    async def prepare(self, talk: Harness) -> None:
        await talk.call(*self.tools)

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        # the last that was called is the first to return
        outputs = []
        for tool in reversed(self.tools):
            tool.finish()
            outputs.append(f"function_call_output of {tool.name}")
        talk.order.ask(*([output] for output in outputs))
        return Effect(adds=frozenset(outputs))


class InterruptedToolOutput(ToolOutput):
    """A tool finishes, whose response was interrupted."""

    kind = "interrupted tool output"
    applies = Releases("1.7.0")
    phase = 1

    async def prepare(self, talk: Harness) -> None:
        await talk.call_and_interrupt(*self.tools)


class ToolOutputs(ToolOutput):
    """Two tools of one response finish, the second before the first."""

    kind = "two tool outputs"
    letters = "ab"


class InterruptedToolOutputs(InterruptedToolOutput):
    """The same, and the response was interrupted."""

    kind = "two interrupted outputs"
    letters = "ab"


class AddingReplacement(Operation):
    """The application replaces the context by what the agent has and one message more."""

    kind = "adding replacement"
    letters: ClassVar[str] = ""

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        # the last one was made first, so that nothing can be known by their times
        added = [note(f"note {self.number}{letter}") for letter in self.letters[::-1] or [""]][::-1]
        names = frozenset(name_items(added))
        captured = names_of(talk.local) | names
        talk.replace(*added)
        return Effect(adds=names, captured=captured)


class AddingThree(AddingReplacement):
    """The application replaces the context by what the agent has and three messages more."""

    kind = "replacement adding three"
    letters = "abc"


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
    interruptible = True

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        talk.say(f"words {self.number}")
        return Effect(adds=frozenset([f'assistant "words {self.number}"']))


class SessionStart(Operation):
    """A handoff: another agent takes the realtime session over, with the history and a note."""

    kind = "session start"
    applies = Releases("1.5.3")
    cancellable = False
    letters: ClassVar[str] = ""

    def toolsets(self) -> list[Any]:
        """What the new agent sets up before it takes the session over."""
        return []

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        chat_ctx = local_context(talk.activity)
        handed = [note(f"handed over {self.number}{letter}") for letter in self.letters or [""]]
        chat_ctx.items.extend(handed)
        agent = Agent(
            instructions="Answer at length.",
            tools=[*(t.tool for t in tools), *self.toolsets()],
            chat_ctx=chat_ctx,
        )
        talk.hand_off(agent)
        self._handoff = talk.session._update_activity_atask
        return Effect(adds=frozenset(name_items(handed)), captured=names_of(agent.chat_ctx))

    def over(self, tasks: Iterable[asyncio.Task[Any]]) -> bool:
        # what it starts on the new agent's behalf goes on
        assert self._handoff is not None
        return self._handoff.done()


class SessionStartWithTwo(SessionStart):
    """A handoff with the history and two notes."""

    kind = "session start with two"
    letters = "ab"


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
"""The updates of one item, in the order in which tables show them."""

SEVERAL: tuple[type[Operation], ...] = (
    ToolOutputs,
    InterruptedToolOutputs,
    AddingThree,
    SessionStartWithTwo,
)
"""Updates of several items that the application put in an order, in the order of the tables."""
