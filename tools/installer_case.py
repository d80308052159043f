"""What one thing that people do with an installer is, and running it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import Version

from ctxlock.release import NEWEST_VERIFIED, overlay_version
from ctxlock.verified import LAST_WITHOUT_LOCK

__all__ = [
    "FULL",
    "NEWEST",
    "OLDER",
    "OLDER_PATCHED",
    "PATCHED",
    "PLUGINS",
    "Case",
    "Outcome",
    "run_case",
]

NEWEST, PATCHED = str(NEWEST_VERIFIED), str(overlay_version(NEWEST_VERIFIED))
FULL = str(overlay_version(NEWEST_VERIFIED, "full"))
OLDER, OLDER_PATCHED = LAST_WITHOUT_LOCK, str(overlay_version(Version(LAST_WITHOUT_LOCK)))
PLUGINS = "openai,deepgram"


@dataclass(frozen=True)
class Case:
    """Something that somebody does.

    Attributes:
        tool: `pip`, `uv`, `poetry` or `pdm`.
        what: What is wanted.
        commands: What is typed, a command a line.
        gives: The version that is installed in the end; or, if the last command fails, a part of
            what it says.
        fails: Whether the last command fails.
        versions: The versions of the tool.
        files: Files in the folder, by name.
        begin: What is installed at first: "nothing", "needs" (all that livekit-agents needs) or a
            stock release.
        note: What to know, or to do instead.
        quick: Whether CI runs it.
    """

    tool: str
    what: str
    commands: str
    gives: str
    fails: bool = False
    versions: tuple[str, ...] = ("newest",)
    files: Mapping[str, str] = field(default_factory=dict)
    begin: str = "needs"
    note: str = ""
    quick: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a case.

    Attributes:
        result: As it is printed: a version, patched or stock, or a failure.
        expected: Whether it is what the case says.
        said: What the commands printed.
    """

    result: str
    expected: bool
    said: str


def run_case(
    case: Case, folder: Path, environment: Mapping[str, str], places: Mapping[str, str]
) -> Outcome:
    """Types the commands of `case` in `folder`, and looks at the environment that they leave.

    Args:
        case: What is done.
        folder: Where; it holds a `.venv`.
        environment: The environment's variables.
        places: What stands for an index's name in commands and files.
    """
    for name, text in case.files.items():
        (folder / name).write_text(_at(text, places), encoding="utf-8")
    said = ""
    lines = case.commands.splitlines()
    for line in lines:
        done = subprocess.run(
            ["bash", "-c", _at(line, places)],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said += f"$ {line}\n{done.stdout}"
        if done.returncode != 0:
            expected = case.fails and line == lines[-1] and case.gives in _joined(done.stdout)
            return Outcome(f"fails: “{case.gives}”" if expected else "fails", expected, said)
    version, bare = _installed(folder / ".venv/bin/python")
    kind = "stock" if bare else "patched"
    # what is called patched must be patched, and what is called stock bare
    honest = ("+" in version) == (kind == "patched")
    scope = " with the scope full" if version.endswith(".full") else ""
    return Outcome(
        f"{kind} {version.partition('+')[0]}{scope}",
        honest and not case.fails and version == case.gives,
        f"{said}installed: {version}, {bare} bare\n",
    )


def _installed(python: Path) -> tuple[str, int]:
    """The version that an environment has, and how many of its sites are bare."""
    audit = [sys.executable, "-m", "ctxlock", "audit", "--json", "--python", str(python)]
    done = subprocess.run(audit, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return f"none: {done.stderr.strip()}", 0
    found = json.loads(done.stdout)
    return found["livekit_agents"], found["bare"]


def _at(text: str, places: Mapping[str, str]) -> str:
    for name, place in places.items():
        text = text.replace(name, place)
    return text


def _joined(text: str) -> str:
    """The words of a text that the tool has wrapped and framed."""
    return " ".join(word for word in text.split() if word.strip("│╰─▶"))


if os.name == "nt":
    raise SystemExit("The cases are commands of a POSIX shell.")
