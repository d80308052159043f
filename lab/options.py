"""What the commands of the lab have in common: options that are one of several names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import typer

__all__ = ["among"]


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
