"""The plugin's realtime model, connected to the scripted server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from livekit.plugins.openai import realtime

from .. import backend
from ..instrumentation import watch_session
from .far_end import FarEnd
from .server import listening
from .traffic import Traffic as Counters

__all__ = ["LoopbackModel", "serving"]


class LoopbackModel(realtime.RealtimeModel):
    """Makes the plugin's sessions as they are, and keeps the far end of each.

    Args:
        traffic: What is under way to and fro.
        spoken: Whether the model speaks; else it writes.
        options: Whatever the plugin's model takes.

    Attributes:
        sessions: The far ends, in the order of their sessions.
    """

    def __init__(self, traffic: Counters, *, spoken: bool = False, **options: Any) -> None:
        super().__init__(
            **{
                "api_key": "none is needed",
                "modalities": ["audio", "text"] if spoken else ["text"],
                "turn_detection": None,
                "input_audio_transcription": None,
            }
            | options
        )
        self.sessions: list[FarEnd] = []
        self._spoken = spoken
        self._traffic = traffic

    def session(self, **how: Any) -> realtime.RealtimeSession:
        """Opens a session of the plugin's."""
        engine = super().session(**how)
        watch_session(engine)
        self.sessions.append(FarEnd(engine, self._traffic, spoken=self._spoken))
        self._traffic.expect_connection()
        return engine

    def claim(self) -> FarEnd:
        """The first far end without a connection: engines connect in the order of their making."""
        return next(end for end in self.sessions if end.connection is None and not end.closed)


class _Awaited:
    """The traffic, and what the server is still receiving."""

    def __init__(self, traffic: Counters) -> None:
        self.model: LoopbackModel | None = None
        self._traffic = traffic

    @property
    def settled(self) -> bool:
        """Whether nothing is on its way."""
        receiving = self.model is not None and any(end.receiving for end in self.model.sessions)
        return self._traffic.settled and not receiving

    async def wait(self) -> None:
        """Returns when it may have settled."""
        await self._traffic.wait()

    def claim(self) -> FarEnd:
        """The far end of the engine that has just connected."""
        assert self.model is not None
        return self.model.claim()


@asynccontextmanager
async def serving(*, spoken: bool = False, **options: Any) -> AsyncIterator[LoopbackModel]:
    """Starts a server and yields a model that talks to it; both end with the block.

    Args:
        spoken: Whether the model speaks; else it writes.
        options: Whatever the plugin's model takes.
    """
    traffic = Counters()
    awaited = _Awaited(traffic)
    async with listening(awaited) as base_url, aiohttp.ClientSession() as http:
        model = LoopbackModel(
            traffic, spoken=spoken, base_url=base_url, http_session=http, **options
        )
        awaited.model = model
        backend.traffic.set(awaited)
        try:
            yield model
        finally:
            backend.traffic.set(None)
            await model.aclose()
