"""The command `ctxlock verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .console import Exit, Quiet, Release, ScopeOption, fetch, out, scratch_folder, step
from .release import DEFAULT_SCOPE, Scope

if TYPE_CHECKING:
    from .comparison import Comparison

__all__ = ["verify"]


def verify(
    upstream: Release = None,
    wheel: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Verify this patched wheel, and build none."),
    ] = None,
    scope: ScopeOption = DEFAULT_SCOPE,
    python: Annotated[
        str | None,
        typer.Option(metavar="EXE", help="Run the races in this interpreter's environment."),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Show every push of a race that went wrong.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, sorted, versioned.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page with a diagram of each race, too."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Run the races on a stock release and on the patched one, side by side; or on yours.

    Each race makes two updates of the realtime context overlap, in a real AgentSession over a
    provider that holds its acknowledgements. It happens in a temporary environment, in which only
    the livekit-agents wheel is exchanged between the two runs; yours is not touched.

    With --python, the races run on the livekit-agents that is installed there, through its
    livekit-plugins-openai as well if it has that, and then with a patched copy in front. Nothing is
    written there, and no package index is asked.

    Exit codes: 0 the patched release kept every item, 1 it did not, 2 wrong usage,
    3 the races could not run, or the stock release lost nothing, so that they show nothing.
    With --python: 0 yours kept every item, 1 it lost one, or crashed, 2 wrong usage, 3 a race could
    not run, or not to its end.
    """
    if sum(given is not None for given in (upstream, wheel, python)) > 1:
        raise typer.BadParameter("give one of --upstream, --wheel and --python")
    if html is not None:
        from .wheel import check_writable

        check_writable(html)
    with scratch_folder() as scratch:
        if python is not None:
            from .own import examine

            comparison = examine(python, scratch, step, scope)
        else:
            comparison = _compare(upstream, wheel, scope, scratch)
    if html is not None:
        from .page import page
        from .wheel import write_atomically

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
    from .verify import compare

    if wheel is not None:
        from .provenance import wheel_provenance

        release = str(wheel_provenance(wheel).upstream)
    else:
        from .build import build_overlay

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
    if comparison.remark:
        out.print(comparison.remark, soft_wrap=True, highlight=False, markup=False)
    colours = {Exit.WELL: "green", Exit.HARM: "red", Exit.FAILED: "yellow"}
    for sentence in comparison.sentences():
        out.print(sentence, style=colours[_exit_code(comparison)], highlight=False, markup=False)
