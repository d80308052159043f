"""The names this project looks for in livekit-agents, and those it adds to it."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ACTIVITY_LOCK",
    "ADDED",
    "CLASS",
    "LOCK",
    "LOCK_CLASS",
    "MODULE",
    "NOTICE",
    "PUSHES",
    "SESSION",
    "SNAPSHOT",
    "TARGET",
]

TARGET: Final = "livekit/agents/voice/agent_activity.py"
"""The file that holds every site, as a wheel's RECORD names it."""

CLASS: Final = "AgentActivity"
SESSION: Final = "_rt_session"
LOCK: Final = "_rt_chat_ctx_lock"
ACTIVITY_LOCK: Final = "_lock"
"""The activity's own lock, for its start, its pauses and its end. It is always taken first."""

MODULE: Final = "_realtime_context"
LOCK_CLASS: Final = "RealtimeContextLock"
ADDED: Final = f"livekit/agents/voice/{MODULE}.py"
"""The module that the scope `full` adds, and the lock in it."""

NOTICE: Final = (
    "# This file is part of livekit-agents and has been modified by ctxlock: the realtime context"
)
"""How a patched file begins; section 4(b) of the Apache License 2.0 asks for it."""

SNAPSHOT: Final = "chat_ctx"
PUSHES: Final = ("update_chat_ctx", "_update_session")
"""The realtime session's methods that return once the provider has acknowledged a context."""
