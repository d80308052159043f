"""Session starts: what the provider is given, in one call or in several, and when that fails."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

import pytest
from _realtime_support import (
    BEYOND_THE_LOCK,
    CATCHES_FAILED_UPDATES,
    LOCK_ALONE,
    closed_by_full,
    needs,
    waits,
)
from handoffs import hand_off, hear, with_history
from silent_provider import SilentModel
from talks import asked

from ctxlock.races.fake_realtime import FakeRealtimeModel, FakeRealtimeSession
from ctxlock.races.harness import GatedTool, idle, running
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import check, name_items
from livekit.agents import Agent, llm

pytestmark = needs(BEYOND_THE_LOCK, CATCHES_FAILED_UPDATES)

BEFORE, HEARD = 'user "before"', 'user ""'


class WholeSession(FakeRealtimeSession):
    """A provider that wants all that a session starts with in one call."""

    def __init__(self, model: FakeRealtimeModel) -> None:
        super().__init__(model)
        self.given: list[dict[str, Any]] = []

    async def _update_session(self, **given: Any) -> None:
        self.given.append(given)
        await super()._update_session(**given)


async def test_provider_that_wants_all_in_one_call_gets_it() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(), model=SilentModel(WholeSession)) as talk:
        await talk.replace(note("before"))
        agent = await with_history(talk)
        await agent.update_tools([lookup.tool])
        realtime: Any = talk.realtime
        realtime.given.clear()
        updates = asked(talk)
        talk.hand_off(agent)
        await talk.expect(BEFORE)
        [given] = realtime.given
        assert BEFORE in name_items(given["chat_ctx"].items)
        assert given["instructions"] == agent.instructions
        assert [tool.info.name for tool in given["tools"]] == ["lookup"]
        assert len(updates) == 1


async def test_others_get_each_in_a_call_of_its_own() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        agent = await with_history(talk)
        await agent.update_tools([lookup.tool])
        talk.realtime.instructions_entered.clear()
        talk.hand_off(agent)
        await talk.expect(BEFORE)
        assert talk.realtime.instructions_entered.is_set()
        realtime: Any = talk.realtime
        assert list(realtime.tools.function_tools) == ["lookup"]


@closed_by_full("what arrives while no activity is attached is deleted by the next start")
async def test_what_arrives_during_a_handoff_is_in_that_one_call() -> None:
    async with running(agent_with(), model=SilentModel(WholeSession)) as talk:
        await talk.replace(note("before"))
        await hand_off(talk, await with_history(talk), hear)
        await talk.expect(BEFORE, HEARD)


async def test_context_that_cannot_be_changed_is_not_pushed() -> None:
    model = FakeRealtimeModel(mutable_chat_context=False)
    async with running(agent_with(), model=model) as talk:
        updates = asked(talk)
        talk.hand_off(agent_with())
        await talk.expect()
        assert len(model.sessions) == 1
        assert updates == []


async def test_context_that_cannot_be_changed_is_not_in_that_one_call() -> None:
    model = SilentModel(WholeSession)
    model.capabilities.mutable_chat_context = False
    async with running(agent_with(), model=model) as talk:
        realtime: Any = talk.realtime
        realtime.given.clear()
        talk.hand_off(agent_with())
        await talk.expect()
        [given] = realtime.given
        assert not isinstance(given.get("chat_ctx"), llm.ChatContext)


class UpdatingSession(FakeRealtimeSession):
    """A provider whose start updates the context of the agent that it is started for."""

    agent: Agent | None = None

    async def _update_session(self, **given: Any) -> None:
        await super()._update_session(**given)
        if self.agent is not None:
            context = self.agent.chat_ctx.copy()
            context.items.append(note("hello"))
            await self.agent.update_chat_ctx(context)


@waits(LOCK_ALONE, "the start of a session has the lock that the update waits for")
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


async def test_start_that_is_not_acknowledged_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    async with running(agent_with()) as talk:
        await talk.replace(note("before"))
        push = talk.realtime.hold()
        talk.hand_off(agent_with())
        await push.entered.wait()
        caplog.clear()
        push.time_out()
        await idle()
        assert [r for r in caplog.records if r.levelno >= logging.WARNING]
        push.release()
        await talk.expect()


async def test_start_that_breaks_off_fails() -> None:
    async with running(agent_with(), model=FakeRealtimeModel()) as talk:
        await talk.replace(note("before"))
        push = talk.realtime.hold()
        talk.hand_off(agent_with())
        await push.entered.wait()
        push.fail(ConnectionError("the line is dead"))
        handoff: Any = talk.session._update_activity_atask
        with pytest.raises(ConnectionError):
            await handoff
