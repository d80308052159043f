"""`RealtimeModelFallbackAdapter` over two of OpenAI's models, of which each gives up at once."""

from __future__ import annotations

import asyncio
from typing import Any

from ..far_end import Unsupported
from ..realtime_protocol import RealtimeFarEnd

__all__ = ["Provider"]

_COOLDOWN = 2.0
"""Seconds until a model that has failed may be used again."""


class Provider(RealtimeFarEnd):
    """Which of the two has connected shows in the connection's path.

    Neither connects again by itself, so that the adapter swaps them.
    """

    name = "fallback"
    requirements = ("livekit-plugins-openai",)

    def model(self) -> Any:
        """The adapter, over two of the plugin's models that are pointed here."""
        try:
            from livekit.agents.llm import RealtimeModelFallbackAdapter
        except ImportError:
            raise Unsupported("This release has no fallback adapter.") from None
        from livekit.agents.types import APIConnectOptions
        from livekit.plugins.openai import realtime

        models: list[Any] = [
            realtime.RealtimeModel(
                api_key="none is needed",
                base_url=f"http://{self.address}/{which}/v1",
                http_session=self.http,
                conn_options=APIConnectOptions(max_retry=0),
            )
            for which in ("first", "second")
        ]
        return RealtimeModelFallbackAdapter(models, cooldown=_COOLDOWN)

    async def drop(self) -> None:
        """The connection dies, and the one that takes its place: there and back.

        When the session goes away (`go_away`), the other model stays.
        """
        await super().drop()
        await asyncio.sleep(_COOLDOWN + 1)
        await super().drop()
