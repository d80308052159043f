"""What the sites of the realtime context are for."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

__all__ = ["ROLES", "Role"]


class Role(str, Enum):
    """What a site is for, as it is called wherever a site is named."""

    REPLACEMENT = "replacement"
    SESSION_START = "session start"
    TEXT_TURN = "text turn"
    TOOL_OUTPUTS = "tool outputs"
    INTERRUPTED_TOOL_OUTPUTS = "interrupted tool outputs"
    NEVER_PLAYED_CLEANUP = "never-played cleanup"
    SPOKEN_MESSAGE = "spoken message"
    REUSE_CHECK = "reuse check"
    COMPARISON = "comparison"
    OTHER = "other"

    def __str__(self) -> str:
        return self.value


ROLES: Final[Mapping[str, Role]] = {
    "update_chat_ctx": Role.REPLACEMENT,
    "start": Role.SESSION_START,
    "_start_session": Role.SESSION_START,
    "_realtime_reply_task": Role.TEXT_TURN,
    "_tts_task_impl": Role.SPOKEN_MESSAGE,
    "_detach_reusable_resources": Role.REUSE_CHECK,
}
"""The role of a method's sites, by its name in `AgentActivity`; some methods have several roles."""
