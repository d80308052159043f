"""Reads a RECORD and compares files with it; knows nothing of what is in them."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath

from ..errors import CtxlockError

__all__ = ["Record", "Row", "is_installers_own", "parse_record"]

# What installers add to a dist-info folder; none of it is in the published wheel.
_INSTALLERS_OWN = {"INSTALLER", "REQUESTED", "direct_url.json", "uv_build.json", "uv_cache.json"}
_SIGNATURES = {"RECORD.jws", "RECORD.p7s"}

# Weaker ones may stand in a RECORD too, but prove nothing.
_TRUSTED = ("sha256", "sha384", "sha512")


@dataclass(frozen=True)
class Row:
    """A line of RECORD: a file's path, hash and size as they stand there."""

    path: str
    digest: str
    size: str

    @property
    def is_inside(self) -> bool:
        """Whether the path stays in the folder that the RECORD is about, on any system.

        One that is not written in its plain form does not: it would be a second name of a file.
        """
        path = PurePosixPath(self.path)
        if ".." in path.parts or PureWindowsPath(self.path).anchor:
            return False
        return str(path) == self.path

    def mismatch(self, content: bytes) -> str | None:
        """What is wrong with `content`, as a predicate; None if it is what was recorded."""
        algorithm, _, expected = self.digest.partition("=")
        if algorithm not in _TRUSTED:
            return "has no hash in RECORD that can be trusted"
        if self.size and self.size != str(len(content)):
            return f"has {len(content)} bytes where RECORD says {self.size}"
        digest = base64.urlsafe_b64encode(hashlib.new(algorithm, content).digest()).rstrip(b"=")
        return None if digest.decode() == expected else f"has another {algorithm} than RECORD says"


@dataclass(frozen=True)
class Record:
    """A RECORD: the name of its dist-info folder, and the rows that the published wheel had too."""

    dist_info: str
    rows: tuple[Row, ...]


def parse_record(text: str) -> Record:
    """Reads a RECORD, its paths with slashes, without what installers add.

    Raises:
        CtxlockError: It is no such table, or does not list itself.
    """
    try:
        table = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        raise CtxlockError(
            "The RECORD of livekit-agents cannot be read; install the published release again."
        ) from None
    # a row cut short is kept, so that what it lacks is reported; pip on Windows writes backslashes
    cells = ([*row, "", ""][:3] for row in table if row)
    rows = [Row(path.replace("\\", "/"), digest, size) for path, digest, size in cells]
    folders = {row.path.partition("/")[0] for row in rows if row.path.endswith(".dist-info/RECORD")}
    if len(folders) != 1:
        raise CtxlockError(
            "The RECORD of livekit-agents does not list itself; install the published release "
            "again."
        )
    dist_info = folders.pop()
    return Record(
        dist_info, tuple(row for row in rows if not is_installers_own(row.path, dist_info))
    )


def is_installers_own(path: str, dist_info: str) -> bool:
    """Whether an installer wrote this file, or RECORD itself, which is written anew."""
    folder, _, name = path.rpartition("/")
    if "__pycache__" in folder.split("/") or name.endswith((".pyc", ".pyo")):
        return True
    return folder == dist_info and (name == "RECORD" or name in _INSTALLERS_OWN | _SIGNATURES)
