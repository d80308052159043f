"""Compares a livekit-agents, installed or in a wheel, with the record of what was built."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ..errors import CtxlockError
from ..release import scope_of
from ..target import ADDED, TARGET
from ..wheels.provenance import PROVENANCE, Provenance, read_provenance
from ..wheels.wheel import read_entries

__all__ = ["Difference", "Package", "in_wheel", "installed"]

State = Literal["differs", "missing", "one too many"]

_ANY_DIST_INFO = "livekit_agents-*.dist-info"
"""Stands for the dist-info folder where there is none."""


@dataclass(frozen=True)
class Difference:
    """A file that is not as it was built, by its path in the wheel."""

    path: str
    state: State


@dataclass(frozen=True)
class Package:
    """The files of a livekit-agents.

    Attributes:
        where: The folder or the wheel that holds them, as errors name it.
        dist_info: The name of its dist-info folder; None if there is none.
        read: Gives the content of a file by its path; None if it is not there.
    """

    where: Path
    dist_info: str | None
    read: Callable[[str], bytes | None]

    def record(self) -> Provenance | None:
        """What it says was patched; None if it has no such record.

        Raises:
            CtxlockError: The record cannot be read, is garbled, or of a later format.
        """
        path = f"{self.dist_info}/{PROVENANCE}"
        content = None if self.dist_info is None else self.read(path)
        return None if content is None else read_provenance(content, f"{self.where}/{path}")

    def differences(self, record: Provenance | None, patched: bool) -> tuple[Difference, ...]:
        """What of the patch differs from its record, is missing, or is one too many.

        Args:
            record: Its record.
            patched: Whether the file that holds the sites looks patched. If so, the lack of a
                record is what is wrong: what was added cannot be judged without.

        Raises:
            CtxlockError: A file cannot be read.
        """
        if record is None and patched:
            return (Difference(f"{self.dist_info or _ANY_DIST_INFO}/{PROVENANCE}", "missing"),)
        if self.dist_info is None:
            return ()
        built = {} if record is None else record.sha256
        states = ((path, self._state(path, built.get(path))) for path in sorted({*built, ADDED}))
        return tuple(Difference(path, state) for path, state in states if state is not None)

    def contradiction(
        self, record: Provenance, version: str | None, informed: bool
    ) -> Difference | None:
        """The record itself as what differs, if another scope than its own is seen elsewhere.

        It is seen in the added files that the record lists, in the label of the version, and in the
        file that holds the sites, unless that differs.

        Args:
            record: Its record.
            version: The version where it is known from more than the dist-info folder.
            informed: Whether the file that holds the sites has something of the scope `full`.

        Raises:
            CtxlockError: A file cannot be read.
        """
        full = record.scope == "full"
        seen = {record.sha256.keys() > {TARGET}}
        for name in (version, (self.dist_info or "").removesuffix(".dist-info").partition("-")[2]):
            if (label := _label(name or "")) is not None:
                seen.add(scope_of(label) == "full")
        if self._state(TARGET, record.sha256[TARGET]) is None:
            seen.add(informed)
        return None if seen == {full} else Difference(f"{self.dist_info}/{PROVENANCE}", "differs")

    def _state(self, path: str, sha256: str | None) -> State | None:
        content = self.read(path)
        if content is None:
            return None if sha256 is None else "missing"
        if sha256 is None:
            return "one too many"
        return None if hashlib.sha256(content).hexdigest() == sha256 else "differs"


def installed(root: Path) -> Package:
    """The livekit-agents in a folder that holds `livekit/agents`.

    Raises:
        CtxlockError: More than one dist-info folder stands there.
    """
    folders = root.glob("*.dist-info")
    names = (path.name for path in folders)
    return Package(root, _only_dist_info(names, root), lambda path: _content(root / path))


def in_wheel(wheel: Path) -> Package:
    """The livekit-agents in a wheel.

    Raises:
        CtxlockError: It cannot be read, is damaged, or holds something twice.
    """
    entries = read_entries(wheel)
    files = dict(entries)
    if len(files) < len(entries):
        raise CtxlockError(
            f"{wheel} is no wheel: it holds a file of the same name twice; build or fetch it again."
        )
    names = {path.partition("/")[0] for path in files if "/" in path}
    folders = (name for name in names if name.endswith(".dist-info"))
    return Package(wheel, _only_dist_info(folders, wheel), files.get)


def _only_dist_info(names: Iterable[str], where: Path) -> str | None:
    ours = sorted(n for n in names if canonicalize_name(n.partition("-")[0]) == "livekit-agents")
    if len(ours) > 1:
        raise CtxlockError(
            f"{where} holds more than one dist-info folder of livekit-agents ({', '.join(ours)}), "
            "but one was expected; remove them and install one release again."
        )
    return ours[0] if ours else None


def _label(version: str) -> Version | None:
    """`version`, if it is one of this project's."""
    try:
        found = Version(version)
    except InvalidVersion:
        return None
    return found if (found.local or "").startswith("ctxlock.") else None


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as e:
        raise CtxlockError(
            f"{file} could not be read: {e.strerror}; it must be a file that you may read."
        ) from None
