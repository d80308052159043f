"""What can be explored, by the names of its kinds."""

from __future__ import annotations

from collections.abc import Sequence

from ..races.releases import installed
from .operation import Operation
from .operations import KINDS, SEVERAL
from .session_events import HAPPENINGS

__all__ = ["kinds_of", "make_operations"]


def kinds_of(version: str | None = None, *, integrity: bool = False) -> list[type[Operation]]:
    """The kinds that a release has.

    Args:
        version: The release; by default the installed one.
        integrity: Whether to include what is no update.
    """
    kinds = KINDS + SEVERAL + (HAPPENINGS if integrity else ())
    return [kind for kind in kinds if (version or installed()) in kind.applies]


def make_operations(kinds: Sequence[str]) -> list[Operation]:
    """Makes one operation for each name of a kind, numbered from 1."""
    by_name = {kind.kind: kind for kind in KINDS + SEVERAL + HAPPENINGS}
    return [by_name[kind](number) for number, kind in enumerate(kinds, 1)]
