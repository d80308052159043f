"""Phonic: one websocket, over its makers' own client; only the first setting is acknowledged.

The conversation begins once the setting has been read, which takes a while. A text of the user's
travels in the request for a reply. A handoff is a reset with another setting on the same
connection. Nothing can be deleted, and a reply cannot be interrupted by the client.
"""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from typing import Any

from ..script import Answer, answer_for, answer_for_output, encoded, greeting_for
from ..websocket import Connection, WebSocketFarEnd

__all__ = ["Provider"]

_QUOTED = re.compile(r'"(?P<text>.*)"', re.DOTALL)
"""A text of the user's within the system message of a request for a reply."""


class Provider(WebSocketFarEnd):
    """A conversation."""

    name = "phonic"
    latency = 0.001
    requirements = ("livekit-plugins-phonic",)
    traits = frozenset({"never_deletes", "ready_late"})  # it never deletes, asked to or not

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._pending: dict[str, str] = {}
        self._speech: asyncio.Task[Any] | None = None

    def model(self) -> Any:
        """A model whose client connects to here."""
        from phonic.environment import PhonicEnvironment

        from livekit.plugins.phonic import realtime

        # neither the plugin nor a variable takes an address: the client's own setting does
        PhonicEnvironment.DEFAULT.production = f"ws://{self.address}"
        return realtime.RealtimeModel(api_key="none")

    def frame_fact(self, frame: Any) -> Any:
        """Sound is shortened to its length."""
        if frame["type"] == "audio_chunk":
            return {**frame, "audio": f"{len(frame['audio'])} characters"}
        return frame

    async def read(self, connection: Connection, frame: Any) -> None:
        """Reads the setting, requests for replies, and a tool's outputs."""
        kind = frame["type"]
        if kind == "config":
            self.start(self._begin(connection))
        elif kind == "generate_reply":
            message = frame.get("system_message") or ""
            quoted = _QUOTED.search(message)
            answer = answer_for(quoted["text"]) if quoted else greeting_for(message)
            await self._reply(connection, answer)
        elif kind == "say":
            await self._reply(connection, Answer(frame["text"]))
        elif kind == "tool_call_output":
            self._pending.pop(frame["tool_call_id"], None)
            await self._reply(connection, answer_for_output(str(frame["output"])))
        elif kind == "reset":
            await self.stop(self._speech)

    async def user_says(self, text: str | None) -> None:
        """The user speaks, over what the agent says or does, and is answered."""
        connection = self.connection
        await self.stop(self._speech)
        await connection.tell("user_started_speaking")
        for call, tool in self._pending.items():
            await connection.tell("tool_call_interrupted", tool_call_id=call, tool_name=tool)
        self._pending.clear()
        await connection.tell("user_finished_speaking")
        if text is not None:
            await connection.tell("input_text", text=text, language="en")
        await self._reply(connection, answer_for(text or ""))

    async def go_away(self) -> None:
        """The server ends the conversation."""
        connection = self.connection
        await connection.tell("assistant_ended_conversation")
        await connection.close(1000, "The conversation is over.")

    async def _begin(self, connection: Connection) -> None:
        await self.acknowledging()
        await connection.tell("conversation_created", conversation_id="srv_1")
        await self.becoming_ready()
        await connection.tell("ready_to_start_conversation")

    async def _reply(self, connection: Connection, answer: Answer) -> None:
        """Says something in place of what is being said."""
        await self.stop(self._speech)
        self._speech = self.start(self._speak(connection, answer))

    async def _speak(self, connection: Connection, answer: Answer) -> None:
        await asyncio.sleep(self.latency)
        await self.acknowledging()
        if answer.text:
            await connection.tell("assistant_started_speaking")
            await self.in_halves(answer.text, partial(self._words, connection))
        if answer.tool is not None:
            call, parameters = self.next_id("srv_call"), json.loads(answer.arguments)
            self._pending[call] = answer.tool
            about = {"tool_call_id": call, "tool_name": answer.tool, "parameters": parameters}
            await connection.tell("tool_call", **about)
        if answer.text:
            await connection.tell("assistant_finished_speaking")

    async def _words(self, connection: Connection, text: str) -> None:
        await connection.tell("audio_chunk", text=text, audio=encoded())
