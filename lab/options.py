"""What the commands of the lab have in common: options, what they say, and how they end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

__all__ = [
    *("EPILOG", "Python", "Release", "Scopes", "Scratch"),
    *("among", "conclude", "exits", "out", "show", "tell"),
]

EPILOG = "Exit codes: 0 all is as expected, 1 something is not, 2 wrong usage, 3 it cannot run."

Scopes = Annotated[list[str] | None, typer.Option(help="lock or full; both by default.")]
Release = Annotated[str, typer.Option(help="The livekit-agents release.")]
Scratch = Annotated[
    Path | None, typer.Option(help="A folder to keep the environment in, for the next time.")
]
Python = Annotated[str | None, typer.Option(help="The interpreter to start from.")]

out = Console()
err = Console(stderr=True)


def among(given: Sequence[str] | None, known: Iterable[str], option: str) -> list[str]:
    """The names that were given, or all that there are.

    Raises:
        typer.BadParameter: A name is not among them; the message lists them.
    """
    names = [*known]
    if unknown := set(given or ()) - {*names}:
        raise typer.BadParameter(
            f"there is no {min(unknown)!r}; there are: {', '.join(names)}", param_hint=option
        )
    return list(given or names)


def tell(sentence: str) -> None:
    """Says something that is no result."""
    err.print(sentence, markup=False, highlight=False, soft_wrap=True)


def show(line: str) -> None:
    """Prints a line of a result as it is."""
    out.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def exits(*errors: type[Exception]) -> Iterator[None]:
    """Has the command end with 3 and a sentence where one of these errors is raised."""
    try:
        yield
    except errors as e:
        tell(str(e))
        raise typer.Exit(3) from None


def conclude(found: Iterable[str]) -> None:
    """Ends the command: with 1 if something was found, which is said."""
    sentences = [*found]
    for sentence in sentences:
        tell(sentence)
    raise typer.Exit(1 if sentences else 0)
