"""What a step is seen to do: facts in the order of their happening, in channels, normalised.

Order, doubling and identity are kept: an id becomes a name by its first appearance in the whole
trace, so that the same id has the same name wherever it appears, and two ids have two names.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["REFUSED", "Names", "Recorder", "Trace"]

REFUSED = "refuses the update"
"""Stands in the calls of a step in which a provider has refused what it was asked for."""

_RANDOM = re.compile(
    r"(?P<port>(?<=127\.0\.0\.1:)\d+|(?<=localhost:)\d+)"
    r"|(?P<stem>(?<![0-9A-Za-z])(?:[A-Za-z]\w*?[_-])?)"
    r"(?P<random>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|0x[0-9a-f]{6,16}|[0-9a-f]{32}|[0-9a-f]{12})(?![0-9A-Za-z])"
)
"""What differs from run to run: the random part of an id, an object's address, a free port."""

_DROPPED = frozenset({"created_at", "timestamp", "interrupted_at"})
"""Keys whose values are times of the wall clock."""


class Names:
    """Gives what is random a name by its first appearance.

    An id's prefix stays and says what is counted, so that one more id of a kind does not rename all
    others: ``item_0123456789ab`` becomes ``item_<item 1>``. The name belongs to the random part,
    which stands for the same thing behind another prefix, too.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def clean(self, value: Any) -> Any:
        """The same value with names in place of what is random, and without times."""
        if isinstance(value, str):
            return _RANDOM.sub(self._name, value)
        if isinstance(value, dict):
            return {
                self.clean(str(key)): self.clean(part)
                for key, part in value.items()
                if key not in _DROPPED
            }
        if isinstance(value, (list, tuple)):
            return [self.clean(part) for part in value]
        return value

    def _name(self, match: re.Match[str]) -> str:
        if match["port"] is not None:
            return "port"
        stem, random = match["stem"], match["random"]
        if random not in self._known:
            kind = stem.strip("_-") or ("object" if random.startswith("0x") else "id")
            self._counts[kind] += 1
            self._known[random] = f"{kind} {self._counts[kind]}"
        return f"{stem}<{self._known[random]}>"


@dataclass(frozen=True)
class Trace:
    """What one step did.

    Attributes:
        outcome: ``done``, ``unsupported``, ``stuck`` or ``failed``.
        channels: The lines of each channel, in order.
        order: Which channel each line went to, in the order of all.
        why: What was unsupported, or how it failed.
    """

    outcome: str
    channels: dict[str, list[str]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    why: str = ""


class Recorder:
    """Takes down facts in the order of their happening.

    Args:
        clock: The virtual time. It is the same in each run, so that it is compared, too: what
            happens later than on stock is seen.
    """

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self._clock = clock
        self._begun = clock()
        self._facts: list[tuple[float, str, Any]] = []
        self._stopped = False

    def note(self, channel: str, fact: Any) -> None:
        """Takes down a fact, which is or holds JSON, or anything with a telling ``str()``.

        The fact is frozen as it is now; what is changed later does not change it.
        """
        if not self._stopped:
            frozen = json.loads(json.dumps(fact, default=str))
            self._facts.append((self._clock() - self._begun, channel, frozen))

    def stop(self) -> None:
        """Takes nothing down from now on."""
        self._stopped = True

    def trace(self, outcome: str, why: str = "") -> Trace:
        """All of it, normalised."""
        names = Names()
        channels: dict[str, list[str]] = {}
        order = []
        for at, channel, fact in self._facts:
            clean = names.clean(fact)
            text = clean if isinstance(clean, str) else json.dumps(clean, ensure_ascii=False)
            channels.setdefault(channel, []).append(f"{at:.3f} {text}")
            order.append(channel)
        return Trace(outcome, channels, order, str(names.clean(why)))
