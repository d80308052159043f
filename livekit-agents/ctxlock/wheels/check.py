"""Makes a patched wheel again, and tells where a given one differs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .. import PATCH_NUMBER
from ..errors import CtxlockError
from .overlay import build_overlay
from .provenance import Provenance, wheel_provenance
from .upstream import NAME, Upstream
from .wheel import read_entries

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
    return str(_record(wheel).upstream)


def _record(wheel: Path) -> Provenance:
    """What `wheel` says of itself, if this patch made it."""
    record = wheel_provenance(wheel)
    if record.patch != PATCH_NUMBER:
        raise CtxlockError(
            f"{wheel} was made by patch {record.patch}, but this is patch {PATCH_NUMBER}; check it "
            "with the ctxlock that made it."
        )
    return record


def check_wheel(wheel: Path, stock: Upstream, scratch: Path) -> Checked:
    """Compares `wheel` with what this patch makes of `stock`, byte by byte.

    Args:
        wheel: The patched wheel.
        stock: The release that it says it was made from.
        scratch: A folder for the one that it is compared with.

    Raises:
        CtxlockError: `stock` is another release, or one of the wheels could not be had.
    """
    record = _record(wheel)
    if stock.version != record.upstream:
        raise CtxlockError(
            f"{wheel} says it was made from {NAME} {record.upstream}, but the stock wheel is "
            f"{stock.version}; give the one of {record.upstream}."
        )
    overlay = build_overlay(stock, scratch, record.scope)
    return Checked(overlay.path.name, overlay.sha256, tuple(_differences(wheel, overlay.path)))


def _differences(given: Path, expected: Path) -> list[str]:
    found, wanted = read_entries(given), read_entries(expected)
    told = []
    if given.name != expected.name:
        told.append(f"The file is called {given.name}, but should be called {expected.name}.")
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
            told.append(f"The content of {path} differs.")
    if not told and given.read_bytes() != expected.read_bytes():
        told.append("The files in it are the same, but the archive around them differs.")
    return told
