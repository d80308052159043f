"""Runs the races on a stock release and on the patched one, in one environment of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from ..errors import CtxlockError
from ..reports.comparison import Comparison, RaceOutcome, Races
from .installer import Installer
from .runner import read_report, run_module

__all__ = ["Announce", "Unavailable", "compare", "run_races"]


class Unavailable(CtxlockError):
    """The races cannot run through the plugin of that environment."""


Announce = Callable[[str], AbstractContextManager[Callable[[str], None]]]
"""Announces a step of the work; what it yields is called with each detail of its progress."""


def compare(release: str, wheel: Path, scratch: Path, step: Announce) -> Comparison:
    """Runs the races on stock `release`, then on `wheel` in its place, all else being equal.

    Args:
        release: The stock release.
        wheel: The overlay wheel made from it.
        scratch: An empty folder; the environment goes there.
        step: Shows progress.

    Raises:
        CtxlockError: The environment could not be made, or the races could not run in it.
    """
    installer = Installer()
    with step(f"Installing stock livekit-agents {release} with {installer.name}"):
        python = installer.make_environment(scratch / "environment")
        installer.install(python, f"livekit-agents==={release}")
    with step("Running the races on it") as progress:
        stock = run_races("stock", python, scratch / "races", progress)
    with step("Putting the patched wheel in its place"):
        installer.replace(python, wheel)
    with step("Running the races on that") as progress:
        patched = run_races("patched", python, scratch / "races", progress)
    return Comparison((stock, patched))


def run_races(
    column: str,
    python: str,
    scratch: Path,
    on_line: Callable[[str], None],
    *,
    paths: Sequence[str] = (),
    through_plugin: bool = False,
) -> Races:
    """Runs the races on the livekit-agents that `python` imports.

    Args:
        column: Whose outcomes they are.
        python: The interpreter.
        scratch: A folder for a copy of the races.
        on_line: Called with each line of progress.
        paths: What else to put on the module path, in front of the interpreter's own.
        through_plugin: Whether to run them through the installed OpenAI plugin.

    Raises:
        CtxlockError: They could not run.
        Unavailable: There is no plugin that they could run through.
    """
    command = ["ctxlock.races", "--json", "--progress", *(["--plugin"] if through_plugin else [])]
    report = read_report(run_module(python, scratch, command, on_line, paths))
    if "unavailable" in report:
        raise Unavailable(f"{report['unavailable']}.")
    outcomes = {
        r["scenario"]: RaceOutcome(r["outcome"], r["detail"], r["description"], r.get("events", ()))
        for r in report["results"]
    }
    return Races(column, report["livekit_agents"], outcomes, report["provider"])
