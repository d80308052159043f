"""Requests that change a conversation: gathered into updates, held, and answered in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ..push import Delete, Operation
from ..push_queue import PushQueue
from ..server import Refused, ServerConversation
from .push import WirePush
from .wire import CreateRequest, DeleteRequest, Event

__all__ = ["Updates", "error_event"]

_QUIET = 3


def error_event(message: str, code: str, event_id: str | None, **more: str) -> Event:
    """The event by which a server refuses a request."""
    error = {"type": "invalid_request_error", "code": code, "message": message}
    return {"type": "error", "error": {**error, "event_id": event_id, "param": None, **more}}


class Updates:
    """What the server does with an engine's requests to create and delete items.

    The protocol does not say where an update ends, but the engine sends all of one at once: it ends
    when nothing more is on its way.

    Args:
        send: Sends an event to the client.
        under_way: How many of the client's events have not arrived yet.
        take: Answers an update that nobody asked to hold, or has it answered later; by default it
            is answered at once.
        pause: Seconds of silence, three times over, that end an update; none if `under_way` knows.

    Attributes:
        server: What the model sees.
    """

    def __init__(
        self,
        send: Callable[[Event], None],
        under_way: Callable[[], int],
        take: Callable[[WirePush], None] | None = None,
        pause: float = 0,
    ) -> None:
        self.server: ServerConversation[Any] = ServerConversation()
        self._send = send
        self._under_way = under_way
        self._take = take
        self._pause = pause
        self._queue = PushQueue(lambda: WirePush(held=True), WirePush.hand_over)
        self._placed: dict[str, str | None] = {}
        self._gathered: list[Operation] = []
        self._gathering: asyncio.Task[None] | None = None

    @property
    def gathering(self) -> bool:
        """Whether an update is still being received."""
        return bool(self._gathered)

    @property
    def pushes(self) -> list[WirePush]:
        """Every update, in the order received."""
        return self._queue.pushes

    def hold(self) -> WirePush:
        """Returns the next update, to be released by the caller."""
        return self._queue.hold()

    def release_all(self) -> None:
        """Releases whatever is held, received already or not."""
        self._queue.release_all()

    def restart(self) -> None:
        """Begins with an empty conversation; what was held of the old one is gone with it."""
        self.server = ServerConversation()
        for push in self._queue.on_the_way:
            push.owed.clear()
        self._queue.lose()
        self._gathered.clear()

    def receive(self, request: CreateRequest | DeleteRequest) -> None:
        """Takes a request in; it is answered when the update that it belongs to is complete."""
        self._gathered.append(request)
        if self._gathering is None or self._gathering.done():
            self._gathering = asyncio.create_task(self._gather(), name="gather an update")

    def complete(self) -> None:
        """Ends the update that is being received, since something else has come after it."""
        if not self._gathered:
            return
        operations, self._gathered = self._gathered, []
        asked_for = self._queue.next_held()
        push = asked_for or WirePush(held=self._take is not None)
        push.answer_with(self._apply, self._acknowledge, self._refuse)
        self._queue.send(push, operations)
        if asked_for is None and self._take is not None:
            self._take(push)

    async def _gather(self) -> None:
        quiet, seen = 0, 0
        while quiet < _QUIET:
            await asyncio.sleep(self._pause)
            quiet = 0 if self._under_way() or len(self._gathered) != seen else quiet + 1
            seen = len(self._gathered)
        self.complete()

    def _apply(self, operation: Operation) -> bool:
        try:
            if isinstance(operation, Delete):
                self.server.delete(operation.item_id)
            else:
                at_tail = isinstance(operation, CreateRequest) and operation.at_tail
                after = self.server.tail_id if at_tail else operation.previous_id
                self.server.create(after, operation.item)
                self._placed[operation.item_id] = after
        except Refused as refusal:
            self._refuse(operation, refusal)
            return False
        return True

    def _acknowledge(self, operation: Operation) -> None:
        if isinstance(operation, CreateRequest):
            payload = {"object": "realtime.item", "status": "completed", **operation.payload}
            at = {"previous_item_id": self._placed.get(operation.item_id), "item": payload}
            self._send({"type": "conversation.item.added", **at})
            self._send({"type": "conversation.item.done", **at})
        else:
            self._send({"type": "conversation.item.deleted", "item_id": operation.item_id})

    def _refuse(self, operation: Operation, refusal: Refused | None = None) -> None:
        if isinstance(operation, Delete):
            code = "item_delete_invalid_item_id"
        elif refusal is not None and refusal.duplicate:
            code = "item_create_duplicate_item_id"
        else:
            code = "invalid_value"
        event_id = getattr(operation, "event_id", None)
        self._send(error_event(str(refusal or "the request is refused"), code, event_id))
