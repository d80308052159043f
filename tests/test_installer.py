from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ctxlock.environments import installer
from ctxlock.environments.installer import Installer
from ctxlock.errors import CtxlockError


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would have been run, in place of running it."""
    ran: list[list[str]] = []

    def record(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("subprocess.run", record)
    return ran


def with_uv(monkeypatch: pytest.MonkeyPatch, uv: str | None) -> Installer:
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: uv)
    monkeypatch.setattr(installer, "find_spec", lambda _: object())
    return Installer()


def test_uv_is_preferred(monkeypatch: pytest.MonkeyPatch, commands: list[list[str]]) -> None:
    uv = with_uv(monkeypatch, "/bin/uv")
    assert uv.name == "uv"
    uv.fetch("1.8.9", Path("there"))
    uv.replace("python", Path("x.whl"))
    assert commands[0][:2] == ["/bin/uv", "--project"]
    assert commands[0][3:5] == ["pip", "install"]
    assert commands[0][-4:] == ["--no-deps", "--target", "there", "livekit-agents===1.8.9"]
    assert commands[1][-4:] == ["python", "--no-deps", "--reinstall", "x.whl"]


def test_pip_without_uv(monkeypatch: pytest.MonkeyPatch, commands: list[list[str]]) -> None:
    pip = with_uv(monkeypatch, None)
    assert pip.name == "pip"
    python = pip.make_environment(Path("there"))
    pip.install(python, "livekit-agents==1.8.9")
    pip.replace(python, Path("x.whl"))
    assert commands[0][1:] == ["-m", "venv", "there"]
    assert commands[1][:4] == [python, "-m", "pip", "install"]
    assert commands[2][-3:] == ["--no-deps", "--force-reinstall", "x.whl"]


@pytest.mark.network
def test_a_project_has_no_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its constraints are not taken over; what its user names is still found from its folder."""
    text = '[project]\nname = "x"\nversion = "1"\n'
    text += '[tool.uv]\nconstraint-dependencies = ["livekit-agents<1.8.8"]\n'
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    Installer().fetch("1.8.8", Path("there"))
    assert (tmp_path / "there" / "livekit" / "agents").is_dir()


def test_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(installer, "find_spec", lambda _: None)
    with pytest.raises(CtxlockError, match="Neither uv nor pip was found; install uv"):
        Installer()


def test_uv_that_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    uv = with_uv(monkeypatch, str(tmp_path / "uv"))
    with pytest.raises(CtxlockError, match="could not be started"):
        uv.fetch("1.8.9", tmp_path)


@pytest.mark.parametrize(
    ("tool", "stderr", "said"),
    [
        pytest.param("/bin/uv", "error: dns error", "index could not be reached", id="uv, offline"),
        pytest.param(
            "/bin/uv",
            "error: there is no\n  version 9",
            "check the release number .* uv said: error: there is no version 9$",
            id="uv, unknown",
        ),
        pytest.param(
            None,
            "from versions: none\nERROR: No",
            "index could not be reached",
            id="pip, offline",
        ),
        pytest.param(
            None,
            "WARNING: much else\nERROR: No matching",
            "check the release number .* pip said: ERROR: No matching$",
            id="pip, unknown",
        ),
        pytest.param("/bin/uv", "", "uv said: nothing$", id="silent"),
    ],
)
def test_failure(
    tool: str | None, stderr: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", stderr)

    broken = with_uv(monkeypatch, tool)
    monkeypatch.setattr("subprocess.run", fail)
    with pytest.raises(CtxlockError, match=said):
        broken.fetch("1.8.9", tmp_path)
