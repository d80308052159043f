from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from cli import run, says
from packages import FULL, PATCHED
from rich.console import Console

from ctxlock.cli import app as command
from ctxlock.cli.console import out
from ctxlock.errors import CtxlockError
from ctxlock.reports.comparison import Comparison, RaceOutcome, Races
from ctxlock.target import ADDED, TARGET
from ctxlock.verified import NEWEST

OVERLAY = f"livekit_agents-{PATCHED}-py3-none-any.whl"
STOCK = f"livekit_agents-{NEWEST}-py3-none-any.whl"

RECORD = {
    "format": 1,
    "upstream": NEWEST,
    "patch": 1,
    "scope": "lock",
    "added": {},
    "target": TARGET,
    "sha256": {"before": "0", "after": "1"},
}
"""What a patched wheel says of itself, as far as it is read."""


def races(column: str, version: str, verdict: str, detail: str = "") -> Races:
    outcomes = {"a race": RaceOutcome(verdict, detail), "another": RaceOutcome("kept", "")}
    return Races(column, version, outcomes)


def comparison(stock: str, patched: str) -> Comparison:
    return Comparison(
        (
            races("stock", NEWEST, stock, "what\nhow"),
            races("patched", PATCHED, patched),
        )
    )


@pytest.fixture
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs the test in a folder that has to be empty at its end."""
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []


COMMANDS = ("audit", "diff", "build", "check", "verify", "explore", "serve")


def unboxed(text: str) -> str:
    """What stands in a box, on one line."""
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command(name: str) -> None:
    assert "Exit codes:" in says(0, name, "--help").out


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["audit", "check", "verify", "explore"])
def test_help_fills_its_lines(name: str, width: int) -> None:
    """A line of a paragraph ends where the next word would no longer fit."""
    command = [sys.executable, "-m", "ctxlock", name, "--help"]
    wide = {**os.environ, "COLUMNS": str(width)}
    done = subprocess.run(command, env=wide, capture_output=True, text=True, check=True)
    prose = done.stdout.partition("╭")[0].splitlines()
    broken = [(line, after) for line, after in pairwise(prose) if line.strip() and after.strip()]
    assert broken
    for line, after in broken:
        assert len(line.rstrip()) + 1 + len(after.split()[0]) >= width - 1, line


def test_help() -> None:
    printed = says(0, "--help").out
    assert all(name in printed for name in (*COMMANDS, "Exit codes:"))


@pytest.mark.parametrize("name", ["build", "verify"])
def test_release_and_wheel_exclude_each_other(name: str) -> None:
    assert run(name, "--upstream", NEWEST, "--wheel", "x.whl") == 2


def test_an_own_environment_excludes_a_release() -> None:
    assert run("verify", "--upstream", NEWEST, "--python", "python") == 2


@pytest.mark.parametrize(("name", "option"), [("verify", "--upstream"), ("explore", "--jobs")])
def test_a_value_is_given_once(name: str, option: str) -> None:
    assert "it is given twice; give it once" in unboxed(
        says(2, name, "--quiet", "--quiet", option, "1", option, "2").err
    )


def test_audit_needs_no_libcst() -> None:
    code = "import sys; sys.modules['libcst'] = None; import ctxlock.__main__"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["diff", "build", "verify"])
@pytest.mark.parametrize(
    ("release", "said"),
    [
        pytest.param("newest", "is no release number; give one such as", id="no version"),
        pytest.param("0.12.21", "is too old", id="0.x"),
        pytest.param(PATCHED, f"is no stock release; give {NEWEST}", id="a patched one"),
    ],
)
def test_no_such_release(name: str, release: str, said: str) -> None:
    assert said in unboxed(says(2, name, "--upstream", release).err)


@pytest.mark.parametrize(
    ("wheel", "said"),
    [
        pytest.param(STOCK, "is a stock wheel, but a patched one is needed", id="stock"),
        pytest.param(OVERLAY, "could not be read: No such file", id="missing"),
        pytest.param("damaged.whl", "is not a zip file, or is damaged", id="damaged"),
    ],
)
def test_verify_refuses_wheel(wheel: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "damaged.whl").write_bytes(b"PK")
    with zipfile.ZipFile(tmp_path / STOCK, "w") as archive:
        archive.writestr(f"livekit_agents-{NEWEST}.dist-info/METADATA", "")
    assert said in says(3, "verify", "--wheel", tmp_path / wheel).err


@pytest.mark.parametrize(
    ("stock", "patched", "code", "said"),
    [
        pytest.param("lost", "kept", 0, "in 1 of 2 races; the patched release kept every", id="ok"),
        pytest.param("crashed", "kept", 0, "in 1 of 2 races; the patched", id="crash"),
        pytest.param("lost", "lost", 1, "did not keep every item either", id="patched lost"),
        pytest.param("lost", "stuck", 1, "did not keep every item either", id="patched stuck"),
        pytest.param("kept", "kept", 3, "the races prove nothing", id="nothing shown"),
    ],
)
def test_verify_reports(
    stock: str, patched: str, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = comparison(stock, patched)
    monkeypatch.setattr("ctxlock.environments.temporary.compare", lambda *_: result)
    wheel = tmp_path / OVERLAY
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("x.dist-info/ctxlock.json", json.dumps(RECORD))
    printed = " ".join(says(code, "verify", "--wheel", wheel).out.split())
    assert said in printed
    assert (f"{NEWEST}, a race: what" in printed) == (stock != "kept")
    assert "how" not in printed.split()
    report = json.loads(says(code, "verify", "--wheel", wheel, "--json").out)
    assert report["format"] == 2
    assert report["kept"] == (patched == "kept")
    assert [r["livekit_agents"] for r in report["runs"]] == [NEWEST, PATCHED]
    assert report["runs"][0]["results"][0] == {
        "scenario": "a race",
        "description": "",
        "outcome": stock,
        "detail": "what\nhow",
        "events": [],
        "waits": [],
    }


def test_verify_leaves_out_what_does_not_apply(capsys: pytest.CaptureFixture[str]) -> None:
    (table,) = comparison("not applicable", "not applicable").tables()
    out.print(table)
    printed = capsys.readouterr().out
    assert "another" in printed and "a race" not in printed


def test_verify_fits_a_terminal() -> None:
    from ctxlock.races.scenarios import SCENARIOS

    outcomes = {scenario.name: RaceOutcome("crashed", "") for scenario in SCENARIOS}
    versions = ("1.8.10", "1.8.10+ctxlock.3.lock")
    columns = [
        Races(column, version, outcomes, provider)
        for provider in ("scripted provider", "livekit-plugins-openai 1.8.10")
        for column, version in zip(("yours", "patched"), versions, strict=True)
    ]
    text = io.StringIO()
    for table in Comparison(tuple(columns)).tables():
        Console(width=80, file=text).print(table)
    rows = [line for line in text.getvalue().splitlines() if "crashed" in line]
    shown = [row.partition("  ")[0].strip() for row in rows]
    assert shown == [*outcomes, *outcomes]


def test_verify_shows_details() -> None:
    assert list(comparison("lost", "kept").explanations(details=True)) == [
        f"{NEWEST}, a race: what\nhow"
    ]


def test_verify_tells_what_waited_for_what() -> None:
    waits = [
        {"kind": "waits", "by": "text turn", "on": "tool output"},
        {"kind": "locked", "by": "text turn"},
    ]
    outcomes = {"a race": RaceOutcome("kept", "", "", waits), "another": RaceOutcome("kept", "")}
    judged = Comparison((Races("patched", FULL, outcomes),))
    total = f"{FULL}: updates waited for one another in 1 of 2 races."
    assert list(judged.waits(details=False)) == [total]
    assert list(judged.waits(details=True)) == [
        f"{FULL}, a race: text turn waited for tool output.",
        total,
    ]
    (run,) = json.loads(judged.as_json())["runs"]
    assert run["results"][0]["waits"] == [{"site": "text turn", "waited_for": "tool output"}]


def test_version() -> None:
    assert says(0, "--version").out.startswith("ctxlock ")


@pytest.mark.skipif(sys.platform == "win32", reason="has no such signal")
def test_termination_clears_away(tmp_path: Path) -> None:
    """As a job that is cancelled: while the stock release is being fetched, nothing is left."""
    ready, uv = tmp_path / "ready", tmp_path / "uv"
    uv.write_text(f"#!/bin/sh\necho > '{ready}'\nexec cat '{tmp_path / 'never'}'\n")
    uv.chmod(0o755)
    os.mkfifo(tmp_path / "never")
    os.mkfifo(ready)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "UV": str(uv), "TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "ctxlock", "diff"]
    with subprocess.Popen(command, env=environment, start_new_session=True) as process:
        ready.read_bytes()  # until the shell has opened it
        assert list(scratch.iterdir()) != []
        os.killpg(process.pid, signal.SIGTERM)
    assert process.returncode == 128 + signal.SIGTERM
    assert list(scratch.iterdir()) == []


def test_an_error_keeps_its_brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise CtxlockError("no livekit-agents[openai] here")

    monkeypatch.setattr(command, "app", fail)
    assert says(3).err == "ctxlock: no livekit-agents[openai] here\n"


@pytest.fixture(scope="module")
def stock_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stock wheel of the newest release, made again from its installed files."""
    from ctxlock.environments.installer import Installer
    from ctxlock.wheels.upstream import read_installed
    from ctxlock.wheels.wheel import write_wheel

    folder = tmp_path_factory.mktemp("stock")
    Installer().fetch(NEWEST, folder / "tree")
    upstream = read_installed([str(folder / "tree")])
    return write_wheel(folder, STOCK, upstream.dist_info, upstream.files)


@pytest.mark.network
def test_build_from_a_wheel_and_verify_it(stock_wheel: Path, tmp_path: Path) -> None:
    assert run("audit", "--wheel", stock_wheel) == 1
    overlay = tmp_path / "new" / "dist" / OVERLAY
    said = says(0, "build", "--wheel", stock_wheel, "-o", overlay.parent).out
    assert said.rstrip().endswith(f"livekit-agents @ {overlay.as_uri()}")
    assert run("audit", "--wheel", overlay) == 0
    assert run("check", overlay, "--wheel", stock_wheel) == 0
    said = says(3, "build", "--wheel", overlay, "-o", tmp_path).err
    assert f"give the stock wheel of livekit-agents {NEWEST}" in said
    said = " ".join(says(0, "verify", "--wheel", overlay).out.split())
    assert "the patched release kept every" in said


@pytest.mark.network
@pytest.mark.parametrize("name", ["diff", "build", "verify", "explore"])
def test_the_pre_release_has_no_full_scope(name: str, nothing_left: None) -> None:
    captured = says(3, name, "--upstream", "2.0.0b1", "--scope", "full", "--quiet")
    assert captured.out == ""
    assert captured.err.startswith(f"ctxlock: {TARGET}:")
    assert captured.err.endswith(
        "; build with the scope lock: leave out `-C scope=full`, `CTXLOCK_SCOPE=full` or `--scope "
        "full`.\n"
    )


@pytest.mark.network
def test_build_is_the_same_from_the_index(stock_wheel: Path, tmp_path: Path) -> None:
    assert run("build", "--upstream", NEWEST, "-o", tmp_path / "a") == 0
    assert run("build", "--wheel", stock_wheel, "-o", tmp_path / "b") == 0
    assert (tmp_path / "a" / OVERLAY).read_bytes() == (tmp_path / "b" / OVERLAY).read_bytes()


@pytest.mark.network
def test_build_into_what_is_no_folder(stock_wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    said = says(3, "build", "--wheel", stock_wheel, "-o", tmp_path / "file").err
    assert "name a folder that you may write to" in said
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.network
@pytest.mark.parametrize("given", [[], ["--scope", "full"]], ids=["default", "full"])
def test_diff_applies(
    given: list[str],
    stock_wheel: Path,
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert run("diff", "--upstream", NEWEST, *given) == 0
    printed = capsysbinary.readouterr().out
    with zipfile.ZipFile(stock_wheel) as archive:
        archive.extract(TARGET, tmp_path)
    subprocess.run(["git", "apply", "-"], input=printed, cwd=tmp_path, check=True)
    assert (tmp_path / ADDED).exists() == (given != [])
    assert run("audit", tmp_path / TARGET) == 0


@pytest.mark.network
@pytest.mark.parametrize("name", ["diff", "build", "verify"])
def test_unknown_release(name: str, nothing_left: None) -> None:
    said = says(3, name, "--upstream", "1.8.999")
    assert "livekit-agents===1.8.999 could not be installed; check the release number" in said.err
    assert said.out == ""


@pytest.mark.parametrize("name", ["diff", "build", "verify"])
def test_no_network(name: str, nothing_left: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in ("UV_DEFAULT_INDEX", "PIP_INDEX_URL"):
        monkeypatch.setenv(tool, "http://127.0.0.1:1/")  # nobody listens on port 1
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_NO_CACHE", "1")
    assert "The package index could not be reached" in says(3, name, "--upstream", "1.8.8").err
