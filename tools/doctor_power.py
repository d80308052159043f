"""Measures what `ctxlock doctor` finds and what it accuses wrongly, on the installed release.

``python tools/doctor_power.py`` runs the races, the regressions, the calm runs of
tests/doctor_runs.py and those of tests/doctor_heldout.py through the real engine, reads the lines
that it logs, and prints JSON; ``--table FILE...`` makes the tables of docs/doctor.md of several
such outputs. It needs the folders livekit-agents and tests on the path; ``nox -s doctor`` sees to
that, release by release.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["main", "measured", "tables"]

PACES = (0.0, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0)
"""Seconds between one thing and the next in a calm run."""

GRADES = ("strong", "weak", "explained")
MEANT = tuple(f"meant, {grade}" for grade in GRADES)


def measured() -> dict[str, Any]:
    """All the runs on the release that can be imported."""
    import doctor_runs
    from doctor_cases import HIDDEN, races, regressions
    from doctor_heldout import LOSSES, MEANT as CALM, heldout

    from ctxlock.races.releases import installed

    def run(case: Callable[[Any], Awaitable[None]]) -> Any:
        return asyncio.run(doctor_runs.examined(case, path))

    def kept(names: Iterable[str]) -> dict[str, Any]:
        return {name: _counts([asyncio.run(heldout(name)(path))]) for name in names}

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "agent.log")
        found: dict[str, Any] = {"release": installed(), "races": {}, "calm": {}}
        for name, case in races():
            found["races"][name] = _counts([run(case)])
        each = {name: run(case) for name, case in regressions()}
        found["regressions"] = _counts(each.values())
        found["regressions"]["runs"] = len(each)
        found["missed"] = {n: _grades(r) for n, r in each.items() if r.truth - r.ids("strong")}
        accused = sorted(n for n, r in each.items() if r.ids("strong") - r.truth)
        found["hidden"] = [name for name in accused if name.startswith(HIDDEN)]
        found["accused"] = [name for name in accused if not name.startswith(HIDDEN)]
        for name in doctor_runs.CALM:
            calm = {pace: run(doctor_runs.calmly(name, pace)) for pace in PACES}
            found["calm"][name] = {str(p): len(r.ids("strong")) for p, r in calm.items()}
        found["heldout"] = {"meant": kept(CALM), "lost": kept(LOSSES)}
    return found


def _counts(runs: Any) -> dict[str, int]:
    """How much was lost, and how much of that was graded how."""
    counts: Counter[str] = Counter(dict.fromkeys(("lost", "wrong", "unseen", *MEANT, *GRADES), 0))
    for run in runs:
        left = set(run.truth)
        counts["lost"] += len(left)
        counts["wrong"] += len(run.ids("strong") - left)
        for grade, meant in zip(GRADES, MEANT, strict=True):
            counts[meant] += len(run.ids(grade) - set(run.truth))
            counts[grade] += len(run.ids(grade) & left)
            left -= run.ids(grade)
        counts["unseen"] += len(left)
    return dict(counts)


def _grades(run: Any) -> list[str]:
    """The grades of what was lost and not found strong; `none` if no deletion was seen."""
    told = {loss.item.id: f"{loss.grade}: {loss.reasons[-1]}" for loss in run.losses}
    return sorted(told.get(i, "none") for i in run.truth - run.ids("strong"))


_LOST = {
    "runs": "runs",
    "items lost that a deletion shows": "lost",
    **{f"of these {grade}": grade for grade in (*GRADES, "unseen")},
}
_STRONG = {
    "runs with a strong one that is put right before their end": "hidden",
    "runs with a strong one that was meant": "accused",
}


def tables(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The tables of docs/doctor.md: races, regressions, calm runs, held-out runs."""
    heads = [_head(f["release"]) for f in found]
    yield from _start("race", *heads)
    for name in sorted({name for f in found for name in f["races"]}):
        cells = [f["races"].get(name) for f in found]
        yield _row(name, *(f"{c['lost']} / {c['strong']}" if c else "-" for c in cells))
    wrong = [sum(c["wrong"] for c in f["races"].values()) for f in found]
    yield _row("strong, and not lost", *wrong)
    yield ""
    yield from _start("regressions", *heads)
    for label, key in _LOST.items():
        yield _row(label, *(f["regressions"].get(key, 0) for f in found))
    for label, key in _STRONG.items():
        yield _row(label, *(len(f[key]) for f in found))
    yield ""
    paces = [f"{pace:g}" for pace in PACES]
    yield from _start("meant, with so many seconds in between", *paces)
    for name in found[0]["calm"]:
        yield _row(name, *(max(f["calm"][name][str(pace)] for f in found) for pace in PACES))
    yield ""
    yield from _start("held out: an overlap", *heads)
    for name in found[0]["heldout"]["lost"]:
        cells = [f["heldout"]["lost"][name] for f in found]
        yield _row(name, *(f"{c['lost']} / {c['strong']}" for c in cells))
    yield ""
    yield from _start("held out: meant", *heads)
    for name in found[0]["heldout"]["meant"]:
        cells = [f["heldout"]["meant"][name] for f in found]
        yield _row(name, *(" / ".join(str(c[meant]) for meant in MEANT) for c in cells))


def _head(release: str) -> str:
    """A release, and the scope of the patch that its local part ends in."""
    public, _, local = release.partition("+")
    return f"{public}, {local.rpartition('.')[2]}" if local else public


def _start(*heads: str) -> Iterator[str]:
    yield from (_row(*heads), _row(*["---"] * len(heads)))


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", nargs="+", metavar="FILE", type=Path)
    arguments = parser.parse_args(argv)
    if arguments.table:
        found = [json.loads(path.read_text(encoding="utf-8")) for path in arguments.table]
        print("\n".join(tables(found)))
    else:
        print(json.dumps(measured(), indent=2))
    return 0


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        sys.exit(main())
