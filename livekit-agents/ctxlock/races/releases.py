"""Which releases of livekit-agents something holds for, and which one is installed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from importlib.util import find_spec

__all__ = ["ENGINE_SINCE", "Releases", "has_full_scope", "installed", "is_patched"]

# The pre-release left the 1.8 line before upstream's lock came, so it counts as the last without.
_BRANCHED_FROM = {"2.0.0b1": "1.8.8"}


ENGINE_SINCE = "1.6.10"
"""The oldest release whose OpenAI engine was tried with the scripted server, and fits it."""


def installed() -> str:
    """The version of the livekit-agents that can be imported, local label included."""
    return installed_version("livekit-agents")


def is_patched(version: str) -> bool:
    """Whether the version carries the label of an overlay wheel."""
    return "+ctxlock" in version


def has_full_scope() -> bool:
    """Whether updates go through the module that the scope `full` adds."""
    return find_spec("livekit.agents.voice._realtime_context") is not None


def _key(version: str) -> tuple[int, ...]:
    public = version.split("+")[0]
    numbers = re.match(r"\d+(\.\d+)*", _BRANCHED_FROM.get(public, public))
    if numbers is None:
        raise ValueError(f"{version!r} is not a version of livekit-agents.")
    return tuple(int(part) for part in numbers[0].split("."))


@dataclass(frozen=True)
class Releases:
    """A range of releases, local labels ignored.

    Args:
        since: The first one in the range.
        before: The first one behind it; None leaves it open.
    """

    since: str = "1.0.0"
    before: str | None = None

    def __contains__(self, version: str) -> bool:
        return _key(self.since) <= _key(version) and (
            self.before is None or _key(version) < _key(self.before)
        )

    def __str__(self) -> str:
        return (
            f"{self.since} on" if self.before is None else f"{self.since} to before {self.before}"
        )
