"""Turns the recorded events of a race into the steps of a diagram, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["LANES", "TimelineStep", "short", "steps"]

LANES = ("agent", "tool", "lock", "provider")

Event = dict[str, Any]


@dataclass(frozen=True)
class TimelineStep:
    """A row of a diagram.

    Attributes:
        source: The lane in which it happens, or from which it goes.
        target: The lane to which it goes; the same if it stays.
        text: What it is, in words.
        by: Whose update it belongs to, or nothing.
        opens: The lane in which something begins to be held here, or nothing.
        closes: The lane in which that ends.
        dashed: Whether it only waits.
        harm: Whether it is what the lock is there to prevent.
    """

    source: str
    target: str
    text: str
    by: str = ""
    opens: str = ""
    closes: str = ""
    dashed: bool = False
    harm: bool = False


def short(name: str) -> str:
    """An item's name, as it fits a diagram."""
    return name.replace("function_call_output of", "output of").replace("function_call ", "call ")


def steps(events: Sequence[Event], *, lost: bool) -> list[TimelineStep]:
    """What happened, step by step; without a lock that is taken and released for nothing.

    Args:
        events: The events as the race recorded them.
        lost: Whether the race lost an item; what did it is then marked.
    """
    events = list(_telling(events))
    harmful = _harmful(events) if lost else set()
    return [_step(event, number in harmful) for number, event in enumerate(events)]


def _telling(events: Sequence[Event]) -> Iterator[Event]:
    skip = False
    for event, following in zip(events, [*events[1:], {}], strict=False):
        pair = (event["kind"], following.get("kind"))
        if skip:
            skip = False
        elif pair == ("locked", "unlocked"):
            skip = True
        elif event["kind"] == "end" or pair == ("asked", "sent"):
            continue
        else:
            yield event


def _harmful(events: Sequence[Event]) -> set[int]:
    """The deletions of what another's update created, and the creations of what was deleted."""
    found: set[int] = set()
    creators: dict[str, int | None] = {}
    deleted: set[str] = set()
    for number, event in enumerate(events):
        if event["kind"] not in ("created", "deleted"):
            continue
        (name,) = event["items"]
        if event["kind"] == "deleted":
            deleted.add(name)
            if creators.get(name) not in (None, event.get("push")):
                found.add(number)
        else:
            creators[name] = event.get("push")
            if name in deleted:
                found.add(number)
    return found


def _step(event: Event, harm: bool) -> TimelineStep:
    kind, by = event["kind"], event.get("by", "")
    text = event.get("text", "")
    items = ", ".join(map(short, event.get("items", ())))
    push = f"push {event['push']}" if "push" in event else text
    if kind == "added":
        return TimelineStep("provider", "agent", f"the model adds {items}")
    if kind == "started":
        return TimelineStep("agent", "tool", f"{text} runs")
    if kind == "returned":
        return TimelineStep("tool", "agent", f"{text} returns")
    if kind == "waits":
        held_by = f", which {event['on']} holds" if event.get("on") else ""
        return TimelineStep("agent", "lock", f"{by} waits for the lock{held_by}", by, dashed=True)
    if kind == "locked":
        return TimelineStep("agent", "lock", f"{by} takes the lock", by, opens="lock")
    if kind == "unlocked":
        return TimelineStep("lock", "agent", f"{by} releases the lock", by, closes="lock")
    if kind == "snapshot":
        return TimelineStep("agent", "agent", f"{by}: snapshot of {items or 'nothing'}", by)
    if kind == "asked":
        return TimelineStep("agent", "agent", f"{by}: {push} waits for its turn", by, dashed=True)
    if kind == "sent":
        asks = [f"create {short(name)}" for name in event["creates"]]
        asks = [f"delete {short(name)}" for name in event["deletes"]] + asks
        return TimelineStep("agent", "provider", f"{by}, {push}: {', '.join(asks)}", by)
    if kind == "held":
        return TimelineStep(
            "provider", "provider", f"{push}: acknowledgement held", by, opens="provider"
        )
    if kind == "let go":
        return TimelineStep("provider", "provider", f"{push}: let go", by, closes="provider")
    if kind in ("created", "deleted"):
        again = " again" if harm and kind == "created" else ""
        return TimelineStep("provider", "provider", f"{push} {kind} {items}{again}", by, harm=harm)
    if kind == "acknowledged":
        # the instructions are let go by being acknowledged
        closes = "" if "push" in event else "provider"
        return TimelineStep("provider", "agent", f"{push} acknowledged", by, closes=closes)
    if kind == "failed":
        return TimelineStep("provider", "agent", f"{push} failed: {text}", by, harm=True)
    if kind == "raised":
        return TimelineStep("agent", "agent", text, by, harm=True)
    return TimelineStep("agent", "agent", text, by)
