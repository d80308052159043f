"""Judges each batch: which of its deletions are a loss."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from .aftermath import Aftermath
from .batches import Batch, RoundTrips
from .contents import Contents, Gone
from .findings import EXPLAINED, REPEATED, STRONG, WEAK, CallReport, Loss
from .grading import Evidence, grade
from .items import MODEL, PROVIDER, Item, Moment, describe
from .racing import race_of
from .requests import Requests

__all__ = ["Verdicts"]

_KEPT = 500
"""Losses of a call that are remembered if they are explained."""

_UNDER_WAY = 10_000
_SHOWN = 20


@dataclass
class _Seen:
    """What there was when a deletion was sent."""

    item: Item
    unfinished: bool
    unheard: bool
    front: bool
    call: Item | None
    reply: str


@dataclass
class _Open:
    """A loss of which more may come to be known, and what it was graded by."""

    loss: Loss
    evidence: Evidence
    item: Item
    batch: Batch
    made: list[Item]
    earlier: Batch | None


class Verdicts:
    """The losses of one connection.

    Args:
        contents: What there is.
        requests: What was asked for.
        trips: How long an answer takes.
        report: Is added to.

    Attributes:
        instructions: When the instructions were changed last.
    """

    def __init__(
        self, contents: Contents, requests: Requests, trips: RoundTrips, report: CallReport
    ) -> None:
        self.instructions: Moment | None = None
        self._contents = contents
        self._requests = requests
        self._trips = trips
        self._report = report
        self._seen: OrderedDict[tuple[int, str], _Seen] = OrderedDict()
        self._judged = 0
        self._aftermath = Aftermath()
        self._open: list[_Open] = []
        self._returned: dict[str, tuple[Item, Batch, Moment]] = {}
        self.recreated = self._aftermath.recreated
        self.there = self._aftermath.there
        self.called = self._aftermath.called
        self.replied = self._aftermath.replied

    def asked(self, batch: Batch, item_id: str) -> None:
        """Notes what there is when a deletion is sent."""
        item = self._contents.items.get(item_id)
        if item is None:
            return
        leaving = {request.item_id for request in batch.requests if request.deletes}
        self._seen[batch.number, item_id] = _Seen(
            item,
            item.origin == MODEL and not item.whole,
            item.origin == PROVIDER and not item.length,
            self._contents.first(item_id, leaving),
            self._contents.call_of(item),
            self._contents.reply_to(item),
        )
        if len(self._seen) > _UNDER_WAY:
            self._seen.popitem(last=False)

    def answered(self, batch: Batch) -> None:
        """Notes that an answer to a batch has come."""
        if batch.answered and batch is self._requests.latest:
            self.judge(batch)

    def judge(self, batch: Batch) -> None:
        """Grades what a batch deletes and brings back, once all of it is known."""
        if batch.number <= self._judged:
            return
        self._judged = batch.number
        seen = {i: self._seen.pop((batch.number, i), None) for i in batch.deleted}
        known = {i: s for i, s in seen.items() if s is not None}
        gone = {i: self._contents.gone[i] for i in batch.created if i in self._contents.gone}
        back = {i: g for i, g in gone.items() if g.batch not in (0, batch.number)}
        back = {i: g for i, g in back.items() if not self._aftermath.mourns(i)}
        made = [self._item(batch, i) for i in batch.created if i not in gone]
        evidence = {i: self._of_deletion(batch, s, made, set(known)) for i, s in known.items()}
        new_only = all(e.at_once for e in evidence.values()) and len(known) == len(seen)
        for item_id, found in evidence.items():
            there = known[item_id]
            if not any(r.refused and r.deletes and r.item_id == item_id for r in batch.requests):
                self._note(batch, there.item, there.call, replace(found, new_only=new_only), made)
        for g in back.values():
            call = self._contents.call_of(g.item)
            self._note(batch, g.item, call, self._of_return(batch, g, made), made)

    def repeated(self, item: Item, batch: Batch, at: Moment) -> None:
        """Notes that a new connection was told of an item whose deletion nobody had confirmed."""
        self._returned[item.id] = replace(item), batch, at

    def end(self) -> None:
        """Says what was lost to which race, and for certain, as all that follows is known."""
        for found in self._open:
            loss, evidence = found.loss, found.evidence
            if evidence.unfinished and found.item.whole and not found.item.interrupted:
                loss.grade, loss.reasons = grade(
                    replace(evidence, unfinished=False, under_way=True)
                )
            loss.race = race_of(loss, found.batch, found.made, found.earlier)
            loss.deleted = _confirmed(found.batch, loss.item.id, deletes=loss.kind == "lost")
            if loss.deleted is None and loss.grade == STRONG:
                loss.grade = WEAK
                loss.reasons.append("but the log does not show that the server did it")
        for item, batch, at in self._returned.values():
            if item.id in self._contents.items:
                self._note_repeated(item, batch, at)
        self._open.clear()
        self._returned.clear()

    def _note_repeated(self, item: Item, batch: Batch, at: Moment) -> None:
        """What a new connection brought back is not lost."""
        for found in self._open:
            if found.batch is batch and found.loss.item.id == item.id:
                self._report.losses.remove(found.loss)
        self._report.losses.append(
            Loss(
                kind="back",
                grade=STRONG,
                reasons=[
                    "its deletion was sent and never confirmed, the connection was lost, and the "
                    "new one was told of it again; nothing has deleted it since"
                ],
                item=item,
                what=describe(item),
                asked=batch.sent,
                batch=(batch.requests[0].sent, batch.requests[-1].sent),
                race=REPEATED,
                deleted=at,
            )
        )

    def _item(self, batch: Batch, item_id: str) -> Item:
        return batch.wanted.get(item_id) or self._contents.items.get(item_id) or Item(item_id)

    def _of_deletion(
        self, batch: Batch, seen: _Seen, made: list[Item], leaving: set[str]
    ) -> Evidence:
        item = seen.item
        pair = ""
        if seen.call is not None and seen.call.id not in leaving:
            pair = "call"
        elif seen.reply and seen.reply not in leaving:
            pair = "reply"
        return replace(
            self._of_either(batch, item.batch, item.acked, made),
            front=seen.front,
            summary=len(made) == 1 and made[0].kind == "message" and len(leaving) >= 3,
            handoff=self._is_handoff(item.asked or item.acked, batch),
            pair=pair,
            used=_between(item.acked, self._aftermath.last_reply, batch.sent),
            replied=item.origin == MODEL,
            unfinished=seen.unfinished,
            unheard=seen.unheard,
            speech=item.kind == "message",
        )

    def _of_return(self, batch: Batch, gone: Gone, made: list[Item]) -> Evidence:
        return replace(
            self._of_either(batch, gone.batch, gone.at, made),
            returned=True,
            handoff=self._is_handoff(gone.at, batch),
        )

    def _of_either(
        self, batch: Batch, number: int, known: Moment | None, made: list[Item]
    ) -> Evidence:
        """What counts for a deletion and for a return: when, and what the batch creates."""
        age, waited = self._age(batch, number, known)
        return Evidence(
            waited=waited,
            age=age,
            whole=batch.sent.whole,
            round_trip=self._trips.bound,
            measured=self._trips.measured,
            creates=len(made),
            one_kind=_one_kind(made),
        )

    def _age(self, batch: Batch, number: int, known: Moment | None) -> tuple[float | None, bool]:
        """How long something was known when a batch was sent, and whether that had waited."""
        earlier = self._requests.get(number)
        if batch.behind and number == batch.behind and earlier is not None:
            known = earlier.last_answer or known
        if known is None:
            return None, False
        chained = batch.chain_from is not None and not known.before(batch.chain_from)
        return batch.sent.after(known), chained

    def _is_handoff(self, since: Moment | None, batch: Batch) -> bool:
        """Whether the instructions changed since then, or while the batch may have waited."""
        chain = batch.chain_from
        if chain is not None and (since is None or chain.before(since)):
            since = chain
        return _between(since, self.instructions, batch.sent)

    def _note(
        self, batch: Batch, item: Item, call: Item | None, found: Evidence, made: list[Item]
    ) -> None:
        graded, reasons = grade(found)
        if graded == EXPLAINED and len(self._report.losses) >= _KEPT:
            self._report.dropped += 1
            return
        tool = call.tool if call is not None else ""
        loss = Loss(
            kind="back" if found.returned else "lost",
            grade=graded,
            reasons=reasons,
            item=replace(item, tool=item.tool or tool),
            what=describe(item, tool),
            asked=batch.sent,
            batch=(batch.requests[0].sent, batch.requests[-1].sent),
            created=[(i.id, self._in_words(i)) for i in made[:_SHOWN]],
            others=max(len(batch.deleted) - (not found.returned), 0),
            age=found.age,
            round_trip=self._trips.measured,
            arguments=call.arguments if call is not None else "",
        )
        self._report.losses.append(loss)
        earlier = self._requests.get(item.batch)
        self._open.append(_Open(loss, found, item, batch, made, earlier))
        if graded != EXPLAINED:
            self._aftermath.watch(loss, batch)

    def _in_words(self, item: Item) -> str:
        call = self._contents.call_of(item)
        return describe(item, call.tool if call is not None else "")


def _confirmed(batch: Batch, item_id: str, *, deletes: bool) -> Moment | None:
    for request in batch.requests:
        if request.item_id == item_id and request.deletes == deletes and not request.refused:
            return request.answered
    return None


def _one_kind(made: list[Item]) -> bool:
    return len(made) == 1 or all(item.kind == "function_call_output" for item in made)


def _between(start: Moment | None, moment: Moment | None, end: Moment) -> bool:
    if start is None or moment is None:
        return False
    return not moment.before(start) and not end.before(moment)
