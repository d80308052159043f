"""Runs the steps over the providers, on stock and on patched, and compares."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from . import options, providers
from .compare import BadExpectations, Verdict, judge, read_expected, surprises
from .environments import NEWEST, SCOPES, CannotRun, Laboratory, prepare, scratch_folder
from .trace import Trace

__all__ = ["app", "compare"]

EXPECTED = Path(__file__).with_name("expected.toml")
UNJUDGED = 0.05
"""The part of all steps that may go unjudged; beyond that the lab is not worth its name."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog=options.EPILOG)
def main(
    release: options.Release = NEWEST,
    delay: Annotated[
        float, typer.Option(min=0, help="Milliseconds before acknowledgements.")
    ] = 0.0,
    scope: options.Scopes = None,
    provider: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(providers.names())}; else all.")
    ] = None,
    step: Annotated[
        list[str] | None,
        typer.Option(help="One step, as 'typed turns'; else all. A wrong name lists them."),
    ] = None,
    verbose: Annotated[bool, typer.Option(help="Show the lines that differ.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all verdicts as JSON.")] = False,
    scratch: options.Scratch = None,
    python: options.Python = None,
    traces: Annotated[Path | None, typer.Option(help="A folder for all traces, to read.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many runs at a time.")] = 2,
) -> None:
    """Runs the same steps over every provider, on stock twice and on patched, and compares."""
    scopes = options.among(scope, SCOPES, "--scope")
    chosen = options.among(provider, providers.names(), "--provider")
    if step:
        from .steps import STEPS  # it imports livekit.agents, which takes a while

        options.among(step, STEPS, "--step")
    usual = release == NEWEST and delay == 0
    with options.exits(CannotRun, BadExpectations), scratch_folder(scratch) as folder:
        expected = read_expected(EXPECTED, scopes=SCOPES) if usual else {}
        needs = (need for name in chosen for need in providers.load(name).needs(release))
        lab = prepare(
            *(release, scopes, needs, folder),
            python=python,
            say=lambda what: options.tell(f"{what} ..."),
        )
        verdicts = compare(lab, chosen, step or [], delay / 1000, jobs, traces)
    if as_json:
        listed = [
            {"scope": scope, "provider": name, "step": step, **verdict.as_json()}
            for (scope, name, step), verdict in verdicts.items()
        ]
        report = {"release": release, "delay": delay, "verdicts": listed}
        sys.stdout.write(json.dumps(report, indent=1) + "\n")
    else:
        _show(verdicts, scopes, chosen, verbose)
    whole = not (scope or provider or step)
    options.conclude(surprises(verdicts, expected, whole=whole) + broken(verdicts))


def compare(
    lab: Laboratory,
    chosen: Sequence[str],
    steps: Sequence[str],
    delay: float,
    jobs: int,
    kept: Path | None = None,
) -> dict[tuple[str, str, str], Verdict]:
    """Runs each provider on each side, stock twice, and judges."""
    scopes = [name for name in lab.sides if name != "stock"]
    runs = list(itertools.product(chosen, ("stock", "stock again", *scopes)))

    def run(wish: tuple[str, str]) -> tuple[tuple[str, str], dict[str, Trace]]:
        name, side = wish
        arguments = ["--provider", name, "--delay", str(delay)]
        for step in steps:
            arguments += ["--step", step]
        report = lab.run(side.removesuffix(" again"), "lab.worker", arguments)
        options.tell(f"{name}: {side}")
        if kept is not None:
            kept.mkdir(parents=True, exist_ok=True)
            file = kept / f"{name}, {side}.json"
            file.write_text(json.dumps(report, indent=1), encoding="utf-8")
        return wish, {step: Trace(**data) for step, data in report[name].items()}

    with ThreadPoolExecutor(jobs) as pool:
        traces = dict(pool.map(run, runs))
    return {
        (scope, name, step): judge(
            stock, traces[name, "stock again"][step], traces[name, scope][step]
        )
        for scope in scopes
        for name in chosen
        for step, stock in traces[name, "stock"].items()
    }


def broken(verdicts: dict[tuple[str, str, str], Verdict]) -> list[str]:
    """What says that the lab itself does not work, in sentences."""
    found = [
        f"{scope}, {name}, {step}: {verdict.outcome} on stock; mend the step or the far end."
        for (scope, name, step), verdict in verdicts.items()
        if verdict.outcome in ("failed", "stuck")
    ]
    unjudged = [key for key, verdict in verdicts.items() if verdict.kind == "unjudged"]
    if len(unjudged) > UNJUDGED * len(verdicts):
        found.append(f"{len(unjudged)} of {len(verdicts)} verdicts could not be given.")
    return found


_WORDS = {"same": "same", "inside": "calls", "unsupported": "-", "unjudged": "not judged"}


def _show(
    verdicts: dict[tuple[str, str, str], Verdict],
    scopes: Sequence[str],
    chosen: Sequence[str],
    verbose: bool,
) -> None:
    for scope in scopes:
        table = Table("step", *chosen, title=scope, title_justify="left")
        steps = dict.fromkeys(step for s, _, step in verdicts if s == scope)
        for step in steps:
            row = [verdicts.get((scope, name, step)) for name in chosen]
            table.add_row(step, *(_word(verdict) for verdict in row))
        options.out.print(table)
    for (scope, name, step), verdict in verdicts.items():
        if verbose and verdict.lines:
            options.out.print(f"\n{scope}, {name}, {step}: {verdict.kind}", style="bold")
            for line in verdict.lines:
                options.show(line)


def _word(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    return _WORDS.get(verdict.kind) or f"[red]{verdict.seen} lines[/red]"


if __name__ == "__main__":
    app()
