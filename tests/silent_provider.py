"""A provider that does not tell of what it adds."""

from __future__ import annotations

from typing import Any

from ctxlock.races.fake_realtime import FakeRealtimeModel, FakeRealtimeSession
from livekit.agents import llm


class SilentSession(FakeRealtimeSession):
    """A provider that tells of no item, as the older plugins do."""

    def emit(self, event: Any, *args: Any) -> None:
        if event != "remote_item_added":
            super().emit(event, *args)


class ForgetfulSession(SilentSession):
    """One whose mirror is empty whatever is pushed."""

    @property
    def chat_ctx(self) -> llm.ChatContext:
        return llm.ChatContext.empty()


class SilentModel(FakeRealtimeModel):
    def __init__(self, kind: type[FakeRealtimeSession]) -> None:
        super().__init__()
        self._kind = kind

    def session(self, **_: Any) -> FakeRealtimeSession:
        session = self._kind(self)
        self.sessions.append(session)
        return session


def silent() -> SilentModel:
    return SilentModel(SilentSession)
