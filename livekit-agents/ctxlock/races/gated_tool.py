"""A function tool that runs for as long as a race wants it to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from livekit.agents.llm import function_tool

from .trace import note

__all__ = ["GatedTool"]


class GatedTool:
    """A function tool that runs until told to finish.

    Attributes:
        started: Set when the model's call has begun to execute.
        gate: Set it to let the tool return its result.
        tool: What an agent takes.
    """

    def __init__(self, name: str, body: Callable[[], Coroutine[Any, Any, Any]] | None = None):
        self.name = name
        self.started = asyncio.Event()
        self.gate = asyncio.Event()
        if body is not None:
            self.gate.set()

        async def run() -> Any:
            note("started", text=name)
            self.started.set()
            await self.gate.wait()
            result = await body() if body is not None else f"result of {name}"
            note("returned", text=name)
            return result

        self.tool = function_tool(run, name=name, description=f"The tool {name}.")

    def finish(self) -> None:
        """Lets the tool return, now or when it comes to that."""
        self.gate.set()
