"""What a connection's conversation holds, in order, and what it has held."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .items import CLIENT, MODEL, REPLAY, Item, Moment

__all__ = ["Contents", "Gone"]

MOST = 5_000
"""Items that are remembered; a longer conversation forgets its oldest."""

_TOMBSTONES = 1_000


@dataclass
class Gone:
    """An item that was deleted: what it was, when, and by which batch; 0 is by nobody's asking."""

    item: Item
    at: Moment
    batch: int


class Contents:
    """The items of one connection.

    Attributes:
        items: Those that are there, by id.
        gone: The last of those that were deleted.
        before: Those that were there before a reconnection and are not yet again.
    """

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.gone: OrderedDict[str, Gone] = OrderedDict()
        self.before: dict[str, Item] = {}
        self._order: list[str] = []

    def __contains__(self, item_id: object) -> bool:
        return item_id in self.items or item_id in self.gone

    def empty(self) -> None:
        """Begins anew, as a new connection does."""
        self.before, self.items, self._order = self.items, {}, []

    def again(self, item_id: str) -> Item | None:
        """An item that was there before the reconnection, and comes back."""
        item = self.before.pop(item_id, None)
        if item is not None and item.origin == CLIENT:
            item.origin = REPLAY
        return item

    def place(self, item: Item, *previous: Any) -> None:
        """Puts an item behind another one; behind None at the head, behind nothing at the end."""
        if item.id in self.items:
            self.items[item.id] = item
            return
        at = len(self._order)
        if previous and previous[0] in (None, "root"):
            at = 0
        elif previous and previous[0] in self.items:
            at = self._order.index(previous[0]) + 1
        self.items[item.id] = item
        self._order.insert(at, item.id)
        if len(self._order) > MOST:
            self.items.pop(self._order.pop(0))

    def delete(self, item_id: str, at: Moment, batch: int) -> None:
        """Takes an item out, if it is there."""
        item = self.items.pop(item_id, None)
        if item is not None:
            self._order.remove(item_id)
            self.gone[item_id] = Gone(item, at, batch)
            if len(self.gone) > _TOMBSTONES:
                self.gone.popitem(last=False)

    def first(self, item_id: str, leaving: set[str]) -> bool:
        """Whether nothing stands before an item but instructions and what is leaving as well."""
        for earlier in self._until(item_id):
            if earlier.id not in leaving and not _is_system(earlier):
                return False
        return True

    def reply_to(self, item: Item) -> str:
        """The id of the model's reply right behind what a user said, or nothing."""
        at = self._order.index(item.id) + 1
        if item.role != "user" or at >= len(self._order):
            return ""
        following = self.items[self._order[at]]
        return following.id if following.origin == MODEL else ""

    def ever(self, item_id: str) -> Item | None:
        """An item that is there, or was."""
        gone = self.gone.get(item_id)
        return self.items.get(item_id) or (gone.item if gone is not None else None)

    def deleted_call(self, call_id: str) -> Item | None:
        """The call of that id among what was deleted."""
        for gone in reversed(self.gone.values()):
            if call_id and gone.item.call_id == call_id and gone.item.kind == "function_call":
                return gone.item
        return None

    def call_of(self, output: Item) -> Item | None:
        """The call that an output is of, while it is there."""
        found = self.call(output.call_id) if output.kind == "function_call_output" else None
        return found if found is not None and found.id in self.items else None

    def call(self, call_id: str) -> Item | None:
        """The call of that id, also of before the reconnection."""
        if call_id:
            for items in (self.items, self.before):
                for item in reversed(items.values()):
                    if item.call_id == call_id and item.kind == "function_call":
                        return item
        return None

    def _until(self, item_id: str) -> Iterator[Item]:
        for earlier in self._order:
            if earlier == item_id:
                return
            yield self.items[earlier]


def _is_system(item: Item) -> bool:
    return item.kind == "message" and item.role in ("system", "developer")
