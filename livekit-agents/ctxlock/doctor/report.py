"""Tells an examination in words, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from .examination import Examination
from .findings import EXPLAINED, REPEATED, STRONG, WEAK, CallReport, Loss, Trouble
from .items import MODEL, PROVIDER, Item, Moment

__all__ = [
    "advice",
    "as_json",
    "call_lines",
    "clock",
    "meaning",
    "place",
    "remarks",
    "sentences",
    "verdict",
]

FORMAT = 1
"""Version of the JSON; raised when a key changes its meaning or goes."""

_DAY = 86_400
_SEEN = {
    "no call": "outputs whose function call was deleted",
    "no output": "function calls without an output",
    "not repeated": "new connections that were not told everything again",
    "reconnection": "reconnections",
    "refused": "requests that the server refused",
    "slow": "slow acknowledgements",
    "unanswered": "updates that were never acknowledged",
    "waited": "updates that waited for another",
}
_OTHERS = (STRONG, WEAK, EXPLAINED)


def sentences(found: Examination) -> Iterator[str]:
    """What came of it: first how many calls lost something."""
    totals = found.totals
    calls = f"{totals.calls} call{'s' if totals.calls != 1 else ''}"
    strong, weak = totals.losing[STRONG], totals.losing[WEAK]
    if strong:
        said = f"{strong} of {calls} lost an item of the conversation"
        if any(loss.kind == "back" for call in found.calls for loss in call.graded(STRONG)):
            said += ", or have one back that was deleted"
    else:
        said = f"Nothing lost by strong evidence in {calls}"
    more = (
        [f"{weak} {'more ' if strong else ''}may have lost one, by weak evidence"] if weak else []
    )
    more += [f"{totals.waited} had updates that waited for others"] if totals.waited else []
    yield "; ".join([said, *more]) + "."


def remarks(found: Examination) -> Iterator[str]:
    """How the reading went, and what the numbers rest on."""
    counts, totals = found.counts, found.totals
    pieces = f", {counts.deltas:,} with pieces of replies" if counts.deltas else ""
    yield (
        f"Read {counts.lines:,} lines: {counts.events:,} with events{pieces}, {counts.other:,} "
        f"about other things, {counts.damaged:,} damaged."
    )
    if counts.cut:
        yield f"Cut off or damaged, so that the end is missing: {_named(found, counts.cut)}."
    if counts.silent:
        yield f"Without any event: {_named(found, counts.silent)}."
    if counts.samples:
        where = ", ".join(_line(found.files, w.file, w.line) for w in counts.samples)
        yield f"Damaged, and skipped: {where}{', and more' if counts.damaged > 5 else ''}."
    if totals.headless:
        yield f"{totals.headless} begin before the log does; what was there by then is not known."
    if found.whole:
        yield "The times are whole seconds: a loss is strong only within one of them."
    if totals.troubles:
        kinds = ", ".join(f"{_SEEN[kind]} ({n})" for kind, n in sorted(totals.troubles.items()))
        yield f"Also seen: {kinds}."


def meaning(found: Examination) -> Iterator[str]:
    """What the words mean; nothing if nothing may be lost."""
    kinds = found.totals.kinds
    if not kinds[STRONG] and not kinds[WEAK]:
        return
    told = {loss.kind for call in found.calls for loss in call.losses if loss.grade != EXPLAINED}
    if "lost" in told:
        yield "Lost: an update deleted the item, so the model no longer has it."
    if "back" in told:
        yield "Back: what an update had deleted was created again, and nobody asked for that."
    if kinds[STRONG]:
        yield "Strong evidence: that happened too soon for anybody to have meant it."
    if kinds[WEAK]:
        yield "Weak evidence: it looks like a loss in part, and may have been meant."
    if any(loss.race for call in found.calls for loss in call.losses if loss.grade != EXPLAINED):
        yield (
            "Race: what kind of update deleted the item, and during which other one, in the words "
            "of ctxlock verify. A text turn is a typed message; a replacement is update_chat_ctx."
        )


def advice(found: Examination) -> Iterator[str]:
    """What to do about what is lost, for who has the patch and for who has not."""
    losses = [loss for call in found.calls for loss in call.graded(STRONG)]
    if not losses:
        return
    patched = found.totals.troubles["waited"] > 0
    if patched:
        yield (
            "What to do: the log says that updates waited for each other. So the agent runs the "
            "patched release already, in the scope full."
        )
    else:
        yield (
            "What to do: the log does not say which release wrote it. See with ctxlock audit "
            "--python PATH, the Python of the agent, whether it is a patched one."
        )
    brought_back = [loss for loss in losses if loss.race == REPEATED]
    beyond = [x for x in losses if x not in brought_back and x.item.origin in (PROVIDER, MODEL)]
    if len(losses) > len(brought_back) + len(beyond):
        if not patched:
            yield (
                "If it is not: run ctxlock verify on that Python. It shows which of these races "
                "the release has; the patch ends them. README.md says how to install it."
            )
        yield (
            f"{'Then' if patched else 'If it is:'} the likeliest cause is a stale copy of the "
            "application's own, made before the item was there and given to update_chat_ctx after "
            "that. docs/doctor.md and docs/limits.md say what else it may be."
        )
    if beyond:
        yield (
            "What the caller or the model was saying: the patch's default scope, lock, does not "
            "keep it; the scope full does. docs/integrity.md says what else that changes."
        )
    if brought_back:
        yield "What a reconnection brought back: remove it once more. No patch does that."


def verdict(loss: Loss) -> str:
    """What to call it: nobody should read that something is lost that was meant to go."""
    words = {EXPLAINED: ("deleted", "created again"), WEAK: ("maybe lost", "maybe back")}
    return words.get(loss.grade, ("lost", "back"))[loss.kind != "lost"]


def call_lines(found: Examination, report: CallReport, *, details: bool) -> Iterator[str]:
    """A call, its losses, and what else it suffered; nothing if that is nothing.

    Args:
        found: What it is of.
        report: The call.
        details: Whether to tell what is explained, and each trouble of a call without a loss.
    """
    losses = [x for x in report.losses if details or x.grade != EXPLAINED]
    if not losses and not details:
        return
    span = f"{place(found, report.first)} to {place(found, report.last)}"
    trip = f", round trip {report.round_trip * 1000:.0f} ms" if report.round_trip else ""
    yield f"{report.name}: {report.events} events, {span}{trip}"
    for loss in losses:
        yield from _loss_lines(found, loss)
    explained = len(report.graded(EXPLAINED))
    if explained and not details:
        yield f"  explained: {explained} more, which --details tells"
    for trouble in report.troubles:
        yield f"  {trouble.kind}: {trouble.text}, {place(found, trouble.at)}"
    if report.dropped:
        yield f"  {report.dropped} more were not kept"


def _loss_lines(found: Examination, loss: Loss) -> Iterator[str]:
    grade = loss.grade if loss.grade == EXPLAINED else f"{loss.grade} evidence"
    yield f"  {verdict(loss).upper()}, {grade}: {loss.what}, {loss.item.id}"
    if loss.item.text:
        yield f"    it says: {loss.item.text!r}"
    for number, reason in enumerate(loss.reasons):
        yield f"    {'    ' if number else 'why:'} {reason}"
    if loss.item.acked is not None:
        yield f"    acknowledged by the server: {place(found, loss.item.acked)}"
    done = "deleted" if loss.kind == "lost" or loss.race == REPEATED else "created again"
    others = f", with {loss.others} more" if loss.others else ""
    first, last = loss.batch
    lines = place(found, first) if first == last else f"{place(found, first)} to {last.where.line}"
    confirmed = f"; confirmed: {place(found, loss.deleted)}" if loss.deleted else ""
    if loss.race == REPEATED:
        confirmed = f"; there again: {place(found, loss.deleted)}" if loss.deleted else ""
    yield f"    {done} by the update: {lines}{others}{confirmed}"
    if loss.created:
        yield f"    the same update created: {', '.join(f'{w}, {i}' for i, w in loss.created)}"
    if loss.race and loss.grade != EXPLAINED:
        yield f"    race: {loss.race}"
    for how, at in loss.aftermath:
        yield f"    then {how}, {place(found, at)}"
    if loss.restored is not None:
        yield f"    created again: {place(found, loss.restored)}"


def place(found: Examination, moment: Moment) -> str:
    """A moment's line, and its time."""
    time = f" ({clock(moment)})" if moment.time is not None else ""
    return _line(found.files, moment.where.file, moment.where.line) + time


def clock(moment: Moment) -> str:
    """A moment's time of day, in UTC if the log says dates."""
    seconds = moment.time or 0.0
    at = datetime.fromtimestamp(seconds, tz=timezone.utc)
    return at.strftime("%H:%M:%S") if moment.whole else at.strftime("%H:%M:%S.%f")[:-3]


def as_json(found: Examination) -> str:
    """The examination as JSON with sorted keys."""
    counts, totals = found.counts, found.totals
    told = {
        "format": FORMAT,
        "lost": found.lost,
        "files": found.files,
        "lines": {
            "all": counts.lines,
            "events": counts.events,
            "deltas": counts.deltas,
            "other": counts.other,
            "damaged": counts.damaged,
            "files_cut_off": [found.files[number] for number in counts.cut],
            "files_without_events": [found.files[number] for number in counts.silent],
            "undated": counts.undated,
        },
        "whole_seconds": found.whole,
        "summary": {
            "calls": totals.calls,
            "lost": {grade: totals.losing[grade] for grade in (STRONG, WEAK)},
            "waited": totals.waited,
            "without_beginning": totals.headless,
            "deletions": {grade: totals.kinds[grade] for grade in _OTHERS},
            "troubles": dict(totals.troubles),
        },
        "calls": [_call(found, report) for report in found.calls],
    }
    return json.dumps(told, indent=2, sort_keys=True)


def _call(found: Examination, report: CallReport) -> dict[str, Any]:
    return {
        "name": report.name,
        "first": _moment(found, report.first),
        "last": _moment(found, report.last),
        "events": report.events,
        "connections": report.connections,
        "has_beginning": report.complete,
        "waits": report.waits,
        "round_trip_seconds": report.round_trip,
        "losses": [_loss(found, loss) for loss in report.losses],
        "troubles": [_trouble(found, trouble) for trouble in report.troubles],
        "not_kept": report.dropped,
    }


def _loss(found: Examination, loss: Loss) -> dict[str, Any]:
    return {
        "kind": loss.kind,
        "grade": loss.grade,
        "reasons": loss.reasons,
        "race": loss.race,
        "item": _item(loss.item),
        "acknowledged": _moment(found, loss.item.acked),
        "asked": _moment(found, loss.batch[0]),
        "asked_to": _moment(found, loss.batch[1]),
        "confirmed": _moment(found, loss.deleted),
        "created": [{"id": i, "what": what} for i, what in loss.created],
        "also_deleted": loss.others,
        "age_seconds": loss.age,
        "round_trip_seconds": loss.round_trip,
        "aftermath": [{"what": how, "at": _moment(found, at)} for how, at in loss.aftermath],
        "restored": _moment(found, loss.restored),
    }


def _item(item: Item) -> dict[str, Any]:
    told: dict[str, Any] = {"id": item.id, "type": item.kind, "length": item.length}
    for key, value in (("role", item.role), ("tool", item.tool), ("call_id", item.call_id)):
        if value:
            told[key] = value
    if item.text:
        told["text"] = item.text
    return told


def _trouble(found: Examination, trouble: Trouble) -> dict[str, Any]:
    return {"kind": trouble.kind, "text": trouble.text, "at": _moment(found, trouble.at)}


def _moment(found: Examination, moment: Moment | None) -> dict[str, Any] | None:
    if moment is None:
        return None
    told: dict[str, Any] = {"file": found.files[moment.where.file], "line": moment.where.line}
    if moment.time is not None:
        dated = moment.time > _DAY * 366
        at = datetime.fromtimestamp(moment.time, tz=timezone.utc)
        told["time"] = at.isoformat() if dated else clock(moment)
    return told


def _named(found: Examination, numbers: list[int]) -> str:
    shown = ", ".join(found.files[number] for number in numbers[:5])
    return f"{shown}, and {len(numbers) - 5} more" if len(numbers) > 5 else shown


def _line(files: list[str], file: int, line: int) -> str:
    return f"{files[file]}:{line}" if len(files) > 1 else f"line {line}"
