"""Gemini Live: one websocket, no ids of items, replies in pieces of one turn."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web

from ..script import Answer, answer_for, answer_for_output, encoded, greeting_for
from ..websocket import Connection, WebSocketFarEnd

Event = dict[str, Any]

_PLACEHOLDER = "."
"""What the plugin sends as the user's words when it only wants a reply."""


@dataclass
class _Talk:
    """What the model has on one connection.

    Attributes:
        turns: Roles and texts, in order.
        instructions: The system instruction.
        answered: How many of the turns have been answered.
        replying: The reply that is being generated.
    """

    turns: list[tuple[str, str]] = field(default_factory=list)
    instructions: str = ""
    answered: int = 0
    replying: asyncio.Task[None] | None = None


class Provider(WebSocketFarEnd):
    """Resumes a session by its handle, announces its end, and never deletes."""

    name = "google"
    requirements = ("livekit-plugins-google",)
    traits = frozenset({"ready_late"})

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._resumable: dict[str, list[tuple[str, str]]] = {}

    def model(self) -> Any:
        """The plugin's model, pointed here: its client would insist on a certificate."""
        from livekit.plugins.google import realtime

        model = realtime.RealtimeModel(api_key="none is needed")
        make_session = model.session

        def session(**options: Any) -> Any:
            made = make_session(**options)
            client = made._client._api_client
            client._websocket_base_url = lambda *_: f"ws://{self.address}"
            client._websocket_ssl_ctx = {}
            return made

        model.session = session
        return model

    def about(self, request: web.Request) -> Any:
        """Where the client wants to go; the key says nothing."""
        return request.path

    def frame_fact(self, frame: Any) -> Any:
        """Frames are JSON in either kind of message; sound is shortened to its length."""
        event = self._event(frame)
        audio = event.get("realtime_input", {}).get("audio")
        if isinstance(audio, dict):
            return {"realtime_input": {"audio": len(audio.get("data", ""))}}
        return event

    async def connected(self, connection: Connection) -> None:
        """The client speaks first."""
        connection.talk = _Talk()

    async def read(self, connection: Connection, frame: Any) -> None:
        """Does what the client asks for."""
        event, talk = self._event(frame), connection.talk
        if (setup := event.get("setup")) is not None:
            await self._set_up(connection, talk, setup)
        elif (content := event.get("client_content")) is not None:
            await self.acknowledging()
            told = self._take_in(talk, content.get("turns") or [])
            if content.get("turnComplete"):
                answer = greeting_for(told[-1]) if told else self._answer(talk)
                talk.answered = len(talk.turns)
                self._begin(connection, talk, answer)
        elif (response := event.get("tool_response")) is not None:
            await self.acknowledging()
            outputs = [part["response"] for part in response["functionResponses"]]
            talk.turns.append(("tool", json.dumps(outputs)))
            talk.answered = len(talk.turns)
            self._begin(connection, talk, answer_for_output(str(outputs[-1].get("output"))))

    async def user_says(self, text: str | None) -> None:
        """The user speaks; that interrupts a reply, and begins another."""
        connection = self.connection
        talk = connection.talk
        await self.stop(talk.replying)
        talk.turns.append(("user", text or ""))
        talk.answered = len(talk.turns)
        if text is not None:
            await self._tell(connection, inputTranscription={"text": f" {text}"})
        self._begin(connection, talk, answer_for(text or ""))

    async def go_away(self) -> None:
        """The provider announces the end of the connection."""
        await self.connection.send({"goAway": {"timeLeft": "5s"}})

    async def _set_up(self, connection: Connection, talk: _Talk, setup: Event) -> None:
        parts = (setup.get("systemInstruction") or {}).get("parts") or [{}]
        talk.instructions = parts[0].get("text", "")
        handle = str((setup.get("sessionResumption") or {}).get("handle"))
        talk.turns = list(self._resumable.get(handle, ()))
        talk.answered = len(talk.turns)
        await self.becoming_ready()
        await self.acknowledging()
        await connection.send({"setupComplete": {}})

    def _take_in(self, talk: _Talk, turns: list[Event]) -> list[str]:
        told = []
        for turn in turns:
            text = " ".join(str(part.get("text", "")) for part in turn.get("parts") or [])
            if text != _PLACEHOLDER:
                talk.turns.append((turn.get("role", "user"), text))
                told.append(text)
        return told

    def _answer(self, talk: _Talk) -> Answer:
        waiting = [text for role, text in talk.turns[talk.answered :] if role == "user"]
        return answer_for(waiting[-1]) if waiting else greeting_for(talk.instructions)

    # -- replies

    def _begin(self, connection: Connection, talk: _Talk, answer: Answer) -> None:
        before = talk.replying
        talk.replying = self.start(self._reply(connection, talk, answer, before), "reply")

    async def _reply(
        self, connection: Connection, talk: _Talk, answer: Answer, before: asyncio.Task[None] | None
    ) -> None:
        if before is not None and not before.done():
            await self.stop(before)  # a new turn of the client's interrupts
        try:
            if answer.text:
                await self.in_halves(answer.text, partial(self._words, connection))
                talk.turns.append(("model", answer.text))
            if answer.tool is not None:
                call = {"id": self.next_id("srv_call"), "name": answer.tool}
                call["args"] = json.loads(answer.arguments)
                await connection.send({"toolCall": {"functionCalls": [call]}})
                return
            await self._tell(connection, generationComplete=True)
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            await self._tell(connection, interrupted=True)
        await self._tell(connection, turnComplete=True)
        handle = self.next_id("srv_handle")
        self._resumable[handle] = list(talk.turns)
        await connection.send({"sessionResumptionUpdate": {"newHandle": handle, "resumable": True}})

    async def _words(self, connection: Connection, text: str) -> None:
        part = {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": encoded()}}
        await self._tell(connection, modelTurn={"parts": [part]})
        await self._tell(connection, outputTranscription={"text": text})

    async def _tell(self, connection: Connection, **content: Any) -> None:
        await connection.send({"serverContent": content})

    def _event(self, frame: Any) -> Event:
        event: Event = json.loads(frame) if isinstance(frame, bytes) else frame
        return event
