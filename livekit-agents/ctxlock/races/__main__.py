"""Runs the races against whatever livekit-agents can be imported, and reports.

``python -m ctxlock.races --json`` prints what became of each; exit status 0 means that all of them
were run and reported, whatever they showed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backend import Backend
    from .scenario import Scenario

FORMAT = 2
WATCHDOG = 60.0
"""Seconds after which a scenario counts as stuck. They take a fraction of one."""

PLUGIN = "livekit-plugins-openai"


class Unavailable(Exception):
    """The races cannot run through the plugin here; says why."""


def outcome_of(run: Callable[[], object], errors: Mapping[type[Any], str]) -> dict[str, str]:
    """Runs one scenario to its end, or to the watchdog's.

    Args:
        run: Runs it.
        errors: What the exceptions mean that the scenario raises on purpose; the first that fits.
    """
    result = {"outcome": "stuck", "detail": f"It had not ended after {WATCHDOG:g} seconds."}

    def work() -> None:
        try:
            run()
        except BaseException as error:
            meaning = next((m for kind, m in errors.items() if isinstance(error, kind)), None)
            detail = str(error) if meaning else f"{type(error).__name__}: {error}"
            result.update(outcome=meaning or "error", detail=detail)
        else:
            result.update(outcome="kept", detail="")

    # A thread, since a hung event loop cannot be relied on to end itself.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(WATCHDOG)
    return dict(result)


def recorded(scenario: Scenario, over: Backend | None) -> dict[str, object]:
    """Runs one scenario with a backend, or with the fake provider, and tells what happened."""
    from . import backend, trace
    from .verdict import HandoffCrash, LostUpdate, OutOfOrder

    recorder = trace.Recorder()

    def run() -> None:
        backend.backend.set(over)  # in a thread of its own, so for this scenario alone
        with trace.recording(recorder):
            asyncio.run(scenario.run())  # type: ignore[arg-type]

    meanings = {OutOfOrder: "moved", LostUpdate: "lost", HandoffCrash: "crashed"}
    outcome = outcome_of(run, meanings)
    return {**outcome, "events": recorder.events()}


def plugin() -> Backend:
    """The installed plugin's engine, with a scripted server at the other end of its websocket.

    Raises:
        Unavailable: It is not installed, or a release that the server does not suit.
    """
    from importlib.metadata import PackageNotFoundError, version

    from .releases import ENGINE_SINCE, Releases, installed

    if installed() not in Releases(ENGINE_SINCE):
        raise Unavailable(f"{PLUGIN} can be raced from livekit-agents {ENGINE_SINCE} on")
    try:
        version(PLUGIN)
    except PackageNotFoundError:
        raise Unavailable(f"{PLUGIN} is not installed") from None
    try:
        from .loopback.model import serving
    except Exception as error:
        raise Unavailable(f"{PLUGIN} cannot be imported: {error!r}") from None
    return serving


def report(progress: bool, through_plugin: bool = False) -> dict[str, object]:
    """Runs every scenario and returns the report.

    Args:
        progress: Whether to print a line about each on stderr.
        through_plugin: Whether to run them through `plugin` instead of the fake provider.

    Raises:
        Unavailable: There is no such plugin.
    """
    from importlib.metadata import version as version_of

    from .instrumentation import watching_locks
    from .releases import installed
    from .scenarios import SCENARIOS

    over = plugin() if through_plugin else None
    provider = f"{PLUGIN} {version_of(PLUGIN)}" if through_plugin else "scripted provider"
    version = installed()
    results = []
    for scenario in SCENARIOS:
        if version not in scenario.applies:
            detail = f"Applies to {scenario.applies}."
            result: dict[str, object] = {"outcome": "not applicable", "detail": detail}
        elif over is not None and not scenario.through_plugin:
            detail = "This race cannot happen through this plugin."
            result = {"outcome": "not applicable", "detail": detail}
        else:
            with watching_locks():
                result = recorded(scenario, over)
        results.append({"scenario": scenario.name, "description": scenario.description} | result)
        if progress:
            print(f"{scenario.name}: {result['outcome']}", file=sys.stderr, flush=True)
    head = {"format": FORMAT, "livekit_agents": version, "provider": provider}
    return {**head, "results": results}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m ctxlock.races", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON, sorted and versioned")
    parser.add_argument("--progress", action="store_true", help="a line per race on stderr")
    parser.add_argument("--plugin", action="store_true", help=f"run through {PLUGIN}")
    arguments = parser.parse_args(argv)
    logging.disable(logging.CRITICAL)  # what stock logs about its own races is no news here
    try:
        found = report(arguments.progress, arguments.plugin)
    except Unavailable as why:
        found = {"format": FORMAT, "unavailable": str(why), "results": []}
    if arguments.json:
        print(json.dumps(found, indent=2, sort_keys=True))
    else:
        print(found.get("unavailable") or f"livekit-agents {found['livekit_agents']}")
        for result in found["results"]:  # type: ignore[attr-defined]
            print(f"  {result['outcome']:<15} {result['scenario']}")
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # a stuck scenario's thread must not keep the process
    os._exit(status)
