"""Every regression as a case of its own, to be run in other surroundings."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import itertools
from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from _realtime_support import VERSION, fails_on_stock

from ctxlock.races.releases import is_patched
from ctxlock.races.scenarios import Scenario


def race_case(scenario: Scenario) -> object:
    marks = []
    if VERSION not in scenario.applies:
        marks.append(pytest.mark.skip(reason=f"only {scenario.applies} do this"))
    elif VERSION in scenario.broken and not is_patched(VERSION):
        marks.append(
            pytest.mark.xfail(raises=scenario.failure, strict=True, reason=scenario.description)
        )
    return pytest.param(scenario, id=scenario.name.replace(" ", "-"), marks=marks)


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
