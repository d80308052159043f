"""Azure Voice Live, which speaks OpenAI's protocol of the beta.

Its plugin never deletes what an application takes out, and adds what is new.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from ..far_end import Unsupported
from ..realtime_protocol import Conversation, Event, RealtimeFarEnd

__all__ = ["Provider"]


class Provider(RealtimeFarEnd):
    """The real plugin and its vendor's real client, with the service's own turn detection."""

    name = "azure_voice_live"
    requirements = ("livekit-plugins-azure[realtime]",)
    beta = True

    def model(self) -> Any:
        """The plugin's model, pointed here; its client takes an address without encryption."""
        try:
            from livekit.plugins.azure.realtime import RealtimeModel
        except ModuleNotFoundError:
            raise Unsupported("This release's plugin has no realtime model.") from None

        return RealtimeModel(endpoint=f"http://{self.address}", api_key="none is needed")

    def about(self, request: web.Request) -> Any:
        """The path and what is asked for, without the versions of the client's platform."""
        asked = dict(parse_qsl(request.query_string))
        asked.pop("x-ms-client-sdk", None)
        return {"path": request.path, **asked}

    async def on_response_create(self, talk: Conversation, f: Event) -> None:
        """The client asks for a reply; what it is to be about stands outside the reply's wishes."""
        wish = {**f["response"], "instructions": f.get("additional_instructions")}
        await super().on_response_create(talk, {**f, "response": wish})
