"""What the scope `lock` does otherwise than stock, as any lock would: it waits.

Both stand in README. Stock has them where its own lock stands, and nowhere else.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any

import pytest
from _realtime_support import SHARES_SESSIONS, VERSION, needs
from test_realtime_hold_limit import limited, pass_the_limit
from test_realtime_silent_provider import SilentModel

from ctxlock.races.fake_realtime import FakeRealtimeModel, FakeRealtimeSession
from ctxlock.races.harness import Harness, idle, running
from ctxlock.races.releases import Releases, has_full_scope, is_patched
from ctxlock.races.scenario import UNTIL_THE_LOCK, agent_with, note
from ctxlock.races.verdict import LostUpdate, check
from livekit.agents import Agent

LOCK_ALONE = is_patched(VERSION) and not has_full_scope()
UPSTREAMS_OWN = not is_patched(VERSION) and VERSION in Releases(UNTIL_THE_LOCK)


def waits(where: bool, reason: str) -> pytest.MarkDecorator:
    """Names what waits for ever; elsewhere the test must pass."""
    return pytest.mark.xfail(where, raises=LostUpdate, strict=True, reason=reason)


def type_hello(talk: Harness) -> None:
    talk.text_turn("hello")


def say_hello(talk: Harness) -> None:
    talk.say("hello")


HELD_UP = "an update that is never acknowledged holds up all that come after it"


@pytest.mark.parametrize(
    ("later", "name"),
    [
        pytest.param(
            *(type_hello, 'user "hello"'),
            marks=waits(LOCK_ALONE or UPSTREAMS_OWN, HELD_UP),
            id="text-turn",
        ),
        pytest.param(
            *(say_hello, 'assistant "hello"'),
            marks=[needs(UNTIL_THE_LOCK), waits(LOCK_ALONE, HELD_UP)],
            id="spoken-message",
        ),
    ],
)
async def test_update_after_one_that_is_never_acknowledged(later: Any, name: str) -> None:
    """Stock holds up that one, with a provider that takes several at a time."""
    async with running(agent_with(), model=FakeRealtimeModel()) as talk:
        realtime: Any = talk.realtime
        realtime.engine._lock = nullcontext()
        with limited():
            push = talk.realtime.hold()
            talk.replace(note("A"))
            await push.entered.wait()
            later(talk)
            await pass_the_limit()
            check(talk.realtime, kept=[name])


class UpdatingSession(FakeRealtimeSession):
    """A provider whose start updates the context of the agent that it is started for."""

    agent: Agent | None = None

    async def _update_session(self, **given: Any) -> None:
        await super()._update_session(**given)
        if self.agent is not None:
            context = self.agent.chat_ctx.copy()
            context.items.append(note("hello"))
            await self.agent.update_chat_ctx(context)


@needs(SHARES_SESSIONS)
@waits(is_patched(VERSION), "the start of a session has the lock that the update waits for")
async def test_provider_that_updates_the_context_from_within_its_own_start() -> None:
    async with running(agent_with(), model=SilentModel(UpdatingSession)) as talk:
        realtime: Any = talk.realtime
        realtime.agent = agent_with()
        talk.hand_off(realtime.agent)
        await idle()
        handoff: Any = talk.session._update_activity_atask
        try:
            check(talk.realtime, kept=['user "hello"'])
        finally:
            handoff.cancel()  # nothing else ends what waits for itself
            with suppress(BaseException):
                await handoff
