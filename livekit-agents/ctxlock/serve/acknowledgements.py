"""When a client is told that an update of its was done: at once, late, or when the time is bad."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ..races.loopback.push import WirePush

__all__ = ["HOLD", "Acknowledgements", "Patience"]

HOLD = 4.0
"""Seconds for which a tool output is held at most; the OpenAI engine gives up after 5."""


@dataclass(frozen=True)
class Patience:
    """What the command's options ask for.

    Attributes:
        delay: Seconds by which each acknowledgement is late.
        hold_tool_outputs: Whether those of tool outputs are kept back.
    """

    delay: float = 0
    hold_tool_outputs: bool = False


class Acknowledgements:
    """Sends them in the order of the updates, as a connection does, each when it is due.

    Args:
        patience: What the options ask for.
        on_hold: Called when one is kept back.
        on_release: Called when it is sent after all, with the reason.
    """

    def __init__(
        self, patience: Patience, on_hold: Callable[[], None], on_release: Callable[[str], None]
    ) -> None:
        self._patience = patience
        self._on_hold = on_hold
        self._on_release = on_release
        self._unsent: deque[WirePush] = deque()
        self._due: set[WirePush] = set()
        self._held: set[WirePush] = set()

    def take(self, push: WirePush) -> None:
        """Acknowledges an update, now or later; what it asks for has been done."""
        self._unsent.append(push)
        kinds = {getattr(item, "role", item.type) for item in push.creates}
        if "user" in kinds:
            self.release("the user's next text has arrived")
        elif self._patience.hold_tool_outputs and "function_call_output" in kinds:
            self._held.add(push)
            self._on_hold()
            self._later(HOLD, push, f"{HOLD:g} s have passed")
            return
        if self._patience.delay:
            self._later(self._patience.delay, push, "")
        else:
            self._send(push)

    def release(self, reason: str) -> None:
        """Sends what is kept back."""
        for push in list(self._held):
            self._let_go(push, reason)

    def forget(self) -> None:
        """Nobody is there any more to be told."""
        self._unsent.clear()
        self._held.clear()

    def _later(self, seconds: float, push: WirePush, reason: str) -> None:
        asyncio.get_running_loop().call_later(seconds, self._let_go, push, reason)

    def _let_go(self, push: WirePush, reason: str) -> None:
        if push in self._held:
            self._held.remove(push)
            self._on_release(reason)
        self._send(push)

    def _send(self, push: WirePush) -> None:
        self._due.add(push)
        while self._unsent and self._unsent[0] in self._due:
            first = self._unsent.popleft()
            self._due.discard(first)
            first.release()
        self._due &= set(self._unsent)
