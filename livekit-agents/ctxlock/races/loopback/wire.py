"""Conversation items as the protocol writes them, and the requests about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..push import Create, Delete
from .items import FunctionCall, FunctionCallOutput, Item, Message

__all__ = ["CreateRequest", "DeleteRequest", "Event", "item_of", "payload_of", "request_of"]

Event = dict[str, Any]


@dataclass(frozen=True)
class CreateRequest(Create):
    """A ``conversation.item.create``; without an anchor the item goes to the tail.

    Attributes:
        payload: The item as it was written, which the acknowledgement repeats.
    """

    event_id: str | None
    at_tail: bool
    payload: Event


@dataclass(frozen=True)
class DeleteRequest(Delete):
    """A ``conversation.item.delete``."""

    event_id: str | None


def request_of(event: Mapping[str, Any]) -> CreateRequest | DeleteRequest:
    """Reads one of the two requests that change a conversation."""
    event_id = event.get("event_id")
    if event["type"] == "conversation.item.delete":
        return DeleteRequest(event["item_id"], event_id)
    after = event.get("previous_item_id")
    anchor = None if after in (None, "root") else str(after)
    payload = event["item"]
    return CreateRequest(anchor, item_of(payload), event_id, after is None, payload)


def item_of(payload: Mapping[str, Any]) -> Item:
    """Reads an item; of sound and pictures only the words are kept."""
    if payload["type"] == "function_call":
        return FunctionCall(
            id=payload["id"],
            call_id=payload["call_id"],
            name=payload["name"],
            arguments=payload["arguments"],
        )
    if payload["type"] == "function_call_output":
        return FunctionCallOutput(
            id=payload["id"],
            call_id=payload["call_id"],
            output=payload["output"],
        )
    parts = (part.get("text", part.get("transcript")) for part in payload["content"])
    words = [part for part in parts if part is not None]
    return Message(payload["id"], payload["role"], words)


def payload_of(item: Any, status: str = "completed") -> Event:
    """Writes an item, one of livekit.agents' or of this package's."""
    payload: Event = {"id": item.id, "object": "realtime.item", "type": item.type}
    if item.type == "message":
        kind = "output_text" if item.role == "assistant" else "input_text"
        payload["role"] = item.role
        payload["content"] = [
            {"type": kind, "text": part} for part in item.content if isinstance(part, str)
        ]
    elif item.type == "function_call":
        payload |= {"call_id": item.call_id, "name": item.name, "arguments": item.arguments}
    elif item.type == "function_call_output":
        payload |= {"call_id": item.call_id, "output": item.output}
    return payload | {"status": status}
