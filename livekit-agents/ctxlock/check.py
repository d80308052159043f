"""Makes a patched wheel again, and tells where a given one differs."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

from . import PATCH_NUMBER
from .build import PROVENANCE, build_overlay
from .errors import CtxlockError
from .release import Scope, parse, parse_scope
from .upstream import NAME, Upstream

__all__ = ["Checked", "check_wheel", "stock_release"]


@dataclass(frozen=True)
class Checked:
    """What came of a check.

    Attributes:
        name: The file name that the wheel ought to have.
        sha256: The hash that it ought to have.
        differences: A sentence for each thing in which it is another; none if it is the same.
    """

    name: str
    sha256: str
    differences: tuple[str, ...]


def stock_release(wheel: Path) -> str:
    """The stock release that `wheel` says it was made from.

    Raises:
        CtxlockError: It cannot be read, is damaged, is no patched wheel, or one of another patch.
    """
    return _record(wheel)[0]


def _record(wheel: Path) -> tuple[str, Scope]:
    """What `wheel` says it was made from, and in which scope."""
    entries = _entries(wheel)
    records = [text for name, text in entries if name.endswith(f".dist-info/{PROVENANCE}")]
    if not records:
        raise CtxlockError(
            f"{wheel} is a stock wheel, and a patched one is needed; `ctxlock build` makes one."
        )
    try:
        record = json.loads(records[0])
        patch, upstream, scope = record["patch"], record["upstream"], record["scope"]
    except (ValueError, KeyError, TypeError):
        raise CtxlockError(
            f"{wheel} has a {PROVENANCE} that does not say what it was made from; fetch it again."
        ) from None
    if patch != PATCH_NUMBER:
        raise CtxlockError(
            f"{wheel} was made by patch {patch!r}, and this is patch {PATCH_NUMBER}; check it with "
            "the ctxlock that made it."
        )
    source = f"What {wheel.name} says it was made from"
    return str(parse(upstream, source)), parse_scope(scope, source)


def check_wheel(wheel: Path, stock: Upstream, scratch: Path) -> Checked:
    """Compares `wheel` with what this patch makes of `stock`, byte by byte.

    Args:
        wheel: The patched wheel.
        stock: The release that it says it was made from.
        scratch: A folder for the one that it is compared with.

    Raises:
        CtxlockError: `stock` is another release, or one of the wheels could not be had.
    """
    named, scope = _record(wheel)
    if str(stock.version) != named:
        raise CtxlockError(
            f"{wheel} says it was made from {NAME} {named}, and the stock wheel is "
            f"{stock.version}; give the one of {named}."
        )
    overlay = build_overlay(stock, scratch, scope)
    return Checked(overlay.path.name, overlay.sha256, tuple(_differences(wheel, overlay.path)))


def _differences(given: Path, expected: Path) -> list[str]:
    found, wanted = _entries(given), _entries(expected)
    told = []
    if given.name != expected.name:
        told.append(f"The file is called {given.name}, and ought to be called {expected.name}.")
    for path in sorted({path for path, _ in (*found, *wanted)}):
        here, there = ([text for name, text in all if name == path] for all in (found, wanted))
        if here == there:
            continue
        if not there:
            told.append(f"{path} does not belong in it.")
        elif not here:
            told.append(f"{path} is missing.")
        elif len(here) > 1:
            told.append(f"{path} is in it {len(here)} times.")
        else:
            told.append(f"{path} has another content.")
    if not told and given.read_bytes() != expected.read_bytes():
        told.append("The files in it are the same, and the archive around them is not.")
    return told


def _entries(wheel: Path) -> list[tuple[str, bytes]]:
    """The files in a wheel, the same name as often as it stands there."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            return [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    except OSError as e:
        raise CtxlockError(f"{wheel} could not be read: {e.strerror or e}.") from None
    except Exception:  # zipfile lets through whatever its decompressors raise
        raise CtxlockError(
            f"{wheel} is no wheel: it is no zip file, or a damaged one; fetch it again."
        ) from None
