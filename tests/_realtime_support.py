"""What the regressions share: expectations of stock releases, repetition, and a strict event loop.

A stock release runs the same files: a test that it must fail is a strict xfail there, and only for
the exception that means what the test is about. See `fails_on_stock`.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib
import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from ctxlock.explorer import clock  # noqa: F401  (before livekit.agents)
from ctxlock.races.releases import ENGINE_SINCE, Releases, has_full_scope, installed, is_patched
from ctxlock.races.verdict import LostUpdate

BEYOND_THE_LOCK = "1.3.0" if has_full_scope() else "1.8.8"
"""The oldest release on which the harms that only the scope `full` ends are shown, or their end."""

TELLS_OF_ITEMS = "1.5.0"
"""From then on an agent is told of the provider's items."""

SHARES_SESSIONS = "1.5.3"
"""From then on a handoff keeps the realtime session."""

CATCHES_FAILED_UPDATES = "1.6.0"
"""From then on a text turn whose update fails goes on to its reply."""

ANSWERS_WHEN_INTERRUPTED = "1.7.0"
"""From then on the outputs of an interrupted generation are pushed."""

RECORDS_CALLS_AGAIN = "1.8.0"
"""From then on a call is recorded with its output, also if it was removed while it ran."""

RESENDS = "1.8.5"
"""From then on the engine sends again what a lost connection never confirmed."""

WATCHDOG = 60.0
"""A guard against hanging, nothing else: each test takes a fraction of a second."""

REPEATED = ("test_realtime_", "test_fake_realtime")
"""How the names of the files begin whose tests ``--repeat`` runs again."""

STRICT = (*REPEATED, "test_doctor_runs")
"""How the names of the files begin whose tests the event loop must not complain of."""

VERSION = installed()

LOCK_ALONE = is_patched(VERSION) and not has_full_scope()


def fails_on_stock(
    *,
    since: str = "1.0.0",
    before: str | None = None,
    raises: type[AssertionError] = LostUpdate,
) -> pytest.MarkDecorator:
    """Names the stock releases on which a test must fail, and the one exception it fails with."""
    failing = not is_patched(VERSION) and VERSION in Releases(since, before)
    return pytest.mark.xfail(
        failing, raises=raises, strict=True, reason=f"stock {VERSION} loses updates"
    )


def closed_by_full(
    reason: str,
    *,
    since: str = "1.0.0",
    closed_in: Sequence[str] = (),
    raises: type[AssertionError] = LostUpdate,
) -> pytest.MarkDecorator:
    """Names a harm that only the scope `full` ends: a test must fail on stock and on lock alone."""
    open_here = VERSION in Releases(since) and VERSION.split("+")[0] not in closed_in
    return pytest.mark.xfail(
        open_here and not has_full_scope(), raises=raises, strict=True, reason=reason
    )


def still_lost(reason: str, *, raises: type[AssertionError] = LostUpdate) -> pytest.MarkDecorator:
    """Names a harm that nothing ends, the scope `full` included."""
    return pytest.mark.xfail(raises=raises, strict=True, reason=reason)


def waits(where: bool, reason: str) -> pytest.MarkDecorator:
    """Names what waits for ever; elsewhere the test must pass."""
    return pytest.mark.xfail(where, raises=LostUpdate, strict=True, reason=reason)


def needs(*since: str, before: str | None = None) -> pytest.MarkDecorator:
    """Names the releases that do what the test is about at all; every bound holds."""
    missing = [r for r in (Releases(bound, before) for bound in since) if VERSION not in r]
    return pytest.mark.skipif(bool(missing), reason=f"only {', '.join(map(str, missing))} do this")


def has_engine() -> bool:
    """Whether there is an OpenAI engine here, and one that the scripted server suits."""
    try:
        importlib.import_module("livekit.plugins.openai.realtime")
    except ImportError:
        return False
    return VERSION in Releases(ENGINE_SINCE)


def pytest_configure(config: pytest.Config) -> None:
    if VERSION in Releases(before="1.2.9"):
        # upstream's own; as an error it ends the task that was to run a tool
        config.addinivalue_line(
            "filterwarnings", "ignore:Accessing the 'model_fields' attribute:DeprecationWarning"
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--repeat",
        type=int,
        default=1,
        metavar="N",
        help="run each test of the realtime session N times",
    )


def _is_one_of(module: ModuleType, prefixes: tuple[str, ...]) -> bool:
    return module.__name__.rpartition(".")[2].startswith(prefixes)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    times = metafunc.config.getoption("--repeat")
    if times > 1 and _is_one_of(metafunc.module, REPEATED):
        metafunc.fixturenames.append("repetition")
        metafunc.parametrize("repetition", range(1, times + 1), ids="run{}".format)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and _is_one_of(item.module, STRICT)
            and inspect.iscoroutinefunction(item.obj)
        ):
            item.obj = _strict(item.obj)


def pytest_collection_finish() -> None:
    # what is imported by now stays; the collections below need not look at it every time
    gc.collect()
    gc.freeze()


@contextmanager
def _complaints() -> Iterator[list[str]]:
    loop = asyncio.get_running_loop()
    said: list[str] = []
    loop.set_exception_handler(lambda _, context: said.append(str(context)))
    loop.set_debug(True)
    loop.slow_callback_duration = WATCHDOG  # how fast this machine is, is no matter
    yield said


def _strict(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Runs a test in debug mode, under a watchdog, and fails it if the event loop complains."""

    @functools.wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        with _complaints() as complaints:
            await asyncio.wait_for(test(*args, **kwargs), WATCHDOG)
            gc.collect()  # a task's unretrieved exception is reported when the task goes
            await asyncio.sleep(0)
        assert not complaints, f"the event loop complained: {complaints}"

    return run
