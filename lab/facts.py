"""Objects of livekit.agents as facts: what a trace says of items, events, errors and records."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable
from typing import Any

__all__ = ["fact_of", "items_of", "outcome_of", "record_of"]

_LEFT_OUT = frozenset(
    {
        *("metrics", "started_at", "stopped_at", "created_at", "timestamp", "interrupted_at"),
        *("transcript_confidence", "turn_started_at"),
        "hash",  # deprecated: to read it is to be warned
    }
)

_PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def fact_of(value: Any) -> Any:
    """A value as JSON has it; of what has no meaning there its class is named."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if isinstance(value, dict):
        return {str(key): fact_of(part) for key, part in value.items() if key not in _LEFT_OUT}
    if isinstance(value, (list, tuple)):
        return [fact_of(part) for part in value]
    if hasattr(value, "items") and isinstance(value.items, list):
        return items_of(value.items)
    if isinstance(fields := getattr(type(value), "model_fields", None), dict):
        return {
            name: fact_of(getattr(value, name))
            for name in fields
            if name not in _LEFT_OUT and getattr(value, name, None) is not None
        }
    if dataclasses.is_dataclass(value):
        return {
            f.name: fact_of(getattr(value, f.name))
            for f in dataclasses.fields(value)
            if f.name not in _LEFT_OUT
        }
    name = getattr(value, "id", None)  # of a tool, say, whose place in a list is to be seen
    return (
        f"a {type(value).__name__} {name}" if isinstance(name, str) else f"a {type(value).__name__}"
    )


def items_of(items: Iterable[Any]) -> list[Any]:
    """The items of a context, in order."""
    return [fact_of(item) for item in items]


def outcome_of(speech: Any) -> dict[str, Any]:
    """What came of a speech: whether it has ended, was interrupted, and which items are its own."""
    return {
        "done": speech.done(),
        "interrupted": getattr(speech, "interrupted", None),
        "items": [item.id for item in getattr(speech, "chat_items", ())],
    }


def record_of(record: logging.LogRecord) -> dict[str, Any]:
    """A log record: who said it, how loudly and what, with what was given along."""
    fact: dict[str, Any] = {
        "logger": record.name,
        "level": record.levelname,
        "message": record.getMessage(),
    }
    if record.exc_info and record.exc_info[1] is not None:
        fact["exception"] = fact_of(record.exc_info[1])
    extra = {key: fact_of(part) for key, part in record.__dict__.items() if key not in _PLAIN}
    return fact | ({"extra": extra} if extra else {})
