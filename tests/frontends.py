"""Runs pip and uv as their users do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path

from ctxlock.buildapi import TREE
from ctxlock.release import SCOPE_VARIABLE, VARIABLE

__all__ = ["Frontends"]

CHOICES = (VARIABLE, SCOPE_VARIABLE)


class Frontends:
    """uv and the newest pip, run away from the repository."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()
        self.python = self.environment("pip")

    def run(self, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a command."""
        environment = {k: v for k, v in os.environ.items() if k not in (*CHOICES, "VIRTUAL_ENV")}
        return subprocess.run(
            list(map(str, command)),
            cwd=self._folder,
            env=environment | variables,
            capture_output=True,
            text=True,
        )

    def succeed(self, *command: str | Path, **variables: str) -> str:
        """Runs a command that must succeed; returns what it says on stderr."""
        done = self.run(*command, **variables)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def refused(self, source: Path, *more: str | Path) -> str:
        """What `uv build` says where it builds no wheel."""
        out = self.new_folder()
        done = self.run("uv", "build", "--wheel", source, "-o", out, *more)
        assert done.returncode != 0
        assert not list(out.glob("*.whl"))
        return done.stderr

    def uv(
        self, source: Path, *more: str | Path, base: str = sys.executable, **variables: str
    ) -> Path:
        """What `uv build` builds."""
        out = self.new_folder()
        self.succeed("uv", "build", "-p", base, source, "-o", out, *more, **variables)
        return self._only(out)

    def pip(self, source: Path | str, *more: str | Path, python: Path | None = None) -> Path:
        """The wheel that `pip wheel` builds."""
        out = self.new_folder()
        # pip caches no wheel that it builds from a folder, a file or a branch
        pip = (python or self.python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", out)
        self.succeed(*pip, *more, source)
        return self._only(out)

    def environment(
        self, *requirements: str | Path, base: str = sys.executable, folder: Path | None = None
    ) -> Path:
        """The interpreter of a new environment with `requirements`, by default in a new folder."""
        folder = folder or self.new_folder()
        self.succeed("uv", "venv", "-q", "-p", base, folder)
        python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        if requirements:
            self.succeed("uv", "pip", "install", "-q", "-p", python, *requirements)
        return python

    def repository(self) -> Path:
        """A git repository of the tree."""
        folder = self.new_folder()
        shutil.copytree(TREE, folder / TREE.name, ignore=shutil.ignore_patterns("__pycache__"))
        git = ("git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@localhost")
        self.succeed(*git, "init", "-q")
        self.succeed(*git, "add", ".")
        self.succeed(*git, "commit", "-q", "-m", "Everything")
        return folder

    def new_folder(self) -> Path:
        """A path at which nothing is yet."""
        return self._folder / f"folder {next(self._numbers)}"

    @staticmethod
    def _only(folder: Path) -> Path:
        (built,) = (path for path in folder.iterdir() if path.name != ".gitignore")
        return built
