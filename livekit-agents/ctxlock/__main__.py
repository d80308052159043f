"""The command `ctxlock`."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from . import PATCH_NUMBER
from .audit import Audit, audit_path, audit_python, audit_wheel, site_table
from .check_command import check
from .console import Exit, Quiet, Release, ScopeOption, err, fetch, given, out, scratch_folder, step
from .errors import CtxlockError
from .explore_command import explore
from .release import DEFAULT_SCOPE
from .serve_command import serve
from .syntax import ADDED, TARGET
from .verify_command import verify

TRACEBACK = "CTXLOCK_TRACEBACK"
"""The environment variable that asks for the traceback of what nobody foresaw."""


class _ReaderGone(Exception):
    """Whoever read what is printed has stopped."""


class _Commands(TyperGroup):
    """Typer itself would exit with 1 then, which means harm here."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _reader_gone():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _reader_gone():
            return super().invoke(ctx)


@contextmanager
def _reader_gone() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise _ReaderGone from None
    except SystemExit as e:
        if e.code == 1:  # rich's way to end then; typer's own exits are no SystemExit yet
            raise _ReaderGone from None
        raise


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",  # else the lines of a paragraph break where the source breaks
    pretty_exceptions_enable=False,
    help="Builds and checks a livekit-agents whose realtime context updates do not overlap.",
    epilog=(
        "Exit codes: 0 all is well, 1 something is bare, was lost, or differs, 2 wrong usage, "
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

    Each is guarded (by the lock, or by the added module, which holds it), bare, or read-only; or
    unchecked, if it holds the lock and then takes for granted that no handoff took its session. The
    scope of a patched one is named, and what it has of the scope full. Without arguments the
    livekit-agents of the environment that ctxlock runs in is read. Nothing is imported or changed.

    Where a dist-info folder stands beside it, the changed file and the added one are compared with
    ctxlock.json in that: each that differs, is missing or is one too many is named. The other files
    are upstream's; `ctxlock check` compares those as well, in a wheel.

    Exit codes: 0 all guarded and as built, 1 something bare, unchecked or not as built, 2 wrong
    usage, 3 cannot tell.
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
        _print_audit(found, of_a_wheel=wheel is not None)
    raise typer.Exit(Exit.HARM if found.harmed else Exit.WELL)


def _print_audit(found: Audit, of_a_wheel: bool) -> None:
    states = {difference.path: difference.state for difference in found.differences}
    if found.version is not None:
        out.print(f"livekit-agents {found.version}", highlight=False)
    out.print(found.file, style="dim", soft_wrap=True, highlight=False)
    if found.not_understood is None:
        out.print(site_table(found.sites))
    elif states.get(TARGET) != "missing":  # that is said below
        out.print(found.not_understood, soft_wrap=True, highlight=False, markup=False)
    if found.scope is not None:
        none = "the lock alone" if found.scope == "lock" else "the file has nothing of it"
        parts = ", ".join(found.parts) or none
        if found.parts and ADDED in states:
            parts += ", if the added module were whole"
        out.print(f"Scope {found.scope}: {parts}.", highlight=False)
        if found.compared and not found.differences:
            out.print("As it was built, by its ctxlock.json.", highlight=False)
        elif not found.compared and not found.differences:
            out.print("Not compared: no dist-info folder with a ctxlock.json is beside it.")
    for path, state in states.items():
        out.print(f"{path}: {state}", style="red", soft_wrap=True)
    _print_remedy(states, of_a_wheel)
    if found.bare:
        out.print(f"{found.bare} bare: overlapping updates lose items there.", style="red")
    if found.unchecked:
        out.print(f"{found.unchecked} unchecked: fails if a handoff comes between.", style="red")
    if found.bare or found.unchecked:
        out.print("`pip install ./livekit-agents` in a clone of ctxlock patches it: its README.")
    elif not found.harmed:
        out.print("Every site that pushes is guarded.", style="green")


def _print_remedy(states: Mapping[str, str], of_a_wheel: bool) -> None:
    """Says what to do about files in these states; nothing if there are none."""
    if not states:
        return
    out.print("Not as it was built.")
    if of_a_wheel:
        out.print("Build or fetch the wheel again.")
        return
    for path, state in states.items():
        if state == "one too many":
            out.print(f"Remove {path}.", soft_wrap=True, highlight=False)
    if set(states.values()) != {"one too many"}:
        out.print(
            "Install it afresh: with pip's `--force-reinstall --no-deps`, or with uv's "
            "`--reinstall-package livekit-agents`.",
            highlight=False,
        )


@app.command()
def diff(
    upstream: Release = None, scope: ScopeOption = DEFAULT_SCOPE, quiet: Quiet = False
) -> None:
    """Print what the patch changes and adds, as a unified diff against the stock release.

    It is made on the spot from the published release. In site-packages, `git apply` takes it.

    Exit codes: 0 printed, 2 wrong usage, 3 could not be made.
    """
    from .patch import patch_source, unified_diff

    with scratch_folder() as scratch:
        before = fetch(upstream, scratch).target
    patched = patch_source(before, TARGET, scope)
    sys.stdout.buffer.writelines(unified_diff(before, patched.source, TARGET))
    for path, content in patched.added.items():
        sys.stdout.buffer.writelines(unified_diff(b"", content, path))


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
    scope: ScopeOption = DEFAULT_SCOPE,
    quiet: Quiet = False,
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
            overlay = build_overlay(stock, output, scope)
    out.print(site_table(overlay.sites))
    out.print("\nFor a requirements file:", highlight=False)
    line = f"livekit-agents @ {overlay.path.resolve().as_uri()}"
    out.print(line, soft_wrap=True, highlight=False, markup=False)


app.command()(check)
app.command()(verify)
app.command()(explore)
app.command()(serve)


def main() -> None:
    """Runs the command line; an error is a sentence on stderr, and no traceback."""
    # as at an interrupt, what is temporary is cleared away
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except CtxlockError as e:
        _fail(str(e))
    except (_ReaderGone, BrokenPipeError):
        _abandon_output()
        sys.exit(Exit.FAILED)
    except Exception as e:
        if os.environ.get(TRACEBACK):
            traceback.print_exc()
        told = " ".join(f"{type(e).__name__}: {e}".split()).rstrip(".:")
        if isinstance(e, OSError):
            _abandon_output()
        _fail(f"It ended in {told}, which nobody foresaw; set {TRACEBACK}=1 to see where.")


def _fail(sentence: str) -> None:
    with suppress(OSError):
        err.print(Text.assemble(("ctxlock: ", "bold red"), sentence), soft_wrap=True)
    sys.exit(Exit.FAILED)


def _abandon_output() -> None:
    """Sends what is left in the buffer nowhere; else Python would fail again at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
