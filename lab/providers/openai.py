"""OpenAI's realtime API."""

from __future__ import annotations

from typing import Any

from ..realtime_protocol import RealtimeFarEnd


class Provider(RealtimeFarEnd):
    """The real plugin, with the service's own turn detection."""

    name = "openai"
    requirements = ("livekit-plugins-openai",)

    def model(self) -> Any:
        """The plugin's model, pointed here."""
        from livekit.plugins.openai import realtime

        return realtime.RealtimeModel(
            api_key="none is needed", base_url=f"http://{self.address}/v1", http_session=self.http
        )
