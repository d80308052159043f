"""The far ends' common base: what happens at a provider, and what a client sends there.

A provider is one file in `lab/providers/`; `lab/README.md` says how to add one.
"""

from __future__ import annotations

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from .trace import Recorder

if TYPE_CHECKING:
    from typing_extensions import Self

    from livekit.agents import llm

__all__ = ["FarEnd", "Setting", "Unsupported"]


class Unsupported(Exception):
    """The provider has no such thing: the step does not apply, in no environment."""


@dataclass(frozen=True)
class Setting:
    """How a far end behaves.

    Attributes:
        delay: Seconds before each acknowledgement.
        ready_after: Seconds until a new session is ready.
        traits: Habits that a step asks for, `FarEnd.traits` tells which there are.
    """

    delay: float = 0.0
    ready_after: float = 0.0
    traits: frozenset[str] = field(default_factory=frozenset)


class FarEnd(ABC):
    """A scripted provider, and the model of the plugin that talks to it.

    Used as an asynchronous context manager, in the loop of its client. What it answers depends on
    what it is told and on nothing else: no random ids, no real time.

    Class attributes:
        name: What the table calls it; the file's name.
        requirements: What the environment needs, without a version, such as
            ``livekit-plugins-openai``; those of livekit get the release's.
        traits: The habits that it can be asked for, of ``never_deletes`` (a deletion is neither
            done nor acknowledged, as some providers do) and ``reuses_ids`` (items of a new
            connection are numbered from the start again), ``ready_late`` (honours `ready_after`).

    Attributes:
        recorder: Where facts are taken down.
        setting: How it behaves.
        holding: Whether the reply is to go on.
    """

    name: ClassVar[str]
    requirements: ClassVar[tuple[str, ...]]
    traits: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, recorder: Recorder, setting: Setting | None = None) -> None:
        self.recorder = recorder
        self.setting = setting or Setting()
        if missing := self.setting.traits - self.traits:
            raise Unsupported(f"It cannot be made to: {', '.join(sorted(missing))}.")
        self._connections = 0
        self._numbers = itertools.count(1)
        self.holding = False
        self._finished = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()

    @classmethod
    def needs(cls, release: str) -> tuple[str, ...]:
        """What the environment of a release needs; `requirements`, if that does for all."""
        return cls.requirements

    # -- what every provider must have

    @abstractmethod
    def model(self) -> llm.RealtimeModel:
        """A model of the plugin's that connects to this far end; import the plugin only here."""

    # -- what some have; each ends when the far end has sent all

    async def user_says(self, text: str | None) -> None:
        """The user speaks, and the model answers; the transcript is missing if `text` is None.

        The model answers what `answer_for` says for the text, or for an empty one.
        """
        raise Unsupported("The user cannot be heard there.")

    def hold_reply(self) -> None:
        """The next reply goes on until `finish_reply`: its first words and sound come at once."""
        self.holding = True
        self._finished.clear()

    def finish_reply(self) -> None:
        """Ends the reply that `hold_reply` began."""
        self.holding = False
        self._finished.set()

    async def drop(self) -> None:
        """The connection dies without a word."""
        raise Unsupported("There is no connection that could die.")

    async def go_away(self) -> None:
        """The provider asks its client to connect anew, or ends the session of its own accord."""
        raise Unsupported("It does not announce its end.")

    # -- for the providers' files

    def connection_opened(self, about: Any = "") -> int:
        """Takes down that a client has connected; returns the connection's number, from 1."""
        self._connections += 1
        self.recorder.note("connections", {"opened": self._connections, "about": about})
        return self._connections

    def connection_closed(self, number: int) -> None:
        """Takes down that the client has ended a connection."""
        self.recorder.note("connections", {"closed": number})

    def received(self, number: int, frame: Any) -> None:
        """Takes down what the client has sent on a connection, or has called."""
        self.recorder.note(f"connection {number}", frame)

    async def acknowledging(self) -> None:
        """Waits as long as an acknowledgement takes here."""
        if self.setting.delay:
            await asyncio.sleep(self.setting.delay)

    async def becoming_ready(self) -> None:
        """Waits as long as it takes until a new session is ready."""
        if self.setting.ready_after:
            await asyncio.sleep(self.setting.ready_after)

    async def held(self) -> None:
        """Waits until the reply may end; a reply calls this between its first words and its end."""
        if self.holding:
            await self._finished.wait()

    async def in_halves(self, text: str, say: Callable[[str], Awaitable[None]]) -> None:
        """Says the first half of a reply's text, and the second when the reply may end."""
        half = len(text) // 2
        await say(text[:half])
        await self.held()
        await say(text[half:])

    def next_id(self, what: str) -> str:
        """An id of the far end's making, which is counted."""
        return f"{what}_{next(self._numbers)}"

    def start(self, work: Coroutine[Any, Any, Any], name: str = "") -> asyncio.Task[Any]:
        """Runs something beside, a reply say; it is cancelled with the far end at the latest."""
        task = asyncio.create_task(work, name=f"far end: {name or self.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self, task: asyncio.Task[Any] | None) -> None:
        """Cancels what was started, a reply say, and waits for its end."""
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # -- its life

    async def open(self) -> None:  # noqa: B027
        """Begins to listen, where there is something to listen on."""

    async def close(self) -> None:  # noqa: B027
        """Ends all that `open` began."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*map(self.stop, list(self._tasks)))
        await self.close()
