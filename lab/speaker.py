"""An audio output that plays in virtual time, and no device."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from livekit.agents.voice import io

if TYPE_CHECKING:
    from livekit import rtc

__all__ = ["Speaker"]


class Speaker(io.AudioOutput):
    """Plays what it is given, each second of sound in a second of the loop's time.

    Args:
        begins: The time of the clock at which it says that it begins; by default what it is.
    """

    def __init__(self, begins: float | None = None) -> None:
        super().__init__(
            label="speaker", capabilities=io.AudioOutputCapabilities(pause=False), sample_rate=24000
        )
        self._begins = begins
        self._begun: float | None = None
        self._length = 0.0
        self._end: asyncio.TimerHandle | None = None

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        """Plays a frame after those before."""
        await super().capture_frame(frame)
        if self._begun is None:
            self._begun = asyncio.get_running_loop().time()
            now = time.time() if self._begins is None else self._begins
            self.on_playback_started(created_at=now)
        self._length += frame.duration

    def flush(self) -> None:
        """The segment is complete: it ends when all of it is played."""
        super().flush()
        if self._begun is not None and self._end is None:
            loop = asyncio.get_running_loop()
            self._end = loop.call_at(self._begun + self._length, self._finish, False)

    def clear_buffer(self) -> None:
        """Stops at once."""
        if self._begun is not None:
            self._finish(True)

    def _finish(self, interrupted: bool) -> None:
        assert self._begun is not None
        if self._end is not None:
            self._end.cancel()
        played = min(self._length, asyncio.get_running_loop().time() - self._begun)
        self._begun, self._length, self._end = None, 0.0, None
        self.on_playback_finished(playback_position=played, interrupted=interrupted)
