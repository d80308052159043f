"""What a race is, and where the races are registered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from livekit.agents import Agent, llm

from .harness import GatedTool
from .releases import Releases
from .verdict import LostUpdate

__all__ = ["UNTIL_THE_LOCK", "Scenario", "agent_with", "note", "registered", "scenario"]

UNTIL_THE_LOCK = "1.8.9"
"""The release that brought upstream's own lock, on all but two sites."""

Run = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """Two updates made to overlap on a real session.

    Attributes:
        name: What overlaps what.
        description: What happens, in a line.
        run: Makes it happen; raises `failure` in a release that fails.
        applies: The releases in which both updates exist.
        broken: The releases that fail it as published.
        failure: What it raises there.
        through_plugin: Whether it can happen through the OpenAI engine, too.
    """

    name: str
    description: str
    run: Run
    applies: Releases
    broken: Releases
    failure: type[AssertionError]
    through_plugin: bool = True


_scenarios: list[Scenario] = []


def registered() -> list[Scenario]:
    """The scenarios defined so far, in the order of their definition."""
    return list(_scenarios)


def scenario(
    name: str,
    description: str,
    *,
    applies: Releases,
    broken: Releases | None = None,
    failure: type[AssertionError] = LostUpdate,
    through_plugin: bool = True,
) -> Callable[[Run], Run]:
    """Registers what it decorates; ``broken`` defaults to wherever the scenario applies."""

    def register(run: Run) -> Run:
        made = Scenario(name, description, run, applies, broken or applies, failure, through_plugin)
        _scenarios.append(made)
        return run

    return register


def agent_with(*tools: GatedTool) -> Agent:
    """A new agent that has these tools."""
    return Agent(instructions="Answer briefly.", tools=[tool.tool for tool in tools])


def note(text: str) -> llm.ChatMessage:
    """A message for a replacement to add."""
    return llm.ChatMessage(role="user", content=[text])
