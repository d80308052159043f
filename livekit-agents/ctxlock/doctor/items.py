"""An item of a conversation, as a log shows it: ids, types and lengths; texts only if asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .lines import Line, Where

__all__ = ["CLIENT", "MODEL", "PROVIDER", "REPLAY", "Item", "Moment", "describe", "fingerprint"]

CLIENT = "client"
MODEL = "model"
PROVIDER = "provider"
REPLAY = "replay"


@dataclass(frozen=True)
class Moment:
    """A line, and when it was written."""

    where: Where
    time: float | None
    whole: bool = False

    @classmethod
    def of(cls, line: Line) -> Moment:
        """The moment of a line."""
        return cls(line.where, line.time, line.whole)

    def before(self, other: Moment) -> bool:
        """Whether this line stands before another one."""
        return (self.where.file, self.where.line) < (other.where.file, other.where.line)

    def after(self, earlier: Moment) -> float | None:
        """Seconds since another moment; None if either has no time."""
        if self.time is None or earlier.time is None:
            return None
        return max(self.time - earlier.time, 0.0)


@dataclass
class Item:
    """One item.

    Attributes:
        kind: `message`, `function_call` or `function_call_output`.
        origin: Whose it is: of the client's asking, the model's reply, the provider's own (what the
            caller said), or put back after a reconnection.
        batch: The number of the batch that asked for it, or 0.
        asked: When the client asked for it.
        acked: When it was there, for certain.
        arguments: A fingerprint of a call's arguments.
        answered: Whether an output for this call was asked for.
        interrupted: Whether the response was cut off that it, or its call, came with.
        whole: Whether the response that it came with was completed.
        text: What it says, if texts are wanted.
    """

    id: str
    kind: str = "message"
    role: str = ""
    call_id: str = ""
    tool: str = ""
    length: int = 0
    origin: str = CLIENT
    batch: int = 0
    asked: Moment | None = None
    acked: Moment | None = None
    arguments: str = ""
    answered: bool = False
    interrupted: bool = False
    whole: bool = False
    text: str = ""

    def learn(self, payload: Mapping[str, Any], with_text: bool) -> None:
        """Takes in what an event says of it."""
        self.kind = _text(payload.get("type")) or self.kind
        self.role = _text(payload.get("role")) or self.role
        self.call_id = _text(payload.get("call_id")) or self.call_id
        self.tool = _text(payload.get("name")) or self.tool
        arguments = payload.get("arguments")
        if isinstance(arguments, str) and arguments:
            self.arguments = fingerprint(arguments)
        words = _words(payload)
        if words:
            self.length = len(words)
            if with_text:
                self.text = words


def describe(item: Item, tool: str = "") -> str:
    """What an item is, without what it says."""
    if item.kind == "function_call_output":
        name = item.tool or tool
        what = f"the output of {name}" if name else "a tool's output"
    elif item.kind == "function_call":
        what = f"the function call {item.tool}" if item.tool else "a function call"
    elif item.role == "assistant":
        what = "what the model said" if item.origin == MODEL else "an assistant message"
    elif item.role == "user":
        what = "what the caller said" if item.origin == PROVIDER else "a user message"
    else:
        what = f"a {item.role} message" if item.role else "a message"
    characters = "1 character" if item.length == 1 else f"{item.length} characters"
    return f"{what} ({characters})" if item.length else what


def fingerprint(text: str) -> str:
    """Tells equal arguments from others, and does not tell what they are."""
    return hashlib.sha256("".join(text.split()).encode("utf-8", "replace")).hexdigest()[:16]


def _words(payload: Mapping[str, Any]) -> str:
    for key in ("output", "arguments"):
        if isinstance(payload.get(key), str):
            return str(payload[key])
    content = payload.get("content")
    parts = content if isinstance(content, list) else []
    said = (p.get("text") or p.get("transcript") for p in parts if isinstance(p, dict))
    return "\n".join(part for part in said if isinstance(part, str))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
