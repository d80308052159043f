"""The races and the regressions once more, through the OpenAI engine and a websocket.

Only the far end is scripted: the plugin, its protocol and its timeouts are the real ones. A test
that a stock release must fail, it must fail here as well, and for the same reason.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import itertools
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from _realtime_support import VERSION, fails_on_stock, has_engine
from test_realtime_races import _case

if not has_engine():
    pytest.skip("no livekit-plugins-openai that is scripted here", allow_module_level=True)

from ctxlock.races import backend
from ctxlock.races.harness import idle, running
from ctxlock.races.loopback.model import serving
from ctxlock.races.loopback.push import TIMEOUT
from ctxlock.races.loopback.traffic import advance
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.scenarios import SCENARIOS, Scenario

MODULES = (
    "test_realtime_cleanup",
    "test_realtime_deadlocks",
    "test_realtime_failures",
    "test_realtime_handoff",
    "test_realtime_hold_limit",
    "test_realtime_odd_calls",
    "test_realtime_reconnection",
    "test_realtime_replacement",
    "test_realtime_sequential",
    "test_realtime_server_items",
    "test_realtime_spoken_message",
    "test_realtime_tool_outputs",
    "test_realtime_typed_message",
    "test_realtime_waiting_replacement",
)

# This engine does not wait for instructions: a session start reads the agent's context and joins
# the engine's own queue in one step, so that no replacement can come between.
NEVER_BETWEEN = (
    "replacement during a session start",
    "test_replacement_during_a_resume",  # before 1.8.9 it loses to the tool's output after that
)
BEFORE_1_8_9 = fails_on_stock(since="1.5.3", before="1.8.9")

# It would sit out the engine's timeout twice; see the end of this file.
ELSEWHERE = "test_session_that_closes_while_an_update_is_pending"

# What no server can do to its client.
IMPOSSIBLE = "raised"


def modules() -> Iterator[ModuleType]:
    for name in MODULES:
        try:
            yield importlib.import_module(name)
        except pytest.skip.Exception:
            continue  # not for this release


def marks(marked: Any) -> list[Any]:
    found = getattr(marked, "pytestmark", [])
    return list(found) if isinstance(found, list) else [found]


def rows(mark: Any) -> Iterator[tuple[str, dict[str, Any], list[Any]]]:
    """What one ``parametrize`` stands for: ids, arguments, marks."""
    names, values = mark.args
    names = [names] if isinstance(names, str) else names
    for value in values:
        row = value if hasattr(value, "marks") else pytest.param(value, id=str(value))
        if row.id != IMPOSSIBLE:
            yield f"-{row.id}", dict(zip(names, row.values, strict=True)), list(row.marks)


def regressions_of(module: ModuleType) -> Iterator[Any]:
    for name, test in vars(module).items():
        if not name.startswith("test_") or not inspect.iscoroutinefunction(test):
            continue
        own = [BEFORE_1_8_9] if name in NEVER_BETWEEN else marks(test)
        tables = [rows(mark) for mark in own if mark.name == "parametrize"]
        shared = [*marks(module), *(mark for mark in own if mark.name != "parametrize")]
        for chosen in itertools.product(*tables):
            arguments = {key: value for row in chosen for key, value in row[1].items()}
            yield pytest.param(
                partial(test, **arguments),
                id="".join([module.__name__[14:], "-", name[5:], *(row[0] for row in chosen)]),
                marks=shared + [mark for row in chosen for mark in row[2]],
            )


def regressions() -> list[Any]:
    every = (case for module in modules() for case in regressions_of(module))
    return [case for case in every if case.values[0].func.__name__ != ELSEWHERE]


def overlook_what_the_engine_leaves() -> None:
    """A cancelled update of the engine's leaves a future whose cancellation nobody retrieves."""
    loop = asyncio.get_running_loop()
    strict = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        cancelled = isinstance(context.get("exception"), asyncio.CancelledError)
        if not (cancelled and "_GatheringFuture" in context["message"]) and strict is not None:
            strict(loop, context)

    loop.set_exception_handler(handle)


def race(scenario: Scenario) -> Any:
    if scenario.name in NEVER_BETWEEN and VERSION in scenario.applies:
        return pytest.param(scenario, id=scenario.name.replace(" ", "-"))
    return _case(scenario)


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
