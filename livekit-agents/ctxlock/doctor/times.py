"""The time of a log's line, in whatever form it is written."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any

__all__ = ["Clock", "of_field", "of_text"]

_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?"
)
_OF_DAY = re.compile(r"(?<![\d:])(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?![\d:])")
_DAY = 86_400.0

Stamp = tuple[float, bool]
"""Seconds, and whether they are whole seconds only."""


@lru_cache(maxsize=64)
def _midnight(date: str) -> float:
    return datetime.fromisoformat(date).replace(tzinfo=timezone.utc).timestamp()


@lru_cache(maxsize=64)
def _offset(zone: str) -> float:
    if zone == "Z":
        return 0.0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    return (-1 if zone[0] == "-" else 1) * timedelta(hours=hours, minutes=minutes).total_seconds()


def of_text(text: str) -> Stamp | None:
    """The first date with a time in a text, or else the first time of a day."""
    found = _STAMP.search(text)
    if found is not None:
        date, hours, minutes, seconds, fraction, zone = found.groups()
        try:
            start = _midnight(date)
        except ValueError:
            return None
        within = _within(hours, minutes, seconds, fraction)
        return start + within - _offset(zone or "Z"), fraction is None
    found = _OF_DAY.search(text)
    if found is None:
        return None
    return _within(*found.groups()), found.group(4) is None


def of_field(value: Any) -> Stamp | None:
    """The time in a field of a JSON line: a text, or seconds or milliseconds since 1970."""
    if isinstance(value, str):
        return of_text(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 1e8:
        scale = 1e9 if value > 1e17 else 1e6 if value > 1e14 else 1e3 if value > 1e11 else 1.0
        return value / scale, isinstance(value, int) and scale == 1.0
    return None


def _within(hours: str, minutes: str, seconds: str, fraction: str | None) -> float:
    whole = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
    return whole + (float(f"0.{fraction}") if fraction else 0.0)


class Clock:
    """Makes times of a day into times that go on past midnight."""

    def __init__(self) -> None:
        self._days = 0.0
        self._last = 0.0

    def read(self, seconds: float) -> float:
        """The time; one without a date that falls back by half a day belongs to the next."""
        if seconds > _DAY:
            return seconds
        if seconds + self._days < self._last - _DAY / 2:
            self._days += _DAY
        self._last = seconds + self._days
        return self._last
