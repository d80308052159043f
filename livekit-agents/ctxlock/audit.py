"""Reads an `agent_activity.py` from where a user has it, and prints its sites."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from rich.table import Table

from .environment import inspect, interpreter_in
from .errors import CtxlockError
from .release import Scope
from .sites import Site, find_sites
from .syntax import NOTICE, TARGET
from .unroute import parts_of

__all__ = ["Audit", "audit_path", "audit_python", "audit_wheel", "site_table"]

FORMAT = 1
"""Version of the JSON; raised when a key changes its meaning or goes."""


@dataclass(frozen=True)
class Audit:
    """The sites of one livekit-agents.

    Attributes:
        version: Its version, where it is known.
        file: The file that was read, as errors and output name it.
        sites: Its sites, in the order in which they stand.
        scope: How it is patched; None if it is not, or not by this project.
        parts: What it has of the scope `full`; nothing if it has another.
    """

    version: str | None
    file: str
    sites: tuple[Site, ...]
    scope: Scope | None
    parts: tuple[str, ...]

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
                "scope": self.scope,
                "parts": list(self.parts),
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
    if (interpreter := interpreter_in(path)) is not None:
        raise CtxlockError(
            f"{path} is a virtual environment; name its interpreter: --python {interpreter}."
        )
    file = path / TARGET if path.is_dir() else path
    if file.suffix == ".whl":
        raise CtxlockError(f"{file} is a wheel; name it with --wheel.")
    if not file.exists():
        raise CtxlockError(
            f"{file} is not there; name an agent_activity.py, a folder that holds livekit/agents, "
            "or an interpreter: --python EXE."
        )
    if file.suffix != ".py":
        raise CtxlockError(f"{file} is no Python file; name an agent_activity.py.")
    try:
        source = file.read_bytes()
    except OSError as e:
        raise CtxlockError(f"{file} could not be read: {e.strerror}.") from None
    return _audit(None, str(file), source)


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
    return _audit(str(version), f"{path}/{TARGET}", source)


def audit_python(python: str | None) -> Audit:
    """Audits the livekit-agents that an interpreter would import; without importing it.

    Args:
        python: The interpreter, or its virtual environment; by default the one that runs this.

    Raises:
        CtxlockError: It does not run, or has no livekit-agents.
        NotUnderstood: The file it has is none that the finder can follow.
    """
    found = inspect(python)
    file = found.folder / "voice" / "agent_activity.py"
    if not file.is_file():
        raise CtxlockError(
            f"{found.python} has livekit-agents {found.version}, which is too old to hold the "
            "realtime sites; they came with 1.0.0."
        )
    return _audit(found.version, str(file), file.read_bytes())


def _audit(version: str | None, file: str, source: bytes) -> Audit:
    sites, parts = find_sites(source, file), parts_of(source)
    ours = NOTICE.encode() in source
    return Audit(version, file, sites, "full" if parts else "lock" if ours else None, parts)


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
