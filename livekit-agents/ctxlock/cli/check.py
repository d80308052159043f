"""The command `ctxlock check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .console import Exit, fetch, out, scratch_folder, step

__all__ = ["check"]


def check(
    given: Annotated[Path, typer.Argument(metavar="WHEEL", help="The patched wheel to check.")],
    wheel: Annotated[
        Path | None,
        typer.Option(
            metavar="STOCK", help="The stock wheel that it was made from; no network is needed."
        ),
    ] = None,
) -> None:
    """Make a patched wheel again from the stock release, and compare the two byte by byte.

    It fetches the stock release (livekit-agents as published), unless you give the stock wheel. If
    the two wheels differ, it names each file that differs. It runs and installs nothing of the
    wheel.

    Exit codes: 0 the same, 1 it differs, 2 wrong usage, 3 it could not be checked: the wheel is
    damaged, is stock, or has another patch number, or the stock release cannot be fetched.
    """
    from ..wheels.check import check_wheel, stock_release
    from ..wheels.upstream import read_wheel

    with scratch_folder() as scratch:
        release = stock_release(given)
        stock = read_wheel(wheel) if wheel is not None else fetch(release, scratch / "stock")
        with step("Patching it and comparing"):
            checked = check_wheel(given, stock, scratch)
    for difference in checked.differences:
        out.print(difference, style="red", soft_wrap=True, highlight=False, markup=False)
    if checked.differences:
        raise typer.Exit(Exit.HARM)
    out.print(f"The same, byte for byte: {checked.name}", soft_wrap=True, highlight=False)
    out.print(f"sha256 {checked.sha256}", soft_wrap=True, highlight=False)
