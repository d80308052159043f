"""Watches how an activity of upstream's uses its lock and its realtime session.

Upstream's code stays as it is: the session gets a subclass that notes and passes on, the lock two
methods. Whose doing it is, is read off the stack: the method of upstream's that reads or pushes.
The module that the scope `full` adds makes each update in tasks of its own, and names its site.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .engine import conversation_items
from .releases import has_full_scope
from .trace import current

__all__ = ["watch_session", "watching_locks"]

LOCK = "_rt_chat_ctx_lock"
"""The lock's name, or its beginning, in an activity."""

_ROLES = {
    "update_chat_ctx": "replacement",
    "start": "session start",
    "_start_session": "session start",
    "_resume_scheduling_task": "session start",
    "_realtime_reply_task": "text turn",
    "_realtime_generation_task": "tool output",
    "_realtime_generation_task_impl": "tool output",
    "_tts_task_impl": "spoken message",
    "_detach_reusable_resources": "reuse check",
}

_ADDED = "livekit.agents.voice._realtime_context"
_SITES = {"tool outputs": "tool output", "interrupted tool outputs": "tool output"}
"""What is called otherwise there: one method does both, and is one kind of update here."""


@dataclass
class _Update:
    """One that the added module makes; it reads the session more often than it takes a snapshot."""

    role: str
    seen: bool = False


_update: ContextVar[_Update | None] = ContextVar("update", default=None)


def _role() -> str | None:
    """What the method of upstream's voice package is for that has called; None if none has."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name == _ADDED:
            return None if (update := _update.get()) is None else update.role
        if name.startswith("livekit.agents.voice."):
            return _ROLES.get(frame.f_code.co_name, frame.f_code.co_name.strip("_"))
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
            update = _update.get()
            if (by := _role()) and not (update and update.seen):
                if update is not None:
                    update.seen = True
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
                if (update := _update.get()) is not None:
                    update.seen = False

    session.__class__ = Watched


@contextmanager
def watching_locks() -> Iterator[None]:
    """Notes how the lock is waited for, taken and released, in each activity that is made."""
    with _watching_activities(), _watching_the_added_module():
        yield


@contextmanager
def _watching_the_added_module() -> Iterator[None]:
    if not has_full_scope():
        yield
        return
    context = import_module(_ADDED).RealtimeContext
    begin = context._begin

    def noted_begin(self: Any, site: str, push: Any) -> Any:
        lock = None if current() is None or self.shared is None else self.shared.lock
        if lock is not None and "acquire" not in vars(lock):
            _watch_lock(lock)
        token = _update.set(_Update(_SITES.get(site, site)))  # the tasks made there inherit it
        try:
            return begin(self, site, push)
        finally:
            _update.reset(token)

    context._begin = noted_begin
    try:
        yield
    finally:
        context._begin = begin


@contextmanager
def _watching_activities() -> Iterator[None]:
    from livekit.agents.voice.agent_activity import AgentActivity

    made = AgentActivity.__init__

    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        if current() is not None:
            for name, value in vars(self).items():
                if name.startswith(LOCK):
                    _watch_lock(value)

    AgentActivity.__init__ = make  # type: ignore[method-assign]
    try:
        yield
    finally:
        AgentActivity.__init__ = made  # type: ignore[method-assign]


def _watch_lock(lock: asyncio.Lock) -> None:
    recorder, acquire, release = current(), lock.acquire, lock.release
    assert recorder is not None
    holder: dict[str, Any] = {"by": ""}

    async def noted_acquire() -> bool:
        nonlocal holder
        by = _role() or ""
        if lock.locked():
            recorder.note("waits", by=by)
        await acquire()
        holder = recorder.note("locked", by=by)
        return True

    def noted_release() -> None:
        recorder.note("unlocked", by=holder["by"])
        release()

    replaced: dict[str, Callable[[], Any]] = {"acquire": noted_acquire, "release": noted_release}
    vars(lock).update(replaced)
