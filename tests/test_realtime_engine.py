"""The races and the regressions once more, through the OpenAI engine and a websocket.

Only the far end is scripted: the plugin, its protocol and its timeouts are the real ones. A test
that a stock release must fail, it must fail here as well, and for the same reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from _realtime_support import VERSION, has_engine
from regressions import (
    NEVER_BETWEEN,
    overlook_what_the_engine_leaves,
    race_case,
    regressions,
)

if not has_engine():
    pytest.skip("no livekit-plugins-openai that is scripted here", allow_module_level=True)

from ctxlock.races import backend
from ctxlock.races.harness import idle, running
from ctxlock.races.loopback.model import serving
from ctxlock.races.loopback.push import TIMEOUT
from ctxlock.races.loopback.traffic import advance
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.scenarios import SCENARIOS, Scenario


def race(scenario: Scenario) -> Any:
    if scenario.name in NEVER_BETWEEN and VERSION in scenario.applies:
        return pytest.param(scenario, id=scenario.name.replace(" ", "-"))
    return race_case(scenario)


@pytest.mark.parametrize("spoken", [False, True], ids=["text", "speech"])
@pytest.mark.parametrize("scenario", [race(scenario) for scenario in SCENARIOS])
async def test_neither_update_loses(scenario: Scenario, spoken: bool) -> None:
    with backend.over(partial(serving, spoken=spoken)):
        await scenario.run()


@pytest.mark.parametrize("regression", regressions())
async def test_regression(regression: Callable[[], Awaitable[None]]) -> None:
    overlook_what_the_engine_leaves()
    with backend.over(serving):
        await regression()


async def test_session_that_closes_while_an_update_is_pending() -> None:
    overlook_what_the_engine_leaves()  # the scope `full` cancels the pending one
    with backend.over(serving):
        async with running(agent_with()) as talk:
            lock = talk.lock
            push = talk.realtime.hold()
            pending = talk.replace(note("A"))
            await push.entered.wait()
            waiting = talk.replace(note("B"))
            await talk.session.aclose()
            for _ in (pending, waiting):  # the engine's time runs out on one after the other
                advance(TIMEOUT)
                await idle()
            await asyncio.gather(pending, waiting, return_exceptions=True)
            assert lock is None or not lock.locked()
