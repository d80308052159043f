"""A side of the lab is what it is called; else stock could be compared with itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from packages import FULL, PATCHED

from ctxlock import PATCH_NUMBER
from ctxlock.verified import NEWEST
from lab.environments import TARGET, CannotRun, Side, check_sides


def side(folder: Path, name: str, version: str, activity: str) -> Side:
    file = folder / name / TARGET
    file.parent.mkdir(parents=True)
    file.write_text(activity, encoding="utf-8")
    return Side(name, folder / name, version)


def sides(folder: Path, lock_version: str, lock_activity: str) -> dict[str, Side]:
    stock = side(folder, "stock", NEWEST, "bare = 1\n")
    return {"stock": stock, "lock": side(folder, "lock", lock_version, lock_activity)}


def test_stock_and_a_patch_are_told_apart(tmp_path: Path) -> None:
    check_sides(sides(tmp_path, PATCHED, "guarded = 1\n"), NEWEST)


def test_a_patch_that_is_stock_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=r"lock has the .* of stock"):
        check_sides(sides(tmp_path, PATCHED, "bare = 1\n"), NEWEST)


@pytest.mark.parametrize("version", [NEWEST, FULL, f"1.7.1+ctxlock.{PATCH_NUMBER}.lock"])
def test_another_release_or_scope_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(CannotRun, match="was meant"):
        check_sides(sides(tmp_path, version, "guarded = 1\n"), NEWEST)
