"""What the commands share: where they print, how they exit, and how they show progress."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ..environments.installer import Installer
from ..errors import CtxlockError
from ..release import NEWEST_VERIFIED, SCOPE_VARIABLE, VARIABLE, Scope, parse

if TYPE_CHECKING:
    from ..wheels.upstream import Upstream

__all__ = [
    "Exit",
    "Quiet",
    "Release",
    "ScopeOption",
    "err",
    "fetch",
    "given",
    "out",
    "progress",
    "release_number",
    "scratch_folder",
    "step",
]

out = Console()
err = Console(stderr=True)
progress = Console(stderr=True)
"""As `err`, for what ``--quiet`` silences."""


class Exit(IntEnum):
    """What a command's exit code means; 2 is a wrong usage, and typer's own."""

    WELL = 0
    HARM = 1
    FAILED = 3


def given(text: str | None) -> str | None:
    """Passes on what a user gave; that it is empty, as an unset variable is, is a wrong usage."""
    if text == "":
        raise typer.BadParameter("it is empty; give a value, or leave it out")
    return text


def release_number(text: str | None, option: typer.CallbackParam) -> str | None:
    """Passes on the release that a user gave; that it is none is a wrong usage."""
    if text is not None:
        try:
            parse(text, option.opts[0])
        except CtxlockError as e:
            raise typer.BadParameter(str(e)) from None
    return text


Release = Annotated[
    str | None,
    typer.Option(
        "--upstream",
        metavar="VERSION",
        envvar=VARIABLE,
        callback=release_number,
        help="The livekit-agents release to patch.",
    ),
]


def _silence(quiet: bool) -> bool:
    progress.quiet = quiet
    return quiet


Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", callback=_silence, help="Hide the progress on stderr.")
]


ScopeOption = Annotated[
    Scope,
    typer.Option(
        "--scope",
        envvar=SCOPE_VARIABLE,
        help="lock: the lock alone. full: a smarter lock, in one added file.",
    ),
]


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="ctxlock-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def step(what: str) -> Iterator[Callable[[str], None]]:
    """Shows on stderr that a step is under way; yields a function that says how far it is."""
    if not progress.is_terminal:
        progress.print(f"{what} ...", highlight=False, soft_wrap=True)
    with progress.status(f"{what} ...") as status:
        yield lambda detail: status.update(f"{what}: {detail}")


def fetch(upstream: str | None, folder: Path) -> Upstream:
    """Fetches the stock release that was asked for, or the default one, and reads it."""
    from ..wheels.upstream import read_installed

    release = NEWEST_VERIFIED if upstream is None else parse(upstream, "--upstream")
    installer = Installer()
    with step(f"Fetching stock livekit-agents {release} with {installer.name}"):
        installer.fetch(str(release), folder)
        return read_installed([str(folder)])
