"""The command `ctxlock`."""

from __future__ import annotations

import signal
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from . import PATCH_NUMBER
from .audit import Audit, audit_path, audit_python, audit_wheel, site_table
from .check_command import check
from .console import Exit, Release, err, fetch, given, out, scratch_folder, step
from .errors import CtxlockError
from .explore_command import explore
from .syntax import TARGET

if TYPE_CHECKING:
    from .verify import Comparison

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",  # else the lines of a paragraph break where the source breaks
    pretty_exceptions_enable=False,
    help="Builds and checks a livekit-agents whose realtime context updates do not overlap.",
    epilog=(
        "Exit codes: 0 all is well, 1 something is bare or was lost, 2 wrong usage, "
        "3 it could not be done or cannot be told."
    ),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"ctxlock {metadata.version('ctxlock')}, patch {PATCH_NUMBER}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


@app.command()
def audit(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH",
            callback=given,
            help="An agent_activity.py, or a folder that holds livekit/agents.",
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            metavar="EXE", callback=given, help="Audit what this interpreter would import."
        ),
    ] = None,
    wheel: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Audit a livekit-agents wheel.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, sorted, versioned.")] = False,
) -> None:
    """List the sites of a livekit-agents that read or push the realtime context.

    Each is guarded by the lock, bare, or read-only; or unchecked, if it holds the lock and then
    takes for granted that no handoff took its session. Without arguments the livekit-agents of the
    environment that ctxlock runs in is read. Nothing is imported or changed, and a file is read as
    it is: whether it is what was published is for `ctxlock build` to check.

    Exit codes: 0 all guarded, 1 something bare or unchecked, 2 wrong usage, 3 cannot tell.
    """
    if sum(given is not None for given in (path, python, wheel)) > 1:
        raise typer.BadParameter("give one of PATH, --python and --wheel")
    if path is not None:
        found = audit_path(Path(path))
    elif wheel is not None:
        found = audit_wheel(wheel)
    else:
        found = audit_python(python)
    if json:
        print(found.as_json())
    else:
        _print_audit(found)
    raise typer.Exit(Exit.HARM if found.bare or found.unchecked else Exit.WELL)


def _print_audit(found: Audit) -> None:
    if found.version is not None:
        out.print(f"livekit-agents {found.version}", highlight=False)
    out.print(found.file, style="dim", soft_wrap=True, highlight=False)
    out.print(site_table(found.sites))
    if found.bare:
        out.print(f"{found.bare} bare: overlapping updates lose items there.", style="red")
    if found.unchecked:
        out.print(f"{found.unchecked} unchecked: fails if a handoff comes between.", style="red")
    if not (found.bare or found.unchecked):
        out.print("Every site that pushes is guarded.", style="green")


@app.command()
def diff(upstream: Release = None) -> None:
    """Print what the patch changes, as a unified diff against the stock release.

    It is made on the spot from the published release. In site-packages, `git apply` takes it.

    Exit codes: 0 printed, 2 wrong usage, 3 could not be made.
    """
    from .patch import patch_source, unified_diff

    with scratch_folder() as scratch:
        before = fetch(upstream, scratch).target
    after = patch_source(before, TARGET).source
    sys.stdout.buffer.writelines(unified_diff(before, after, TARGET))


@app.command()
def build(
    upstream: Release = None,
    wheel: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Start from this stock wheel, without a network."),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where the wheel goes.")
    ] = Path("dist"),
) -> None:
    """Build the patched wheel and print its sites and its line for a requirements file.

    Exit codes: 0 built, 2 wrong usage, 3 could not be built; then no wheel was written.
    """
    from .build import build_overlay
    from .upstream import read_wheel

    if upstream is not None and wheel is not None:
        raise typer.BadParameter("give one of --upstream and --wheel")
    with scratch_folder() as scratch:
        stock = fetch(upstream, scratch) if wheel is None else read_wheel(wheel)
        with step("Patching it and writing the wheel"):
            overlay = build_overlay(stock, output)
    out.print(site_table(overlay.sites))
    out.print("\nFor a requirements file:", highlight=False)
    line = f"livekit-agents @ {overlay.path.resolve().as_uri()}"
    out.print(line, soft_wrap=True, highlight=False, markup=False)


@app.command()
def verify(
    upstream: Release = None,
    wheel: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Verify this patched wheel, and build none."),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Show every push of a race that went wrong.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, sorted, versioned.")] = False,
) -> None:
    """Run the races on a stock release and on the patched one, side by side.

    Each race makes two updates of the realtime context overlap, in a real AgentSession over a fake
    provider that holds its acknowledgements. It happens in a temporary environment, in which only
    the livekit-agents wheel is exchanged between the two runs; yours is not touched.

    Exit codes: 0 the patched release kept every item, 1 it did not, 2 wrong usage,
    3 the races could not run, or the stock release lost nothing, so that they show nothing.
    """
    from .verify import compare, overlay_base

    if upstream is not None and wheel is not None:
        raise typer.BadParameter("give one of --upstream and --wheel")
    with scratch_folder() as scratch:
        if wheel is not None:
            release = overlay_base(wheel)
        else:
            from .build import build_overlay

            stock = fetch(upstream, scratch / "stock")
            release = str(stock.version)
            with step("Patching it"):
                wheel = build_overlay(stock, scratch).path
        comparison = compare(release, wheel, scratch, step)
    if json:
        print(comparison.as_json())
    else:
        out.print(comparison.table())
        for explanation in comparison.explanations(details):
            out.print(explanation, soft_wrap=True, highlight=False, markup=False)
        _print_verdict(comparison)
    if not comparison.kept:
        raise typer.Exit(Exit.HARM)
    raise typer.Exit(Exit.WELL if comparison.telling else Exit.FAILED)


def _print_verdict(comparison: Comparison) -> None:
    races = sum(o.verdict != "not applicable" for o in comparison.stock.outcomes.values())
    stock = f"Stock lost items, or crashed, in {comparison.stock.harmed} of {races} races;"
    if not comparison.kept:
        out.print(stock, "the patched release did not keep every item either.", style="red")
    elif comparison.telling:
        out.print(stock, "the patched release kept every item.", style="green")
    else:
        out.print("Stock lost nothing either: this shows nothing.", style="yellow")


app.command()(check)
app.command()(explore)


def main() -> None:
    """Runs the command line; an error is a sentence on stderr, and no traceback."""
    # as at an interrupt, what is temporary is cleared away
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        app()
    except CtxlockError as e:
        err.print(Text.assemble(("ctxlock: ", "bold red"), str(e)), soft_wrap=True)
        sys.exit(Exit.FAILED)


if __name__ == "__main__":
    main()
