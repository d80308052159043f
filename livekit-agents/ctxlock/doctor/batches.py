"""What the client asks for at once: the creations and deletions of one update of the context.

The engine sends an update's requests one after the other and waits until each is answered, five
seconds at most, before it sends the next update. So a batch ends where all of it is answered, where
something else is sent, or where time passes; and one that is sent in the moment in which the one
before it is answered has waited for that: it was made before.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from .items import Item, Moment

__all__ = ["Batch", "Request", "RoundTrips"]

PAUSE = 1.0
"""Seconds after which a further request belongs to another batch."""

JITTER = 0.02
"""Seconds that an event loop may take to go on, on a machine that has other things to do."""

LOWEST, HIGHEST = 0.05, 0.1
"""Bounds of what counts as at once. A log's times are not finer. And what lies between an answer
and what had waited for it is the agent's own delay, which does not grow with the way to the server:
an application that replaces something after a few tenths of a second is not taken for it."""

_KEPT = 101


@dataclass
class Request:
    """One creation or deletion.

    Attributes:
        refused: What the server said, if it refused.
    """

    deletes: bool
    item_id: str
    event_id: str
    sent: Moment
    answered: Moment | None = None
    refused: str = ""


@dataclass
class Batch:
    """One update.

    Attributes:
        behind: The number of the batch that this one has waited for, or 0.
        chain_from: When the first batch of those that waited for one another was sent.
        reply_follows: Whether the client asks for a reply next.
        closed: Whether no further request belongs to it.
        told: Whether it was told that not all of it was answered.
        wanted: The items that it creates and that are not there yet.
    """

    number: int
    sent: Moment
    requests: list[Request] = field(default_factory=list)
    behind: int = 0
    chain_from: Moment | None = None
    reply_follows: bool = False
    closed: bool = False
    told: bool = False
    wanted: dict[str, Item] = field(default_factory=dict)

    @property
    def answered(self) -> bool:
        """Whether nothing of it is on its way."""
        return all(request.answered is not None for request in self.requests)

    @property
    def last_answer(self) -> Moment | None:
        """The last answer, once all are there."""
        moments = [r.answered for r in self.requests if r.answered is not None]
        return moments[-1] if moments and len(moments) == len(self.requests) else None

    @property
    def last_sent(self) -> Moment:
        """When the last of it was sent."""
        return self.requests[-1].sent if self.requests else self.sent

    @property
    def created(self) -> list[str]:
        """What it creates, and does not delete to create it anew."""
        gone = {r.item_id for r in self.requests if r.deletes}
        return [r.item_id for r in self.requests if not r.deletes and r.item_id not in gone]

    @property
    def deleted(self) -> list[str]:
        """What it deletes, and does not create anew."""
        made = {r.item_id for r in self.requests if not r.deletes}
        return [r.item_id for r in self.requests if r.deletes and r.item_id not in made]

    def belongs(self, sent: Moment, *, deletes: bool) -> bool:
        """Whether a request that is sent then is one of this batch.

        Deletions come first. One that comes when creations are answered is another update's: the
        engine has been told to wait no longer.
        """
        if self.closed or (self.requests and self.answered):
            return False
        if deletes and any(r.answered and not r.deletes for r in self.requests):
            return False
        gap = sent.after(self.last_sent)
        return gap is None or gap < PAUSE + (1.0 if sent.whole else 0.0)


class RoundTrips:
    """How long the server takes to answer, as a log shows it."""

    def __init__(self) -> None:
        self._seen: deque[float] = deque(maxlen=_KEPT)

    def see(self, sent: Moment, answered: Moment) -> None:
        """Takes one in; of whole seconds nothing can be learned."""
        took = answered.after(sent)
        if took is not None and not (sent.whole or answered.whole):
            self._seen.append(took)

    @property
    def measured(self) -> float | None:
        """The median of the last hundred."""
        return median(self._seen) if self._seen else None

    @property
    def bound(self) -> float:
        """The seconds that count as at once."""
        return min(max(self.measured or LOWEST, LOWEST), HIGHEST)

    @property
    def moment(self) -> float:
        """How soon behind an answer something must be sent to have waited for it."""
        return max(self.bound / 2, JITTER)

    def count(self, seconds: float) -> float:
        """How many round trips that is."""
        return seconds / (self.measured or LOWEST) if (self.measured or LOWEST) else 0.0
