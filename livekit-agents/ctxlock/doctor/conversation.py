"""Follows the events of one connection: what there is, what is asked for, what becomes of it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .batches import Batch, Request, RoundTrips
from .contents import Contents
from .findings import CallReport, Trouble
from .items import CLIENT, MODEL, PROVIDER, Item, Moment, describe
from .lines import Line
from .requests import Requests
from .verdicts import Verdicts

__all__ = ["Conversation"]

_TROUBLES = 200
_RESPONSES = 64


class Conversation:
    """One connection's items and the updates of them.

    Args:
        report: Is added to.
        trips: The round trips of this call.
        with_text: Whether what items say is kept.
    """

    def __init__(self, report: CallReport, trips: RoundTrips, *, with_text: bool) -> None:
        self.report = report
        self._contents = Contents()
        self._requests = Requests(trips, self.tell)
        self._verdicts = Verdicts(self._contents, self._requests, trips, report)
        self._with_text = with_text
        self._last = report.first
        self._restarted: Moment | None = None
        self._responses: OrderedDict[str, Moment] = OrderedDict()
        self._handlers: dict[str, Callable[[Mapping[str, Any], Moment], None]] = {
            ">conversation.item.create": self._create,
            ">conversation.item.delete": self._delete,
            ">response.create": self._ask_for_reply,
            ">response.cancel": self._cut_short,
            ">session.update": self._configure,
            "<conversation.item.added": self._added,
            "<conversation.item.created": self._added,
            "<conversation.item.done": self._done,
            "<conversation.item.deleted": self._deleted,
            "<conversation.item.input_audio_transcription.completed": self._transcribed,
            "<response.created": self._response_created,
            "<response.output_item.added": self._output,
            "<response.output_item.done": self._output,
            "<response.done": self._response_done,
            "<error": self._refused,
        }

    def feed(self, line: Line) -> None:
        """Takes an event in."""
        self._last = at = Moment.of(line)
        handler = self._handlers.get(line.direction + line.event["type"])
        if handler is not None:
            handler(line.event, at)

    def knows(self, ids: Sequence[str]) -> bool:
        """Whether one of these is an item, a request or a response of this connection."""
        known = any(i in self._contents or i in self._responses for i in ids)
        return known or self._requests.know(ids)

    def restart(self, at: Moment) -> None:
        """Notes that there is a new connection, whose conversation begins empty."""
        self._tell_what_is_missing()
        self._contents.empty()
        self._restarted = at

    def end(self) -> None:
        """Notes that nothing more comes."""
        for batch in self._requests:
            self._verdicts.judge(batch)
            self._requests.unanswered(batch, self._last)
        self._tell_what_is_missing()
        self._verdicts.end()
        for item in self._contents.items.values():
            if item.kind == "function_call" and not item.answered and item.acked is not None:
                self.tell("no output", f"{describe(item)} has no output in the log", item.acked)

    def tell(self, kind: str, text: str, at: Moment) -> None:
        """Notes something that the conversation suffered."""
        if len(self.report.troubles) < _TROUBLES:
            self.report.troubles.append(Trouble(kind, text, at))
        else:
            self.report.dropped += 1

    # -- sent

    def _create(self, event: Mapping[str, Any], at: Moment) -> None:
        payload = _mapping(event.get("item"))
        item_id = _text(payload.get("id"))
        if not item_id:
            return
        batch = self._batch(at, deletes=False)
        request = Request(False, item_id, _text(event.get("event_id")), at)
        batch.requests.append(request)
        item = Item(item_id, origin=CLIENT, batch=batch.number, asked=at)
        item.learn(payload, self._with_text)
        batch.wanted[item_id] = item
        if item.kind == "function_call_output":
            self._output_of(item, self._contents.call(item.call_id), at)
        self._verdicts.recreated(batch, item_id, at)

    def _output_of(self, output: Item, call: Item | None, at: Moment) -> None:
        if call is not None:
            call.answered, output.interrupted = True, call.interrupted
        elif (gone := self._contents.deleted_call(output.call_id)) is not None:
            tool = gone.tool or "a tool"
            self.tell("no call", f"the output of {tool} is sent, and its call was deleted", at)

    def _delete(self, event: Mapping[str, Any], at: Moment) -> None:
        item_id = _text(event.get("item_id"))
        if item_id:
            batch = self._batch(at, deletes=True)
            batch.requests.append(Request(True, item_id, _text(event.get("event_id")), at))
            self._verdicts.asked(batch, item_id)

    def _ask_for_reply(self, _event: Mapping[str, Any], _at: Moment) -> None:
        if (batch := self._requests.latest) is not None:
            batch.closed = batch.reply_follows = True

    def _cut_short(self, _event: Mapping[str, Any], _at: Moment) -> None:
        for item in self._contents.items.values():
            if item.origin == MODEL and not item.whole:
                item.interrupted = True

    def _configure(self, event: Mapping[str, Any], at: Moment) -> None:
        if "instructions" in _mapping(event.get("session")):
            self._verdicts.instructions = at
            if (batch := self._requests.latest) is not None:
                batch.closed = True

    def _batch(self, at: Moment, *, deletes: bool) -> Batch:
        batch, ended = self._requests.batch(at, deletes=deletes)
        if ended is not None:
            self._verdicts.judge(ended)
        return batch

    # -- received

    def _added(self, event: Mapping[str, Any], at: Moment) -> None:
        payload = _mapping(event.get("item"))
        item_id = _text(payload.get("id"))
        if not item_id:
            return
        found = self._requests.pending(deletes=False, item_id=item_id)
        if found is not None:
            batch, request = found
            item = batch.wanted.pop(item_id, None) or Item(item_id, batch=batch.number)
            self._requests.answer(request, at)
            self._contents.before.pop(item_id, None)
        else:
            known = self._contents.items.get(item_id) or self._again(item_id, at)
            by_model = payload.get("type") == "function_call" or payload.get("role") == "assistant"
            item = known or Item(item_id, origin=MODEL if by_model else PROVIDER)
        item.acked = at
        item.learn(payload, self._with_text)
        previous = [event["previous_item_id"]] if "previous_item_id" in event else []
        self._contents.place(item, *previous)
        self._verdicts.there(item_id)
        if found is not None:
            self._verdicts.answered(found[0])

    def _again(self, item_id: str, at: Moment) -> Item | None:
        """An item of before the reconnection that is told of again."""
        item = self._contents.again(item_id)
        if item is not None:
            unconfirmed = self._requests.pending(deletes=True, item_id=item_id)
            if unconfirmed is not None:
                self._verdicts.repeated(item, unconfirmed[0], at)
        return item

    def _done(self, event: Mapping[str, Any], _at: Moment) -> None:
        payload = _mapping(event.get("item"))
        item = self._contents.items.get(_text(payload.get("id")))
        if item is not None:
            item.learn(payload, self._with_text)

    def _deleted(self, event: Mapping[str, Any], at: Moment) -> None:
        item_id = _text(event.get("item_id"))
        found = self._requests.pending(deletes=True, item_id=item_id)
        if found is not None:
            item_id = found[1].item_id
            self._requests.answer(found[1], at)
        self._contents.delete(item_id, at, found[0].number if found else 0)
        if found is not None:
            self._verdicts.answered(found[0])

    def _transcribed(self, event: Mapping[str, Any], _at: Moment) -> None:
        item = self._contents.items.get(_text(event.get("item_id")))
        words = event.get("transcript")
        if item is not None and isinstance(words, str):
            item.length = len(words)
            if self._with_text:
                item.text = words

    def _response_created(self, event: Mapping[str, Any], at: Moment) -> None:
        response = _text(_mapping(event.get("response")).get("id"))
        if response:
            self._responses[response] = at
            if len(self._responses) > _RESPONSES:
                self._responses.popitem(last=False)

    def _output(self, event: Mapping[str, Any], at: Moment) -> None:
        payload = _mapping(event.get("item"))
        item = self._contents.items.get(_text(payload.get("id")))
        if item is not None:
            item.learn(payload, self._with_text)
        if event["type"].endswith("done") and payload.get("type") == "function_call":
            called = Item(_text(payload.get("id")))
            called.learn(payload, False)
            began = self._responses.get(_text(event.get("response_id")))
            self._verdicts.called(called, began, at)

    def _response_done(self, event: Mapping[str, Any], at: Moment) -> None:
        response = _mapping(event.get("response"))
        output = response.get("output")
        parts = [_mapping(part) for part in output] if isinstance(output, list) else []
        if response.get("status") in ("cancelled", "incomplete"):
            for part in parts:
                if (item := self._contents.items.get(_text(part.get("id")))) is not None:
                    item.interrupted = True
        elif response.get("status") == "completed" and parts:
            began = self._responses.get(_text(response.get("id")))
            said = any(part.get("type") == "message" for part in parts)
            self._verdicts.replied(began, at, said=said)
            for part in parts:
                if (item := self._contents.ever(_text(part.get("id")))) is not None:
                    item.whole = True

    def _refused(self, event: Mapping[str, Any], at: Moment) -> None:
        error = _mapping(event.get("error"))
        found = self._requests.named(_text(error.get("event_id")))
        if found is None:
            return
        batch, request = found
        request.answered, request.refused = at, _text(error.get("code")) or "no code"
        wanted = batch.wanted.pop(request.item_id, None)
        item = wanted or self._contents.items.get(request.item_id) or Item(request.item_id)
        verb = "delete" if request.deletes else "create"
        self.tell("refused", f"refused to {verb} {describe(item)}: {request.refused}", at)
        self._verdicts.answered(batch)

    def _tell_what_is_missing(self) -> None:
        """Tells what a new connection has not been told again."""
        missing = self._contents.before
        if self._restarted is not None and missing:
            kinds = Counter(f"{i.role} message" if i.role else i.kind for i in missing.values())
            said = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            text = f"not repeated to the new connection: {said}"
            self.tell("not repeated", text, self._restarted)
        self._restarted = None
        missing.clear()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
