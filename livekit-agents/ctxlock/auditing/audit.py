"""Reads an `agent_activity.py` from where a user has it: its sites, and whether it is as built."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from ..analysis.sites import Site, find_sites
from ..analysis.without_calls import parts_of
from ..environments.interpreter import inspect, interpreter_in
from ..errors import CtxlockError, NotUnderstood
from ..release import Scope
from ..target import NOTICE, TARGET
from .drift import Difference, Package, in_wheel, installed

__all__ = ["Audit", "audit_path", "audit_python", "audit_wheel"]

FORMAT = 1
"""Version of the JSON; raised when a key changes its meaning or goes."""


@dataclass(frozen=True)
class Audit:
    """The sites of one livekit-agents.

    Attributes:
        version: Its version, where it is known.
        file: The file that was read, as errors and output name it.
        sites: Its sites, in the order in which they stand.
        scope: How it was patched, as its record says; as the file shows, if there is none or it
            contradicts itself. None if it is not, or not by this project.
        parts: What it has of the scope `full`; nothing if it has another.
        compared: Whether a record was there to compare the patched file and the added ones with.
        differences: The files that are not as they were built.
        not_understood: Why its sites are unknown; None if they are known. They are unknown only
            beside differences.
    """

    version: str | None
    file: str
    sites: tuple[Site, ...]
    scope: Scope | None
    parts: tuple[str, ...]
    compared: bool
    differences: tuple[Difference, ...]
    not_understood: str | None

    @property
    def harmed(self) -> bool:
        """Whether something is bare, unchecked, or not as it was built."""
        return bool(self.bare or self.unchecked or self.differences)

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
                "compared": self.compared,
                "differences": [asdict(difference) for difference in self.differences],
                "not_understood": self.not_understood,
                "sites": [site.as_json() for site in self.sites],
            },
            indent=2,
            sort_keys=True,
        )


def audit_path(path: Path) -> Audit:
    """Audits a file, or the folder (`site-packages`, say) that holds `livekit/agents`.

    Raises:
        CtxlockError: There is no such file, it is no Python file, or its record cannot be read.
        NotUnderstood: It is none that the finder can follow.
    """
    if (interpreter := interpreter_in(path)) is not None:
        raise CtxlockError(
            f"{path} is a virtual environment; name its interpreter: --python {interpreter}."
        )
    file = path / TARGET if path.is_dir() else path
    if file.suffix == ".whl":
        raise CtxlockError(f"{file} is a wheel; name it with --wheel.")
    if file.suffix != ".py" and file.exists():
        raise CtxlockError(f"{file} is no Python file; name an agent_activity.py.")
    try:
        source = file.read_bytes() if file.exists() else None
    except OSError as e:
        raise CtxlockError(f"{file} could not be read: {e.strerror}.") from None
    whole = file.absolute()
    in_its_place = whole.as_posix().endswith(f"/{TARGET}")
    root = whole.parents[TARGET.count("/")] if in_its_place else None
    if root is not None and path.is_dir():
        root = path  # as the user named it
    package = None if root is None else installed(root)
    if package is not None and package.dist_info is None and not path.is_dir():
        package = None  # a lone file, wherever it stands
    audit = _audit(None, file, source, package)
    if audit is None:
        raise CtxlockError(
            f"{file} is not there; name an agent_activity.py, a folder that holds livekit/agents, "
            "or an interpreter: --python EXE."
        )
    return audit


def audit_wheel(path: Path) -> Audit:
    """Audits a livekit-agents wheel.

    Raises:
        CtxlockError: It is no readable wheel of livekit-agents 1.0.0 or later, or its record cannot
            be read.
        NotUnderstood: Its file is none that the finder can follow.
    """
    try:
        name, version, _, _ = parse_wheel_filename(path.name)
    except InvalidWheelFilename:
        raise CtxlockError(f"{path} does not have the file name of a wheel.") from None
    if name != "livekit-agents":
        raise CtxlockError(f"{path} is a wheel of {name}; one of livekit-agents is needed.")
    package = in_wheel(path)
    audit = _audit(str(version), path / TARGET, package.read(TARGET), package)
    if audit is None:
        raise CtxlockError(
            f"{path} holds no {TARGET}; a livekit-agents wheel of 1.0.0 or later is needed."
        )
    return audit


def audit_python(python: str | None) -> Audit:
    """Audits the livekit-agents that an interpreter would import; without importing it.

    Args:
        python: The interpreter, or its virtual environment; by default the one that runs this.

    Raises:
        CtxlockError: It does not run, has no livekit-agents, or one whose record cannot be read.
        NotUnderstood: The file it has is none that the finder can follow.
    """
    found = inspect(python)
    # beside what is imported, which need not be where the metadata was found
    package = installed(found.folder.parent.parent)
    file = found.folder / "voice" / "agent_activity.py"
    audit = _audit(found.version, file, package.read(TARGET), package)
    if audit is None:
        raise CtxlockError(
            f"{found.python} has livekit-agents {found.version}, which is too old: updates of a "
            "realtime conversation came with 1.0.0."
        )
    return audit


def _audit(
    version: str | None, file: Path, source: bytes | None, package: Package | None
) -> Audit | None:
    """The audit of `source`; None if that is missing, and no record says that it ought not to be.

    A record with other hashes, or one that contradicts itself, is reported whatever the file looks
    like by now.
    """
    record = None if package is None else package.record()
    if source is None and record is None:
        return None
    text = source or b""
    sites: tuple[Site, ...] = ()
    parts: tuple[str, ...] = ()
    not_understood = None
    try:
        sites = find_sites(text, str(file))
        parts = parts_of(text)
    except NotUnderstood as e:
        not_understood = e
    shown: Scope | None = "full" if parts else "lock" if NOTICE.encode() in text else None
    scope = shown if record is None else record.scope
    differences = () if package is None else package.differences(record, shown is not None)
    if package is not None and record is not None:
        contradiction = package.contradiction(record, version, bool(parts))
        if contradiction is not None:
            scope = shown
            differences = (*differences, contradiction)
    if not_understood is not None and not differences:
        raise not_understood
    why = f"{file} is missing." if source is None else str(not_understood or "")
    return Audit(
        version=version,
        file=str(file),
        sites=sites,
        scope=scope,
        parts=parts,
        compared=record is not None,
        differences=differences,
        not_understood=why or None,
    )
