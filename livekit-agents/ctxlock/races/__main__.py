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
from collections.abc import Callable, Sequence

FORMAT = 1
WATCHDOG = 60.0
"""Seconds after which a scenario counts as stuck. They take a fraction of one."""


def outcome_of(run: Callable[[], object], errors: dict[type[BaseException], str]) -> dict[str, str]:
    """Runs one scenario to its end, or to the watchdog's.

    Args:
        run: Runs it.
        errors: What the exceptions mean that the scenario raises on purpose.
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


def report(progress: bool) -> dict[str, object]:
    """Runs every scenario and returns the report."""
    from .releases import installed
    from .scenarios import SCENARIOS
    from .verdict import HandoffCrash, LostUpdate

    version = installed()
    results = []
    for scenario in SCENARIOS:
        if version in scenario.applies:
            result = outcome_of(
                lambda run=scenario.run: asyncio.run(run()),  # type: ignore[misc]
                {LostUpdate: "lost", HandoffCrash: "crashed"},
            )
        else:
            result = {"outcome": "not applicable", "detail": f"Applies to {scenario.applies}."}
        results.append({"scenario": scenario.name, "description": scenario.description} | result)
        if progress:
            print(f"{scenario.name}: {result['outcome']}", file=sys.stderr, flush=True)
    return {"format": FORMAT, "livekit_agents": version, "results": results}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m ctxlock.races", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON, sorted and versioned")
    parser.add_argument("--progress", action="store_true", help="a line per race on stderr")
    arguments = parser.parse_args(argv)
    logging.disable(logging.CRITICAL)  # what stock logs about its own races is no news here
    found = report(arguments.progress)
    if arguments.json:
        print(json.dumps(found, indent=2, sort_keys=True))
    else:
        print(f"livekit-agents {found['livekit_agents']}")
        for result in found["results"]:  # type: ignore[attr-defined]
            print(f"  {result['outcome']:<15} {result['scenario']}")
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # a stuck scenario's thread must not keep the process
    os._exit(status)
