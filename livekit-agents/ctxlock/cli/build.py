"""The command `ctxlock build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..release import DEFAULT_SCOPE
from ..reports.sites import site_table
from .console import Quiet, Release, ScopeOption, fetch, out, scratch_folder, step

__all__ = ["build"]


def build(
    upstream: Release = None,
    wheel: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Patch this stock wheel; no network is needed."),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", help="The folder to write the wheel to."),
    ] = Path("dist"),
    scope: ScopeOption = DEFAULT_SCOPE,
    quiet: Quiet = False,
) -> None:
    """Build the patched wheel. Print its places and its line for a requirements file.

    A place is where the code reads or updates the model's conversation; see `ctxlock audit --help`.

    Exit codes: 0 built, 2 wrong usage, 3 it could not be built, and no wheel was written.
    """
    from ..wheels.overlay import build_overlay
    from ..wheels.upstream import read_wheel

    if upstream is not None and wheel is not None:
        raise typer.BadParameter("give one of --upstream and --wheel")
    with scratch_folder() as scratch:
        stock = fetch(upstream, scratch) if wheel is None else read_wheel(wheel)
        with step("Patching it and writing the wheel"):
            overlay = build_overlay(stock, output, scope)
    out.print(site_table(overlay.sites))
    out.print("\nFor a requirements file:", highlight=False)
    line = f"livekit-agents @ {overlay.path.resolve().as_uri()}"
    out.print(line, soft_wrap=True, highlight=False, markup=False)
