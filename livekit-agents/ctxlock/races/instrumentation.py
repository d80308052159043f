"""Watches how an activity of upstream's uses its lock and its realtime session.

Upstream's code stays as it is: the session gets a subclass that notes and passes on, the lock two
methods. Whose doing it is, is read off the stack: the method of upstream's that reads or pushes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ..roles import ROLES, Role
from .engine import conversation_items
from .releases import has_full_scope
from .trace import current

__all__ = ["watch_session", "watching_locks"]

LOCK = "_rt_chat_ctx_lock"
"""The lock's name, or its beginning, in an activity."""

_ADDED = "livekit.agents.voice._realtime_context"
"""The module that the scope `full` adds, which works for those that call it."""

_NAMES: dict[str, str] = {
    **ROLES,
    "_resume_scheduling_task": Role.SESSION_START,
    "_realtime_generation_task": "tool output",
    "_realtime_generation_task_impl": "tool output",
}
"""What races call a method's updates: the stack does not tell the roles of a generation apart."""


def _role() -> str | None:
    """What the method of upstream's voice package is for that has called; None if none has."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("livekit.agents.voice.") and name != _ADDED:
            return _NAMES.get(frame.f_code.co_name, frame.f_code.co_name.strip("_"))
        frame = frame.f_back  # type: ignore[assignment]
    return None


def watch_session(session: Any) -> None:
    """Notes each snapshot that an activity takes of a realtime session, and each update."""
    recorder, kind = current(), type(session)
    if recorder is None:
        return
    noted = recorder

    class Watched(kind):  # type: ignore[misc, valid-type]
        @property
        def chat_ctx(self) -> Any:
            chat_ctx = super().chat_ctx
            if by := _role():
                noted.note("snapshot", by=by, items=conversation_items(chat_ctx))
            return chat_ctx

        async def update_chat_ctx(self, chat_ctx: Any, *args: Any, **kwargs: Any) -> None:
            ask = noted.asked(_role() or "", chat_ctx.items)
            error: BaseException | None = None
            try:
                await super().update_chat_ctx(chat_ctx, *args, **kwargs)
            except BaseException as e:
                error = e
                raise
            finally:
                noted.answered(ask, error)

    session.__class__ = Watched


@contextmanager
def watching_locks() -> Iterator[None]:
    """Notes how the lock is waited for, taken and released, in each activity that is made."""
    from livekit.agents.voice.agent_activity import AgentActivity

    maker: Any = AgentActivity
    if has_full_scope():  # its lock is the session's, and made with that
        maker = import_module(_ADDED).RealtimeContextLock
    made = maker.__init__

    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        if current() is not None:
            named = vars(self).items() if maker is AgentActivity else [(LOCK, self)]
            for name, value in named:
                if name.startswith(LOCK):
                    _watch_lock(value)

    maker.__init__ = make
    try:
        yield
    finally:
        maker.__init__ = made


def _watch_lock(lock: Any) -> None:
    recorder, acquire, release = current(), lock.acquire, lock.release
    assert recorder is not None
    holder: dict[str, Any] = {}

    async def noted_acquire(*args: Any) -> bool:
        nonlocal holder
        by = _role() or ""
        if lock.locked() and not recorder.is_of_this_task(holder):
            recorder.note("waits", by=by, on=holder["by"])
        await acquire(*args)
        holder = recorder.note("locked", by=by)
        return True

    def noted_release(*args: Any) -> None:
        recorder.note("unlocked", by=holder["by"])
        release(*args)

    vars(lock).update(acquire=noted_acquire, release=noted_release)
