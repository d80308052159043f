"""The record in a patched wheel of what was changed: its name, its format, its reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from ..errors import CtxlockError
from ..release import Scope, parse, parse_scope
from ..target import TARGET
from .record import Row
from .wheel import read_entries

__all__ = ["FORMAT", "PROVENANCE", "Provenance", "read_provenance", "wheel_provenance"]

PROVENANCE = "ctxlock.json"
"""The record in the dist-info folder of what was changed."""

FORMAT = 1
"""Version of that record; raised when a key changes its meaning or goes."""


@dataclass(frozen=True)
class Provenance:
    """What a patched wheel says of itself.

    Attributes:
        upstream: The stock release that it was made from.
        patch: The number of the patch that made it.
        scope: How much that changed.
        sha256: The hash of the changed file and of each added one, by their paths.
    """

    upstream: Version
    patch: int
    scope: Scope
    sha256: Mapping[str, str]


def read_provenance(content: bytes, source: str) -> Provenance:
    """Reads a record.

    Args:
        content: What stands in it.
        source: The file, as errors name it.

    Raises:
        CtxlockError: It is no such record, or of a later format.
    """
    try:
        record = json.loads(content)
        number = record["format"]
    except KeyError as e:
        raise _garbled(source, f"its key {e} is missing") from None
    except (ValueError, TypeError, RecursionError):
        raise _garbled(source, "a JSON object was expected") from None
    values = _garbled(source, "a value in it is not one that `ctxlock build` writes")
    if type(number) is int and number > FORMAT:
        raise CtxlockError(
            f"{source} has format {number}, but this ctxlock reads format {FORMAT}; use the "
            "ctxlock that the wheel was built with, or a later one."
        )
    try:
        patch, target = record["patch"], record["target"]
        sha256 = {**record["added"], target: record["sha256"]["after"]}
        upstream = parse(record["upstream"], source)
        scope = parse_scope(record["scope"], source)
    except KeyError as e:
        raise _garbled(source, f"its key {e} is missing") from None
    except (TypeError, CtxlockError):
        raise values from None
    understood = (type(number), number, type(patch), target) == (int, FORMAT, int, TARGET)
    if not understood or not all(_is_plain(path, digest) for path, digest in sha256.items()):
        raise values
    return Provenance(upstream, patch, scope, sha256)


def wheel_provenance(wheel: Path) -> Provenance:
    """Reads the record in a patched wheel.

    Raises:
        CtxlockError: The wheel cannot be read, is damaged or a stock one, or its record is none.
    """
    found = [
        (path, content)
        for path, content in read_entries(wheel)
        if path.endswith(f".dist-info/{PROVENANCE}")
    ]
    if not found:
        if not wheel.name.startswith(("livekit_agents-", "livekit-agents-")):
            raise CtxlockError(
                f"{wheel} is no livekit-agents wheel, but a patched one is needed; `ctxlock build` "
                "makes one."
            )
        raise CtxlockError(
            f"{wheel} is a stock wheel, but a patched one is needed; `ctxlock build` makes one."
        )
    path, content = found[0]
    return read_provenance(content, f"{wheel}/{path}")


def _garbled(source: str, why: str) -> CtxlockError:
    return CtxlockError(
        f"{source} does not say what was patched: {why}; build or fetch the patched wheel again, "
        "and install it again."
    )


def _is_plain(path: object, digest: object) -> bool:
    """Whether `digest` is one, and `path` one that leads nowhere else."""
    return isinstance(path, str) and isinstance(digest, str) and Row(path, digest, "").is_inside
