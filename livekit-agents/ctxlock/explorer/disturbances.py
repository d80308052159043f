"""What may befall an update that is on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .progress import OwnedPush

__all__ = ["Disturbance", "disturbances_of"]

Disturbance = Callable[[], object]


def disturbances_of(
    push: OwnedPush, *, client: asyncio.Task[Any] | None, silence: bool
) -> dict[str, Disturbance]:
    """The ways to disturb an update, by what they are called.

    Args:
        push: The update, whose client waits.
        client: The task that asked for it, if that may be cancelled.
        silence: Whether the provider may say nothing at all, and leave the client to wait.
    """

    def reject() -> None:
        push.drop()
        push.reject()

    def lose() -> None:
        push.drop()
        push.time_out(lost=True)

    def time_out() -> None:
        push.given_up = True
        push.time_out()

    def stall() -> None:
        push.silent = True

    def swallow() -> None:
        push.silent = True
        push.drop()
        push.pending.clear()

    ways: dict[str, Disturbance] = {"reject": reject, "lose": lose, "time out": time_out}
    if client is not None:
        ways["cancel"] = client.cancel
    if silence:
        ways |= {"stall": stall, "swallow": swallow}
    return ways
