"""Records what happens in a race, in the order in which it happens.

`note` and its like are called where things happen: by the server's conversation, by each update, by
the harness, and, through `watching`, by whatever session and lock an activity uses. They do nothing
unless the race is being recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from .names import name_items

if TYPE_CHECKING:
    from livekit.agents import llm

    from .push import Push

__all__ = ["Recorder", "current", "note", "recording"]

_CLEANUP = "never-played cleanup"


class Recorder:
    """The events of one race.

    Each is a kind, and what belongs to it: whose update it is of (`by`), that update's number
    (`push`), a `text`, and lists of items (`items`, `creates`, `deletes`, `model`, `agent`).
    """

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._known: dict[str, llm.ChatItem] = {}
        self._asked: list[dict[str, Any]] = []
        self._sent: list[Push] = []
        self._stopped = False

    def stop(self) -> None:
        """Ends the recording: what follows only clears away."""
        self._stopped = True

    def note(self, kind: str, **values: Any) -> dict[str, Any]:
        """Adds an event; items are given as such, and named when the race is over."""
        event = {"kind": kind, **values, "_task": _task()}
        for value in values.values():
            if isinstance(value, list):
                self._known |= {item.id: item for item in value}
        if not self._stopped:
            self._events.append(event)
        return event

    def is_of_this_task(self, event: dict[str, Any]) -> bool:
        """Whether an event is a doing of the task that runs."""
        return bool(event["_task"] == _task())

    def asked(self, by: str, wanted: Iterable[llm.ChatItem]) -> dict[str, Any]:
        """Notes that an activity asks for an update; it may have to wait for its turn."""
        ask = self.note("asked", by=by)
        ask["_wanted"] = {item.id for item in wanted}
        self._asked.append(ask)
        return ask

    def answered(self, ask: dict[str, Any], error: BaseException | None) -> None:
        """Notes that the update that was asked for is over."""
        self._asked.remove(ask)
        if "push" in ask:
            at = {"by": ask["by"], "push": ask["push"]}
            if error is None:
                self.note("acknowledged", **at)
            else:
                self.note("failed", text=f"{type(error).__name__}: {error}", **at)

    def sent(self, push: Push) -> None:
        """Notes that an update is on its way, and whose it is: the first that asked for the like.

        A server cannot see who sent it, so that it goes by what it asks for.
        """
        creates, deletes = {item.id for item in push.creates}, set(push.deletes)
        for ask in self._asked:
            wanted = ask["_wanted"]
            if "push" not in ask and creates <= wanted and not deletes & wanted:
                break
        else:
            ask = {"by": ""}
        self._sent.append(push)
        ask["push"] = len(self._sent)
        if ask["by"] == "tool output" and not creates:
            self._call_it_a_cleanup(ask)
        gone = [self._known[i] for i in push.deletes if i in self._known]
        values = {"by": ask["by"], "push": ask["push"]}
        self.note("sent", creates=push.creates, deletes=gone, **values)
        if push.held:
            self.note("held", **values)

    def _call_it_a_cleanup(self, ask: dict[str, Any]) -> None:
        """One method of upstream's does both; it is this if all that it pushes is a deletion."""
        for event in reversed(self._events):
            if event["_task"] == ask["_task"] and event.get("by") == "tool output":
                event["by"] = _CLEANUP

    def changed(self, kind: str, item: Any) -> None:
        """Notes that the server has created or deleted an item, and by which update."""
        for number in range(len(self._sent), 0, -1):
            push = self._sent[number - 1]
            ids = push.deletes if kind == "deleted" else [i.id for i in push.creates]
            if item.id in ids:
                by = next(e["by"] for e in self._events if e.get("push") == number)
                self.note(kind, items=[item], by=by, push=number)
                return
        self.note(kind, items=[item])

    def let_go(self, push: Push) -> None:
        """Notes that the provider lets go of an update that it held."""
        if push in self._sent:
            number = self._sent.index(push) + 1
            by = next((e["by"] for e in self._events if e.get("push") == number), "")
            self.note("let go", by=by, push=number)

    def events(self) -> list[dict[str, Any]]:
        """The events, their items named; without the updates that turned out to ask for nothing."""
        names = dict(zip(self._known, name_items(self._known.values()), strict=True))

        def named(value: Any) -> Any:
            return [names[item.id] for item in value] if isinstance(value, list) else value

        return [
            {key: named(value) for key, value in event.items() if not key.startswith("_")}
            for event in list(self._events)
            if event["kind"] != "asked" or "push" in event
        ]


def _task() -> int:
    try:
        return id(asyncio.current_task())
    except RuntimeError:  # called by no task
        return 0


_current: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


def current() -> Recorder | None:
    """The recorder of the race that runs here, if it is recorded."""
    return _current.get()


def note(kind: str, **values: Any) -> None:
    """Notes an event, if the race is recorded."""
    if (recorder := _current.get()) is not None:
        recorder.note(kind, **values)


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Records what happens in its block."""
    token = _current.set(recorder)
    try:
        yield
    finally:
        _current.reset(token)
