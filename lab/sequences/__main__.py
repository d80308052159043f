"""Goes through scripts from seeds, on stock twice and on patched, and compares; and the cases."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from lab import options
from lab.environments import NEWEST, SCOPES, CannotRun, Laboratory, prepare, scratch_folder
from lab.foreign import judging

__all__ = ["app"]

EXPECTED = Path(__file__).with_name("expected.toml")
USUAL = 60
"""How many seeds the expectations are for; of any other one it is asked that `lock` be as stock."""
AT_ONCE = 50
"""How many seeds one process goes through."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Verdicts = dict[tuple[str, str], judging.Verdict]


@app.command(epilog=options.EPILOG)
def main(
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0 on.")] = USUAL,
    seed: Annotated[int | None, typer.Option(min=0, help="This seed alone.")] = None,
    length: Annotated[int | None, typer.Option(min=0, help="How many actions of each.")] = None,
    scope: options.Scopes = None,
    release: options.Release = NEWEST,
    verbose: Annotated[bool, typer.Option(help="Show what differs, expected or not.")] = False,
    scratch: options.Scratch = None,
    python: options.Python = sys.executable,
) -> None:
    """Goes through scripts and cases, on stock twice and on patched, and compares."""
    scopes = options.among(scope, SCOPES, "--scope")
    chosen = [*range(seeds)] if seed is None else [seed]
    with options.exits(CannotRun, judging.BadExpectations), scratch_folder(scratch) as folder:
        lab = prepare(release, scopes, (), folder, python=python, say=options.tell)
        verdicts, steps = _scripts(lab, scopes, chosen, length, verbose)
        cases = judging.on_all_sides(lab, "cases", [])
        wrong = [f"stock, {case}: {line}" for case, said in cases["stock"].items() for line in said]
        verdicts |= {(s, case): _case(cases[s][case]) for s in scopes for case in cases["stock"]}
        names = [*dict.fromkeys(name for _, name in verdicts)]
        expected = judging.read_expected(EXPECTED, SCOPES, names, whole=chosen == [*range(USUAL)])
    _show(scopes, verdicts, steps, [*cases["stock"]])
    asked = {
        key: verdict
        for key, verdict in verdicts.items()
        # beyond the usual ones, what is expected of `full` is written down nowhere
        if key[0] == "lock" or not key[1].isdigit() or (int(key[1]) < USUAL and length is None)
    }
    options.conclude([*wrong, *judging.judged(asked, expected, newest=release == NEWEST)])


def _scripts(
    lab: Laboratory, scopes: list[str], seeds: list[int], length: int | None, verbose: bool
) -> tuple[Verdicts, int]:
    """Runs the scripts some at a time, and shows the shortest beginning of each that differs."""
    verdicts: Verdicts = {}
    steps = 0
    wish = [] if length is None else ["--length", str(length)]
    for start in range(0, len(seeds), AT_ONCE):
        some = map(str, seeds[start : start + AT_ONCE])
        reports = judging.on_all_sides(lab, "seeds", [*wish, *some])
        for name, stock in reports["stock"].items():
            steps += len(stock)
            for scope in scopes:
                again, other = reports["stock again"][name], reports[scope][name]
                # `lock` is as stock where something is refused, too: nothing had to be relaxed
                verdict = judging.judge(stock, again, other, no_worse=scope != "lock")
                verdicts[scope, name] = verdict
                if verdict.first is not None and (verbose or scope == "lock"):
                    _replay(scope, name, stock, verdict)
    return verdicts, steps


def _replay(scope: str, seed: str, stock: list[dict[str, Any]], verdict: judging.Verdict) -> None:
    """Prints the shortest beginning of a script that differs, and how."""
    assert verdict.first is not None
    # the first step is the start, and the last one the end
    length = min(verdict.first, len(stock) - 2)
    options.out.print(f"\n{scope}, seed {seed}: the first {length} actions differ", style="bold")
    options.out.print(f"  python -m lab.sequences --seed {seed} --length {length} --verbose")
    for number, step in enumerate(stock[: verdict.first + 1]):
        options.out.print(f"  {number:2} {step['step']}", markup=False)
    judging.show_lines(verdict)


def _case(said: list[str]) -> judging.Verdict:
    """What came of a case: what is wrong counts as an outcome that differs."""
    steps = {**dict.fromkeys(judging.KINDS, 0), "outcome": int(bool(said))}
    differing = {"outcome": ("act", *said)} if said else {}
    return judging.Verdict(differing, steps, 1 if said else None)


def _show(scopes: list[str], verdicts: Verdicts, steps: int, cases: list[str]) -> None:
    table = Table(
        "scope", *(f"other {kind}" for kind in judging.KINDS), "as on stock", "cases passed"
    )
    for scope in scopes:
        seeds = [v for (s, name), v in verdicts.items() if s == scope and name.isdigit()]
        passed = sum(verdicts[scope, case].first is None for case in cases)
        table.add_row(
            scope,
            *(str(sum(kind in verdict.differing for verdict in seeds)) for kind in judging.KINDS),
            f"{sum(verdict.first is None for verdict in seeds)} of {len(seeds)}",
            f"{passed} of {len(cases)}",
        )
    options.out.print(table)
    options.out.print(f"{steps} steps on each side.", highlight=False)


if __name__ == "__main__":
    app()
