"""Runs uv, or pip where uv is missing, to fetch releases and to make environments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .errors import CtxlockError

__all__ = ["Installer"]

_UNREACHABLE = ("connect", "dns error", "name resolution", "timed out", "proxy", "offline")


class Installer:
    """Installs into folders and fresh environments, from whatever index its user has configured."""

    def __init__(self) -> None:
        self._uv = os.environ.get("UV") or shutil.which("uv")

    @property
    def name(self) -> str:
        """``uv`` or ``pip``."""
        return "uv" if self._uv else "pip"

    def fetch(self, release: str, folder: Path) -> None:
        """Unpacks stock livekit-agents into `folder`, without its dependencies.

        Raises:
            CtxlockError: There is no such release, or the index cannot be reached.
        """
        self._run(
            [*self._install(sys.executable), "--no-deps", "--target", str(folder)],
            f"livekit-agents=={release}",
        )

    def make_environment(self, folder: Path) -> str:
        """Makes a virtual environment in `folder`; returns its interpreter.

        Raises:
            CtxlockError: It could not be made.
        """
        make = [self._uv, "venv", "-q", "-p"] if self._uv else [sys.executable, "-m", "venv"]
        self._run([*make, *([sys.executable] if self._uv else [])], str(folder))
        return str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))

    def install(self, python: str, requirement: str) -> None:
        """Installs `requirement` and what it depends on for the interpreter `python`.

        Raises:
            CtxlockError: There is no such release, or the index cannot be reached.
        """
        self._run(self._install(python), requirement)

    def replace(self, python: str, wheel: Path) -> None:
        """Puts `wheel` in the place of the same package, and changes nothing else.

        Raises:
            CtxlockError: The wheel does not install.
        """
        again = "--reinstall" if self._uv else "--force-reinstall"
        self._run([*self._install(python), "--no-deps", again], str(wheel))

    def _install(self, python: str) -> list[str]:
        if self._uv:
            return [self._uv, "pip", "install", "-q", "-p", python]
        return [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]

    def _run(self, command: Sequence[str], subject: str) -> None:
        try:
            done = subprocess.run([*command, subject], capture_output=True, text=True)
        except OSError as e:
            raise CtxlockError(f"{command[0]} could not be started: {e}.") from None
        if done.returncode == 0:
            return
        said = " ".join(done.stderr.split()) or "it said nothing"
        if any(word in said.lower() for word in _UNREACHABLE):
            raise CtxlockError(
                f"The package index could not be reached for {subject}; check the network and "
                f"{self.name}'s settings, then try again. {self.name} said: {said}"
            )
        raise CtxlockError(
            f"{subject} could not be installed; check the release number and that it is offered "
            f"for Python {sys.version_info.major}.{sys.version_info.minor}. "
            f"{self.name} said: {said}"
        )
