"""A response as the provider streams it: items one by one, under the caller's control."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from typing import Any, TypeVar

from livekit.agents import llm, utils

from .engine import Engine

__all__ = ["Message", "Response", "build"]

T = TypeVar("T")


def build(kind: type[T], **values: Any) -> T:
    """Makes a dataclass of upstream's, leaving out the fields its release does not have yet."""
    known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in values.items() if name in known})


class Message:
    """An assistant message that is being generated."""

    def __init__(self, item_id: str) -> None:
        self.id = item_id
        self.text = ""
        self._text_ch: utils.aio.Chan[str] = utils.aio.Chan()
        self._audio_ch: utils.aio.Chan[Any] = utils.aio.Chan()
        self._audio_ch.close()  # the fake has no voice
        self._modalities: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        self._modalities.set_result(["text"])

    def write(self, text: str) -> None:
        """Streams some more text."""
        if not self._text_ch.closed:
            self.text += text
            self._text_ch.send_nowait(text)

    def close(self) -> None:
        """Ends the message."""
        self._text_ch.close()

    def as_generation(self) -> llm.MessageGeneration:
        """What the agent reads it from."""
        return build(
            llm.MessageGeneration,
            message_id=self.id,
            text_stream=self._text_ch,
            audio_stream=self._audio_ch,
            modalities=self._modalities,
        )


class Response:
    """One response of the model; `call` and `message` add items, `done` ends it.

    Every item joins the server's conversation at its tail when it is added, before its contents
    are known, as the OpenAI engine has it.
    """

    _numbers = itertools.count(1)

    def __init__(self, engine: Engine, *, user_initiated: bool) -> None:
        self.id = f"response_{next(self._numbers)}"
        self.finished = False
        self._engine = engine
        self._messages: list[Message] = []
        self._message_ch: utils.aio.Chan[llm.MessageGeneration] = utils.aio.Chan()
        self._function_ch: utils.aio.Chan[llm.FunctionCall] = utils.aio.Chan()
        self.event = build(
            llm.GenerationCreatedEvent,
            message_stream=self._message_ch,
            function_stream=self._function_ch,
            user_initiated=user_initiated,
            response_id=self.id,
        )

    def message(self, text: str | None = None, *, item_id: str | None = None) -> Message:
        """Adds a message; with ``text`` it is complete, without it is left open to write to."""
        message = Message(item_id or utils.shortuuid("item_"))
        self._engine.add(llm.ChatMessage(id=message.id, role="assistant", content=[]))
        self._messages.append(message)
        self._message_ch.send_nowait(message.as_generation())
        if text is not None:
            message.write(text)
            message.close()
        return message

    def call(self, name: str, arguments: str = "{}", *, call_id: str | None = None) -> str:
        """Adds a complete function call and returns its ``call_id``."""
        call = llm.FunctionCall(
            id=utils.shortuuid("item_"),
            call_id=call_id or utils.shortuuid("call_"),
            name=name,
            arguments=arguments,
        )
        self._engine.add(call)
        self._function_ch.send_nowait(call.model_copy())
        return call.call_id

    def done(self) -> None:
        """Ends the response, completed or cancelled; texts so far become the items' contents."""
        if self.finished:
            return
        for message in self._messages:
            # even a text that came to nothing: the mirror's item is no placeholder from now on
            for item in self._engine.both_sides(message.id):
                item.content.append(message.text)
        self.break_off()

    def break_off(self) -> None:
        """Ends the response as a lost connection does: nothing is known of its items' contents."""
        self.finished = True
        for message in self._messages:
            message.close()
        self._message_ch.close()
        self._function_ch.close()
