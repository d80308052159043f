"""Every site earns its lock: what catches a build with one site left bare, or with a wrong fix.

``python tools/matrix.py`` builds the newest verified livekit-agents with the scope `lock`, as it is
the lock's placement that is tried, makes each wrong version of it in a temporary folder, runs the
regressions and the explorer on it, and prints a table. Exit code 0: the patched release passes
both, and each wrong version is caught by both, but for one that shows only beside an item of the
server's, which the explorer's pairs have not. The regressions are those over the fake provider; the
schedules are those of undisturbed pairs, fewer where a version waits more.
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mutants import Mutant, mutants
from rich import box
from rich.console import Console
from rich.table import Table
from trial import PYTEST, ROOT, regressions, run, schedules, unpack

from ctxlock.roles import Role
from ctxlock.target import TARGET

REGRESSIONS = {
    Role.REPLACEMENT: "races::test_neither_update_loses[text-turn-during-a-replacement]",
    Role.SESSION_START: "races::test_neither_update_loses[replacement-during-a-session-start]",
    Role.SPOKEN_MESSAGE: "races::test_neither_update_loses[text-turn-during-a-spoken-message]",
    Role.TEXT_TURN: "races::test_neither_update_loses[text-turn-during-a-tool-output]",
    Role.NEVER_PLAYED_CLEANUP: (
        "races::test_neither_update_loses[interrupted-tool-output-during-never-played-cleanup]"
    ),
    Role.INTERRUPTED_TOOL_OUTPUTS: (
        "races::test_neither_update_loses[interrupted-tool-output-during-a-text-turn]"
    ),
    Role.TOOL_OUTPUTS: "races::test_neither_update_loses[tool-output-during-a-replacement]",
}
"""The regression that names a site: it must be among those that fail when the site is bare."""


@dataclass(frozen=True)
class Caught:
    """What caught a version: the regressions that failed, and how many schedules were violated."""

    regressions: frozenset[str]
    violated: int
    schedules: int


def examine(tree: Path) -> Caught:
    """Runs the regressions and the explorer on the livekit-agents in a folder."""
    paths = (tree, ROOT / "livekit-agents")
    ran = run(paths, *PYTEST, *regressions("engine"))
    explored = run(paths, "ctxlock.explorer", "--clean", "--jobs=2")
    assert ran is not None and explored is not None  # there is no limit
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"The regressions could not run:\n{ran.stdout}{ran.stderr}")
    failed = re.findall(r"^(?:FAILED|ERROR) tests/test_realtime_(\S+)\.py(\S+)", ran.stdout, re.M)
    count, violated = schedules(tree.name, explored)
    return Caught(frozenset(f"{module}{test}" for module, test in failed), violated, count)


def main() -> int:
    """Prints the table."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for column in ("version", "regressions that fail", "the one that names it", "schedules"):
        table.add_column(column)
    good = True
    with tempfile.TemporaryDirectory(prefix="ctxlock-") as folder:
        tree = Path(folder, "tree")
        unpack("lock", Path(folder), [tree])
        file = tree / TARGET
        patched = file.read_text(encoding="utf-8")
        for version in (Mutant("patched", None, patched), *mutants(patched, TARGET)):
            file.write_text(version.source, encoding="utf-8")
            caught = examine(tree)
            naming = "" if version.role is None else REGRESSIONS[version.role]
            if version.name == "patched":
                right = not caught.regressions and not caught.violated
            else:
                right = bool(caught.regressions) and bool(caught.violated) == version.explored
            right = right and (not naming or naming in caught.regressions)
            good = good and right
            table.add_row(
                version.name,
                f"{len(caught.regressions)}",
                naming.partition("[")[2].rstrip("]").replace("-", " "),
                f"{caught.violated} of {caught.schedules} violated",
                style="" if right else "bold red",
            )
            print(
                f"{version.name}: {'as it should be' if right else 'WRONG'}",
                file=sys.stderr,
                flush=True,
            )
            if not right:
                print("\n".join(sorted(caught.regressions)), file=sys.stderr)
    Console(width=140 if not sys.stdout.isatty() else None).print(table)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
