"""The command `ctxlock verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..release import DEFAULT_SCOPE, Scope
from .console import Exit, Quiet, Release, ScopeOption, fetch, out, scratch_folder, step

if TYPE_CHECKING:
    from ..reports.comparison import Comparison

__all__ = ["verify"]


def verify(
    upstream: Release = None,
    wheel: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Verify this patched wheel instead of building one."),
    ] = None,
    scope: ScopeOption = DEFAULT_SCOPE,
    python: Annotated[
        str | None,
        typer.Option(metavar="EXE", help="Run the races on this Python's livekit-agents."),
    ] = None,
    details: Annotated[
        bool,
        typer.Option(
            "--details", help="Show each update of a race that went wrong, and each wait."
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, sorted, versioned.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a page with a diagram of each race."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Run the races on a stock release and on the patched one; or on your livekit-agents.

    A race makes two updates of the model's conversation overlap, in a real AgentSession. Its
    scripted provider delays the acknowledgements. Stock is the release as published. Both run in
    the same temporary environment, and only the livekit-agents wheel is exchanged between the two
    runs; your environment is not touched.

    With --python, the races run on the livekit-agents that is installed there, and then on a
    patched copy of it. If livekit-plugins-openai is installed there, they also run through that.
    Nothing is written there, and no package index is asked.

    The exit code is about the patched release; with --python it is about yours. So if stock lost
    items and the patched release did not, the code is 0, but with --python it is 1.

    Exit codes: 0 the patched release kept every item, 1 it did not, 2 wrong usage, 3 the races
    could not run, or the stock release lost nothing, so that the races prove nothing.
    With --python: 0 yours kept every item, 1 it lost an item or crashed, 2 wrong usage, 3 a race
    could not run, or could not finish.
    """
    if sum(given is not None for given in (upstream, wheel, python)) > 1:
        raise typer.BadParameter("give one of --upstream, --wheel and --python")
    if html is not None:
        from ..wheels.wheel import check_writable

        check_writable(html)
    with scratch_folder() as scratch:
        if python is not None:
            from ..environments.existing import examine

            comparison = examine(python, scratch, step, scope)
        else:
            comparison = _compare(upstream, wheel, scope, scratch)
    if html is not None:
        from ..reports.page import page
        from ..wheels.wheel import write_atomically

        content = page(comparison).encode()
        write_atomically(html, lambda stream: stream.writelines([content]))
    if json:
        print(comparison.as_json())
    else:
        _print(comparison, details)
        if html is not None:
            out.print(f"The diagrams are in {html}.", soft_wrap=True, highlight=False, markup=False)
    raise typer.Exit(_exit_code(comparison))


def _compare(upstream: str | None, wheel: Path | None, scope: Scope, scratch: Path) -> Comparison:
    from ..environments.temporary import compare

    if wheel is not None:
        from ..wheels.provenance import wheel_provenance

        release = str(wheel_provenance(wheel).upstream)
    else:
        from ..wheels.overlay import build_overlay

        stock = fetch(upstream, scratch / "stock")
        release = str(stock.version)
        with step("Patching it"):
            wheel = build_overlay(stock, scratch, scope).path
    return compare(release, wheel, scratch, step)


def _exit_code(comparison: Comparison) -> Exit:
    if comparison.judged[0].column == "yours":
        if any(races.harmed for races in comparison.judged):
            return Exit.HARM
        return Exit.WELL if comparison.kept else Exit.FAILED
    if not comparison.kept:
        return Exit.HARM
    return Exit.WELL if comparison.telling else Exit.FAILED


def _print(comparison: Comparison, details: bool) -> None:
    for table in comparison.tables():
        out.print(table)
        out.print()
    for explanation in comparison.explanations(details):
        out.print(explanation, soft_wrap=True, highlight=False, markup=False)
    for wait in comparison.waits(details):
        out.print(wait, soft_wrap=True, highlight=False, markup=False)
    if comparison.remark:
        out.print(comparison.remark, soft_wrap=True, highlight=False, markup=False)
    colours = {Exit.WELL: "green", Exit.HARM: "red", Exit.FAILED: "yellow"}
    for sentence in comparison.sentences():
        colour = colours[_exit_code(comparison)]
        out.print(sentence, style=colour, soft_wrap=True, highlight=False, markup=False)
