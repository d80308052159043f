"""Runs the races on a stock release and on the patched one, in one environment of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from rich import box
from rich.markup import escape
from rich.table import Table

from .errors import CtxlockError
from .installer import Installer

__all__ = ["Comparison", "Outcome", "Races", "compare", "overlay_base", "run_module"]

FORMAT = 1
"""Version of the JSON; raised when a key changes its meaning or goes."""


@dataclass(frozen=True)
class Outcome:
    """How one race ended: `kept`, `lost`, `crashed`, `stuck`, `error` or `not applicable`."""

    verdict: str
    detail: str

    @property
    def good(self) -> bool:
        """Whether nothing was lost, and nothing else went wrong."""
        return self.verdict in ("kept", "not applicable")

    @property
    def harm(self) -> bool:
        """Whether the race did what the lock is there to prevent."""
        return self.verdict in ("lost", "crashed")


@dataclass(frozen=True)
class Races:
    """The outcomes on one livekit-agents, by scenario."""

    version: str
    outcomes: dict[str, Outcome]

    @property
    def harmed(self) -> int:
        """In how many races something was lost, or crashed."""
        return sum(outcome.harm for outcome in self.outcomes.values())

    def as_json(self) -> dict[str, object]:
        """The outcomes as a JSON object."""
        results = [
            {"scenario": name, "outcome": outcome.verdict, "detail": outcome.detail}
            for name, outcome in self.outcomes.items()
        ]
        return {"livekit_agents": self.version, "results": results}


@dataclass(frozen=True)
class Comparison:
    """The same races on a stock release and on the patched one."""

    stock: Races
    patched: Races

    @property
    def kept(self) -> bool:
        """Whether the patched release lost nothing."""
        return all(outcome.good for outcome in self.patched.outcomes.values())

    @property
    def telling(self) -> bool:
        """Whether the stock release lost something: if it did not, the races show nothing."""
        return self.stock.harmed > 0

    def table(self, details: bool = False) -> Table:
        """The comparison as a table for the terminal.

        Args:
            details: Whether to show all pushes of a race that went wrong, not only what was lost.
        """
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, show_lines=details)
        table.add_column("scenario", ratio=4)
        table.add_column(f"stock {self.stock.version}", ratio=5)
        table.add_column(f"patched {self.patched.version}", ratio=4)
        for scenario, outcome in self.stock.outcomes.items():
            pair = (outcome, self.patched.outcomes[scenario])
            if any(o.verdict != "not applicable" for o in pair):
                table.add_row(scenario, *(_cell(o, details) for o in pair))
        return table

    def as_json(self) -> str:
        """The comparison as JSON with sorted keys."""
        runs = [self.stock.as_json(), self.patched.as_json()]
        return json.dumps(
            {"format": FORMAT, "kept": self.kept, "runs": runs}, indent=2, sort_keys=True
        )


Step = Callable[[str], AbstractContextManager[Callable[[str], None]]]
"""Announces a step of the work; what it yields is called with each detail of its progress."""


def compare(release: str, wheel: Path, scratch: Path, step: Step) -> Comparison:
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
        installer.install(python, f"livekit-agents=={release}")
    with step("Running the races on it") as progress:
        stock = _run_races(python, scratch / "races", progress)
    with step("Putting the patched wheel in its place"):
        installer.replace(python, wheel)
    with step("Running the races on that") as progress:
        patched = _run_races(python, scratch / "races", progress)
    return Comparison(stock, patched)


def overlay_base(wheel: Path) -> str:
    """The stock release that the overlay wheel `wheel` was made from, by its file name.

    Raises:
        CtxlockError: It is not the name of an overlay wheel, or there is no such file.
    """
    try:
        name, version, _, _ = parse_wheel_filename(wheel.name)
    except InvalidWheelFilename:
        raise CtxlockError(f"{wheel} does not have the file name of a wheel.") from None
    if name != "livekit-agents" or not (version.local or "").startswith("ctxlock."):
        raise CtxlockError(
            f"{wheel} is a stock wheel, and a patched one is needed; `ctxlock build` makes one."
        )
    if not wheel.is_file():
        raise CtxlockError(f"There is no file {wheel}.")
    return version.public


def run_module(
    python: str, scratch: Path, command: Sequence[str], on_line: Callable[[str], None]
) -> str:
    """Runs a module of the races on the livekit-agents that `python` imports.

    Args:
        python: An interpreter that has livekit-agents; this tool need not be installed there.
        scratch: A folder for a copy of the races, the only thing added to the module path.
        command: The module and its arguments.
        on_line: Called with each line of progress.

    Returns:
        What it printed.

    Raises:
        CtxlockError: It could not run.
    """
    package = Path(__file__).parent
    copy = scratch / package.name
    if not copy.exists():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package / "races", copy / "races", ignore=ignored)
        shutil.copyfile(package / "__init__.py", copy / "__init__.py")
    said: list[str] = []
    # what it prints goes to a file, as a full pipe would stop it while its progress is read
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as printed,
        subprocess.Popen(
            [python, "-m", *command],
            cwd=scratch,
            env={**os.environ, "PYTHONPATH": str(scratch)},
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        ) as process,
    ):
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line.rstrip())
            on_line(line.rstrip())
        process.wait()
        printed.seek(0)
        text = printed.read()
    if process.returncode != 0:
        last = next((line for line in reversed(said) if line), "they said nothing")
        raise CtxlockError(f"The races could not run with {python}: {last}")
    return text


def _run_races(python: str, scratch: Path, on_line: Callable[[str], None]) -> Races:
    """Runs the races on the livekit-agents that `python` imports."""
    command = ["ctxlock.races", "--json", "--progress"]
    report = json.loads(run_module(python, scratch, command, on_line))
    results = report["results"]
    outcomes = {r["scenario"]: Outcome(r["outcome"], r["detail"] or "") for r in results}
    return Races(report["livekit_agents"], outcomes)


def _cell(outcome: Outcome, details: bool) -> str:
    colour = {"kept": "green", "not applicable": "dim"}.get(outcome.verdict, "red")
    detail = outcome.detail if details else outcome.detail.partition("\n")[0]
    return f"[{colour}]{outcome.verdict}[/]" + (f": {escape(detail)}" if detail else "")
