"""The lines of logs, one after the other, as events with a time, a direction and a call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .sources import Source
from .times import Clock
from .unwrap import unwrap

__all__ = ["Counts", "Line", "Where", "read"]

_MARKS = re.compile(
    rb">>>|<<<|\\u003e\\u003e\\u003e|\\u003c\\u003c\\u003c"
    rb"|reconnect|connection failed|realtime context update"
)
_EVENT = re.compile(rb"""event\\*["']: ?(?=\{)|(?:>>>|<<<) (?=\{)""")
_DELTA = re.compile(
    rb"""\{[^{}]{0,120}?\\*["']type\\*["']: ?"""
    rb"""\\*["'](?:response|conversation\.item)\.[a-z_.]*delta\\*["']"""
)
"""Most events are pieces of a reply, and none is needed: not reading them is most of the speed."""


@dataclass(frozen=True)
class Where:
    """A line of a file."""

    file: int
    line: int


@dataclass
class Line:
    """A line that matters.

    Attributes:
        where: Its file, as the number of a source, and its number in that.
        direction: `>` sent, `<` received, nothing for a remark.
        event: The event, if it has one.
        message: The remark, if it is one.
        fields: Whatever else the line says.
        call: What tells its call apart from others: job, room or process; nothing if it says none.
        time: In seconds, or None.
        whole: Whether the time is in whole seconds.
    """

    where: Where
    direction: str
    event: dict[str, Any]
    message: str
    fields: Mapping[str, Any]
    call: str
    time: float | None
    whole: bool


@dataclass
class Counts:
    """What became of the lines.

    Attributes:
        lines: All of them.
        events: Those with an event.
        deltas: Pieces of replies, which are counted and not read.
        other: Those that are about something else.
        damaged: Those with an arrow, whose event cannot be read: cut off, mixed with another.
        undated: Events without a time.
        samples: Where the first damaged ones are.
        cut: The sources that end in the middle of what was compressed.
        silent: Those without an event.
    """

    lines: int = 0
    events: int = 0
    deltas: int = 0
    other: int = 0
    damaged: int = 0
    undated: int = 0
    bytes: int = 0
    samples: list[Where] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    silent: list[int] = field(default_factory=list)

    @property
    def recognized(self) -> int:
        """How many lines were the engine's."""
        return self.events + self.deltas


def read(
    source: Source,
    number: int,
    counts: Counts,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Line]:
    """Yields the lines of a source that matter, and counts the others.

    Args:
        source: What to read.
        number: The source's number, for `Where`.
        counts: Is added to.
        progress: Called now and then with the bytes read.
    """
    clock = Clock()
    before = counts.recognized
    for at, raw in enumerate(source.lines(progress), 1):
        counts.lines += 1
        counts.bytes += len(raw)
        if _MARKS.search(raw) is None:
            if raw:
                counts.other += 1
            else:
                counts.lines -= 1
                counts.cut.append(number)
            continue
        event = _EVENT.search(raw)  # the first one: words may look like another
        if event is not None and _DELTA.match(raw, event.end()):
            counts.deltas += 1
            continue
        found = unwrap(raw.decode("utf-8", "replace"))
        if found is None:
            counts.other += 1
            continue
        if found.mixed or (found.direction and found.event is None):
            _damaged(counts, Where(number, at))
        if found.direction and found.event is None:
            continue
        time = whole = None
        if found.stamp is not None:
            time, whole = clock.read(found.stamp[0]), found.stamp[1]
        if found.direction:
            counts.events += 1
            counts.undated += time is None
        yield Line(
            Where(number, at),
            found.direction,
            found.event or {},
            found.message,
            found.fields,
            _call_of(found.fields),
            time,
            bool(whole),
        )
    if counts.recognized == before:
        counts.silent.append(number)


def _damaged(counts: Counts, where: Where) -> None:
    counts.damaged += 1
    if len(counts.samples) < 5:
        counts.samples.append(where)


def _call_of(fields: Mapping[str, Any]) -> str:
    said = []
    for name, keys in (("job", ("job_id", "jobId")), ("room", ("room", "room_name"))):
        value = next((fields[key] for key in keys if isinstance(fields.get(key), str)), None)
        if value:
            said.append(f"{name} {value}")
    if not said and isinstance(fields.get("pid"), int):
        said.append(f"process {fields['pid']}")
    return ", ".join(said)
