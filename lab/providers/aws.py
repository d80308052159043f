"""Amazon Nova Sonic: a stream of events in HTTP/2, whose client is a stub here.

A session takes its history before it begins and nothing of it back afterwards: what a client adds
later is a typed turn or a tool's result, and there are no acknowledgements.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
from typing import Any

from ..far_end import FarEnd
from ..script import Answer, answer_for, answer_for_output, encoded

__all__ = ["Provider"]

_INTERRUPTED = '{ "interrupted" : true }'

_LOGGERS = ("asyncio", "livekit.plugins.aws")

_NETWORK = 0.001
"""Seconds until the service begins to answer: no answer comes in the step that asks for it."""


class _Steady(logging.Filter):
    """Takes out of log records what differs from run to run.

    Two channels close at once, and the one that is told of comes first out of a set of tasks. What
    asyncio says of a failed task has its number and a path.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        text = re.sub(r"^(audio input|tool results) channel closed$", "a channel is closed", text)
        text = re.sub(r"name='Task-\d+' |(?<=defined at )\S+/", "", text)
        record.msg, record.args = text, ()
        return True


class _Config:
    """Stands for the client's configuration, which a thread reads from files in its own time."""

    def __init__(self, **given: Any) -> None:
        """Nothing of it matters here."""

    @classmethod
    async def resolve(cls, **given: Any) -> _Config:
        """Takes as long as the files take."""
        await asyncio.sleep(_NETWORK)
        return cls(**given)


class _Stream:
    """One bidirectional stream, both of its ends: what the client holds, and what it talks to."""

    def __init__(self, provider: Provider, number: int) -> None:
        self.number = number
        self.input_stream = _Input(self)
        self.output_stream: _Output | None = None
        self.outgoing: asyncio.Queue[Any] = asyncio.Queue()
        self.over = False
        self.contents: dict[str, dict[str, Any]] = {}
        self.completion = f"completion_{number}"
        self.replied = False
        self.replying = asyncio.Lock()
        self.talked_over: asyncio.Event | None = None
        self.provider = provider

    async def await_output(self) -> tuple[None, _Output]:
        """The service has answered the request that opened the stream."""
        await asyncio.sleep(_NETWORK)
        await self.provider.becoming_ready()
        self.output_stream = _Output(self)
        return None, self.output_stream

    def send(self, **event: Any) -> None:
        """Puts an event on its way to the client."""
        if not self.over:
            self.outgoing.put_nowait({"event": event})

    def end(self, error: Exception | None = None) -> None:
        """The service says no more; the client sees the end, or that error first."""
        if not self.over:
            self.over = True
            if error is not None:
                self.outgoing.put_nowait(error)
            self.outgoing.put_nowait(None)


class _Input:
    """What the client writes to."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream
        self.closed = False

    async def send(self, chunk: Any) -> None:
        if self.closed:
            raise OSError("The stream's input is closed.")
        self._stream.provider.read(self._stream, json.loads(chunk.value.bytes_)["event"])

    async def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._stream.provider.connection_closed(self._stream.number)


class _Output:
    """What the client reads from."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream
        self.closed = False

    async def receive(self) -> Any:
        from aws_sdk_bedrock_runtime.models import (
            BidirectionalOutputPayloadPart,
            InvokeModelWithBidirectionalStreamOutputChunk,
        )

        event = await self._stream.outgoing.get()
        if isinstance(event, Exception):
            raise event
        if event is None:
            return None
        part = BidirectionalOutputPayloadPart(bytes_=json.dumps(event).encode())
        return InvokeModelWithBidirectionalStreamOutputChunk(value=part)

    async def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._stream.provider.received(self._stream.number, "closes the output")
            self._stream.end()


class Provider(FarEnd):
    """The service answers what is typed and spoken by itself; it cannot be told to stop."""

    name = "aws"
    requirements = ("livekit-plugins-aws[realtime]",)
    # ids of items are the client's own, and nothing is ever deleted
    traits = frozenset({"ready_late"})

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._streams: list[_Stream] = []
        self._plugin: Any = None
        self._replaced: dict[str, Any] = {}
        self._steady = _Steady()

    @classmethod
    def needs(cls, release: str) -> tuple[str, ...]:
        """The plugin of 1.7 imports names that its client has lost since."""
        old = ("aws-sdk-bedrock-runtime<0.10",) if release.startswith("1.7.") else ()
        return (*cls.requirements, *old)

    async def open(self) -> None:
        """Steadies what is logged."""
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._steady)

    def model(self) -> Any:
        """The plugin's model; the client that it makes is the stub until this far end closes."""
        # its default credentials; without them it would ask the network for some
        os.environ.setdefault("AWS_ACCESS_KEY_ID", "none is needed")
        os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "none is needed")
        from livekit.plugins.aws.experimental.realtime import realtime_model as plugin

        if not self._replaced:
            self._plugin = plugin
            for stub, names in (
                (self._stub(), ("_BedrockRuntimeClient", "BedrockRuntimeClient")),
                (_Config, ("_BedrockRuntimeConfig", "Config")),
            ):
                # the shorter names are those before 1.8
                name = next(name for name in names if hasattr(plugin, name))
                self._replaced[name] = getattr(plugin, name)
                setattr(plugin, name, stub)
        return plugin.RealtimeModel()

    def _stub(self) -> type[Any]:
        far_end = self

        class Client:
            def __init__(self, config: Any) -> None:
                """Nothing of the configuration matters here."""

            async def invoke_model_with_bidirectional_stream(self, given: Any) -> _Stream:
                await asyncio.sleep(_NETWORK)
                return far_end.opened({"model": given.model_id})

        return Client

    async def close(self) -> None:
        """Gives the plugin its client back."""
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self._steady)
        for stream in self._streams:
            stream.end()
        for name, original in self._replaced.items():
            setattr(self._plugin, name, original)

    def opened(self, about: Any) -> _Stream:
        """A client has opened a stream."""
        self._streams.append(_Stream(self, self.connection_opened(about)))
        return self._streams[-1]

    # -- what happens at the provider

    async def user_says(self, text: str | None) -> None:
        """The user is heard, and talks a reply that plays over."""
        stream = self._newest
        if stream.talked_over is not None:
            stream.talked_over.set()
            await asyncio.sleep(0.5)  # as long as the words take
        if text is not None:
            self._write(stream, "USER", "FINAL", text)
        self.start(self._reply(stream, answer_for(text or "")), "reply")

    async def drop(self) -> None:
        """The connection breaks in the middle of an event."""
        from smithy_aws_event_stream.exceptions import InvalidEventBytes

        self._newest.end(InvalidEventBytes())

    async def go_away(self) -> None:
        """The service resets the stream in good order, as it does now and then."""
        from aws_sdk_bedrock_runtime.models import ValidationException

        reset = "InternalErrorCode=531::RST_STREAM closed stream. HTTP/2 error code: NO_ERROR"
        self._newest.end(ValidationException(message=reset))

    @property
    def _newest(self) -> _Stream:
        if not self._streams or self._streams[-1].over:
            raise ConnectionError("No client is connected.")
        return self._streams[-1]

    # -- what is answered

    def read(self, stream: _Stream, event: dict[str, Any]) -> None:
        """Takes an event in, and begins to answer it."""
        ((kind, what),) = event.items()
        if kind == "audioInput":
            fact = {**what, "content": len(base64.b64decode(what["content"]))}
            self.received(stream.number, {kind: fact})
            return
        self.received(stream.number, event)
        if kind == "contentStart":
            stream.contents[what["contentName"]] = {**what, "text": ""}
        elif kind in ("textInput", "toolResult"):
            stream.contents[what["contentName"]]["text"] += what["content"]
        elif kind == "contentEnd":
            content = stream.contents.pop(what["contentName"], {})
            if content.get("type") == "TOOL":
                answer = answer_for_output(_output(content["text"]))
                self.start(self._reply(stream, answer), "reply")
            elif content.get("type") == "TEXT" and content["interactive"]:
                self.start(self._reply(stream, answer_for(content["text"])), "reply")
        elif kind == "promptEnd" and stream.replied:
            of = {"completionId": stream.completion, "stopReason": "END_TURN"}
            stream.send(completionEnd=of)
        elif kind == "sessionEnd":
            stream.end()

    async def _reply(self, stream: _Stream, answer: Answer) -> None:
        await asyncio.sleep(_NETWORK)
        async with stream.replying:  # one after the other
            await self._speak(stream, answer)

    async def _speak(self, stream: _Stream, answer: Answer) -> None:
        if not stream.replied:
            # one completion for all turns of a stream
            stream.replied = True
            stream.send(completionStart={"completionId": stream.completion})
        # a sentence at a time: its words ahead of its sound
        if answer.text:
            over = stream.talked_over = asyncio.Event()
            first, space, rest = answer.text.partition(" ")
            self._write(stream, "ASSISTANT", "SPECULATIVE", first + space)
            await self._sound(stream, over, last=not (rest or answer.tool))
            if rest and not over.is_set():
                self._write(stream, "ASSISTANT", "SPECULATIVE", rest)
                await self._sound(stream, over, last=not answer.tool, held=False)
            stream.talked_over = None
            if over.is_set():
                return
        if answer.tool:
            of = self._content(stream, type="TOOL", role="TOOL")
            call = {"toolName": answer.tool, "toolUseId": self.next_id("call")}
            stream.send(toolUse={**of, **call, "content": answer.arguments})
            stream.send(contentEnd={**of, "type": "TOOL", "stopReason": "TOOL_USE"})
            return  # the turn goes on once the client has sent the tool's result
        self._write(stream, "ASSISTANT", "FINAL", answer.text)

    async def _sound(
        self, stream: _Stream, over: asyncio.Event, *, last: bool, held: bool = True
    ) -> None:
        of = self._content(stream, type="AUDIO", role="ASSISTANT")
        stream.send(audioOutput={**of, "role": "ASSISTANT", "content": encoded()})
        if held:
            tasks = (self.start(self.held()), self.start(over.wait()))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
        if over.is_set():
            text = self._content(stream, type="TEXT", role="ASSISTANT")
            stream.send(textOutput={**text, "role": "ASSISTANT", "content": _INTERRUPTED})
            stream.send(contentEnd={**text, "type": "TEXT", "stopReason": "INTERRUPTED"})
            reason = "INTERRUPTED"
        else:
            reason = "END_TURN" if last else "PARTIAL_TURN"
        stream.send(contentEnd={**of, "type": "AUDIO", "stopReason": reason})

    def _write(self, stream: _Stream, role: str, stage: str, text: str) -> None:
        more = json.dumps({"generationStage": stage})
        of = self._content(stream, type="TEXT", role=role, additionalModelFields=more)
        stream.send(textOutput={**of, "role": role, "content": text})
        stream.send(contentEnd={**of, "type": "TEXT", "stopReason": "PARTIAL_TURN"})

    def _content(self, stream: _Stream, **about: Any) -> dict[str, Any]:
        of = {"completionId": stream.completion, "contentId": self.next_id("content")}
        stream.send(contentStart={**of, **about})
        return of


def _output(text: str) -> str:
    """A tool's output; the plugin wraps what is no JSON."""
    try:
        return str(json.loads(text)["tool_result"])
    except (ValueError, KeyError, TypeError):
        return text
