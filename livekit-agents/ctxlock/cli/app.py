"""The command `ctxlock`: its commands, its exit codes, and what becomes of an error."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from .. import PATCH_NUMBER
from ..errors import CtxlockError
from .audit import audit
from .build import build
from .check import check
from .console import Exit, err
from .diff import diff
from .doctor import doctor
from .explore import explore
from .serve import serve
from .verify import verify

__all__ = ["app", "main"]

TRACEBACK = "CTXLOCK_TRACEBACK"
"""The environment variable that asks for the traceback of an unexpected error."""


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


class _Command(TyperCommand):
    """Typer itself would take the last of two values, without a word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
        for param, times in Counter(given).items():
            if times > 1 and param.param_type_name == "option" and not param.is_flag:
                raise typer.BadParameter("it is given twice; give it once", ctx=ctx, param=param)
        return super().parse_args(ctx, args)


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
    help=(
        "Builds and checks a livekit-agents in which updates of a realtime model's conversation "
        "do not overlap. Where they overlap, they delete each other's items."
    ),
    epilog=(
        "Exit codes: 0 all is well, 1 a place is bare (it does not hold the lock), an item was "
        "lost, or a file differs, 2 wrong usage, 3 the command could not be carried out, or the "
        "answer is not known."
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


for _command in (audit, diff, build, check, verify, explore, serve, doctor):
    app.command(cls=_Command)(_command)


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
        _fail(f"This error was not expected: {told}; set {TRACEBACK}=1 to see where it arose.")


def _fail(sentence: str) -> None:
    with suppress(OSError):
        err.print(Text.assemble(("ctxlock: ", "bold red"), sentence), soft_wrap=True)
    sys.exit(Exit.FAILED)


def _abandon_output() -> None:
    """Sends what is left in the buffer nowhere; else Python would fail again at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
