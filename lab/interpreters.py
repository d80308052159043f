"""Finds the interpreters of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

__all__ = ["find_python"]


def find_python(minor: str) -> str | None:
    """An interpreter of that minor version that runs, if there is one.

    It is pyenv's, which uv may not see, or another.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [str(path) for path in sorted(pyenv.glob(f"versions/{minor}.*/bin/python"))]
    if (on_path := shutil.which(f"python{minor}")) is not None:
        found.append(on_path)
    for python in found:
        said = subprocess.run([python, "--version"], capture_output=True, text=True)
        if said.returncode == 0 and f" {minor}." in said.stdout + said.stderr:
            return python
    return None
