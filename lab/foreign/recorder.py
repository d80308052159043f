"""What is seen of a run, step by step, in words that are the same in every run.

Two records are kept of what reaches the provider's session. `calls` is what it is asked for and
when, by the virtual clock. `manner` is how: which objects it is handed, in which task, how many
iterations of the loop and how many new tasks after the step began, and what it is read for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from lab.trace import Names
from livekit.agents import llm

from .loop import CountingLoop

__all__ = ["ASPECTS", "Recorder", "Step"]

ASPECTS = (
    *("calls", "manner", "agent", "model", "history"),
    *("events", "speeches", "raised", "logged", "left"),
)

Step = dict[str, Any]
"""The name of a step, and under each of `ASPECTS` the lines recorded."""


class Recorder:
    """Keeps the steps of a run.

    Attributes:
        steps: What was recorded, in order.
    """

    def __init__(self, loop: CountingLoop) -> None:
        self.loop = loop
        self.steps: list[Step] = []
        self.agents: list[Any] = []
        self._names = Names()
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._began = (0, 0, 0.0)

    def begin(self, name: str) -> None:
        """Starts the next step; what is recorded from now on belongs to it."""
        self.steps.append({"step": name, **{aspect: [] for aspect in ASPECTS}})
        self._began = (self.loop.steps, self.loop.tasks_made, self.loop.time())

    def note(self, aspect: str, line: str) -> None:
        """Records a line."""
        if self.steps:
            self.steps[-1][aspect].append(line)

    def at(self) -> str:
        """The virtual time since the step began."""
        return f"{self.loop.time() - self._began[2]:.2f}s"

    def call(self, who: str, name: str, asked: str = "", handed: str = "") -> None:
        """Records a call that reached a session of the provider's."""
        self.note("calls", f"{self.at()} {who}.{name}({asked})")
        self.read(who, f"{name}({handed or asked})")

    def read(self, who: str, what: str) -> None:
        """Records how something reached a session that asks the provider for nothing."""
        steps, tasks = self.loop.steps - self._began[0], self.loop.tasks_made - self._began[1]
        task = self.loop.lineage(asyncio.current_task(self.loop))
        self.note("manner", f"{who}.{what}: step {steps}, {tasks} tasks made, in {task}")

    # -- naming

    def object(self, thing: Any) -> str:
        """A number for an object, by the order in which objects are seen."""
        if id(thing) not in self._numbers:
            self._objects.append(thing)  # so that its address stays its own
            self._numbers[id(thing)] = len(self._objects)
        return f"o{self._numbers[id(thing)]}"

    def text(self, text: Any) -> str:
        """A text with names in place of ids that are random, and of addresses."""
        named: str = self._names.clean(str(text))
        return named

    def item(self, item: Any) -> str:
        """An item: its id, what it is, and what it contains."""
        name = f"{self.text(item.id)} {item.type}"
        if item.type == "message":
            # of an image or a sound its own text, too, which has what it contains
            content = [part if isinstance(part, str) else self.text(part) for part in item.content]
            cut = ", interrupted" if item.interrupted else ""
            extra = f", extra {item.extra}" if getattr(item, "extra", None) else ""
            return f"{name} {item.role} {content}{cut}{extra}"
        if item.type == "function_call":
            return f"{name} {item.name}({item.arguments}) {self.text(item.call_id)}"
        if item.type == "function_call_output":
            error = ", an error" if item.is_error else ""
            return f"{name} {self.text(item.output)!r} of {self.text(item.call_id)}{error}"
        if item.type == "agent_handoff":
            return f"{name} {item.old_agent_id} to {item.new_agent_id}"
        if item.type == "agent_config_update":
            tools = f"+{sorted(item.tools_added or [])} -{sorted(item.tools_removed or [])}"
            return f"{name} {item.instructions} {tools}"
        return name

    def items(self, items: Iterable[Any]) -> list[str]:
        """Several of them."""
        return [self.item(item) for item in items]

    def context(self, chat_ctx: Any) -> tuple[str, str]:
        """What a context that is handed over contains, and which objects it consists of."""
        if not isinstance(chat_ctx, llm.ChatContext):
            return repr(chat_ctx), repr(chat_ctx)
        whose = next((agent.id for agent in self.agents if agent._chat_ctx is chat_ctx), "nobody")
        theirs = {id(item) for agent in self.agents for item in agent._chat_ctx.items}
        parts = [self.object(item) + ("a" if id(item) in theirs else "") for item in chat_ctx.items]
        kind = type(chat_ctx).__name__
        # a read-only context keeps no list that anyone else could have
        handed = f"{kind} {self.object(chat_ctx)} of {whose}: {' '.join(parts)}"
        return "; ".join(self.items(chat_ctx.items)), handed

    def logged(self, record: logging.LogRecord) -> None:
        """Records what is logged, with what it was raised by and what it is told of an error."""
        line = f"{record.levelname} {record.getMessage()}"
        if record.exc_info and record.exc_info[1] is not None:
            line += f" [{record.exc_info[1]!r}]"
        if (error := getattr(record, "error", None)) is not None:
            line += f" [{error}]"
        self.note("logged", self.text(line))
