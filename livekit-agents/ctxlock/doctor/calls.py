"""Tells calls apart, and follows each; those that are over are kept as reports alone."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .batches import RoundTrips
from .conversation import Conversation
from .findings import STRONG, WEAK, CallReport
from .items import Moment
from .lines import Line
from .waits import WAITED, wait_in_words

__all__ = ["Calls", "Totals"]

OPEN = 256
"""Calls that are followed at once; with more of them the one that was quiet longest is over."""

_CONNECTIONS = 6


@dataclass
class Totals:
    """Counts of all calls.

    Attributes:
        calls: How many there were.
        losing: In how many something was lost, by grade: each counts for the strongest.
        waited: In how many an update had to wait for another one, and nothing was lost.
        kinds: How many losses there were, by grade.
        troubles: How many troubles there were, by kind.
        headless: How many calls have no beginning.
    """

    calls: int = 0
    losing: Counter[str] = field(default_factory=Counter)
    waited: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    headless: int = 0


@dataclass
class _Lane:
    """The connections that the lines do not tell apart better."""

    name: str
    conversations: list[Conversation] = field(default_factory=list)
    reports: list[CallReport] = field(default_factory=list)
    trips: RoundTrips = field(default_factory=RoundTrips)
    reconnecting: bool = False
    sessions: int = 0


class Calls:
    """The calls of all lines.

    Args:
        keep: Takes a call that is over, if there is anything to tell of it.
        with_text: Whether what items say is kept.
    """

    def __init__(self, keep: Callable[[CallReport], None], *, with_text: bool = False) -> None:
        self.totals = Totals()
        self._keep = keep
        self._with_text = with_text
        self._lanes: OrderedDict[str, _Lane] = OrderedDict()

    def feed(self, line: Line) -> None:
        """Takes a line in."""
        lane = self._lanes.get(line.call)
        if lane is None:
            if not line.direction:
                return  # a remark about a call of which there are no events
            lane = self._lanes[line.call] = _Lane(line.call)
            if len(self._lanes) > OPEN:
                self._end(self._lanes.popitem(last=False)[1])
        self._lanes.move_to_end(line.call)
        if line.direction:
            self._event(lane, line)
        else:
            self._remark(lane, line)

    def end(self) -> None:
        """Notes that nothing more comes."""
        while self._lanes:
            self._end(self._lanes.popitem(last=False)[1])

    # -- events

    def _event(self, lane: _Lane, line: Line) -> None:
        kind = line.event["type"]
        if kind == "session.created" and line.direction == "<":
            conversation = self._session(lane, line)
        else:
            conversation = self._conversation(lane, line)
        report = conversation.report
        report.last = Moment.of(line)
        report.events += 1
        conversation.feed(line)

    def _session(self, lane: _Lane, line: Line) -> Conversation:
        """A new connection: of a session that has lost its own, or of a new one."""
        at = Moment.of(line)
        lane.sessions += 1
        newest = lane.conversations[-1] if lane.conversations else None
        if lane.reconnecting and newest is not None:
            lane.reconnecting = False
            newest.restart(at)
            newest.report.connections += 1
            newest.tell("reconnection", "the connection was lost, and made again", at)
            return newest
        made = self._new(lane, at, complete=True)
        made.report.connections += 1
        return made

    def _conversation(self, lane: _Lane, line: Line) -> Conversation:
        if not lane.conversations:
            return self._new(lane, Moment.of(line), complete=line.direction == ">" and _opens(line))
        if len(lane.conversations) > 1:
            ids = _ids(line.event)
            for conversation in reversed(lane.conversations):
                if ids and conversation.knows(ids):
                    return conversation
        return lane.conversations[-1]

    def _new(self, lane: _Lane, at: Moment, *, complete: bool) -> Conversation:
        named = lane.name.startswith(("job", "room"))
        if not lane.reports or not named:
            number = len(lane.reports) + 1
            name = lane.name or "the log"
            if lane.reports:
                name = f"{name}, connection {number}"
            lane.reports.append(CallReport(name, at, at, complete=complete))
        trips = lane.trips
        made = Conversation(lane.reports[-1], trips, with_text=self._with_text)
        lane.conversations.append(made)
        if len(lane.conversations) > _CONNECTIONS:
            ended = lane.conversations.pop(0)
            ended.end()
            if not named:
                self._report(lane, ended.report)
                lane.reports.remove(ended.report)
                lane.reports.insert(0, _placeholder(ended.report))
        return made

    def _remark(self, lane: _Lane, line: Line) -> None:
        if "reconnecting to" in line.message or "connection failed" in line.message:
            lane.reconnecting = True
        elif WAITED in line.message and lane.conversations:
            conversation = lane.conversations[-1]
            conversation.report.waits += 1
            conversation.tell("waited", wait_in_words(line), Moment.of(line))

    # -- ends

    def _end(self, lane: _Lane) -> None:
        for conversation in lane.conversations:
            conversation.end()
        for report in lane.reports:
            self._report(lane, report)

    def _report(self, lane: _Lane, report: CallReport) -> None:
        if report.events == 0:
            return
        report.round_trip = lane.trips.measured
        totals = self.totals
        totals.calls += 1
        totals.headless += not report.complete
        for loss in report.losses:
            totals.kinds[loss.grade] += 1
        for trouble in report.troubles:
            totals.troubles[trouble.kind] += 1
        grade = next((g for g in (STRONG, WEAK) if report.graded(g)), "")
        if grade:
            totals.losing[grade] += 1
        elif report.waits:
            totals.waited += 1
        if report.losses or report.troubles or not report.complete:
            self._keep(report)


def _placeholder(report: CallReport) -> CallReport:
    return CallReport(report.name, report.first, report.first)


def _opens(line: Line) -> bool:
    """Whether an event that is sent may be the first of a session: its log may begin with it."""
    return bool(line.event["type"] == "session.update")


def _ids(event: Mapping[str, Any]) -> list[str]:
    """What tells the connection of an event."""
    found = [event.get(key) for key in ("item_id", "previous_item_id", "response_id")]
    for key in ("item", "response", "error"):
        inner = event.get(key)
        if isinstance(inner, dict):
            found += [inner.get("id"), inner.get("event_id")]
    return [value for value in found if isinstance(value, str) and value not in ("", "root")]
