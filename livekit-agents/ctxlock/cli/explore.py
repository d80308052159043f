"""The command `ctxlock explore`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..environments.installer import Installer
from ..environments.runner import read_report, run_module
from ..release import DEFAULT_SCOPE, Scope, parse
from ..reports.exploration import REPLAY_IMPORT, Exploration
from .console import (
    Exit,
    Quiet,
    Release,
    ScopeOption,
    fetch,
    out,
    progress as console,
    release_number,
    scratch_folder,
    step,
)

__all__ = ["explore"]

_COLOURS = {"linearizable": "green", "violated": "red", "unknown": "yellow"}
_EXITS = {"linearizable": Exit.WELL, "violated": Exit.HARM, "unknown": Exit.FAILED}


def explore(
    upstream: Release = None,
    stock: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            callback=release_number,
            help="Explore this release unpatched, as published.",
        ),
    ] = None,
    scope: ScopeOption = DEFAULT_SCOPE,
    depth: Annotated[int, typer.Option(min=2, max=4, help="The most operations that overlap.")] = 2,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Also try failures in larger groups and updates of several items."
        ),
    ] = False,
    integrity: Annotated[
        bool,
        typer.Option("--integrity", help="More operations, and a stricter verdict."),
    ] = False,
    jobs: Annotated[
        int, typer.Option(min=1, help="How many processes; by default one for each processor.")
    ] = os.cpu_count() or 1,
    budget: Annotated[
        int,
        typer.Option(min=1, help="The most schedules of one group; beyond them, it is unknown."),
    ] = 20_000,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, sorted, versioned.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run every schedule of overlapping updates, and judge each.

    An operation is an update of the model's conversation, such as a tool output. A schedule is one
    order in which operations start and are acknowledged. Each pair of operations runs in every
    schedule: without a failure, and with each kind of failure at each moment. With --depth 3, each
    triple runs, too, without a failure. Time is virtual.

    A schedule is violated in three cases: the model ends with items that no sequential order of the
    operations gives; the agent and the model disagree; or items did not stay in the order that was
    asked for. If none is violated, all are linearizable. The schedules run in a temporary
    environment; yours is not touched.

    Exit codes: 0 every schedule is linearizable, 1 one is violated, 2 wrong usage, 3 the
    exploration could not run, or could not finish.
    """
    if upstream is not None and stock is not None:
        raise typer.BadParameter("give one of --upstream and --stock")
    with scratch_folder() as scratch:
        python = _environment(upstream, stock, scope, scratch)
        command = ["ctxlock.explorer", "--progress", f"--depth={depth}", f"--jobs={jobs}"]
        command += [f"--budget={budget}", *(["--full"] if full else [])]
        command += ["--integrity"] if integrity else []
        found = Exploration(read_report(_run(python, scratch / "races", command)))
    if json:
        print(found.as_json())
    else:
        _print(found)
    raise typer.Exit(_EXITS[found.verdict])


def _print(found: Exploration) -> None:
    for table in found.heat_maps():
        out.print(table)
        out.print()
    for table in found.problems():
        out.print(table)
        out.print()
    for remark in found.remarks():
        out.print(remark, highlight=False)
    for number, test in enumerate(found.replays()):
        above = f"\n{REPLAY_IMPORT}\n\n" if number == 0 else ""
        out.print(f"{above}\n{test}", style="dim", highlight=False, markup=False, soft_wrap=True)
    but = (
        ", except for the known limits" if found.verdict == "linearizable" and found.limits else ""
    )
    rest = ", and the rest is unknown" if found.verdict == "violated" and found.unknown else ""
    out.print(f"{found.verdict}{but}{rest}", style=_COLOURS[found.verdict])


def _environment(upstream: str | None, stock: str | None, scope: Scope, scratch: Path) -> str:
    """Makes the environment to explore; returns its interpreter."""
    installer = Installer()
    if stock is not None:
        release = str(parse(stock, "--stock"))
        with step(f"Installing stock livekit-agents {release} with {installer.name}"):
            python = installer.make_environment(scratch / "environment")
            installer.install(python, f"livekit-agents==={release}")
        return python
    from ..wheels.overlay import build_overlay

    original = fetch(upstream, scratch / "stock")
    with step("Patching it"):
        wheel = build_overlay(original, scratch, scope).path
    with step(f"Installing it with {installer.name}"):
        python = installer.make_environment(scratch / "environment")
        installer.install(python, f"livekit-agents==={original.version}")
        installer.replace(python, wheel)
    return python


def _run(python: str, scratch: Path, command: list[str]) -> str:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("groups, {task.fields[schedules]} schedules"),
        TimeElapsedColumn(),
    )
    if not console.is_terminal:
        console.print("Exploring ...", highlight=False)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        bar = progress.add_task("Exploring", total=None, schedules="0")

        def on_line(line: str) -> None:
            groups, _, schedules = line.partition(" ")
            done, _, total = groups.partition("/")
            if done.isdigit() and total.isdigit():
                progress.update(bar, completed=int(done), total=int(total), schedules=schedules)

        return run_module(python, scratch, command, on_line)
