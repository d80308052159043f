"""What else overlaps with updates: what the server adds, and what happens to agent and session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from livekit.agents import llm

from ..races.fake_realtime import FakeRealtimeSession
from ..races.harness import GatedTool, Harness
from ..races.push import Push
from .operation import Effect, Operation, label_items, spoken
from .operations import SessionStart

__all__ = ["HAPPENINGS"]


def _fake(talk: Harness) -> FakeRealtimeSession:
    """The connection to the fake provider."""
    assert isinstance(talk.realtime, FakeRealtimeSession)
    return talk.realtime


class UserSpeech(Operation):
    """The user speaks, which interrupts the agent; what was said is understood later."""

    kind = "user speech"
    interrupts = True

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._item_id = spoken(number)
        self.initiates = frozenset([f"user {self._item_id}"])

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        self._realtime = _fake(talk)
        self._realtime.hear(self._item_id)
        return Effect(adds=self.initiates)

    def further(self, talk: Harness) -> dict[str, Callable[[], Effect | None]]:
        return {f"transcribe {self.name}": self._transcribe} if self._expects_text() else {}

    def over(self, tasks: Iterable[asyncio.Task[Any]]) -> bool:
        return not self._expects_text() and super().over(tasks)

    def _expects_text(self) -> bool:
        # a new connection knows nothing of what was said before it
        return self._realtime.hears(self._item_id)

    def _transcribe(self) -> None:
        self._realtime.transcribe(self._item_id, f"said {self.number}")


class ModelCall(Operation):
    """The model calls a tool in a response of its own, and the tool finishes."""

    kind = "model call"
    interruptible = True

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.tools = [GatedTool(f"tool_{number}")]
        self.initiates = frozenset([f"function_call tool_{number}"])

    def ready(self, talk: Harness) -> bool:
        return all(response.finished for response in _fake(talk).responses)

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        response = talk.realtime.respond()
        response.call(self.tools[0].name)
        response.done()
        return Effect(adds=self.initiates)

    def further(self, talk: Harness) -> dict[str, Callable[[], Effect | None]]:
        [tool] = self.tools
        open_now = tool.started.is_set() and not tool.gate.is_set()
        return {f"finish {self.name}": self._finish} if open_now else {}

    def _finish(self) -> Effect:
        [tool] = self.tools
        tool.finish()
        return Effect(adds=self.initiates | {f"function_call_output of {tool.name}"})


class _SlowTools(llm.Toolset):
    """Tools whose setup takes as long as it is told to."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.begun = False
        self.gate = asyncio.Event()

    async def setup(self) -> Any:
        self.begun = True
        await self.gate.wait()
        return self


class SlowHandoff(SessionStart):
    """A handoff to an agent that sets up tools while no agent has the realtime session."""

    kind = "slow handoff"

    def toolsets(self) -> list[Any]:
        self._toolset = _SlowTools(f"slow_{self.number}")
        return [self._toolset]

    def further(self, talk: Harness) -> dict[str, Callable[[], Effect | None]]:
        open_now = self._toolset.begun and not self._toolset.gate.is_set()
        return {f"set up {self.name}": self._toolset.gate.set} if open_now else {}


class ToolsChange(Operation):
    """The application gives the agent one tool more."""

    kind = "change of tools"

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        agent = talk.activity.agent
        more = GatedTool(f"more_{self.number}").tool
        talk.start(agent.update_tools([*agent.tools, more]))
        return Effect()


class InstructionsChange(Operation):
    """The application gives the agent other instructions."""

    kind = "change of instructions"

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        talk.start(talk.activity.agent.update_instructions(f"Obey rule {self.number}."))
        return Effect()


class Interruption(Operation):
    """The application interrupts the agent; what does not end within a time limit is cancelled."""

    kind = "interruption"
    interrupts = True
    alone = True

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        self._done = talk.session.interrupt()
        return Effect()

    def over(self, tasks: Iterable[asyncio.Task[Any]]) -> bool:
        return self._done.done() and super().over(tasks)


class Reconnection(Operation):
    """The connection is lost; the client makes another, and repeats what was acknowledged.

    System messages are not repeated, nor are messages without a text.
    """

    kind = "reconnection"
    alone = True
    cancellable = False

    async def prepare(self, talk: Harness) -> None:
        await talk.replace(llm.ChatMessage(role="system", content=[f"rule {self.number}"]))

    def start(self, talk: Harness, tools: Sequence[GatedTool]) -> Effect:
        realtime = _fake(talk)
        items = realtime.chat_ctx.items
        mute = [item.type == "message" and not item.content for item in items]
        labels = zip(label_items(items), mute, strict=True)
        self.forgets = frozenset(label for label, is_mute in labels if is_mute)
        before = len(realtime.pushes)
        realtime.cut()
        self._repeat: list[Push] = realtime.pushes[before : before + 1]
        return Effect()

    def over(self, tasks: Iterable[asyncio.Task[Any]]) -> bool:
        return all(push.settled for push in self._repeat) and super().over(tasks)


HAPPENINGS: tuple[type[Operation], ...] = (
    UserSpeech,
    ModelCall,
    SlowHandoff,
    ToolsChange,
    InstructionsChange,
    Interruption,
    Reconnection,
)
"""What overlaps with updates, in the order in which tables show it."""
