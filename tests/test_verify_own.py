"""``ctxlock verify --python``: the races in an environment that stays as it is."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from cli import run, says
from packages import PATCHED, install, release

from ctxlock.environments import existing as own
from ctxlock.environments.interpreter import inspect
from ctxlock.environments.temporary import Unavailable
from ctxlock.reports.comparison import SCRIPTED, RaceOutcome, Races
from ctxlock.verified import NEWEST

posix = pytest.mark.skipif(sys.platform == "win32", reason="runs shell scripts")


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def answer(version: str | None, python: tuple[int, int] = (3, 11)) -> str:
    found = {"version": version, "root": "/x", "folder": "/x/livekit/agents", "python": python}
    return f"echo '{json.dumps(found)}'"


@posix
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("echo hello", "is not a working Python interpreter; name", id="no Python"),
        pytest.param("exit 1", "is not a working Python interpreter; name", id="broken"),
        pytest.param(
            f'exec "{sys.executable}" -I -S "$@"', "has no livekit-agents; name", id="no agents"
        ),
        pytest.param(answer("0.12.21"), "0.12.21, which is too old; 1.0.0 and", id="old release"),
        pytest.param(answer("1.1.7", (3, 9)), "is Python 3.9, and the races need", id="old Python"),
        pytest.param(answer(None), "has no metadata that names its version", id="no metadata"),
    ],
)
def test_refuses(text: str, said: str, tmp_path: Path) -> None:
    assert said in says(3, "verify", "--python", script(tmp_path / "python", text)).err


def test_no_such_interpreter(tmp_path: Path) -> None:
    said = says(3, "verify", "--python", tmp_path / "python").err
    assert "could not be started: No such file or directory; name" in said
    said = says(3, "verify", "--python", tmp_path).err
    assert "is a folder, but not a virtual environment" in said


def test_a_virtual_environment_stands_for_its_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(sys.prefix).parent)
    found = inspect(Path(sys.prefix).name)
    assert Path(found.python).is_absolute()
    assert Path(found.python).parent == Path(sys.executable).parent


def test_broken_livekit_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path, release())))
    said = says(3, "verify", "--python", sys.executable, "--quiet").err
    assert said.startswith("ctxlock: The races could not run with ")
    assert "ImportError" in said and "check that it can import livekit.agents" in said


@pytest.mark.parametrize(
    ("outcome", "code"), [("kept", 0), ("lost", 1), ("crashed", 1), ("stuck", 3), ("error", 3)]
)
def test_exit_codes(outcome: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def races(column: str, *_: object, through_plugin: bool, **__: object) -> Races:
        if through_plugin:
            raise Unavailable("It is not installed.")
        return Races(column, NEWEST, {"a race": RaceOutcome(outcome, "what")})

    monkeypatch.setattr(own, "run_races", races)
    scopes: list[str] = []

    def patched(found: object, scratch: object, step: object, scope: str) -> Path:
        scopes.append(scope)
        return Path("patched")

    monkeypatch.setattr(own, "_patched", patched)
    printed = says(code, "verify", "--python", sys.executable, "--json", "--quiet")
    more = ("--scope", "full", "--json", "--quiet")
    report = json.loads(printed.out)
    assert (report["kept"], printed.err) == (code == 0, "")
    assert [r["column"] for r in report["runs"]] == ["yours", "patched"]
    assert report["remark"] == "No races ran through the plugin: It is not installed."
    assert run("verify", "--python", sys.executable, *more) == code
    assert scopes == ["lock", "full"]


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_patched_already_runs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in the environment of these tests; and nothing is written there."""
    monkeypatch.setenv("UV", str(tmp_path / "no installer"))
    package = inspect(sys.executable).folder
    before = files(package)
    assert run("verify", "--python", sys.executable, "--json") == 0
    assert files(package) == before
    report = json.loads(capsys.readouterr().out)
    assert "is patched already, and runs alone" in report["remark"]
    assert {r["column"] for r in report["runs"]} == {"yours"}
    assert [r["provider"].split(" ")[0] for r in report["runs"]] == [
        SCRIPTED.split(" ")[0],
        "livekit-plugins-openai",
    ]
    outcomes = [x for r in report["runs"] for x in r["results"] if x["events"]]
    assert outcomes and {x["outcome"] for x in outcomes} == {"kept"}
    # through the plugin, the same happens in the same order; but a handoff need not wait for a
    # websocket, and there two things come the other way round
    scripted, engine = (
        {x["scenario"]: [(e["kind"], e.get("by")) for e in x["events"]] for x in r["results"]}
        for r in report["runs"]
    )
    for race, events in engine.items():
        assert not events or "handoff" in race or events == scripted[race], race


@pytest.mark.network
def test_stock_and_a_patched_copy_in_front(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ctxlock.environments.installer import Installer

    folder, page = tmp_path / "stock", tmp_path / "page.html"
    Installer().fetch(NEWEST, folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("UV", str(tmp_path / "no installer"))  # from here on, no index
    before = files(folder)
    assert run("verify", "--python", sys.executable, "--json", "--html", page) == 1
    assert files(folder) == before
    report = json.loads(capsys.readouterr().out)
    versions = [(r["column"], r["livekit_agents"]) for r in report["runs"]]
    assert versions == 2 * [("yours", NEWEST)] + 2 * [("patched", PATCHED)]
    lost = [[x["outcome"] for x in r["results"]].count("lost") for r in report["runs"]]
    assert lost == [5, 4, 0, 0]
    assert page.read_text(encoding="utf-8").count("<svg") == 50
    assert [path.name for path in tmp_path.iterdir()] in (
        ["stock", page.name],
        [page.name, "stock"],
    )


@pytest.mark.parametrize("name", ["missing/page.html", "."])
def test_a_page_that_cannot_be_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is refused before the races run."""
    monkeypatch.setattr(own, "examine", lambda *_: pytest.fail("the work has begun"))
    said = says(3, "verify", "--python", sys.executable, "--html", tmp_path / name).err
    assert "; name a file" in said
    assert os.listdir(tmp_path) == []
