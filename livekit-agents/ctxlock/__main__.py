"""The command `ctxlock`."""

from __future__ import annotations

import difflib
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .audit import Audit, audit_path, audit_python, audit_wheel, site_table
from .errors import CtxlockError
from .syntax import TARGET

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Builds and checks a livekit-agents whose realtime context updates do not overlap.",
    epilog=(
        "Exit codes: 0 all is well, 1 something is bare or was lost, 2 wrong usage, "
        "3 it could not be done or cannot be told."
    ),
)
out = Console()
err = Console(stderr=True)


class Exit(IntEnum):
    """What a command's exit code means; 2 is a wrong usage, and typer's own."""

    WELL = 0
    HARM = 1
    FAILED = 3


Release = Annotated[
    str | None,
    typer.Option("--upstream", metavar="VERSION", help="The livekit-agents release to start from."),
]


@contextmanager
def _step(what: str) -> Iterator[Callable[[str], None]]:
    """Shows that a step is under way; yields a function that says how far it is."""
    if not err.is_terminal:
        err.print(f"{what} ...", highlight=False)
    with err.status(f"{what} ...") as status:
        yield lambda detail: status.update(f"{what} ... {detail}")


@app.command()
def audit(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]", help="An agent_activity.py, or a folder that holds livekit/agents."
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(metavar="EXE", help="Audit what this interpreter would import."),
    ] = None,
    wheel: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Audit a livekit-agents wheel.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, sorted, versioned.")] = False,
) -> None:
    """List the sites of a livekit-agents that read or push the realtime context.

    Each is guarded by the lock, bare, or read-only. Without arguments the livekit-agents of the
    environment that ctxlock runs in is read. Nothing is imported and nothing is changed.

    Exit codes: 0 all guarded, 1 something bare, 2 wrong usage, 3 cannot tell.
    """
    if sum(given is not None for given in (path, python, wheel)) > 1:
        raise typer.BadParameter("give one of PATH, --python and --wheel")
    if path is not None:
        found = audit_path(path)
    elif wheel is not None:
        found = audit_wheel(wheel)
    else:
        found = audit_python(python)
    if json:
        print(found.as_json())
    else:
        _print_audit(found)
    raise typer.Exit(Exit.HARM if found.bare else Exit.WELL)


def _print_audit(found: Audit) -> None:
    if found.version is not None:
        out.print(f"livekit-agents {found.version}", highlight=False)
    out.print(found.file, style="dim", soft_wrap=True, highlight=False)
    out.print(site_table(found.sites))
    for site in found.sites:
        if site.rechecked is False:
            out.print(
                f"Line {site.first_line}: if a handoff takes the session during the wait, the "
                f"{site.role} fails.",
                style="yellow",
                highlight=False,
            )
    if found.bare:
        out.print(f"{found.bare} bare: overlapping updates lose items there.", style="red")
    else:
        out.print("Every site that pushes is guarded.", style="green")


@app.command()
def diff(upstream: Release = None) -> None:
    """Print what the patch changes, as a unified diff against the stock release.

    It is made on the spot from the published release. Apply it in site-packages with `git apply`.

    Exit codes: 0 printed, 2 wrong usage, 3 could not be made.
    """
    from .patch import patch_source

    with tempfile.TemporaryDirectory() as scratch:
        stock = _fetch(upstream, Path(scratch))
        before = stock.target
        after = patch_source(before, TARGET).source
    sys.stdout.buffer.writelines(_unified(before, after))


def _unified(before: bytes, after: bytes) -> Iterator[bytes]:
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{TARGET}".encode(),
        f"b/{TARGET}".encode(),
    )
    for line in lines:
        yield line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"


@app.command()
def build(
    upstream: Release = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where the wheel goes.")
    ] = Path("dist"),
    wheel: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Start from this stock wheel instead of the index."),
    ] = None,
) -> None:
    """Build the patched wheel and print its sites and its line for a requirements file.

    Exit codes: 0 built, 2 wrong usage, 3 could not be built; then nothing was written.
    """


@app.command()
def verify(
    upstream: Release = None,
    wheel: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Verify this patched wheel.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, sorted, versioned.")] = False,
) -> None:
    """Run the races on a stock release and on the patched one, side by side.

    Each race overlaps two updates of the realtime context in a real AgentSession, over a fake
    provider that holds its acknowledgements. Both run in one temporary environment, in which only
    the livekit-agents wheel is exchanged. Your own environment is not touched.

    Exit codes: 0 the patched release kept every item, 1 it did not, 2 wrong usage,
    3 the races could not run, or the stock release lost nothing and so they show nothing.
    """


def main() -> None:
    """Runs the command line; errors are one sentence on stderr."""
    try:
        app()
    except CtxlockError as e:
        err.print(f"[red]ctxlock:[/] {e}", highlight=False, soft_wrap=True)
        sys.exit(Exit.FAILED)


if __name__ == "__main__":
    main()
