"""The provider's side of a conversation: the items the model would see."""

from __future__ import annotations

from livekit.agents import llm

from .trace import current, note

__all__ = ["Refused", "ServerConversation"]


class Refused(Exception):
    """The server's answer to an operation that does not fit its conversation.

    Args:
        message: What was wrong, in the server's words.
        duplicate: Whether the item was there already, which clients take for success.
    """

    def __init__(self, message: str, *, duplicate: bool = False) -> None:
        super().__init__(message)
        self.duplicate = duplicate


class ServerConversation:
    """An ordered list of items that knows nothing of any client's copy of it.

    Attributes:
        items: The items, in order.
        orphans: The items it refused for want of the one to insert them after, and that one's id.
    """

    def __init__(self) -> None:
        self.items: list[llm.ChatItem] = []
        self.orphans: list[tuple[llm.ChatItem, str]] = []

    @property
    def tail_id(self) -> str | None:
        """The id of the last item, if there is one."""
        return self.items[-1].id if self.items else None

    def create(self, previous_id: str | None, item: llm.ChatItem) -> None:
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

    def append(self, item: llm.ChatItem) -> str | None:
        """Adds an item of the server's own making and returns the id of the one before it."""
        previous_id = self.tail_id
        self.items.append(item)
        note("added", items=[item])
        return previous_id

    def get(self, item_id: str) -> llm.ChatItem | None:
        """Returns the item of that id, if it is there."""
        index = self._index(item_id)
        return None if index is None else self.items[index]

    def _tell(self, kind: str, item: llm.ChatItem) -> None:
        if (recorder := current()) is not None:
            recorder.changed(kind, item)

    def _index(self, item_id: str) -> int | None:
        return next((i for i, item in enumerate(self.items) if item.id == item_id), None)
