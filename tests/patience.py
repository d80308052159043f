"""A shorter wait for what an interruption leaves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from livekit.agents.voice import speech_handle

PATIENCE = 0.5  # of an interruption; far less than that of a provider's engine


@contextmanager
def impatient() -> Iterator[None]:
    """Has the time of interruptions run out before any engine's does."""
    before, speech_handle.INTERRUPTION_TIMEOUT = speech_handle.INTERRUPTION_TIMEOUT, PATIENCE
    try:
        yield
    finally:
        speech_handle.INTERRUPTION_TIMEOUT = before
