"""One update as the scripted server receives it: applied, acknowledged, refused or dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..push import Operation, Push
from .traffic import advance

__all__ = ["TIMEOUT", "WirePush"]

TIMEOUT = 5.0
"""Seconds that the engine waits for the acknowledgements of an update."""


class WirePush(Push):
    """A push whose client is the real engine at the other end of a websocket.

    `release` applies and acknowledges, as with the fake. The two can be told apart: `apply` changes
    the conversation and keeps the acknowledgements, `acknowledge` sends them in any order, `drop`
    forgets them.

    Attributes:
        owed: What was applied and not yet acknowledged.
    """

    def __init__(self, *, held: bool) -> None:
        super().__init__(held=held)
        self.owed: list[Operation] = []
        self._apply: Callable[[Operation], bool] = lambda _: False
        self._acknowledge: Callable[[Operation], None] = lambda _: None
        self._refuse: Callable[[Operation], None] = lambda _: None

    def answer_with(
        self,
        apply: Callable[[Operation], bool],
        acknowledge: Callable[[Operation], None],
        refuse: Callable[[Operation], None],
    ) -> None:
        """Takes what changes the conversation, and what the client is told by."""
        self._apply, self._acknowledge, self._refuse = apply, acknowledge, refuse

    def hand_over(self, count: int) -> None:
        """Applies and acknowledges its next ``count`` operations."""
        for operation in self._taken(count):
            if self._apply(operation):
                self._acknowledge(operation)

    def apply(self) -> None:
        """Has the conversation changed and says nothing of it, but for refusals."""
        self.owed += [op for op in self._taken(len(self.pending)) if self._apply(op)]

    def acknowledge(self, *item_ids: str) -> None:
        """Acknowledges what was applied: these items in this order, or all in the order sent."""
        for operation in self._owed_for(item_ids):
            self.owed.remove(operation)
            self._acknowledge(operation)

    def drop(self, *item_ids: str) -> None:
        """Applies what is pending and never acknowledges these items, or any."""
        self.apply()
        for operation in self._owed_for(item_ids):
            self.owed.remove(operation)

    def release(self, count: int | None = None) -> None:
        """As with the fake, and acknowledges what was applied before."""
        self.acknowledge()
        super().release(count)

    def reject(self, *item_ids: str) -> None:
        """Has the server refuse the operations on these items, or all; the rest is acknowledged."""
        refused = set(item_ids) or {op.item_id for op in self.operations}
        for operation in [op for op in self.pending if op.item_id in refused]:
            self.pending.remove(operation)
            self._refuse(operation)
        self.release()

    def time_out(self, *, lost: bool = False) -> None:
        """Lets the engine's own time run out; a lost request never arrives at all."""
        if lost:
            self.pending.clear()
        advance(TIMEOUT)

    def fail(self, error: Exception) -> None:
        """No server can do that to its client.

        Raises:
            NotImplementedError: Always; cut the connection instead.
        """
        raise NotImplementedError("A server cannot raise in its client; cut the connection.")

    def _taken(self, count: int) -> Sequence[Operation]:
        taken = self.pending[:count]
        del self.pending[:count]
        return taken

    def _owed_for(self, item_ids: Sequence[str]) -> Sequence[Operation]:
        if not item_ids:
            return list(self.owed)
        return [op for item_id in item_ids for op in self.owed if op.item_id == item_id]
