from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from activity import NAME, PUSH, REPLACING, guarded, locked, module
from cli import run, says
from lock_pairs import UPSTREAMS
from methods import CHECK, HOLD, SEND, block, given

from ctxlock.patching.patch import patch_source
from ctxlock.target import NOTICE, TARGET
from lab.interpreters import find_python

GUARDED = guarded(UPSTREAMS)
BARE = module(PUSH)
OWN_LOCK = GUARDED.replace(NOTICE, "#")
"""Guarded, and not by this project."""
WHEEL = "livekit_agents-1-py3-none-any.whl"

posix = pytest.mark.skipif(os.name == "nt", reason="needs a shell script")


@pytest.fixture
def lone(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a file."""

    def write(text: str) -> Path:
        file = tmp_path / "agent_activity.py"
        file.write_text(text)
        return file

    return write


Lone = Callable[[str], Path]


def wheel(folder: Path, name: str, text: str | None) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("livekit/agents/__init__.py", "")
        if text is not None:
            archive.writestr(TARGET, text)
    return path


@pytest.mark.parametrize(("text", "code"), [(GUARDED, 0), (BARE, 1)], ids=["guarded", "bare"])
def test_path(text: str, code: int, lone: Lone) -> None:
    file = lone(text)
    printed = says(code, "audit", file).out
    assert str(file) in printed.replace("\n", "")
    assert ("1 bare" in printed) == (code == 1)


def test_folder(tmp_path: Path) -> None:
    file = tmp_path / TARGET
    file.parent.mkdir(parents=True)
    file.write_text(OWN_LOCK)
    assert run("audit", tmp_path) == 0


@pytest.mark.parametrize(("text", "code"), [(OWN_LOCK, 0), (BARE, 1)], ids=["guarded", "bare"])
def test_wheel(text: str, code: int, tmp_path: Path) -> None:
    assert run("audit", "--wheel", wheel(tmp_path, WHEEL, text)) == code


def test_json_is_sorted_and_versioned(lone: Lone) -> None:
    file = lone(BARE)
    printed = says(1, "audit", "--json", file).out
    report = json.loads(printed)
    assert printed == json.dumps(report, indent=2, sort_keys=True) + "\n"
    line = BARE.splitlines().index("        await self._rt_session.update_chat_ctx(ctx)") + 1
    assert report == {
        "format": 1,
        "livekit_agents": None,
        "file": str(file),
        "bare": 1,
        "scope": None,
        "parts": [],
        "compared": False,
        "differences": [],
        "not_understood": None,
        "sites": [
            {
                "role": "other",
                "function": "sync",
                "lines": [line, line],
                "state": "bare",
                "rechecked": None,
            }
        ],
    }


def test_says_that_a_waiter_does_not_look_again(lone: Lone) -> None:
    printed = says(1, "audit", lone(locked(given(block(CHECK, block(HOLD, SEND)))))).out
    assert "1 unchecked" in printed
    assert "Every site" not in printed


def test_installed_overlay() -> None:
    assert run("audit", "--python", sys.executable) == 0
    assert run("audit") == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["some.txt"], "some.txt is no Python file", id="no Python file"),
        pytest.param(["x.whl"], "name it with --wheel", id="a wheel as PATH"),
        pytest.param(["none.py"], "none.py is not there; name", id="no such file"),
        pytest.param(["."], "agent_activity.py is not there; name", id="a folder without it"),
        pytest.param(["--wheel", "x.zip"], "file name of a wheel", id="not named as a wheel"),
        pytest.param(["--wheel", WHEEL], "could not be read", id="no such wheel"),
        pytest.param(["--python", "no-python"], "could not be started", id="no interpreter"),
    ],
)
def test_cannot_tell(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("some.txt", "x.whl"):
        (tmp_path / name).touch()
    captured = says(3, "audit", *arguments)
    assert said in captured.err
    assert captured.err.startswith("ctxlock: ")
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_cannot_tell_names_file_and_line(lone: Lone) -> None:
    file = lone("x = 1\nclass Other: pass\n")
    assert f"ctxlock: {file}:1: There is no class AgentActivity" in says(3, "audit", file).err


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        pytest.param("livekit_agents-0.12.1-py3-none-any.whl", None, "1.0.0 or later", id="0.x"),
        pytest.param("other-1-py3-none-any.whl", GUARDED, "is a wheel of other", id="another's"),
    ],
)
def test_wrong_wheel(name: str, text: str | None, said: str, tmp_path: Path) -> None:
    assert said in says(3, "audit", "--wheel", wheel(tmp_path, name, text)).err


def test_damaged_wheel(tmp_path: Path) -> None:
    path = tmp_path / "livekit_agents-1.8.9-py3-none-any.whl"
    path.write_bytes(b"PK not really")
    assert "it is not a zip file" in says(3, "audit", "--wheel", path).err
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(TARGET, BARE)
    content = bytearray(path.read_bytes())
    content[100:120] = bytes(20)
    path.write_bytes(content)
    assert "or is damaged" in says(3, "audit", "--wheel", path).err


def install(folder: Path, version: str) -> None:
    """Puts a livekit-agents without the file that counts into `folder`."""
    package = folder / "livekit/agents"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    info = folder / f"livekit_agents-{version}.dist-info"
    info.mkdir()
    headers = ["Metadata-Version: 2.1", "Name: livekit-agents", f"Version: {version}"]
    (info / "METADATA").write_text("\n".join(headers) + "\n")


def script(path: Path, command: str) -> Path:
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)
    return path


@posix
@pytest.mark.parametrize(
    ("version", "said"),
    [
        pytest.param("0.12.1", "livekit-agents 0.12.1, which is too old", id="too old"),
        pytest.param(None, "has no livekit-agents; name the interpreter", id="absent"),
    ],
)
def test_wrong_environment(
    version: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # -S keeps this environment's packages out, PYTHONPATH brings the others in
    python = script(tmp_path / "python", f'exec "{sys.executable}" -S "$@"')
    if version is not None:
        install(tmp_path / "packages", version)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    assert said in says(3, "audit", "--python", python).err


@posix
def test_not_an_interpreter(tmp_path: Path) -> None:
    said = says(3, "audit", "--python", script(tmp_path / "python", "echo hello")).err
    assert "is not a working Python interpreter" in said


@posix
def test_a_virtual_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bin").mkdir()
    python = script(tmp_path / "bin" / "python", f'exec "{sys.executable}" "$@"')
    assert run("audit", tmp_path) == 3
    remedy = f"name its interpreter: --python {python}."
    assert f"is a virtual environment; {remedy}" in capsys.readouterr().err
    assert run("audit", "--python", tmp_path) == 0


@pytest.mark.parametrize("minor", ["2.7", "3.6", "3.7"])
def test_an_old_python(minor: str) -> None:
    python = find_python(minor)
    if python is None:
        pytest.skip(f"Python {minor} is not installed")
    assert f"is Python {minor}." in says(3, "audit", "--python", python).err


@pytest.mark.parametrize(
    "arguments",
    [
        ["a.py", "--python", "b"],
        ["--bogus"],
        ["a.py", "b.py"],
        [""],
        ["--python", ""],
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert "Usage:" in says(2, "audit", *arguments).err


def test_scope_lock(lone: Lone) -> None:
    file = lone(GUARDED)
    assert "Scope lock: the lock alone." in says(0, "audit", file).out
    report = json.loads(says(0, "audit", "--json", file).out)
    assert (report["scope"], report["parts"]) == ("lock", [])


def test_scope_full_and_its_parts(lone: Lone) -> None:
    file = lone(patch_source(module(REPLACING).encode(), NAME, "full").source.decode())
    assert "Scope full: replacements." in says(0, "audit", file).out
    report = json.loads(says(0, "audit", "--json", file).out)
    assert (report["scope"], report["parts"]) == ("full", ["replacements"])
