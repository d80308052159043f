"""Finds out what an interpreter of the user's would import, without importing or writing it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ..errors import CtxlockError

__all__ = ["Environment", "inspect", "interpreter_in"]

_LOCATE = """
import json, sys
if sys.version_info < (3, 8):
    print(json.dumps({"old": ".".join(map(str, sys.version_info[:3]))}))
    sys.exit()
import importlib.metadata, importlib.util
sys.path[:] = [p for p in sys.path if p]
try:
    found = importlib.metadata.distribution("livekit-agents")
    version, root = found.version, str(found.locate_file(""))
except importlib.metadata.PackageNotFoundError:
    version = root = None
try:
    spec = importlib.util.find_spec("livekit.agents")
except ModuleNotFoundError:
    spec = None
folders = list(spec.submodule_search_locations or ()) if spec else []
print(json.dumps({
    "version": version,
    "root": root,
    "folder": folders[0] if folders else None,
    "python": sys.version_info[:2],
}))
"""


@dataclass(frozen=True)
class Environment:
    """What an interpreter would import as livekit-agents.

    Attributes:
        python: The interpreter.
        minor: Its version, as in (3, 12).
        version: The version of livekit-agents, where its metadata is there.
        root: The folder that the metadata stands in; None without.
        folder: The package's folder.
    """

    python: str
    minor: tuple[int, int]
    version: str | None
    root: Path | None
    folder: Path


def inspect(python: str | None) -> Environment:
    """Asks an interpreter what it would import; nothing is written there.

    Args:
        python: The interpreter, or the folder of its virtual environment; by default the one that
            runs this.

    Raises:
        CtxlockError: It does not run, or has no livekit-agents.
    """
    exe = _interpreter(python or sys.executable)
    try:
        done = subprocess.run(
            [exe, "-c", _LOCATE],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        found = json.loads(done.stdout)
        if "old" in found:
            raise CtxlockError(
                f"{exe} is Python {found['old']}, on which no livekit-agents of 1.0.0 or later "
                "runs; name the interpreter of your agent with --python."
            )
        minor = tuple(found["python"])
    except OSError as e:
        raise CtxlockError(
            f"{exe} could not be started: {e.strerror}; name the Python interpreter that runs your "
            "agent."
        ) from None
    except (subprocess.CalledProcessError, ValueError, KeyError, TypeError):
        raise CtxlockError(
            f"{exe} is not a working Python interpreter; name the one that runs your agent."
        ) from None
    if found["folder"] is None:
        raise CtxlockError(
            f"{exe} has no livekit-agents; name the interpreter of your agent with --python."
        )
    root = None if found["root"] is None else Path(found["root"])
    return Environment(exe, minor, found["version"], root, Path(found["folder"]))


def _interpreter(python: str) -> str:
    """Where the interpreter is, or the one in a virtual environment's folder; links are kept."""
    if not os.path.isdir(python):
        return os.path.abspath(shutil.which(python) or python)
    if (inside := interpreter_in(Path(python))) is not None:
        return str(inside)
    raise CtxlockError(
        f"{python} is a folder, but not a virtual environment: it has no bin/python; name the "
        "Python interpreter that runs your agent."
    )


def interpreter_in(folder: Path) -> Path | None:
    """The interpreter of the virtual environment `folder`; None if it is none."""
    names = ("bin/python", "Scripts/python.exe")
    return next((path for name in names if (path := folder.absolute() / name).is_file()), None)
