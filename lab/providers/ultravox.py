"""Ultravox: a call is made over REST, and joined over a websocket that speaks of nothing but sound.

The client never sees the conversation. Texts go one way; transcripts come back, of typed words,
too, numbered from 0 in each call. Nothing is acknowledged and nothing can be deleted. Instructions
and tools stand in the call that is made, so that to change one of them is to make another call.

A text is answered unless it says that its answer is to be deferred. The plugin never says so, not
even of its context's texts: so whatever it tells, the model has something to say to it.
"""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from typing import Any

from aiohttp import web

from ..script import SILENCE, Answer, answer_for, answer_for_output, greeting_for
from ..websocket import Connection, WebSocketFarEnd

__all__ = ["Provider"]

_PAUSE = 0.05
"""Seconds without a further text until texts are answered: those sent together are one turn."""

_INSTRUCTION = re.compile(r"<instruction>(?P<text>.*)</instruction>", re.DOTALL)


class _Call:
    """One call: its numbers, and what it is about to say."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.ordinal = 0
        self.turn = asyncio.Lock()
        self.asked: asyncio.Task[Any] | None = None
        self.latest: Answer | None = None
        self.speech: asyncio.Task[Any] | None = None

    def number(self) -> int:
        """The number of the next utterance, the user's or the agent's."""
        self.ordinal += 1
        return self.ordinal - 1

    async def state(self, name: str) -> None:
        """Tells which state the call is in."""
        await self.connection.tell("state", state=name)

    async def words(self, number: int, text: str) -> None:
        """Says more of an utterance."""
        await self.transcript("agent", number, final=False, delta=text)
        await self.connection.send(SILENCE)

    async def transcript(self, role: str, number: int, *, final: bool, **words: str) -> None:
        """Tells what was said, all of it as ``text`` or more of it as ``delta``."""
        whose = "agent" if role == "agent" else "user"
        about = {"role": whose, "medium": "text" if role == "typed" else "voice"}
        await self.connection.tell("transcript", **about, **words, final=final, ordinal=number)


class Provider(WebSocketFarEnd):
    """Calls, each with a websocket."""

    name = "ultravox"
    latency = 0.001
    requirements = ("livekit-plugins-ultravox",)
    # it never deletes and always numbers anew, asked to or not
    traits = frozenset({"never_deletes", "reuses_ids", "ready_late"})

    _made = 0

    def model(self) -> Any:
        """A model whose calls are made here."""
        from livekit.plugins.ultravox import realtime

        return realtime.RealtimeModel(
            api_key="none", base_url=f"http://{self.address}/api", http_session=self.http
        )

    async def answer_http(self, request: web.Request) -> web.StreamResponse:
        """Makes a call and tells where to join it."""
        if (request.method, request.path) != ("POST", "/api/calls"):
            raise web.HTTPNotFound
        self._made += 1
        self.recorder.note("connections", {"call": self._made, "made": await request.json()})
        await self.becoming_ready()
        call = f"srv_{self._made}"
        made = {"callId": call, "joinUrl": f"ws://{self.address}/join/{call}"}
        return web.json_response(made, status=201)

    async def connected(self, connection: Connection) -> None:
        """Greets: the call has begun, and it listens."""
        call = connection.talk = _Call(connection)
        name = connection.request.path.rsplit("/", 1)[-1]
        await connection.tell("call_started", callId=name)
        await call.state("listening")

    async def read(self, connection: Connection, frame: Any) -> None:
        """Reads texts, a tool's results, and what is to be said word by word."""
        call: _Call = connection.talk
        if frame["type"] == "user_text_message":
            if frame.get("urgency") == "immediate":
                await self._interrupt(call)
            self.start(self._typed(call, frame["text"], frame.get("deferResponse", False)))
        elif frame["type"] == "client_tool_result":
            output = frame.get("result") or frame.get("errorMessage") or ""
            if frame.get("agentReaction", "speaks") == "speaks":
                self._ask(call, answer_for_output(output))
        elif frame["type"] == "forced_agent_message":
            self.start(self._reply(call, Answer(frame["content"])))

    async def user_says(self, text: str | None) -> None:
        """The user speaks, over what the agent says if it says something, and is answered."""
        call: _Call = self.connection.talk
        if call.speech is not None:
            await call.connection.tell("playback_clear_buffer")
            await self._interrupt(call)
        if text is not None:
            await call.transcript("user", call.number(), final=True, text=text)
        self.start(self._reply(call, answer_for(text or "")))

    async def go_away(self) -> None:
        """The call has lasted long enough."""
        await self.connection.close(1000, "The call's time is over.")

    async def _typed(self, call: _Call, text: str, deferred: bool) -> None:
        await self.acknowledging()
        if text:
            await call.transcript("typed", call.number(), final=True, text=text)
        if not deferred:
            instruction = _INSTRUCTION.fullmatch(text)
            answer = greeting_for(instruction["text"]) if instruction else answer_for(text)
            self._ask(call, answer if text else None)

    def _ask(self, call: _Call, answer: Answer | None) -> None:
        """Has the newest of what was asked within a pause be answered; None is "go on"."""
        if answer is not None:
            call.latest = answer
        if call.asked is not None:
            call.asked.cancel()
        call.asked = self.start(self._answer_soon(call))

    async def _answer_soon(self, call: _Call) -> None:
        await asyncio.sleep(_PAUSE)
        answer = call.latest or answer_for("")
        call.asked = call.latest = None
        self.start(self._reply(call, answer))

    async def _interrupt(self, call: _Call) -> None:
        """Ends what is being said."""
        if call.speech is not None:
            await self.stop(call.speech)
            await call.state("listening")

    async def _reply(self, call: _Call, answer: Answer) -> None:
        async with call.turn:
            call.speech = self.start(self._speak(call, answer))
            await asyncio.wait({call.speech})
            call.speech = None

    async def _speak(self, call: _Call, answer: Answer) -> None:
        number = call.number()
        await call.state("thinking")
        if answer.text:
            await call.state("speaking")
            await self.in_halves(answer.text, partial(call.words, number))
        if answer.tool is not None:
            about = {"toolName": answer.tool, "invocationId": self.next_id("srv_call")}
            about["parameters"] = json.loads(answer.arguments)
            await call.connection.tell("client_tool_invocation", **about)
            return
        await call.transcript("agent", number, final=True, text=answer.text)
        await call.state("listening")
