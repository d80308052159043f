"""What the scripted model answers, given its conversation, its tools and the rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..races.loopback.items import FunctionCall, FunctionCallOutput, Item, Message
from .rules import Rule

__all__ = ["Call", "answer"]

Tool = Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """The model calls a tool."""

    name: str
    arguments: Mapping[str, Any]


def answer(items: Sequence[Item], tools: Sequence[Tool], rules: Sequence[Rule]) -> str | Call:
    """Says something or calls a tool.

    Once there is a call behind the user's last text, it says what each such call gave, as far as
    the conversation has it. Else the first rule decides whose `when` is found in that text and
    whose tool, if it has one, is offered; and without one, a tool that the text names is called.

    Args:
        items: The model's conversation.
        tools: The tools that the client offers, as the protocol writes them.
        rules: The rules, of which the first that fits decides.
    """
    asked, recent = _last_turn(items)
    calls = [item for item in recent if isinstance(item, FunctionCall)]
    if calls:
        return _results(calls, recent)
    if asked is None:
        return "Hello, this is the scripted model."
    offered = {str(tool["name"]): tool for tool in tools if "name" in tool}
    for rule in rules:
        if rule.when.search(asked):
            if rule.say is not None:
                return rule.say
            if rule.call in offered:
                return Call(str(rule.call), rule.arguments)
    for name, tool in offered.items():
        if _mentions(asked, name):
            return Call(name, _some_arguments(tool, asked))
    return f'You said: "{asked}". I have {_listed(offered)}.'


def _last_turn(items: Sequence[Item]) -> tuple[str | None, Sequence[Item]]:
    """The user's last text, if there is one, and the items behind it."""
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if isinstance(item, Message) and item.role == "user" and item.text_content:
            return item.text_content, items[at + 1 :]
    return None, items


def _results(calls: Iterable[FunctionCall], recent: Iterable[Item]) -> str:
    outputs = {o.call_id: o.output for o in recent if isinstance(o, FunctionCallOutput)}
    return " ".join(
        f"The result of {call.name} is: {outputs[call.call_id]}"
        if call.call_id in outputs
        else f"I do not know: I called {call.name}, and have no result of it."
        for call in calls
    )


def _mentions(text: str, name: str) -> bool:
    words = r"[\s_-]+".join(map(re.escape, name.split("_")))
    return re.search(rf"\b{words}\b", text, re.IGNORECASE) is not None


def _some_arguments(tool: Tool, asked: str) -> dict[str, Any]:
    """Something of the right type for each parameter that the tool must have."""
    schema = tool.get("parameters") or {}
    plain: dict[str, Any] = {"integer": 1, "number": 1.0, "boolean": False, "array": []}
    plain |= {"object": {}, "null": None}
    found = {}
    for name in schema.get("required", ()):
        wanted = schema.get("properties", {}).get(name, {})
        kind = wanted.get("type", "string")
        value = plain.get(kind, asked) if isinstance(kind, str) else asked
        found[name] = wanted["enum"][0] if wanted.get("enum") else value
    return found


def _listed(names: Iterable[str]) -> str:
    listed = ", ".join(names)
    return f"these tools: {listed}" if listed else "no tools"
