"""What the commands of the lab refuse, before anything is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import lab.__main__
import lab.foreign.__main__
import lab.sequences.__main__
from lab.environments import CannotRun, prepare
from lab.options import among
from lab.steps import STEPS

LAB, FOREIGN, SEQUENCES = lab.__main__, lab.foreign.__main__, lab.sequences.__main__


@pytest.mark.parametrize(
    ("command", "given"),
    [
        (LAB, "--step nope"),
        (LAB, "--provider nope"),
        (LAB, "--scope nope"),
        (LAB, "--delay -1"),
        (LAB, "--jobs 0"),
        (FOREIGN, "--variant nope"),
        (FOREIGN, "--scope nope"),
        (SEQUENCES, "--seed -1"),
        (SEQUENCES, "--seeds 0"),
        (SEQUENCES, "--seeds -1"),
        (SEQUENCES, "--length -1"),
        (SEQUENCES, "--scope nope"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_installed(
    monkeypatch: pytest.MonkeyPatch, command: Any, given: str
) -> None:
    monkeypatch.setattr(command, "prepare", lambda *_, **__: pytest.fail("it installs"))
    done = CliRunner().invoke(command.app, given.split())
    assert done.exit_code == 2
    assert given.split()[0].strip("-") in done.stderr


def test_a_wrong_name_lists_the_right_ones() -> None:
    with pytest.raises(typer.BadParameter) as refused:
        among(["typed turns", "nope"], STEPS, "--step")
    assert refused.value.message == f"there is no 'nope'; there are: {', '.join(STEPS)}"
    assert among(["start"], STEPS, "--step") == ["start"]
    assert among(None, STEPS, "--step") == [*STEPS]


def test_a_release_that_cannot_be_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, int("install" in command), "", "no such thing")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda _: "uv")
    said: list[str] = []
    with pytest.raises(CannotRun) as refused:
        prepare("0.1", [], [], tmp_path, python="python", say=said.append)
    assert said == ["installing livekit-agents==0.1"]
    assert str(refused.value).startswith("livekit-agents 0.1 cannot be installed with all")
    assert str(refused.value).endswith("`uv pip install` failed: no such thing")
