"""Runs the races on a stock release and on the patched one, in one environment of their own."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.table import Table

from .build import PROVENANCE
from .errors import CtxlockError
from .installer import Installer
from .runner import run_module

__all__ = ["Comparison", "Outcome", "Races", "compare", "overlay_base"]

FORMAT = 1
"""Version of the JSON; raised when a key changes its meaning or goes."""


_COLOURS = {"kept": "green", "not applicable": "dim"}


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

    def table(self) -> Table:
        """The verdicts as a table that fits a terminal of 80 columns."""
        table = Table(box=box.SIMPLE_HEAD, show_edge=False)
        table.add_column("race")
        table.add_column(f"stock {self.stock.version}")
        table.add_column(f"patched {self.patched.version}")
        for race, outcome in self.stock.outcomes.items():
            pair = (outcome, self.patched.outcomes[race])
            if any(o.verdict != "not applicable" for o in pair):
                table.add_row(
                    race, *(f"[{_COLOURS.get(o.verdict, 'red')}]{o.verdict}" for o in pair)
                )
        return table

    def explanations(self, details: bool) -> Iterator[str]:
        """What went wrong in each race that did not keep every item.

        Args:
            details: Whether to tell every push, not only what was lost.
        """
        for races in (self.stock, self.patched):
            for race, outcome in races.outcomes.items():
                if not outcome.good:
                    told = outcome.detail if details else outcome.detail.partition("\n")[0]
                    yield f"{races.version}, {race}: {told or outcome.verdict}"

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
    """The stock release that the overlay wheel `wheel` was made from, as its own record says.

    Raises:
        CtxlockError: It cannot be read, is damaged, or is no overlay wheel.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            damaged = archive.testzip()
            records = [n for n in archive.namelist() if n.endswith(f".dist-info/{PROVENANCE}")]
            record = archive.read(records[0]) if records else b""
    except OSError as e:
        raise CtxlockError(f"{wheel} could not be read: {e.strerror or e}.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError):
        damaged, record = wheel.name, b""
    if damaged is not None:
        raise CtxlockError(f"{wheel} is no wheel, or a damaged one; build or fetch it again.")
    if not record:
        raise CtxlockError(
            f"{wheel} is a stock wheel, and a patched one is needed; `ctxlock build` makes one."
        )
    return str(json.loads(record)["upstream"])


def _run_races(python: str, scratch: Path, on_line: Callable[[str], None]) -> Races:
    """Runs the races on the livekit-agents that `python` imports."""
    command = ["ctxlock.races", "--json", "--progress"]
    report = json.loads(run_module(python, scratch, command, on_line))
    results = report["results"]
    outcomes = {r["scenario"]: Outcome(r["outcome"], r["detail"] or "") for r in results}
    return Races(report["livekit_agents"], outcomes)
