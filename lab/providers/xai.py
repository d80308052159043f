"""xAI's Grok Voice, which speaks OpenAI's protocol with an accent."""

from __future__ import annotations

from typing import Any

from ..realtime_protocol import Conversation, Event, RealtimeFarEnd
from ..script import Answer


class Provider(RealtimeFarEnd):
    """Acknowledges deletions without saying of what, and can be made to say a text."""

    name = "xai"
    requirements = ("livekit-plugins-xai", "livekit-plugins-openai")

    def model(self) -> Any:
        """The plugin's model, pointed here."""
        from livekit.plugins.xai import realtime

        return realtime.RealtimeModel(
            api_key="none is needed", base_url=f"http://{self.address}/v1", http_session=self.http
        )

    async def item_deleted(self, talk: Conversation, item_id: str) -> None:
        """Tells of a deletion."""
        await super().item_deleted(talk, "")

    async def on_conversation_item_create(self, talk: Conversation, f: Event) -> None:
        """The client adds an item, or has a text said."""
        if f["item"]["type"] == "force_message":
            self.reply(talk, Answer(f["item"]["content"][0]["text"]))
            return
        await super().on_conversation_item_create(talk, f)
