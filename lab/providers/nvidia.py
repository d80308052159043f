"""NVIDIA PersonaPlex: a websocket on which both sides send Opus, and the server words, too.

The instructions stand in the address, so that to change them is to connect anew. There is no
request for a reply, no text of the user's, no context and no tool: what a client knows of them
stays with the client.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ..script import answer_for
from ..websocket import Connection, WebSocketFarEnd

__all__ = ["Provider"]

_HANDSHAKE, _SOUND, _WORDS = b"\x00", b"\x01", b"\x02"
_RATE = 24000
_FRAME = 0.08


class Provider(WebSocketFarEnd):
    """A talk."""

    name = "nvidia"
    latency = 0.001
    requirements = ("livekit-plugins-nvidia[personaplex]",)
    traits = frozenset({"never_deletes", "ready_late"})  # there is nothing to delete

    _speech: asyncio.Task[Any] | None = None

    def model(self) -> Any:
        """A model that connects to here."""
        from livekit.plugins.nvidia import realtime

        return realtime.RealtimeModel(base_url=f"ws://{self.address}", http_session=self.http)

    async def connected(self, connection: Connection) -> None:
        """Shakes hands, which lets the client send."""
        self.start(self._begin(connection))

    async def read(self, connection: Connection, frame: Any) -> None:
        """Hears sound, and makes nothing of it."""

    async def user_says(self, text: str | None) -> None:
        """The user speaks, of which the client learns nothing, and the model speaks.

        It may say that it calls a tool, and then it calls none.
        """
        if self._speech is not None:
            self._speech.cancel()
        self._speech = self.start(self._speak(self.connection, answer_for(text or "").text))

    async def go_away(self) -> None:
        """The server closes the connection in the orderly way."""
        await self.connection.close(1000)

    async def _begin(self, connection: Connection) -> None:
        await self.becoming_ready()
        await connection.send(_HANDSHAKE)

    async def _speak(self, connection: Connection, text: str) -> None:
        import numpy as np
        import sphn  # type: ignore[import-not-found]

        opus = sphn.OpusStreamWriter(_RATE)
        quiet = np.zeros(int(_RATE * _FRAME), dtype=np.float32)

        async def say(words: str) -> None:
            await connection.send(_WORDS + words.encode())
            await connection.send(_SOUND + opus.append_pcm(quiet))

        half = len(text) // 2
        await say(text[:half])
        while self.holding:  # a client takes a pause in the sound for the end
            await asyncio.sleep(_FRAME)
            await connection.send(_SOUND + opus.append_pcm(quiet))
        await say(text[half:])
