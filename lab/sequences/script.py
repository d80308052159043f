"""A script from a seed: which model, and which actions in which order."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from lab.foreign.provider import RecordingModel, RecordingSession
from lab.foreign.recorder import Recorder, Step
from lab.foreign.talk import Restless, Talk
from lab.foreign.variants import IMMUTABLE, TellsItsOwn, TellsNothing
from lab.trace import REFUSED
from livekit.agents import llm

from .actions import ACTIONS, WEIGHTS, Play

__all__ = ["LENGTH", "Script", "play"]

LENGTH = 14
"""How many actions a script has."""

_CAPABILITIES: tuple[dict[str, bool], ...] = (
    {},
    {},
    {"audio_output": True},
    {"audio_output": True},
    {"per_response_tool_choice": False},
    {"supports_say": True},
    {"message_truncation": False},
    IMMUTABLE,
)

_KINDS: tuple[type[RecordingSession], ...] = (
    RecordingSession,
    RecordingSession,
    RecordingSession,
    TellsItsOwn,
    TellsNothing,
)


@dataclass(frozen=True)
class Script:
    """What is done to which model.

    Attributes:
        seed: What it was made from.
        actions: The names of its actions.
        capabilities: How the model differs from the usual one.
        kind: The class of its sessions.
        latency: How many seconds an update takes.
        refuses: Whether the provider refuses every third update.
    """

    seed: int
    actions: tuple[str, ...]
    capabilities: dict[str, bool]
    kind: type[RecordingSession]
    latency: float
    refuses: bool

    @classmethod
    def of(cls, seed: int, length: int = LENGTH) -> Script:
        """Makes it; a shorter one is the beginning of a longer one."""
        random = Random(f"script {seed}")
        capabilities, kind = random.choice(_CAPABILITIES), random.choice(_KINDS)
        latency = random.choice([0.1, 0.1, 1.0])
        actions = random.choices([*WEIGHTS], [*WEIGHTS.values()], k=LENGTH)
        refuses = random.random() < 0.25
        return cls(seed, tuple(actions[:length]), capabilities, kind, latency, refuses)


class _Refusing(RecordingSession):
    """Refuses every third update; the same, asked for once more, it takes, and does not count."""

    def __init__(self, model: RecordingModel) -> None:
        super().__init__(model)
        self._asked: list[str] = []
        self._refused: list[list[str]] = []
        self._count = 0

    async def take(self, chat_ctx: llm.ChatContext) -> None:
        """Looks at what is asked for."""
        self._asked = [item.id for item in self.wanted(chat_ctx)]
        await super().take(chat_ctx)

    async def acknowledge(self) -> None:
        """Refuses, and not at once."""
        asked = self._asked
        await super().acknowledge()
        if asked in self._refused:
            return
        self._count += 1
        if self._count % 3 == 0:
            self._refused.append(asked)
            self.recorder.note("calls", f"{self.recorder.at()} {self.name} {REFUSED}")
            raise llm.RealtimeError("the update was refused")


def play(script: Script, recorder: Recorder) -> list[Step]:
    """Goes through a script, idle between its actions."""

    def make_model(name: str) -> RecordingModel:
        bases = (_Refusing, script.kind) if script.refuses else (script.kind,)
        kind: Any = type(script.kind.__name__, bases, {"latency": script.latency})
        return RecordingModel(recorder, kind, name=name, **script.capabilities)

    talk = Talk(recorder, make_model("model"))
    acting = Play(talk, make_model)
    with suppress(Restless):
        talk.step("start", lambda: talk.start(acting.agent(greets=script.seed % 2 == 0)))
        for number, name in enumerate(script.actions, 1):
            random = Random(f"{script.seed} {number} {name}")
            talk.step(name, lambda name=name, random=random: ACTIONS[name](acting, random))  # type: ignore[misc]
        talk.end()
    return recorder.steps
