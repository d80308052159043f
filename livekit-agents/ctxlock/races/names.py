"""What items are called: by what they are, as their ids differ from run to run.

``user "hello"``, ``function_call lookup``, ``function_call_output of lookup``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["name_items"]


def name_items(items: Iterable[Any]) -> list[str]:
    """Names items by what they are; an output goes by the call it answers, if that is there.

    Args:
        items: Those of a chat context, or of a conversation of the loopback server.
    """
    items = list(items)
    tools = {item.call_id: item.name for item in items if item.type == "function_call"}
    return [_name(item, tools) for item in items]


def _name(item: Any, tools: dict[str, str]) -> str:
    if item.type == "function_call":
        return f"function_call {item.name}"
    if item.type == "function_call_output":
        tool = item.name or tools.get(item.call_id, item.call_id)
        return f"function_call_output of {tool}"
    if item.type == "message":
        return f'{item.role} "{item.text_content or ""}"'
    return str(item.type)
