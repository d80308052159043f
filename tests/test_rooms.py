"""The package's rooms: each imports only those that stand above it in the table."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import ctxlock

PACKAGE = Path(ctxlock.__file__).parent

MAY_IMPORT = {
    "__init__": "",
    "errors": "",
    "target": "",
    "roles": "",
    "payload": "",
    "verified": "",
    "release": "__init__ errors verified",
    "analysis": "errors release roles target",
    "patching": "analysis errors release target",
    "wheels": "__init__ analysis errors patching release target",
    "buildapi": "errors release wheels",
    "reports": "analysis",
    "environments": "errors release reports wheels",
    "auditing": "analysis environments errors release target wheels",
    "races": "roles",
    "explorer": "races",
    "serve": "errors races",
    "doctor": "errors reports",
    "cli": (
        "__init__ auditing doctor environments errors patching release reports serve target wheels"
    ),
    "__main__": "cli",
}
"""What each room, or module beside them, needs of the package. The races and the explorer run in a
user's environment, where the builder is not."""


def imports_of(source: str, place: Sequence[str]) -> Iterator[str]:
    """The rooms that a module imports from; `place` is its path in the package."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            parts = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = [PACKAGE.name, *place][: -node.level] if node.level else []
            parts = [[*above, *(node.module or "").split("."), alias.name] for alias in node.names]
        else:
            continue
        for package, room, *_ in ([name for name in one if name] + [""] for one in parts):
            if package == PACKAGE.name:
                exists = (PACKAGE / room).is_dir() or (PACKAGE / f"{room}.py").is_file()
                yield room if room and exists else "__init__"


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_those_above_it_alone(room: str) -> None:
    folder = PACKAGE / room
    files = [*folder.rglob("*.py")] if folder.is_dir() else [PACKAGE / f"{room}.py"]
    needed = {
        found
        for file in files
        for found in imports_of(file.read_text(encoding="utf-8"), file.relative_to(PACKAGE).parts)
    }
    assert needed - {room} == set(MAY_IMPORT[room].split())


def test_the_table_has_every_room_below_what_it_imports() -> None:
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert there - {"__pycache__"} == set(MAY_IMPORT)
    rooms = [*MAY_IMPORT]
    for room, needed in MAY_IMPORT.items():
        assert all(rooms.index(one) < rooms.index(room) for one in needed.split())


def test_contributors_are_told_of_every_room() -> None:
    told = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms = [path.name for path in PACKAGE.iterdir() if path.is_dir() and path.stem in MAY_IMPORT]
    assert [room for room in rooms if f"`{room}/`" not in told] == []


@pytest.mark.parametrize(
    ("written", "room"),
    [
        ("from ..errors import CtxlockError", "errors"),
        ("from .. import errors", "errors"),
        ("from .. import PATCH_NUMBER", "__init__"),
        ("from . import wheel", "wheels"),
        ("from ..wheels.wheel import read_entries", "wheels"),
        ("import ctxlock.errors", "errors"),
        ("import ctxlock", "__init__"),
        ("from ctxlock import errors", "errors"),
        ("def late():\n    from ..errors import CtxlockError", "errors"),
    ],
)
def test_an_import_is_seen_however_it_is_written(written: str, room: str) -> None:
    assert [*imports_of(written, ("wheels", "sdist.py"))] == [room]
