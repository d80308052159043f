"""Takes every variant through the same script, on stock twice and on patched, and compares."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from lab import options
from lab.environments import NEWEST, SCOPES, CannotRun, prepare, scratch_folder

from . import judging

__all__ = ["app"]

EXPECTED = Path(__file__).with_name("expected.toml")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog=options.EPILOG)
def main(
    variant: Annotated[
        list[str] | None,
        typer.Option(help="One variant, as Plain; else all. A wrong name lists them."),
    ] = None,
    scope: options.Scopes = None,
    release: options.Release = NEWEST,
    verbose: Annotated[bool, typer.Option(help="Show what differs first.")] = False,
    scratch: options.Scratch = None,
    python: options.Python = sys.executable,
) -> None:
    """Takes every variant through the same script, on stock twice and on patched, and compares."""
    scopes = options.among(scope, SCOPES, "--scope")
    if variant:
        from .variants import VARIANTS  # it imports livekit.agents, which takes a while

        options.among(variant, VARIANTS, "--variant")
    with options.exits(CannotRun, judging.BadExpectations), scratch_folder(scratch) as folder:
        lab = prepare(release, scopes, (), folder, python=python, say=options.tell)
        reports = judging.on_all_sides(lab, "variants", variant or [])
        names = [*reports["stock"]]
        expected = judging.read_expected(
            EXPECTED, SCOPES, names, whole=not variant, release=release
        )
    verdicts = {
        (scope, name): judging.judge(
            reports["stock"][name], reports["stock again"][name], reports[scope][name]
        )
        for scope in scopes
        for name in names
    }
    for one in scopes:
        table = Table("variant", "steps", *judging.KINDS, title=one, title_justify="left")
        for name in names:
            steps = str(len(reports["stock"][name]))
            table.add_row(name, steps, *map(str, _words(verdicts[one, name])))
        options.out.print(table)
    for (one, name), verdict in verdicts.items():
        if verbose and verdict.differing:
            options.out.print(f"\n{one}, {name}", style="bold")
            judging.show_lines(verdict)
    for one in scopes:
        same = sum(verdict.first is None for (s, _), verdict in verdicts.items() if s == one)
        options.show(f"{one}: {same} of {len(names)} variants are as on stock.")
    options.conclude(judging.judged(verdicts, expected, newest=release == NEWEST))


def _words(verdict: judging.Verdict) -> list[str]:
    if verdict.wobbles:
        return ["not judged"] * len(judging.KINDS)
    return [f"{count} differ" if count else "same" for count in verdict.steps.values()]


if __name__ == "__main__":
    app()
