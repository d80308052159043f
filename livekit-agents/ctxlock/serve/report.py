"""What the server prints while it runs: a line for each thing that happens, or a JSON object."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from ..races.loopback.items import FunctionCall, Item, Message
from ..races.loopback.wire import payload_of

__all__ = ["ConnectionReport", "Report"]

_LONGEST = 60


class Report:
    """Prints at once, and counts.

    Args:
        as_json: Whether each line is a JSON object, for a machine.

    Attributes:
        connections: How many clients have connected.
        lost: How many tool outputs were deleted and not replaced.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.connections = 0
        self.lost = 0
        self._as_json = as_json
        self._console = Console()

    def tell(self, event: str, text: str, /, *, style: str = "", **data: Any) -> None:
        """Prints that something happened.

        Args:
            event: What it is called in JSON.
            text: What it is called otherwise.
            style: How the text looks.
            data: What else JSON has of it.
        """
        if self._as_json:
            print(json.dumps({"event": event, **data}), flush=True)
        else:
            self._console.print(text, style=style, soft_wrap=True, highlight=False, markup=False)


class ConnectionReport:
    """Tells of one connection."""

    def __init__(self, report: Report) -> None:
        report.connections += 1
        self._number = report.connections
        self._report = report

    def tell(self, event: str, text: str, /, *, style: str = "", **data: Any) -> None:
        """As `Report.tell`, with the connection's number."""
        text = f"[{self._number}] {text}"
        self._report.tell(event, text, style=style, connection=self._number, **data)

    def conversation(self, items: Sequence[Item]) -> None:
        """Tells all that the model has."""
        text = " | ".join(describe(items, item) for item in items) or "nothing"
        payloads = [payload_of(item) for item in items]
        self.tell("conversation", f"the model has: {text}", style="dim", items=payloads)

    def created(self, items: Sequence[Item], item: Item) -> None:
        """Tells that the client has created an item."""
        self.tell("created", f"created: {describe(items, item)}", item=payload_of(item))

    def deleted(self, items: Sequence[Item], item: Item, *, lost: bool) -> None:
        """Tells that the client has deleted an item, and whether a call is without a result."""
        text = f"deleted: {describe(items, item)}"
        if lost:
            self._report.lost += 1
            text += " -- and nothing replaces it: the call is left without its result"
        self.tell(
            "deleted", text, style="bold red" if lost else "", item=payload_of(item), lost=lost
        )


def describe(items: Sequence[Item], item: Item) -> str:
    """Names an item by what it is; an output goes by its call, if that is among ``items``."""
    if isinstance(item, Message):
        return f'{item.role} "{_clipped(item.text_content)}"'
    if isinstance(item, FunctionCall):
        return f"call of {item.name}"
    tools = {call.call_id: call.name for call in items if isinstance(call, FunctionCall)}
    return f'output of {tools.get(item.call_id, item.call_id)} "{_clipped(item.output)}"'


def _clipped(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
