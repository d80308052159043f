"""The provider's side of a conversation: the items the model would see."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from .trace import current, note

__all__ = ["Identified", "Refused", "ServerConversation"]


class Identified(Protocol):
    """An item, of livekit.agents' or another's making."""

    @property
    def id(self) -> str:
        """Its id, which no other item of a conversation has."""


T = TypeVar("T", bound=Identified)


class Refused(Exception):
    """The server's answer to an operation that does not fit its conversation.

    Args:
        message: What was wrong, in the server's words.
        duplicate: Whether the item was there already, which clients take for success.
    """

    def __init__(self, message: str, *, duplicate: bool = False) -> None:
        super().__init__(message)
        self.duplicate = duplicate


class ServerConversation(Generic[T]):
    """An ordered list of items that knows nothing of any client's copy of it.

    Attributes:
        items: The items, in order.
        orphans: The items it refused for want of the one to insert them after, and that one's id.
    """

    def __init__(self) -> None:
        self.items: list[T] = []
        self.orphans: list[tuple[T, str]] = []

    @property
    def tail_id(self) -> str | None:
        """The id of the last item, if there is one."""
        return self.items[-1].id if self.items else None

    def create(self, previous_id: str | None, item: T) -> None:
        """Inserts an item behind another, or at the head when ``previous_id`` is None.

        Raises:
            Refused: If the id is taken, or nothing is called ``previous_id``.
        """
        if self._index(item.id) is not None:
            raise Refused(f"an item with the id {item.id} is there already", duplicate=True)
        at = 0
        if previous_id is not None:
            previous = self._index(previous_id)
            if previous is None:
                self.orphans.append((item, previous_id))
                raise Refused(f"there is no item {previous_id} to insert {item.id} after")
            at = previous + 1
        self.items.insert(at, item)
        self._tell("created", item)

    def delete(self, item_id: str) -> None:
        """Deletes an item.

        Raises:
            Refused: If there is no such item.
        """
        index = self._index(item_id)
        if index is None:
            raise Refused(f"there is no item {item_id} to delete")
        self._tell("deleted", self.items.pop(index))

    def append(self, item: T) -> str | None:
        """Adds an item of the server's own making and returns the id of the one before it."""
        previous_id = self.tail_id
        self.items.append(item)
        note("added", items=[item])
        return previous_id

    def get(self, item_id: str) -> T | None:
        """Returns the item of that id, if it is there."""
        index = self._index(item_id)
        return None if index is None else self.items[index]

    def _tell(self, kind: str, item: T) -> None:
        if (recorder := current()) is not None:
            recorder.changed(kind, item)

    def _index(self, item_id: str) -> int | None:
        return next((i for i, item in enumerate(self.items) if item.id == item_id), None)
