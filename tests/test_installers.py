"""The table of installers: its runner, which must notice what is wrong, its index and its page."""

from __future__ import annotations

import io
import os
import shutil
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from installer_case import Case, Outcome, run_case
from installer_cases import CASES
from installer_page import Row, render, table
from package_index import make_index, served
from packages import PATCHED
from rich.console import Console

from ctxlock.verified import NEWEST


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose environment is the one that runs this, which is patched."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    script = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'
    (tmp_path / ".venv/bin/python").write_text(script)
    (tmp_path / ".venv/bin/python").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("case", "expected", "result"),
    [
        (Case("pip", "", "true", PATCHED), True, f"patched {NEWEST}"),
        (Case("pip", "", "true", NEWEST), False, f"patched {NEWEST}"),
        (Case("pip", "", "true", "nothing", fails=True), False, f"patched {NEWEST}"),
        (Case("pip", "", "false", PATCHED), False, "fails"),
        (Case("pip", "", "echo no\nfalse", "no", fails=True), False, "fails"),
        (Case("pip", "", "echo 'no such'; false", "no such", fails=True), True, "fails: “no such”"),
        (Case("pip", "", "false\ntrue", "", fails=True), False, "fails"),
        (Case("pip", "", "rm .venv/bin/python", PATCHED), False, "patched none: ctxlock"),
    ],
)
def test_run_case(folder: Path, case: Case, expected: bool, result: str) -> None:
    outcome = run_case(case, folder, os.environ, {})
    assert outcome.expected is expected
    assert outcome.result.startswith(result)


def test_names_stand_for_places(folder: Path) -> None:
    case = Case("pip", "", "cat a\nfalse", "here", fails=True, files={"a": "STOCK"})
    outcome = run_case(case, folder, os.environ, {"STOCK": "here"})
    assert "here" in outcome.said
    assert (folder / "a").read_text() == "here"


def test_the_index_sends_on(tmp_path: Path) -> None:
    wheel = tmp_path / "a_b-1+x.1-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    for name in ("ours", "theirs", "alone"):
        make_index(tmp_path / "indexes" / name, [wheel] if name != "theirs" else [])
    elsewhere = tmp_path / "indexes/theirs/other"
    elsewhere.mkdir()
    (elsewhere / "index.html").write_text("another")

    def get(url: str) -> bytes:
        with urllib.request.urlopen(url) as answer:
            content: bytes = answer.read()
        return content

    indexes = tmp_path / "indexes"
    with (
        served(indexes, {}) as far,
        served(indexes, {"ours": f"{far}/theirs/"}) as near,
    ):
        assert b'href="a_b-1%2Bx.1-py3-none-any.whl"' in get(f"{near}/ours/a-b/")
        assert get(f"{near}/ours/a-b/a_b-1%2Bx.1-py3-none-any.whl") == b"wheel"
        assert get(f"{near}/ours/other/") == b"another"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(f"{near}/alone/other/")


def test_the_page_has_no_place_of_this_machine() -> None:
    rows = [Row(case, "1.0", Outcome(f"patched {NEWEST}", True, "")) for case in CASES]
    page = render(rows)
    assert "//127" not in page and "/tmp" not in page
    assert all(case.what in page for case in CASES)


def test_a_row_that_differs_by_version() -> None:
    case = Case("pip", "it", "pip install x", PATCHED, versions=("1", "2"))
    rows = [Row(case, "1", Outcome("stock", True, "")), Row(case, "2", Outcome("kept", True, ""))]
    assert "| 1: stock |" in render(rows)
    assert "| 2: kept |" in render(rows)
    console = Console(width=80, record=True, quiet=False, file=io.StringIO())
    console.print(table(rows))
    assert "stock" in console.export_text()


def test_cases_are_distinct() -> None:
    assert len({(c.tool, c.what, c.commands, c.versions) for c in CASES}) == len(CASES)
    assert shutil.which("bash")
