"""OpenAI's realtime API on Azure, which still has the names of the beta."""

from __future__ import annotations

from typing import Any, ClassVar

from ..realtime_protocol import RealtimeFarEnd


class Provider(RealtimeFarEnd):
    """The real plugin in its mode for Azure."""

    name = "azure_openai"
    requirements = ("livekit-plugins-openai",)
    beta: ClassVar[bool] = True

    def model(self) -> Any:
        """The plugin's model, pointed here."""
        from livekit.plugins.openai import realtime

        return realtime.RealtimeModel.with_azure(
            azure_deployment="a-deployment",
            azure_endpoint=f"http://{self.address}",
            api_key="none is needed",
            http_session=self.http,
        )
