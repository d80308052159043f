"""What `ctxlock check` says of wheels that are, and are not, what the patch makes."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cli import run, says
from packages import Files, contents, release, write_wheel
from packaging.version import Version

from ctxlock import PATCH_NUMBER
from ctxlock.target import TARGET
from ctxlock.wheels.overlay import build_overlay
from ctxlock.wheels.provenance import PROVENANCE
from ctxlock.wheels.upstream import read_wheel

LOCAL = f"+ctxlock.{PATCH_NUMBER}.lock"
NAME = f"livekit_agents-1.8.4{LOCAL}-py3-none-any.whl"
DIST_INFO = f"livekit_agents-1.8.4{LOCAL}.dist-info"
RECORDED = f"{DIST_INFO}/{PROVENANCE}"


@pytest.fixture
def stock(tmp_path: Path) -> Path:
    return write_wheel(tmp_path / "livekit_agents-1.8.4-py3-none-any.whl", release())


@pytest.fixture
def patched(stock: Path, tmp_path: Path) -> Path:
    return build_overlay(read_wheel(stock), tmp_path / "dist").path


def pack(path: Path, files: Files) -> None:
    """Writes the archive as ctxlock does, but for what it says in RECORD."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            archive.writestr(entry, content)


def test_the_same(patched: Path, stock: Path) -> None:
    said = says(0, "check", patched, "--wheel", stock).out
    assert NAME in said
    assert hashlib.sha256(patched.read_bytes()).hexdigest() in said


def test_packed_by_hand_is_the_same(patched: Path, stock: Path) -> None:
    """Else the cases below would differ for another reason than theirs."""
    pack(patched, contents(patched))
    assert run("check", patched, "--wheel", stock) == 0


def edited(files: Files) -> Files:
    return {**files, TARGET: files[TARGET] + b"\n"}


MORE, LESS = "livekit/agents/extra.py", "livekit/agents/version.py"
NOTED = [
    f"{MORE} does not belong in it.",
    f"{LESS} is missing.",
    f"The content of {TARGET} differs.",
]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(edited, NOTED[2:], id="edited"),
        pytest.param(lambda files: {MORE: b"", **files}, NOTED[:1], id="one more"),
        pytest.param(
            lambda files: {path: text for path, text in files.items() if path != LESS},
            NOTED[1:2],
            id="one less",
        ),
        pytest.param(
            lambda files: dict(reversed(files.items())),
            ["The files in it are the same, but the archive around them differs."],
            id="another order",
        ),
        pytest.param(
            lambda files: {
                path: text for path, text in {MORE: b"", **edited(files)}.items() if path != LESS
            },
            NOTED,
            id="everything",
        ),
    ],
)
def test_names_what_differs(
    change: Callable[[Files], Files], said: list[str], patched: Path, stock: Path
) -> None:
    pack(patched, change(contents(patched)))
    assert says(1, "check", patched, "--wheel", stock).out.splitlines() == said


def test_bytes_before_the_archive(patched: Path, stock: Path) -> None:
    patched.write_bytes(b"#!/bin/sh\n" + patched.read_bytes())
    assert run("check", patched, "--wheel", stock) == 1


def test_a_file_twice(patched: Path, stock: Path) -> None:
    with zipfile.ZipFile(patched, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(TARGET, b"")
    assert f"{TARGET} is in it 2 times." in says(1, "check", patched, "--wheel", stock).out


def test_another_name(patched: Path, stock: Path) -> None:
    other = patched.rename(patched.with_name(NAME.replace("1.8.4", "1.8.5")))
    assert f"should be called {NAME}" in says(1, "check", other, "--wheel", stock).out


def test_of_another_release(patched: Path, tmp_path: Path) -> None:
    other = write_wheel(tmp_path / "other.whl", release("1.8.3"))
    said = says(3, "check", patched, "--wheel", other).err
    assert "made from livekit-agents 1.8.4, but the stock wheel is 1.8.3" in said


def test_two_patched_wheels(patched: Path) -> None:
    said = says(3, "check", patched, "--wheel", patched).err
    assert "is a patched wheel, or somebody's own build" in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param("stock", "is a stock wheel, but a patched one is needed", id="stock"),
        pytest.param("missing", "could not be read: No such file", id="missing"),
        pytest.param("folder", "could not be read: Is a directory", id="folder"),
        pytest.param("damaged", "is not a zip file, or is damaged", id="damaged"),
        pytest.param("cut short", "is not a zip file, or is damaged", id="cut short"),
    ],
)
def test_cannot_be_checked(given: str, said: str, patched: Path, stock: Path) -> None:
    whole = patched.read_bytes()
    if given == "stock":
        shutil.copy(stock, patched)
    elif given == "damaged":
        patched.write_bytes(whole.replace(b"Do as you like.", b"Do as you hate."))
    elif given == "cut short":
        patched.write_bytes(whole[: len(whole) // 2])
    else:
        patched.unlink()
        if given == "folder":
            patched.mkdir()
    assert said in says(3, "check", patched, "--wheel", stock).err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 1.5}, "does not say what was patched"),
        ({"patch": PATCH_NUMBER + 1}, "check it with the ctxlock that made it"),
        ({"upstream": "newest"}, "does not say what was patched"),
    ],
)
def test_its_own_record_is_wrong(
    changes: dict[str, object], said: str, patched: Path, stock: Path
) -> None:
    files = contents(patched)
    record = json.dumps(json.loads(files[RECORDED]) | changes)
    pack(patched, {**files, RECORDED: record.encode()})
    assert said in says(3, "check", patched, "--wheel", stock).err


def test_wrong_usage() -> None:
    assert run("check") == 2


@pytest.mark.network
def test_fetches_the_stock_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("build", "--upstream", "1.8.8", "-o", tmp_path) == 0
    (wheel,) = tmp_path.iterdir()
    assert run("check", wheel) == 0
    pack(wheel, edited(contents(wheel)))
    capsys.readouterr()
    assert says(1, "check", wheel).out == f"The content of {TARGET} differs.\n"


@pytest.mark.network
def test_a_release_that_is_not_to_be_had(tmp_path: Path) -> None:
    files = release("1.8.999")
    upstream = read_wheel(write_wheel(tmp_path / "a.whl", files))
    assert upstream.version == Version("1.8.999")
    said = says(3, "check", build_overlay(upstream, tmp_path).path).err
    assert "livekit-agents===1.8.999 could not be installed" in said
