"""One update on its way to the provider, and how its acknowledgement is held back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .trace import current

__all__ = ["Create", "Delete", "Operation", "Push"]


@dataclass(frozen=True)
class Create:
    """Asks the server to insert an item."""

    previous_id: str | None
    item: Any  # one of livekit.agents, or of the loopback server

    @property
    def item_id(self) -> str:
        """The id of the item to insert."""
        item_id: str = self.item.id
        return item_id


@dataclass(frozen=True)
class Delete:
    """Asks the server to delete an item."""

    item_id: str


Operation = Create | Delete


class Push:
    """One full-context update, from its turn in the engine to its acknowledgement.

    A push that is not held is acknowledged as soon as it is sent. A held one waits for one of
    `release`, `reject`, `time_out` and `fail`. When its client stops waiting, by a timeout or a
    cancellation, the request is still on its way: `release` delivers it late, and so does the
    acknowledgement of anything sent after it, since the connection keeps the order.

    Attributes:
        entered: Set when its turn has come, the difference is taken and the request is sent.
        operations: The request, deletions first, as the engine orders them.
        pending: What the server has not yet seen of it.
    """

    def __init__(self, *, held: bool) -> None:
        self.held = held
        self.entered = asyncio.Event()
        self.operations: Sequence[Operation] = ()
        self.pending: list[Operation] = []
        self._deliver: Callable[[int], None] | None = None
        self._acknowledged: asyncio.Future[None] | None = None

    @property
    def creates(self) -> list[Any]:
        """The items it creates, in the order sent."""
        return [op.item for op in self.operations if isinstance(op, Create)]

    @property
    def deletes(self) -> list[str]:
        """The ids of the items it deletes, in the order sent."""
        return [op.item_id for op in self.operations if isinstance(op, Delete)]

    @property
    def settled(self) -> bool:
        """Whether its client has stopped waiting for it, for whatever reason."""
        return self._acknowledged is not None and self._acknowledged.done()

    def send(
        self, operations: Sequence[Operation], deliver: Callable[[int], None]
    ) -> asyncio.Future[None]:
        """Puts the request on its way; the engine calls this when the push's turn has come.

        Args:
            operations: What the request asks for.
            deliver: Hands so many of its pending operations to the server.

        Returns:
            What the client awaits.
        """
        self.operations, self.pending = tuple(operations), list(operations)
        self._deliver = deliver
        self._acknowledged = asyncio.get_running_loop().create_future()
        if (recorder := current()) is not None:
            recorder.sent(self)
        self.entered.set()
        if not self.held:
            self.release()
        return self._acknowledged

    def release(self, count: int | None = None) -> None:
        """Lets the server see the request, or its next ``count`` operations, and acknowledge."""
        if self._deliver is None:
            self.held = False
            return
        if self.held and (recorder := current()) is not None:
            recorder.let_go(self)
        self._deliver(len(self.pending) if count is None else count)
        if not self.pending:
            self._settle(None)

    def reject(self, *item_ids: str) -> None:
        """Has the server refuse the operations on these items, or all; the rest is acknowledged.

        The engine logs what was refused and returns as if nothing were wrong.
        """
        refused = set(item_ids) or {op.item_id for op in self.operations}
        self.pending = [op for op in self.pending if op.item_id not in refused]
        self.release()

    def time_out(self, *, lost: bool = False) -> None:
        """Has the client give up with a RealtimeError; a lost request never arrives at all."""
        if lost:
            self.pending.clear()
        from livekit.agents import llm  # not above: the server that nobody races has none

        self._settle(llm.RealtimeError("update_chat_ctx timed out."))

    def fail(self, error: Exception) -> None:
        """Has the client's wait end in ``error``, the request lost."""
        self.pending.clear()
        self._settle(error)

    def confirm(self) -> None:
        """Ends the client's wait: what was pending went along with another push, and is there."""
        self._settle(None)

    def _settle(self, error: Exception | None) -> None:
        assert self._acknowledged is not None, "the push has not been sent yet"
        if self._acknowledged.done():
            return
        if error is None:
            self._acknowledged.set_result(None)
        else:
            self._acknowledged.set_exception(error)
