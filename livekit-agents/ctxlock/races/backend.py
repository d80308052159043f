"""What a race needs of a provider, be it the fake one or a real engine over loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from livekit.agents import llm

from .push import Push
from .server import ServerConversation

__all__ = [
    "Message",
    "Model",
    "Realtime",
    "Response",
    "Traffic",
    "backend",
    "idle",
    "over",
    "witnesses",
]

_SPINS = 500


class Message(Protocol):
    """An assistant message that is being generated."""

    @property
    def id(self) -> str:
        """The item's id."""

    def write(self, text: str) -> None:
        """Streams some more text."""

    def close(self) -> None:
        """Ends the message."""


class Response(Protocol):
    """A response as the provider streams it."""

    @property
    def finished(self) -> bool:
        """Whether it has ended."""

    def message(self, text: str | None = None, *, item_id: str | None = None) -> Message:
        """Adds a message; with ``text`` it is complete."""

    def call(self, name: str, arguments: str = "{}", *, call_id: str | None = None) -> str:
        """Adds a complete function call and returns its ``call_id``."""

    def done(self) -> None:
        """Ends the response."""


class Realtime(Protocol):
    """One realtime session, seen from the provider's end and from the engine's.

    Attributes:
        instructions_entered: Set by each update of the instructions.
        instructions_gate: Clear it to make updates of the instructions wait, where they can.
        on_reply: What a requested reply consists of; called with the response, ends it itself.
    """

    instructions_entered: asyncio.Event
    instructions_gate: asyncio.Event
    on_reply: Callable[[Any], object]

    @property
    def server(self) -> ServerConversation[Any]:
        """What the model sees."""

    @property
    def pushes(self) -> Sequence[Push]:
        """Every update that asked for something, in the order sent."""

    @property
    def chat_ctx(self) -> llm.ChatContext:
        """A copy of the engine's mirror."""

    def hold(self) -> Push:
        """Returns the next update that will ask for something, to be released by the caller."""

    def release_all(self) -> None:
        """Releases whatever is held."""

    def respond(self) -> Response:
        """Begins a response nobody asked for."""

    def add_item(self, item: llm.ChatItem) -> None:
        """Has the server add an item of its own making."""

    def hear(self, item_id: str | None = None) -> str:
        """Hears the user speak and commits what was said; returns the id of the new item."""

    def transcribe(self, item_id: str, text: str) -> None:
        """Has understood what was said; the transcript joins the item."""

    def cut(self) -> None:
        """Loses the connection; the engine connects again and repeats what was acknowledged."""


class Model(Protocol):
    """A realtime model that keeps its sessions."""

    @property
    def sessions(self) -> Sequence[Realtime]:
        """The sessions opened so far."""


class Traffic(Protocol):
    """What is on its way between the two ends of a connection, where there is one."""

    @property
    def settled(self) -> bool:
        """Whether both ends have seen all that the other has sent."""

    async def wait(self) -> None:
        """Returns when it may have settled."""


Backend = Callable[[], AbstractAsyncContextManager[Model]]

backend: ContextVar[Backend | None] = ContextVar("backend", default=None)
"""Opens the model that races run with; None is the fake one."""

traffic: ContextVar[Traffic | None] = ContextVar("traffic", default=None)
"""What `idle` waits for besides the loop."""


witnesses: ContextVar[tuple[Callable[[], None], ...]] = ContextVar("witnesses", default=())
"""What looks at the sessions that run here whenever nothing is left to do, once for each."""


@contextmanager
def over(chosen: Backend) -> Iterator[None]:
    """Runs the races in its block with another backend."""
    token = backend.set(chosen)
    try:
        yield
    finally:
        backend.reset(token)


async def idle() -> None:
    """Runs the event loop until nothing is left to do without some outside event.

    What is on its way between two ends of a connection is no outside event. Upstream polls in one
    place, where a tool's output waits for the floor; such a task counts as waiting after a good
    many rounds.
    """
    ready = getattr(asyncio.get_running_loop(), "_ready", (None,))
    under_way = traffic.get()
    quiet = spins = 0
    while quiet < 3 and spins < _SPINS:
        await asyncio.sleep(0)
        spins += 1
        quiet = 0 if ready else quiet + 1
        if under_way is not None and not under_way.settled:
            if quiet == 3 or spins == _SPINS:
                await under_way.wait()
            if quiet == 3 or not under_way.settled:
                quiet = spins = 0
    for look in witnesses.get():
        look()
