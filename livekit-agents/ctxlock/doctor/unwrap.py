"""Finds the engine's event in a line, through the wrappings that loggers and drains put around it.

An event is a JSON object under ``lk.pii.event``, or stands behind ``>>>`` or ``<<<`` as Python
writes a dictionary: so the releases before 1.7 wrote it.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .times import Stamp, of_field, of_text

__all__ = ["Found", "unwrap"]

EVENT = "lk.pii.event"
_OLD_EVENT = "event"

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_COLOUR_LEFT = re.compile(r"\[(?:0|90|3[0-9])m")
"""What a drain leaves of a colour that takes the control character away."""

_ARROW = re.compile(r"(?:^|[\s|])(>>>|<<<)(?=\s|$)")
_QUOTED = re.compile(r"\"(>>>|<<<)[\" ]")
_WRAPPERS = ("message", "log", "msg", "line", "body", "MESSAGE", "textPayload", "@message", "text")
_FOLDERS = ("jsonPayload", "json", "fields", "attributes", "data", "record")
_TIMES = ("timestamp", "time", "@timestamp", "ts", "asctime", "datetime")
_WORDS = ("reconnect", "connection failed", "a realtime context update")
_DECODER = json.JSONDecoder()
_DEPTH = 4
_ATTEMPTS = 6


@dataclass
class Found:
    """What a line holds.

    Attributes:
        direction: `>` for what the engine sent, `<` for what it received, nothing for a remark.
        event: The event; none if the line is a remark, or if its event is damaged.
        message: The remark.
        fields: What the line says besides, such as the job and the room.
        stamp: Its time, and whether that is in whole seconds.
        mixed: Whether another line's event stands on it, too, which is not read.
    """

    direction: str = ""
    event: dict[str, Any] | None = None
    message: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    stamp: Stamp | None = None
    mixed: bool = False


def unwrap(text: str) -> Found | None:
    """Reads a line; None if it holds nothing that matters here."""
    return _unwrap(text, _DEPTH)


def _unwrap(text: str, depth: int) -> Found | None:
    text = _COLOUR.sub("", text).strip() if "\x1b" in text else text.strip()
    for start, end, record in _objects(text):
        found = _in_record(record, depth)
        if found is not None:
            if found.stamp is None:
                found.stamp = of_text(text[:start])
            found.mixed = bool(_QUOTED.search(text, end))
            return found
        if start == 0:
            return None  # the line is an object, and not one of ours
    found = _in_plain(text)
    if found is None and (cut := _QUOTED.search(text)) is not None:
        return Found(cut.group(1)[0])  # an object that is cut off
    return found


def _objects(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The JSON object that a text holds; a wrapped one may follow a prefix with braces in it."""
    start = text.find("{")
    arrow = _ARROW.search(text)
    if arrow is not None and arrow.start() < start:
        return  # a line as `dev` writes it
    for _ in range(_ATTEMPTS):
        if start < 0:
            return
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        if isinstance(value, dict):
            yield start, end, value
        return


def _in_record(record: Mapping[str, Any], depth: int) -> Found | None:
    if depth == 0:
        return None
    message = record.get("message", record.get("msg"))
    direct = record.get(EVENT, record.get(_OLD_EVENT))
    if isinstance(direct, dict) and isinstance(message, str):
        arrow = message.strip()[:3]
        if arrow not in (">>>", "<<<"):
            return _remark(message, record)
        return Found(arrow[0], _event(direct), "", record, _stamp(record))
    for key in _WRAPPERS:
        inner = record.get(key)
        if isinstance(inner, str) and inner:
            found = _unwrap(inner.strip(), depth - 1) if _may_hold(inner) else None
            if found is not None:
                return _within(found, record)
    for key in _FOLDERS:
        folder = record.get(key)
        if isinstance(folder, dict):
            found = _in_record(folder, depth - 1)
            if found is not None:
                return _within(found, record)
    return _remark(message, record) if isinstance(message, str) else None


def _within(found: Found, record: Mapping[str, Any]) -> Found:
    found.fields = {**record, **found.fields}
    if found.stamp is None:
        found.stamp = _stamp(record)
    return found


def _may_hold(text: str) -> bool:
    return ">>>" in text or "<<<" in text or any(word in text for word in _WORDS)


def _remark(message: str, fields: Mapping[str, Any]) -> Found | None:
    if not any(word in message for word in _WORDS):
        return None
    return Found("", None, message, fields, _stamp(fields))


def _in_plain(text: str) -> Found | None:
    """A line as `dev` and `console` write it: time, level, logger, message, and a JSON object."""
    text = _COLOUR_LEFT.sub("", text)
    arrow = _ARROW.search(text)
    if arrow is None:
        if not any(word in text for word in _WORDS):
            return None
        message, fields = _trailing(text)
        return Found("", None, message, fields, of_text(text[:80]))
    stamp = of_text(text[: arrow.start()])
    rest = text[arrow.end() :].strip()
    direction = arrow.group(1)[0]
    try:
        fields, _end = _DECODER.raw_decode(rest)
    except (ValueError, RecursionError):
        return _in_python(rest, direction, stamp)
    if not isinstance(fields, dict):
        return Found(direction, None, "", {}, stamp)
    event = fields.get(EVENT, fields.get(_OLD_EVENT))
    if event is None and "type" in fields:
        event, fields = fields, {}
    return Found(direction, _event(event), "", fields, stamp)


def _in_python(rest: str, direction: str, stamp: Stamp | None) -> Found:
    written, fields = _trailing(rest) if rest.endswith("}") else (rest, {})
    for candidate in (written.strip(), rest):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what is damaged: it may look like a mistake
                event = _event(ast.literal_eval(candidate))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return Found(direction, event, "", fields, stamp)
    return Found(direction, None, "", fields, stamp)


def _trailing(text: str) -> tuple[str, dict[str, Any]]:
    """Takes the JSON object off the end of a line, if there is one."""
    start = text.rfind(' {"')
    if start >= 0:
        try:
            value = json.loads(text[start:])
        except (ValueError, RecursionError):
            return text, {}
        if isinstance(value, dict) and "type" not in value:
            return text[:start], value
    return text, {}


def _event(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) and isinstance(value.get("type"), str) else None


def _stamp(fields: Mapping[str, Any]) -> Stamp | None:
    for key in _TIMES:
        stamp = of_field(fields[key]) if key in fields else None
        if stamp is not None:
            return stamp
    return None
