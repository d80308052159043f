"""The requests of one connection, gathered into batches, and the answers to them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

from .batches import Batch, Request, RoundTrips
from .items import Moment

__all__ = ["GIVEN_UP", "Requests"]

SLOW = 1.0
"""Seconds from which an acknowledgement counts as slow, if it also takes ten round trips."""

GIVEN_UP = 5.0
"""Seconds after which the engine waits no longer."""

_KEPT = 64

Tell = Callable[[str, str, Moment], None]


class Requests:
    """The last batches.

    Args:
        trips: The round trips of this call; are added to.
        tell: Takes what is wrong: its kind, in words, and when.
    """

    def __init__(self, trips: RoundTrips, tell: Tell) -> None:
        self._batches: OrderedDict[int, Batch] = OrderedDict()
        self._trips = trips
        self._tell = tell

    def __iter__(self) -> Iterator[Batch]:
        return iter(list(self._batches.values()))

    def get(self, number: int) -> Batch | None:
        """The batch of that number, while it is remembered."""
        return self._batches.get(number)

    @property
    def latest(self) -> Batch | None:
        """The newest batch."""
        return next(reversed(self._batches.values()), None)

    def know(self, ids: Iterable[str]) -> bool:
        """Whether one of these is in a request."""
        wanted = set(ids)
        return any(
            request.event_id in wanted or request.item_id in wanted
            for batch in self._batches.values()
            for request in batch.requests
        )

    def batch(self, at: Moment, *, deletes: bool) -> tuple[Batch, Batch | None]:
        """The batch that a request sent now belongs to, and the one that ends thereby, if one does.

        One that is sent as soon as the one before it is answered has waited for that.
        """
        ended = self.latest
        if ended is not None and ended.belongs(at, deletes=deletes):
            return ended, None
        made = Batch(ended.number + 1 if ended else 1, at)
        if ended is not None:
            self.unanswered(ended, at)
            answered = ended.last_answer
            gap = at.after(answered) if answered is not None else None
            if gap is not None and gap <= (0 if at.whole else self._trips.moment):
                made.behind = ended.number
                made.chain_from = ended.chain_from or ended.sent
        self._batches[made.number] = made
        if len(self._batches) > _KEPT:
            self._batches.popitem(last=False)
        return made, ended

    def pending(self, *, deletes: bool, item_id: str) -> tuple[Batch, Request] | None:
        """The request that an answer is to; a deletion's that names no item is to the oldest."""
        for batch in self._batches.values():
            for request in batch.requests:
                open_ = request.answered is None and request.deletes == deletes
                if open_ and (request.item_id == item_id or (deletes and not item_id)):
                    return batch, request
        return None

    def named(self, event_id: str) -> tuple[Batch, Request] | None:
        """The unanswered request of that event id."""
        for batch in reversed(self._batches.values()):
            for request in batch.requests:
                if event_id and request.event_id == event_id and request.answered is None:
                    return batch, request
        return None

    def answer(self, request: Request, at: Moment) -> None:
        """Notes that a request is answered."""
        request.answered = at
        self._trips.see(request.sent, at)
        took = at.after(request.sent)
        if took is not None and took > SLOW and self._trips.count(took) > 10:
            verb = "deletion" if request.deletes else "creation"
            late = "; the engine had given up" if took > GIVEN_UP else ""
            self._tell("slow", f"a {verb} was acknowledged after {took:.1f} s{late}", at)

    def unanswered(self, batch: Batch, at: Moment) -> None:
        """Tells of a batch that was given up; one that the log ends with may be answered yet."""
        missing = [request for request in batch.requests if request.answered is None]
        waited = at.after(missing[0].sent) if missing else None
        if waited is not None and not batch.told and waited >= GIVEN_UP - 0.5:
            batch.told = True
            said = f"{len(missing)} of {len(batch.requests)} requests were never acknowledged"
            self._tell("unanswered", said, missing[0].sent)
