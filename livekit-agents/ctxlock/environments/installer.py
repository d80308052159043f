"""Runs uv, or pip where uv is missing, to fetch releases and to make environments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ..errors import CtxlockError

__all__ = ["Installer"]

# What uv and pip say, in lower case, when it was not the release that was wrong: pip tells of an
# index that it could not reach as of one that has no release at all.
_UNREACHABLE = (
    *("connect", "dns error", "name resolution", "timed out", "network", "proxy"),
    "from versions: none",
)


class Installer:
    """Installs into folders and fresh environments, from whatever index its user has configured.

    Raises:
        CtxlockError: Neither uv nor pip is there.
    """

    def __init__(self) -> None:
        self._uv = os.environ.get("UV") or shutil.which("uv")
        if self._uv is None and find_spec("pip") is None:
            raise CtxlockError("Neither uv nor pip was found; install uv, then try again.")

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
            # three signs, lest a patched wheel from a folder or an index be taken for it
            f"livekit-agents==={release}",
        )

    def make_environment(self, folder: Path) -> str:
        """Makes a virtual environment in `folder`; returns its interpreter.

        Raises:
            CtxlockError: It could not be made.
        """
        if self._uv:
            self._run([self._uv, "venv", "-q", "-p", sys.executable], str(folder))
        else:
            self._run([sys.executable, "-m", "venv"], str(folder))
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
            with tempfile.TemporaryDirectory(prefix="ctxlock-") as empty:
                # else uv takes over what the project says in whose folder its user happens to be,
                # its constraints, say; relative paths still count from there
                project = ["--project", empty] if self._uv else []
                done = subprocess.run(
                    [command[0], *project, *command[1:], subject], capture_output=True, text=True
                )
        except OSError as e:
            raise CtxlockError(f"{command[0]} could not be started: {e}.") from None
        if done.returncode == 0:
            return
        # pip warns of much before its last line, which says what it stumbled over
        lines = done.stderr.splitlines() or ["nothing"]
        said = " ".join(" ".join(lines if self._uv else lines[-1:]).split())
        if any(word in done.stderr.lower() for word in _UNREACHABLE):
            raise CtxlockError(
                f"The package index could not be reached for {subject}; check the network and "
                f"{self.name}'s own settings (those of a project do not count here), then try "
                f"again. {self.name} said: {said}"
            )
        raise CtxlockError(
            f"{subject} could not be installed; check the release number and that it is offered "
            f"for Python {sys.version_info.major}.{sys.version_info.minor}. "
            f"{self.name} said: {said}"
        )
