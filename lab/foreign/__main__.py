"""Takes every variant through the same script, on stock twice and on patched, and compares."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lab.environments import NEWEST, SCOPES, CannotRun, prepare, scratch_folder
from lab.options import among

from .judging import (
    KINDS,
    BadExpectations,
    Verdict,
    judge,
    judged,
    lines_of,
    on_all_sides,
    read_expected,
)

__all__ = ["app"]

EXPECTED = Path(__file__).with_name("expected.toml")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
out = Console()
err = Console(stderr=True)


@app.command(
    epilog="Exit codes: 0 all is as expected, 1 something is not, 2 wrong usage, 3 it cannot run."
)
def main(
    variant: Annotated[
        list[str] | None,
        typer.Option(help="One variant, as Plain; else all. A wrong name lists them."),
    ] = None,
    scope: Annotated[list[str] | None, typer.Option(help="lock or full; both by default.")] = None,
    release: Annotated[str, typer.Option(help="The livekit-agents release.")] = NEWEST,
    verbose: Annotated[bool, typer.Option(help="Show what differs first.")] = False,
    scratch: Annotated[
        Path | None, typer.Option(help="A folder to keep the environment in, for the next time.")
    ] = None,
    python: Annotated[str, typer.Option(help="The interpreter to start from.")] = sys.executable,
) -> None:
    """Takes every variant through the same script, on stock twice and on patched, and compares."""

    def tell(sentence: str) -> None:
        err.print(sentence, markup=False, highlight=False, soft_wrap=True)

    scopes = among(scope, SCOPES, "--scope")
    if variant:
        from .variants import VARIANTS  # it imports livekit.agents, which takes a while

        among(variant, VARIANTS, "--variant")
    try:
        with scratch_folder(scratch) as folder:
            lab = prepare(release, scopes, (), folder, python=python, say=tell)
            reports = on_all_sides(lab, "lab.foreign.run", variant or [])
        names = [*reports["stock"]]
        expected = read_expected(EXPECTED, SCOPES, names, whole=not variant, release=release)
    except (CannotRun, BadExpectations) as e:
        tell(str(e))
        raise typer.Exit(3) from None
    verdicts = {
        (scope, name): judge(
            reports["stock"][name], reports["stock again"][name], reports[scope][name]
        )
        for scope in scopes
        for name in names
    }
    for one in scopes:
        table = Table("variant", "steps", *KINDS, title=one, title_justify="left")
        for name in names:
            steps = str(len(reports["stock"][name]))
            table.add_row(name, steps, *map(str, _words(verdicts[one, name])))
        out.print(table)
    for (one, name), verdict in verdicts.items():
        if verbose and verdict.differing:
            out.print(f"\n{one}, {name}", style="bold")
            lines_of(verdict, lambda line: out.print(line, markup=False, soft_wrap=True))
    for one in scopes:
        same = sum(verdict.first is None for (s, _), verdict in verdicts.items() if s == one)
        out.print(f"{one}: {same} of {len(names)} variants are as on stock.", highlight=False)
    found = [*judged(verdicts, expected, newest=release == NEWEST)]
    for sentence in found:
        tell(sentence)
    raise typer.Exit(1 if found else 0)


def _words(verdict: Verdict) -> list[str]:
    if verdict.wobbles:
        return ["not judged"] * len(KINDS)
    return [f"{count} differ" if count else "same" for count in verdict.steps.values()]


if __name__ == "__main__":
    app()
