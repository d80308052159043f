"""A duplex model, OpenAI's GPT-Live, in the adapter that makes a realtime model of it.

It sends sound all the time and decides itself when to speak. What it shall do with tools it hands
to a model behind it, whose events come in envelopes. It confirms what is added, and takes nothing
away.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from ..far_end import Unsupported
from ..script import SILENCE, Answer, answer_for, answer_for_output, encoded, greeting_for
from ..websocket import Connection, WebSocketFarEnd

__all__ = ["Provider"]

_SOUND = (3000).to_bytes(2, "little") * (len(SILENCE) // 2)
_RATE = 24000
_USAGE = {"seconds": 1.0}
_PAUSE = 10
"""Tenths of a second of silence by which an utterance is over; the plugin's limit is 0.8 s."""


class _Talk:
    """What the server knows of one connection."""

    def __init__(self) -> None:
        self.instructions = ""
        self.typed: str | None = None
        self.clock = 0
        self.speaking = asyncio.Lock()
        self.outputs: list[str] = []
        self.running = "delegation"


class Provider(WebSocketFarEnd):
    """The model speaks when it is asked to and when the user has spoken; it cannot be stopped."""

    name = "duplex"
    requirements = ("livekit-plugins-openai",)
    # ids of items are the client's own, and nothing is ever deleted
    traits = frozenset({"ready_late"})

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._clients: list[Any] = []

    def model(self) -> Any:
        """The plugin's model in the adapter, as AgentSession itself puts it there."""
        try:
            from livekit.agents.llm import DuplexRealtimeAdapter
            from livekit.plugins.openai.realtime import GPTLiveModel
        except ImportError:
            raise Unsupported("This release has no duplex models.") from None

        far_end = self

        class Model(GPTLiveModel):  # type: ignore[misc,unused-ignore]
            def session(self) -> Any:
                far_end._clients.append(super().session())
                return far_end._clients[-1]

        model = Model(base_url=f"http://{self.address}/v1", api_key="none is needed")
        return DuplexRealtimeAdapter(model)

    def frame_fact(self, frame: Any) -> Any:
        """Sound by its length."""
        if frame["type"] == "session.input_audio.append":
            return {**frame, "audio": len(base64.b64decode(frame["audio"]))}
        return frame

    # -- what happens at the provider

    async def user_says(self, text: str | None) -> None:
        """The user is heard; the model takes its turn when the user's is over."""
        connection = self.connection
        talk = connection.talk
        if text is not None:
            begun, talk.clock = talk.clock, talk.clock + 500
            heard = {"delta": text, "start_ms": begun, "end_ms": talk.clock}
            await connection.tell("session.input_transcript.delta", **heard)
        await self._microphone()
        self.start(self._say(connection, talk, answer_for(text or "")), "reply")

    async def go_away(self) -> None:
        """The server closes a session that has become too old."""
        connection = self.connection
        await connection.tell("session.closed", reason="expired", usage=_USAGE)
        await connection.close(1000)

    async def _microphone(self) -> None:
        # the client counts the silence that it sends to know that the user's turn is over
        from livekit import rtc

        await asyncio.sleep(0.1)  # until the transcript is there
        for _ in range(_PAUSE):
            frame = rtc.AudioFrame(SILENCE, _RATE, 1, len(SILENCE) // 2)
            self._clients[-1].push_audio(frame)
        await asyncio.sleep(0.1)

    # -- what is answered

    async def connected(self, connection: Connection) -> None:
        """The client speaks first."""
        connection.talk = _Talk()

    async def read(self, connection: Connection, frame: Any) -> None:
        """Answers one event."""
        talk = connection.talk
        kind = frame["type"]
        if kind == "session.start":
            talk.instructions = frame["session"].get("instructions", "")
            await self.becoming_ready()
            session = {"id": f"session_{connection.number}"}
            await connection.tell("session.started", session=session)
        elif kind == "session.update":
            await self._confirm(connection, frame, "session.updated")
        elif kind in ("session.instructions.append", "session.thinking.append"):
            role, _, text = frame["content"].rpartition("\n")[2].partition(": ")
            talk.typed = text if role == "user" else None
            await self._confirm(connection, frame, f"{kind}ed")
        elif kind == "session.commentary.append":
            await self._confirm(connection, frame, f"{kind}ed")
            self.start(self._say(connection, talk, _answer(talk, frame["content"])), "reply")
        elif kind == "response.item.create":
            talk.outputs.append(frame["item"]["output"])
        elif kind == "response.create":
            outputs, talk.outputs = talk.outputs, []
            await self._run(connection, talk.running)
            answer = answer_for_output(" and ".join(outputs))
            self.start(self._say(connection, talk, answer), "reply")
        elif kind == "session.close":
            await connection.tell("session.closed", reason="close_requested", usage=_USAGE)

    async def _confirm(self, connection: Connection, frame: Any, kind: str) -> None:
        await self.acknowledging()
        await connection.tell(kind, client_event_id=frame.get("event_id"))

    # -- what the model says and does

    async def _say(self, connection: Connection, talk: _Talk, answer: Answer) -> None:
        async with talk.speaking:  # one voice
            if answer.text or answer.tool:
                first, space, rest = (answer.text or "One moment.").partition(" ")
                await self._utter(connection, talk, first + space)
                await self._go_on(connection, talk)
                if rest:
                    await self._utter(connection, talk, rest)
            if answer.tool:
                # handed on while the model speaks, so that it belongs to what is said
                talk.running = self.next_id("delegation")
                about = {"id": talk.running, "target": "responses"}
                await connection.tell("session.delegation.created", delegation=about)
                await self._run(connection, talk.running, answer)
            for _ in range(_PAUSE):
                await self._sound(connection, talk, SILENCE)

    async def _utter(self, connection: Connection, talk: _Talk, words: str) -> None:
        span = {"start_ms": talk.clock, "end_ms": talk.clock + 100}
        await connection.tell("session.output_transcript.delta", delta=words, **span)
        await self._sound(connection, talk, _SOUND)

    async def _go_on(self, connection: Connection, talk: _Talk) -> None:
        # a reply that is held must be heard, else the adapter takes it for ended
        held = self.start(self.held(), "a held reply")
        await asyncio.sleep(0)
        while not held.done() and not connection.cut:
            await self._sound(connection, talk, _SOUND)
            await asyncio.sleep(0.1)
        held.cancel()

    async def _sound(self, connection: Connection, talk: _Talk, sound: bytes) -> None:
        talk.clock += 100
        await connection.tell("session.output_audio.delta", delta=encoded(sound))

    async def _run(
        self, connection: Connection, delegation: str, answer: Answer | None = None
    ) -> None:
        response = {"id": self.next_id("response"), "model": "behind"}
        events: list[Any] = [{"type": "response.created", "response": response}]
        if answer is not None:
            call: dict[str, Any] = {"call_id": self.next_id("call"), "arguments": answer.arguments}
            call = {**call, "name": answer.tool, "type": "function_call", "status": "completed"}
            item = {"id": self.next_id("srv"), **call}
            events.append({"type": "response.output_item.done", "item": item})
        events.append({"type": "response.completed", "response": response})
        for event in events:
            await connection.tell("response.event", delegation_id=delegation, event=event)


def _answer(talk: _Talk, asked: str) -> Answer:
    """What to say when asked to speak: the client's request ends in what it is about."""
    _, _, about = asked.partition("\n\n")
    if about:
        talk.typed = None
        return answer_for(about)
    typed, talk.typed = talk.typed, None
    return answer_for(typed) if typed else greeting_for(talk.instructions)
