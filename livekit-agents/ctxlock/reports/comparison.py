"""What the races came to, on one livekit-agents beside another, and how it is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table

__all__ = ["SCRIPTED", "Comparison", "RaceOutcome", "Races"]

FORMAT = 2
"""Version of the JSON; raised when a key changes its meaning or goes."""

SCRIPTED = "scripted provider"
"""The provider that the races run with by default."""

_COLOURS = {"kept": "green", "not applicable": "dim"}


@dataclass(frozen=True)
class RaceOutcome:
    """How one race ended: `kept`, `lost`, `moved`, `crashed`, `stuck`, `error` or `not applicable`.

    `lost` is also said of an item that was deleted and came back; the detail tells which. `moved`:
    nothing is lost, but what was asked for in an order did not stay in it.
    """

    verdict: str
    detail: str
    description: str = ""
    events: Sequence[dict[str, Any]] = ()

    @property
    def waits(self) -> list[tuple[str, str]]:
        """The sites that had to wait for the lock, each with the one that it waited for."""
        return [(e["by"], e["on"]) for e in self.events if e["kind"] == "waits"]

    @property
    def good(self) -> bool:
        """Whether nothing was lost, and nothing else went wrong."""
        return self.verdict in ("kept", "not applicable")

    @property
    def harm(self) -> bool:
        """Whether the race did what the lock is there to prevent."""
        return self.verdict in ("lost", "moved", "crashed")


@dataclass(frozen=True)
class Races:
    """The outcomes on one livekit-agents with one provider, by scenario.

    Attributes:
        column: Whose it is: `stock`, `patched` or `yours`.
    """

    column: str
    version: str
    outcomes: dict[str, RaceOutcome]
    provider: str = SCRIPTED

    @property
    def harmed(self) -> int:
        """In how many races something was lost, or crashed."""
        return sum(outcome.harm for outcome in self.outcomes.values())

    @property
    def run(self) -> int:
        """How many races there were."""
        return sum(outcome.verdict != "not applicable" for outcome in self.outcomes.values())

    @property
    def kept(self) -> bool:
        """Whether nothing was lost, and nothing else went wrong."""
        return all(outcome.good for outcome in self.outcomes.values())

    def as_json(self) -> dict[str, object]:
        """The outcomes as a JSON object."""
        results = [
            {
                "scenario": name,
                "description": outcome.description,
                "outcome": outcome.verdict,
                "detail": outcome.detail,
                "events": list(outcome.events),
                "waits": [{"site": site, "waited_for": on} for site, on in outcome.waits],
            }
            for name, outcome in self.outcomes.items()
        ]
        return {
            "column": self.column,
            "livekit_agents": self.version,
            "provider": self.provider,
            "results": results,
        }


@dataclass(frozen=True)
class Comparison:
    """The same races in several columns, one of which is judged: `yours`, or else `patched`.

    Attributes:
        columns: Those of one provider stand together.
        remark: Why columns are missing, if any are.
    """

    columns: tuple[Races, ...]
    remark: str = ""

    @property
    def judged(self) -> list[Races]:
        """The columns that the verdict is about."""
        own = [races for races in self.columns if races.column == "yours"]
        return own or [races for races in self.columns if races.column == "patched"]

    @property
    def kept(self) -> bool:
        """Whether what is judged lost nothing."""
        return all(races.kept for races in self.judged)

    @property
    def telling(self) -> bool:
        """Whether a stock release lost something: if it did not, the races show nothing."""
        return any(races.harmed for races in self.columns if races.column == "stock")

    def groups(self) -> list[list[Races]]:
        """The columns, by provider."""
        providers = dict.fromkeys(races.provider for races in self.columns)
        return [[r for r in self.columns if r.provider == provider] for provider in providers]

    def tables(self) -> Iterator[Table]:
        """The verdicts as tables that fit a terminal of 80 columns, one for each provider."""
        groups = self.groups()
        for group in groups:
            title = ", ".join(f"{races.column}: {races.version}" for races in group)
            if len(groups) > 1:
                title = f"Through {group[0].provider}\n{title}"
            table = Table(
                box=box.SIMPLE_HEAD,
                show_edge=False,
                pad_edge=False,
                title=title,
                title_justify="left",
            )
            table.add_column("race", no_wrap=True)
            for races in group:
                table.add_column(races.column, no_wrap=True)
            for race in group[0].outcomes:
                row = [races.outcomes[race].verdict for races in group]
                if set(row) != {"not applicable"}:
                    table.add_row(race, *(f"[{_COLOURS.get(v, 'red')}]{v}" for v in row))
            yield table

    def explanations(self, details: bool) -> Iterator[str]:
        """What went wrong in each race that did not keep every item.

        Args:
            details: Whether to tell every push, not only what was lost.
        """
        for races in self.columns:
            through = "" if races.provider == SCRIPTED else f" through {races.provider}"
            for race, outcome in races.outcomes.items():
                if not outcome.good:
                    told = outcome.detail if details else outcome.detail.partition("\n")[0]
                    yield f"{races.version}{through}, {race}: {told or outcome.verdict}"

    def waits(self, details: bool) -> Iterator[str]:
        """How often an update had to wait for another one, in what is judged.

        Args:
            details: Whether to tell each wait, not only in how many races there was one.
        """
        for races in self.judged:
            through = "" if races.provider == SCRIPTED else f" through {races.provider}"
            waited = {name: o.waits for name, o in races.outcomes.items() if o.waits}
            where = f"{races.version}{through}"
            for name, waits in waited.items() if details else ():
                for site, on in waits:
                    yield f"{where}, {name}: {site} waited for {on}."
            yield f"{where}: updates waited for one another in {len(waited)} of {races.run} races."

    def sentences(self) -> Iterator[str]:
        """What came of it, in a sentence for each provider."""
        for group in self.groups():
            yield _sentence(group)
        if self.judged[0].column == "yours" and any(races.harmed for races in self.judged):
            yield "To patch it: `pip install ./livekit-agents` (or with uv) in a clone of ctxlock."

    def as_json(self) -> str:
        """The comparison as JSON with sorted keys."""
        runs = [races.as_json() for races in self.columns]
        found = {"format": FORMAT, "kept": self.kept, "remark": self.remark, "runs": runs}
        return json.dumps(found, indent=2, sort_keys=True)


def _sentence(group: Sequence[Races]) -> str:
    by_column = {races.column: races for races in group}
    first, patched = group[0], by_column.get("patched")
    if first.column == "stock":
        said = f"Stock lost items, or crashed, in {first.harmed} of {first.run} races;"
        if patched is None or not patched.kept:
            return f"{said} the patched release did not keep every item either."
        if first.harmed:
            return f"{said} the patched release kept every item."
        return "Stock lost nothing either, so the races prove nothing."
    through = "" if first.provider == SCRIPTED else f"Through {first.provider}, "
    yours = f"{through}{'y' if through else 'Y'}our livekit-agents {first.version}"
    if first.harmed:
        said = f"{yours} lost items, or crashed, in {first.harmed} of {first.run} races;"
        if patched is None:
            return f"{said} the lines above say why no patched copy ran."
        kept = "kept every item" if patched.kept else "did not keep every item either"
        return f"{said} patched, it {kept}."
    if first.kept:
        return f"{yours} kept every item in {first.run} races."
    return f"{yours} lost nothing that was seen, but not every race finished."
