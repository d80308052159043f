"""What the scripted model answers, given its conversation, its tools and the rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..races.loopback.items import FunctionCall, FunctionCallOutput, Item, Message
from .rules import Rule

__all__ = ["Call", "Script"]

Tool = Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """The model calls a tool."""

    name: str
    arguments: Mapping[str, Any]


class Script:
    """Answers by rules, and tells once what became of each call it made.

    Args:
        rules: The rules, of which the first that fits decides.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        # the calls whose results are unsaid, and whether it has said that there is none
        self._open: dict[str, bool] = {}

    def called(self, call_id: str) -> None:
        """Notes that a call was made, to tell of it."""
        self._open[call_id] = False

    def answer(self, items: Sequence[Item], tools: Mapping[str, Tool]) -> str | Call:
        """Says something or calls a tool.

        What became of a call comes first, as far as the conversation has it. Else the first rule
        decides whose `when` is found in the user's last text and whose tool, if it has one, is
        offered; and without one, a tool that the text names is called.

        Args:
            items: The model's conversation.
            tools: The tools that the client offers, as the protocol writes them, by name.
        """
        if told := self._tell_of_calls(items):
            return told
        asked = _last_text(items)
        if asked is None:
            return "Hello, this is the scripted model."
        for rule in self._rules:
            if rule.when.search(asked):
                if rule.say is not None:
                    return rule.say
                if rule.call in tools:
                    return Call(str(rule.call), rule.arguments)
        for name, tool in tools.items():
            if _mentions(asked, name):
                return Call(name, _some_arguments(tool, asked))
        return f'You said: "{asked}". I have {_listed(tools)}.'

    def _tell_of_calls(self, items: Iterable[Item]) -> str:
        outputs = {o.call_id: o.output for o in items if isinstance(o, FunctionCallOutput)}
        told = []
        for item in items:
            if not isinstance(item, FunctionCall) or item.call_id not in self._open:
                continue
            if item.call_id in outputs:
                del self._open[item.call_id]
                told.append(f"The result of {item.name} is: {outputs[item.call_id]}")
            elif not self._open[item.call_id]:
                self._open[item.call_id] = True
                told.append(f"I do not know: I called {item.name}, and have no result of it.")
        return " ".join(told)


def _last_text(items: Sequence[Item]) -> str | None:
    texts = (
        item.text_content
        for item in reversed(items)
        if isinstance(item, Message) and item.role == "user"
    )
    return next(filter(None, texts), None)


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
