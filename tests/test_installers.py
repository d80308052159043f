"""What people do with installers, the page about it, and the judge of both.

The index is on the loopback device. What it does not have, it sends to the ordinary one.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from frontends import Frontends
from installer_bench import Bench, Case, check
from installer_cases import CASES, ON_THE_DAY
from installer_page import PAGE, WRITE, render
from package_index import make_index, served
from packages import FULL, PATCHED

from ctxlock.verified import NEWEST


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The bench; each worker of pytest-xdist makes its own."""
    if shutil.which("uv") is None:
        pytest.skip("uv is not installed")
    folder = tmp_path_factory.mktemp("installers")
    bench = Bench(folder, Frontends(tmp_path_factory.mktemp("frontends")))
    bench.prepare()
    with bench.served():
        yield bench
    shutil.rmtree(folder)  # a gigabyte


def runs() -> Iterator[Any]:
    for case in CASES:
        for version in case.versions:
            quick = case.quick and version == case.versions[-1]
            marks = [pytest.mark.network, *([] if quick else [pytest.mark.installers])]
            yield pytest.param(
                case, version, id=f"{case.tool}-{version}: {case.title}", marks=marks
            )


@pytest.mark.parametrize(("case", "version"), [*runs()])
def test_case(bench: Bench, case: Case, version: str) -> None:
    with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
        bench.run(case, version, Path(folder))


@pytest.mark.network
@pytest.mark.installers
def test_the_page_names_the_versions_that_were_run(bench: Bench) -> None:
    """Others, with which all cases pass, belong into `ON_THE_DAY`."""
    commands: dict[str, list[str | Path]] = {
        **{"pip": [bench.frontends.python, "-m", "pip"], "uv": ["uv"]},
        **{"Poetry": [bench.tool("poetry")], "PDM": [bench.tool("pdm")]},
    }
    ran = {"livekit-agents": NEWEST, "Python": platform.python_version()}
    for name, command in commands.items():
        said = bench.frontends.run(*command, "--version").stdout
        ran[name] = re.findall(r"\d+(?:\.\d+)+", said)[0]
    assert ran == ON_THE_DAY


def test_the_page_says_what_the_cases_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == render(), f"write {PAGE.name} anew: {WRITE}"
    assert all(case.title in page for case in CASES)
    assert "//127" not in page and "/tmp" not in page


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose environment is the one that runs this, which is patched."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    script = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'
    (tmp_path / ".venv/bin/python").write_text(script)
    (tmp_path / ".venv/bin/python").chmod(0o755)
    return tmp_path


do = partial(Case, "pip", "it")


@pytest.mark.parametrize(
    "case",
    [
        do("true"),
        do("[ $(cat a) = here ]", files={"a": "STOCK"}),
        do("true\necho '│ no │'; echo such; false", fails="no such"),
        do("echo STOCK; false", fails="here"),
    ],
)
def test_the_judge_accepts_what_is_right(folder: Path, case: Case) -> None:
    check(case, folder, os.environ, {"STOCK": "here"})


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (do("true", NEWEST), rf"{NEWEST}\+\S+ instead of {NEWEST}:"),
        (do("true", FULL), r"lock instead of \S+full:"),
        (do("echo no; false"), r"exit code 1:\n\$ echo no; false\nno"),
        (do("false\ntrue"), "exit code 1:"),
        (do("rm .venv/bin/python"), "ctxlock: "),
        (do("true", fails="no"), "exit code 0:"),
        (do("echo no\nfalse", fails="yes"), "not 'yes':"),
        (do("echo no; false\ntrue", fails="no"), "exit code 1:"),
        (do("echo no; false\nfalse", fails="no"), "exit code 1:"),
    ],
)
def test_the_judge_notices_what_is_wrong(folder: Path, case: Case, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check(case, folder, os.environ, {})


@pytest.mark.parametrize(("version", "bare"), [(PATCHED, 1), (NEWEST, 0)])
def test_the_judge_does_not_believe_a_version(
    folder: Path, monkeypatch: pytest.MonkeyPatch, version: str, bare: int
) -> None:
    monkeypatch.setattr("installer_bench._installed", lambda _: (version, bare))
    with pytest.raises(AssertionError, match=f"with {bare} bare:"):
        check(do("true", version), folder, os.environ, {})


def test_the_index_sends_on(tmp_path: Path) -> None:
    wheel = tmp_path / "a_b-1+x.1-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    indexes = tmp_path / "indexes"
    for name in ("ours", "alone", "theirs"):
        make_index(indexes / name, [wheel])
    (indexes / "theirs/a-b").rename(indexes / "theirs/other")

    def get(url: str) -> bytes:
        with urllib.request.urlopen(url) as answer:
            content: bytes = answer.read()
        return content

    with served(indexes, {}) as far, served(indexes, {"ours": f"{far}/theirs/"}) as near:
        assert b'href="a_b-1%2Bx.1-py3-none-any.whl"' in get(f"{near}/ours/a-b/")
        assert get(f"{near}/ours/a-b/a_b-1%2Bx.1-py3-none-any.whl") == b"wheel"
        assert get(f"{near}/ours/other/") == get(f"{far}/theirs/other/")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(f"{near}/alone/other/")
