"""Reads a published livekit-agents, installed or as a wheel, and checks it against its RECORD."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.parser import BytesParser
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath

from packaging.version import Version

from .errors import CtxlockError
from .release import OLDEST
from .syntax import TARGET

__all__ = ["NAME", "Upstream", "read_installed", "read_wheel"]

NAME = "livekit-agents"

# What installers add to a dist-info folder; none of it is in the published wheel.
_INSTALLERS_OWN = {"INSTALLER", "REQUESTED", "direct_url.json", "uv_build.json", "uv_cache.json"}
_SIGNATURES = {"RECORD.jws", "RECORD.p7s"}


@dataclass(frozen=True)
class Upstream:
    """A stock release, whole and as published.

    Attributes:
        version: Its version.
        dist_info: The name of its dist-info folder.
        files: The wheel's files by their path in it, without RECORD.
    """

    version: Version
    dist_info: str
    files: Mapping[str, bytes]

    @property
    def target(self) -> bytes:
        """The content of the file that holds every site."""
        return self.files[TARGET]


@dataclass(frozen=True)
class _Row:
    """A line of RECORD."""

    path: str
    digest: str
    size: str


def read_installed(paths: Sequence[str] | None = None) -> Upstream:
    """Reads the livekit-agents that is installed.

    Args:
        paths: Where to look, by default `sys.path`.

    Raises:
        CtxlockError: It is absent, too old, patched already, or not what was published; then every
            file that differs is named.
    """
    searched = sys.path if paths is None else list(paths)
    found = next(iter(distributions(name=NAME, path=searched)), None)
    if found is None:
        raise CtxlockError(
            f"{NAME} is not installed here; the backend patches the release that its build "
            "requirements install, so build with isolation or install it first."
        )
    _check_version(Version(found.version))
    record = found.read_text("RECORD")
    if record is None:
        raise CtxlockError(
            f"{NAME} {found.version} has no RECORD to check it against; reinstall it from a wheel."
        )
    root = Path(str(found.locate_file("")))
    listed, dist_info = _wheel_rows(_parse(record))
    rows = [row for row in listed if not _is_script(row.path, found)]

    def read(path: str) -> bytes | None:
        file = root / path
        return file.read_bytes() if file.is_file() else None

    def unlisted() -> Iterator[str]:
        known = {row.path for row in rows}
        for folder in _roots(known):
            for file in (root / folder).rglob("*"):
                path = file.relative_to(root).as_posix()
                if file.is_file() and path not in known and not _is_installers(path, dist_info):
                    yield path

    others = _Others(found, root)
    extra = [path for path in unlisted() if path not in others]
    return _checked(found.version, dist_info, rows, read, sorted(extra))


def read_wheel(path: Path) -> Upstream:
    """Reads a wheel of livekit-agents.

    Raises:
        CtxlockError: It is no such wheel, too old, patched already, or not what was published.
    """
    try:
        with zipfile.ZipFile(path) as wheel:
            content = {name: wheel.read(name) for name in wheel.namelist() if name[-1] != "/"}
    except OSError as e:
        raise CtxlockError(f"{path} could not be read: {e.strerror}.") from None
    except zipfile.BadZipFile:
        raise CtxlockError(f"{path} is no wheel: it is no zip file, or a damaged one.") from None
    records = [name for name in content if name.endswith(".dist-info/RECORD")]
    if len(records) != 1 or records[0].replace("RECORD", "METADATA") not in content:
        raise CtxlockError(f"{path} is no wheel: it has no dist-info folder with a RECORD.")
    headers = BytesParser().parsebytes(
        content[records[0].replace("RECORD", "METADATA")], headersonly=True
    )
    if headers["Name"] != NAME:
        raise CtxlockError(f"{path} is a wheel of {headers['Name']}; one of {NAME} is needed.")
    _check_version(Version(headers["Version"]))
    rows, dist_info = _wheel_rows(_parse(content[records[0]].decode()))
    known = {row.path for row in rows}
    extra = [p for p in content if p not in known and not _is_installers(p, dist_info)]
    return _checked(headers["Version"], dist_info, rows, content.get, sorted(extra))


def _check_version(version: Version) -> None:
    if version.local is not None:
        raise CtxlockError(
            f"{NAME} {version} is patched already, or a build of somebody's own; start from the "
            f"stock release {version.public}, which a build with isolation fetches by itself."
        )
    if version < OLDEST:
        raise CtxlockError(
            f"{NAME} {version} is too old; {OLDEST} and later have the realtime sites."
        )


def _parse(record: str) -> list[_Row]:
    rows = csv.reader(io.StringIO(record, newline=""))
    # pip on Windows writes backslashes
    return [_Row(row[0].replace("\\", "/"), row[1], row[2]) for row in rows if len(row) == 3]


def _wheel_rows(rows: Iterable[_Row]) -> tuple[list[_Row], str]:
    """The rows that the published wheel had too, and the name of its dist-info folder."""
    rows = list(rows)
    folders = {row.path.split("/")[0] for row in rows if row.path.endswith(".dist-info/RECORD")}
    if len(folders) != 1:
        raise CtxlockError(f"The RECORD of {NAME} does not list itself; reinstall it.")
    dist_info = folders.pop()
    return [row for row in rows if not _is_installers(row.path, dist_info)], dist_info


def _is_installers(path: str, dist_info: str) -> bool:
    """Whether an installer wrote this file, or RECORD itself, which is written anew."""
    folder, _, name = path.rpartition("/")
    if "__pycache__" in folder.split("/") or name.endswith((".pyc", ".pyo")):
        return True
    return folder == dist_info and (name == "RECORD" or name in _INSTALLERS_OWN | _SIGNATURES)


def _is_script(path: str, distribution: Distribution) -> bool:
    """Whether an installer made this file outside site-packages from an entry point."""
    if not path.startswith("../"):
        return False
    name = PurePosixPath(path).name
    names = {e.name for e in distribution.entry_points if e.group.endswith("_scripts")}
    return any(name in (n, f"{n}.exe", f"{n}-script.py", f"{n}-script.pyw") for n in names)


def _roots(paths: Iterable[str]) -> list[str]:
    """The outermost folders in which files are listed."""
    folders = {str(PurePosixPath(path).parent) for path in paths if not path.startswith("../")}
    above = {folder: {str(p) for p in PurePosixPath(folder).parents} for folder in folders}
    return sorted(f for f in folders if f != "." and not above[f] & (folders - {"."}))


class _Others:
    """The files that other distributions list: `livekit` is a namespace that several share."""

    def __init__(self, own: Distribution, root: Path) -> None:
        self._own = own
        self._root = root
        self._files: set[str] | None = None

    def __contains__(self, path: str) -> bool:
        if self._files is None:  # read only if it matters
            self._files = {
                file.as_posix()
                for distribution in distributions(path=[str(self._root)])
                if distribution.name != self._own.name
                for file in distribution.files or ()
            }
        return path in self._files


def _checked(
    version: str,
    dist_info: str,
    rows: Sequence[_Row],
    read: Callable[[str], bytes | None],
    extra: Sequence[str],
) -> Upstream:
    """Checks every file against its row; the error names all that differ."""
    files: dict[str, bytes] = {}
    problems: list[str] = []
    for row in rows:
        content = read(row.path)
        if row.path.startswith(("../", "/")) or ".data/" in row.path:
            problems.append(f"{row.path} stands outside site-packages")
        elif content is None:
            problems.append(f"{row.path} is missing")
        elif (problem := _mismatch(content, row)) is not None:
            problems.append(f"{row.path} {problem}")
        else:
            files[row.path] = content
    problems.extend(f"{path} is not listed in RECORD" for path in extra)
    for needed in (TARGET, f"{dist_info}/METADATA", f"{dist_info}/WHEEL"):
        if needed not in {row.path for row in rows}:
            problems.append(f"{needed} is not listed in RECORD, and is needed")
    if problems:
        raise CtxlockError(
            f"{NAME} {version} is not what its RECORD says, so nothing was built; install the "
            "published release afresh. What differs:\n  " + "\n  ".join(problems)
        )
    return Upstream(Version(version), dist_info, files)


def _mismatch(content: bytes, row: _Row) -> str | None:
    algorithm, _, expected = row.digest.partition("=")
    if algorithm not in ("sha256", "sha384", "sha512"):
        return "has no hash in RECORD that can be trusted"
    if row.size and int(row.size) != len(content):
        return f"has {len(content)} bytes where RECORD has {row.size}"
    digest = base64.urlsafe_b64encode(hashlib.new(algorithm, content).digest()).rstrip(b"=")
    return None if digest.decode() == expected else f"has another {algorithm} than in RECORD"
