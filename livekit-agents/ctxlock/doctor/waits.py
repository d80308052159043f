"""What the scope `full` logs of an update that had to wait, in words."""

from __future__ import annotations

from .lines import Line

__all__ = ["WAITED", "wait_in_words"]

WAITED = "a realtime context update"
"""How each of its remarks begins."""

_ROLES = {
    "update_chat_ctx": "replacement",
    "start": "session start",
    "_start_session": "session start",
    "_realtime_reply_task": "text turn",
    "_realtime_generation_task": "tool output or cleanup",
    "_realtime_generation_task_impl": "tool output or cleanup",
    "_tts_task_impl": "spoken message",
}


def wait_in_words(line: Line) -> str:
    """Which update waited for which, and how long; or that it waited in vain."""
    site = _site(line.fields.get("site"), "an update")
    other = _site(line.fields.get("waited_for"), "another one")
    if "not acknowledged" in line.message:
        return f"{site} went on, as {other} was not acknowledged in time"
    seconds = line.fields.get("seconds")
    took = f" {seconds * 1000:.0f} ms" if isinstance(seconds, (int, float)) else ""
    return f"{site} waited{took} for {other}"


def _site(said: object, otherwise: str) -> str:
    """A method and its line, with what the method is for."""
    if not isinstance(said, str):
        return otherwise
    role = _ROLES.get(said.partition(",")[0])
    return f"{role} ({said})" if role else said
