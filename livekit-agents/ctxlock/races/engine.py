"""The client's half of the protocol: a mirror of the conversation, and updates taken in turn.

As the OpenAI engine has it: updates are serialised by a lock of the engine's own; the difference
between the mirror and the wanted context is taken when an update's turn has come, not when it was
asked for, and deletes whatever the wanted context leaves out; the mirror follows the server's
acknowledgements.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from livekit.agents import llm
from livekit.agents.llm.remote_chat_context import RemoteChatContext
from livekit.agents.llm.utils import compute_chat_ctx_diff

from .push import Create, Delete, Operation, Push
from .push_queue import PushQueue
from .server import Refused, ServerConversation

__all__ = ["Engine", "conversation_items"]

logger = logging.getLogger(__name__)

_KINDS = ("message", "function_call", "function_call_output")
_SYSTEM = ("system", "developer")
_INSTRUCTIONS = "lk.agent_task.instructions"  # and what begins with it


def conversation_items(chat_ctx: llm.ChatContext) -> list[llm.ChatItem]:
    """The items of a context that a provider gets to see, in order."""
    return [
        item
        for item in chat_ctx.items
        if item.type in _KINDS and not item.id.startswith(_INSTRUCTIONS)
    ]


def acknowledged(item: llm.ChatItem) -> llm.ChatItem:
    """What a client makes of an acknowledgement: its own time, and what the protocol tells.

    That is not which tool an output is of, nor whether it is an error, and of all but the user's
    messages no text that is empty.
    """
    if item.type == "function_call":
        return llm.FunctionCall(
            id=item.id, call_id=item.call_id, name=item.name, arguments=item.arguments
        )
    if item.type == "function_call_output":
        return llm.FunctionCallOutput(
            id=item.id, call_id=item.call_id, output=item.output, is_error=False
        )
    assert item.type == "message"
    content = [part for part in item.content if part != "" or item.role == "user"]
    return llm.ChatMessage(id=item.id, role=item.role, content=content)


class Engine:
    """Keeps a mirror, and sends what makes the server's conversation equal to a wanted one.

    Args:
        on_item_added: Told of each item that joins the mirror, and the id of the one before it.

    Attributes:
        server: What the model sees.
        new_push: Makes the update that nobody asked to hold.
    """

    def __init__(self, on_item_added: Callable[[str | None, llm.ChatItem], None]) -> None:
        self.server: ServerConversation[llm.ChatItem] = ServerConversation()
        self.new_push: Callable[[], Push] = lambda: Push(held=False)
        self._on_item_added = on_item_added
        self._mirror = RemoteChatContext()
        self._lock = asyncio.Lock()
        self._queue = PushQueue(lambda: Push(held=True), self._hand_over)

    @property
    def lock(self) -> asyncio.Lock:
        """What its updates take turns by."""
        return self._lock

    @property
    def mirror(self) -> llm.ChatContext:
        """A copy of the mirror, as acknowledged so far."""
        return self._mirror.to_chat_ctx()

    @property
    def pushes(self) -> list[Push]:
        """Every update that asked for something, in the order of their turns."""
        return self._queue.pushes

    def hold(self) -> Push:
        """Returns the next update that will ask for something, to be released by the caller."""
        return self._queue.hold()

    def release_all(self) -> None:
        """Releases whatever is held, sent already or not."""
        self._queue.release_all()

    async def update(self, chat_ctx: llm.ChatContext) -> None:
        """Makes the conversation equal to ``chat_ctx`` as that is when its turn has come."""
        async with self._lock:
            operations = self._difference(chat_ctx)
            if not operations:
                return
            await self._queue.send(self._queue.next_held() or self.new_push(), operations)

    def add(self, item: llm.ChatItem) -> None:
        """Has the server add an item of its own making."""
        self._mirror_insert(self.server.append(item), item)

    def reconnect(self) -> Push | None:
        """Begins with an empty conversation, and repeats what it knows.

        That is what the mirror holds, but for messages that are empty or the system's, and then
        whatever an update is still waiting for. What was given up on is gone.

        Returns:
            The request, for the caller to release; None if there is none, or a test holds it.
        """
        known = [
            item
            for item in self.mirror.items
            if item.type != "message" or (item.content and item.role not in _SYSTEM)
        ]
        waiting = [push for push in self._queue.on_the_way if not push.settled]
        operations: list[Operation] = [
            Create(before.id if before else None, item)
            for before, item in zip([None, *known], known, strict=False)
        ]
        operations += [operation for push in waiting for operation in push.pending]
        self._queue.lose()
        self.server = ServerConversation()
        self._mirror = RemoteChatContext()
        if not operations:
            return None
        again = self._queue.next_held() or self.new_push()
        held, again.held = again.held, True
        acknowledged = self._queue.send(again, operations)
        for push in waiting:
            acknowledged.add_done_callback(lambda _, push=push: push.confirm())  # type: ignore[misc]
        return None if held else again

    def both_sides(self, item_id: str) -> list[llm.ChatMessage]:
        """The server's message of that id and the mirror's, if they are there."""
        node = self._mirror.get(item_id)
        pair = (self.server.get(item_id), node.item if node else None)
        return [item for item in pair if isinstance(item, llm.ChatMessage)]

    def _difference(self, chat_ctx: llm.ChatContext) -> list[Operation]:
        remote = self.mirror
        filled = {item.id: bool(item.content) for item in remote.items if item.type == "message"}
        # an empty message is a placeholder, unless the server has it already
        wanted = llm.ChatContext(
            [
                item
                for item in conversation_items(chat_ctx)
                if item.type != "message" or item.content or item.id in filled
            ]
        )
        by_id = {item.id: item for item in wanted.items}
        diff = compute_chat_ctx_diff(remote, wanted)
        operations: list[Operation] = [Delete(item_id) for item_id in diff.to_remove]
        operations += [Create(after, by_id[item_id]) for after, item_id in diff.to_create]
        for after, item_id in getattr(diff, "to_update", ()):
            # the mirror does not know what an empty message contains
            if filled[item_id]:
                operations += [Delete(item_id), Create(after, by_id[item_id])]
        return operations

    def _hand_over(self, push: Push, count: int) -> None:
        for operation in push.pending[:count]:
            try:
                self._apply(operation)
            except Refused as refusal:
                # a refused item is not worth failing the turn over, and a duplicate is no failure
                if not refusal.duplicate:
                    logger.warning("the server refused part of an update: %s", refusal)
        del push.pending[:count]

    def _apply(self, operation: Operation) -> None:
        if isinstance(operation, Delete):
            self.server.delete(operation.item_id)
            if self._mirror.get(operation.item_id) is not None:
                self._mirror.delete(operation.item_id)
        else:
            self.server.create(operation.previous_id, operation.item.model_copy(deep=True))
            self._mirror_insert(operation.previous_id, acknowledged(operation.item))

    def _mirror_insert(self, previous_id: str | None, item: llm.ChatItem) -> None:
        if previous_id is not None and self._mirror.get(previous_id) is None:
            last = self.mirror.items[-1:]
            previous_id = last[0].id if last else None
        mirrored = item.model_copy(deep=True)
        self._mirror.insert(previous_id, mirrored)
        self._on_item_added(previous_id, mirrored)
