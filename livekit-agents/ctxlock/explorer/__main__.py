"""Explores every schedule on whatever livekit-agents can be imported, and reports.

``python -m ctxlock.explorer`` prints JSON; exit status 0 means that it could be done, whatever
it showed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from ..races.releases import installed
from .integrity import KINDS_OF_PROBLEMS
from .kinds import kinds_of
from .limits import LIMITS
from .operations import SEVERAL
from .survey import BUDGET, Group, Tally, plan, tally, warm_up

__all__ = ["main", "report", "select"]

FORMAT = 1


def select(groups: Sequence[Group], only: Sequence[str]) -> list[Group]:
    """The groups that hold these operations, each a comma-separated list of kinds; no list: all."""
    if not only:
        return list(groups)
    wanted = [sorted(kind.strip() for kind in text.split(",")) for text in only]
    return [group for group in groups if sorted(group.kinds) in wanted]


def report(groups: Sequence[Group], jobs: int, budget: int, progress: bool) -> dict[str, Any]:
    """Explores the groups, in so many processes, and returns the report, in the groups' order."""
    started = time.perf_counter()
    if jobs > 1:
        # spawned, as a fork would share this process's clock and what it has imported
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, spawn, warm_up) as pool:
            asked = [pool.submit(tally, group, budget) for group in groups]
            tallies = _collect((one.result() for one in as_completed(asked)), groups, progress)
    else:
        warm_up()
        tallies = _collect((tally(group, budget) for group in groups), groups, progress)
    kinds = [group.kinds for group in groups]
    tallies.sort(key=lambda found: kinds.index(found.kinds))
    integrity = any(group.integrity for group in groups)
    return {
        "format": FORMAT,
        "livekit_agents": installed(),
        "integrity": integrity,
        "kinds": [kind.kind for kind in kinds_of(integrity=integrity)],
        "several": [kind.kind for kind in kinds_of() if kind in SEVERAL],
        "problems": list(KINDS_OF_PROBLEMS) if integrity else [],
        "limits": LIMITS,
        "seconds": round(time.perf_counter() - started, 3),
        "groups": [found.as_json() for found in tallies],
    }


def _collect(found: Iterable[Tally], groups: Sequence[Group], progress: bool) -> list[Tally]:
    tallies = []
    for one in found:
        tallies.append(one)
        if progress:
            schedules = sum(done.schedules for done in tallies)
            print(f"{len(tallies)}/{len(groups)} {schedules}", file=sys.stderr, flush=True)
    return tallies


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m ctxlock.explorer", description=__doc__)
    parser.add_argument("--depth", type=int, default=2, help="operations in the largest groups")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--budget", type=int, default=BUDGET, help="schedules of one group at most")
    parser.add_argument("--only", action="append", default=[], help="a group: kind,kind")
    parser.add_argument(
        "--integrity", action="store_true", help="more operations, and the stricter verdict"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--clean", action="store_true", help="disturb nothing")
    how.add_argument("--full", action="store_true", help="disturb every group")
    parser.add_argument("--progress", action="store_true", help="a line per group on stderr")
    arguments = parser.parse_args(argv)
    integrity = arguments.integrity
    groups = plan(kinds_of(integrity=integrity), arguments.depth, integrity=integrity)
    groups = select(groups, arguments.only)
    if arguments.clean or arguments.full:
        groups = [Group(group.kinds, int(arguments.full), integrity) for group in groups]
    found = report(groups, arguments.jobs, arguments.budget, arguments.progress)
    print(json.dumps(found, indent=2, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
