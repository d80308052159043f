"""The releases of livekit-agents that the regressions were run on: all else reads them here.

`nox -s new_release -- X` writes this file. A release has a line of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["LAST_WITHOUT_LOCK", "NEWEST", "VERIFIED", "Settings"]


class Settings(NamedTuple):
    """How a release is installed, with the OpenAI plugin of the same number.

    An old release does not import with the newest of what it depends on, so it is resolved as it
    was some weeks after it came out.

    Attributes:
        python: The version of that day; by default the one that runs the tests.
        exclude_newer: The day; by default today.
    """

    python: str | None = None
    exclude_newer: str | None = None


VERIFIED: Mapping[str, Settings] = {
    "1.0.23": Settings("3.11", "2025-07-15"),
    "1.1.7": Settings("3.11", "2025-07-25"),
    "1.2.18": Settings("3.11", "2025-11-05"),
    "1.3.12": Settings("3.11", "2026-02-10"),
    "1.4.6": Settings("3.11", "2026-04-10"),
    "1.5.17": Settings("3.11", "2026-06-15"),
    "1.6.10": Settings(),
    "1.7.1": Settings(),
    "1.8.8": Settings(),
    "1.8.9": Settings(),
}
"""The newest release of each minor, and the last without upstream's own lock, in their order."""

NEWEST = [*VERIFIED][-1]
"""The newest of them, which a build takes by default."""

LAST_WITHOUT_LOCK = "1.8.8"
"""The last release without a lock of upstream's own: there the patch changes every site."""
