"""Reads an `agent_activity.py` from where a user has it, and prints its sites."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from rich.table import Table

from .errors import CtxlockError
from .sites import Site, find_sites
from .syntax import TARGET

__all__ = ["Audit", "audit_path", "audit_python", "audit_wheel", "site_table"]

FORMAT = 1
"""Version of the JSON; raised when a key changes its meaning or goes."""

_LOCATE = """
import json, sys
if sys.version_info < (3, 8):
    print(json.dumps({"old": ".".join(map(str, sys.version_info[:3]))}))
    sys.exit()
import importlib.metadata, importlib.util
sys.path[:] = [p for p in sys.path if p]
try:
    version = importlib.metadata.version("livekit-agents")
except importlib.metadata.PackageNotFoundError:
    version = None
try:
    spec = importlib.util.find_spec("livekit.agents")
except ModuleNotFoundError:
    spec = None
folders = list(spec.submodule_search_locations or ()) if spec else []
print(json.dumps({"version": version, "folder": folders[0] if folders else None}))
"""


@dataclass(frozen=True)
class Audit:
    """The sites of one livekit-agents.

    Attributes:
        version: Its version, where it is known.
        file: The file that was read, as errors and output name it.
        sites: Its sites, in the order in which they stand.
    """

    version: str | None
    file: str
    sites: tuple[Site, ...]

    @property
    def bare(self) -> int:
        """How many sites push outside the lock."""
        return sum(site.state == "bare" for site in self.sites)

    @property
    def unchecked(self) -> int:
        """How many guarded sites fail if a handoff takes the session during the wait."""
        return sum(site.rechecked is False for site in self.sites)

    def as_json(self) -> str:
        """The audit as JSON with sorted keys."""
        return json.dumps(
            {
                "format": FORMAT,
                "livekit_agents": self.version,
                "file": self.file,
                "bare": self.bare,
                "sites": [site.as_json() for site in self.sites],
            },
            indent=2,
            sort_keys=True,
        )


def audit_path(path: Path) -> Audit:
    """Audits a file, or the folder (`site-packages`, say) that holds `livekit/agents`.

    Raises:
        CtxlockError: There is no such file, or it is no Python file.
        NotUnderstood: It is none that the finder can follow.
    """
    if (interpreter := _interpreter_in(path)) is not None:
        raise CtxlockError(
            f"{path} is a virtual environment; name its interpreter: --python {interpreter}."
        )
    file = path / TARGET if path.is_dir() else path
    if file.suffix == ".whl":
        raise CtxlockError(f"{file} is a wheel; name it with --wheel.")
    if not file.exists():
        raise CtxlockError(f"There is no {file}; name an agent_activity.py.")
    if file.suffix != ".py":
        raise CtxlockError(f"{file} is no Python file; name an agent_activity.py.")
    try:
        source = file.read_bytes()
    except OSError as e:
        raise CtxlockError(f"{file} could not be read: {e.strerror}.") from None
    return Audit(None, str(file), find_sites(source, str(file)))


def audit_wheel(path: Path) -> Audit:
    """Audits a livekit-agents wheel.

    Raises:
        CtxlockError: It is no readable wheel of livekit-agents 1.0.0 or later.
        NotUnderstood: Its file is none that the finder can follow.
    """
    try:
        name, version, _, _ = parse_wheel_filename(path.name)
        with zipfile.ZipFile(path) as wheel:
            source = wheel.read(TARGET)
    except InvalidWheelFilename:
        raise CtxlockError(f"{path} does not have the file name of a wheel.") from None
    except OSError as e:
        raise CtxlockError(f"{path} could not be read: {e.strerror}.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise CtxlockError(f"{path} is no wheel: it is not a zip file, or damaged.") from None
    except KeyError:
        raise CtxlockError(
            f"{path} holds no {TARGET}; a livekit-agents wheel of 1.0.0 or later is needed."
        ) from None
    if name != "livekit-agents":
        raise CtxlockError(f"{path} is a wheel of {name}; one of livekit-agents is needed.")
    return Audit(str(version), f"{path}/{TARGET}", find_sites(source, f"{path}/{TARGET}"))


def audit_python(python: str | None) -> Audit:
    """Audits the livekit-agents that an interpreter would import; without importing it.

    Args:
        python: The interpreter; by default the one that runs this.

    Raises:
        CtxlockError: It does not run, or has no livekit-agents.
        NotUnderstood: The file it has is none that the finder can follow.
    """
    exe = python or sys.executable
    if (inside := _interpreter_in(Path(exe))) is not None:
        raise CtxlockError(f"{exe} is a folder; name the interpreter in it: --python {inside}.")
    try:
        done = subprocess.run([exe, "-c", _LOCATE], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
    except OSError as e:
        raise CtxlockError(
            f"{exe} could not be started: {e.strerror}; name the interpreter of your agent."
        ) from None
    except (subprocess.CalledProcessError, ValueError):
        raise CtxlockError(f"{exe} is not a Python interpreter that runs.") from None
    if "old" in found:
        raise CtxlockError(
            f"{exe} is Python {found['old']}, on which no livekit-agents of 1.0.0 or later runs; "
            "name the interpreter of your agent with --python."
        )
    if found["folder"] is None:
        raise CtxlockError(
            f"{exe} has no livekit-agents; name the interpreter of your agent with --python."
        )
    file = Path(found["folder"], "voice", "agent_activity.py")
    if not file.is_file():
        raise CtxlockError(
            f"{exe} has livekit-agents {found['version']}, which is too old to hold the realtime "
            "sites; they came with 1.0.0."
        )
    return Audit(found["version"], str(file), find_sites(file.read_bytes(), str(file)))


def _interpreter_in(folder: Path) -> Path | None:
    """The interpreter of the virtual environment `folder`; None if it is none."""
    if not (folder / "pyvenv.cfg").is_file():
        return None
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def site_table(sites: Sequence[Site]) -> Table:
    """The sites as a table that fits a terminal of 80 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("role", "function", "lines", "state"):
        table.add_column(column, overflow="fold")
    colours = {"guarded": "green", "bare": "red", "read-only": "dim", "unchecked": "yellow"}
    for site in sites:
        lines = f"{site.first_line}-{site.last_line}"
        state = "unchecked" if site.rechecked is False else site.state
        table.add_row(site.role, site.function, lines, f"[{colours[state]}]{state}[/]")
    return table
