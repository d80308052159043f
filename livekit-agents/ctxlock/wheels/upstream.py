"""Reads a published livekit-agents, installed or as a wheel, and checks it against its RECORD."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.parser import BytesParser, HeaderParser
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ..errors import CtxlockError
from ..release import OLDEST
from ..target import TARGET
from .record import Record, Row, is_installers_own, parse_record
from .wheel import read_entries

__all__ = ["NAME", "Upstream", "read_installed", "read_wheel"]

NAME = "livekit-agents"


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
    root = Path(str(found.locate_file("")))
    if len(list(distributions(name=NAME, path=[str(root)]))) > 1:
        raise CtxlockError(
            f"{root} holds more than one dist-info folder of {NAME}; remove them and install one "
            "release again."
        )
    try:
        metadata, text = found.read_text("METADATA"), found.read_text("RECORD")
    except UnicodeDecodeError:
        raise CtxlockError(
            f"METADATA or RECORD of {NAME} is not encoded in UTF-8; install the published release "
            "again."
        ) from None
    # not its `version`, which from 3.12 on warns if there is none
    version = _stock_version(HeaderParser().parsestr(metadata or "")["Version"])
    if text is None:
        raise CtxlockError(
            f"{NAME} {version} has no RECORD to check it against; reinstall it from a wheel."
        )
    record = parse_record(text)
    rows = tuple(row for row in record.rows if not _is_script(row, found))

    def read(path: str) -> bytes | None:
        file = root / path
        return file.read_bytes() if file.is_file() else None

    def unlisted() -> Iterator[str]:
        known = {row.path for row in rows if row.is_inside}
        for folder in _roots(known):
            for file in (root / folder).rglob("*"):
                path = file.relative_to(root).as_posix()
                expected = path in known or is_installers_own(path, record.dist_info)
                if not expected and file.is_file():
                    yield path

    extra = set(unlisted())
    if extra:
        extra -= _listed_by_others(root, record.dist_info)
    return _checked(version, Record(record.dist_info, rows), read, sorted(extra))


def read_wheel(path: Path) -> Upstream:
    """Reads a wheel of livekit-agents.

    Raises:
        CtxlockError: It is no such wheel, too old, patched already, or not what was published.
    """
    entries = read_entries(path)
    names, content = [name for name, _ in entries], dict(entries)
    if len(names) > len(content):
        raise CtxlockError(f"{path} is no wheel: it holds a file of the same name twice.")
    folders = [name.partition("/")[0] for name in names if name.endswith(".dist-info/RECORD")]
    if len(folders) != 1 or not {f"{folders[0]}/METADATA", f"{folders[0]}/RECORD"} <= {*names}:
        raise CtxlockError(f"{path} is no wheel: it needs one dist-info folder with a RECORD.")
    headers = BytesParser().parsebytes(content[f"{folders[0]}/METADATA"], headersonly=True)
    if canonicalize_name(str(headers["Name"])) != NAME:
        raise CtxlockError(f"{path} is a wheel of {headers['Name']}; one of {NAME} is needed.")
    version = _stock_version(headers["Version"], path)
    # a character that is replaced makes a path that is missing, and is reported as such
    record = parse_record(content[f"{folders[0]}/RECORD"].decode(errors="replace"))
    known = {row.path for row in record.rows}
    extra = [p for p in names if p not in known and not is_installers_own(p, record.dist_info)]
    return _checked(version, record, content.get, extra)


def _stock_version(text: object, wheel: Path | None = None) -> Version:
    try:
        version = Version(str(text))
    except InvalidVersion:
        raise CtxlockError(
            f"The METADATA of {NAME} names no valid version; install the published release again."
        ) from None
    if version.local is not None and wheel is not None:
        raise CtxlockError(
            f"{wheel} is a patched wheel, or somebody's own build ({version}); give the "
            f"stock wheel of {NAME} {version.public}."
        )
    if version.local is not None:
        raise CtxlockError(
            f"{NAME} {version} is patched already, or somebody's own build; the patch is made from "
            f"the stock release {version.public}. Build with isolation, or install that first. If "
            "an installer chose this one in its place, do not let it search a folder or an index "
            "of patched wheels."
        )
    if version < OLDEST:
        raise CtxlockError(f"{NAME} {version} is too old; ctxlock patches {OLDEST} and later.")
    return version


def _is_script(row: Row, distribution: Distribution) -> bool:
    """Whether an installer made this file from an entry point."""
    path = PurePosixPath(row.path)
    # beside site-packages, or in it where the installer was given a target folder
    if path.parent.name not in ("bin", "Scripts") or (row.is_inside and len(path.parts) > 2):
        return False
    names = {e.name for e in distribution.entry_points if e.group.endswith("_scripts")}
    return any(path.name in (n, f"{n}.exe", f"{n}-script.py", f"{n}-script.pyw") for n in names)


def _roots(paths: Iterable[str]) -> list[str]:
    """The outermost folders in which files are listed."""
    folders = {str(PurePosixPath(path).parent) for path in paths} - {"."}
    above = {folder: {str(p) for p in PurePosixPath(folder).parents} for folder in folders}
    return sorted(folder for folder in folders if not above[folder] & folders)


def _listed_by_others(root: Path, dist_info: str) -> set[str]:
    """The files of other distributions: `livekit` is a namespace that several share."""
    listed: set[str] = set()
    for other in distributions(path=[str(root)]):
        # not their `files`: from 3.12 on it leaves out paths that Windows wrote; and what is wrong
        # with their RECORD is no concern of ours
        with suppress(CtxlockError, UnicodeDecodeError):
            record = parse_record(other.read_text("RECORD") or "")
            if record.dist_info != dist_info:
                listed.update(row.path for row in record.rows)
    return listed


def _checked(
    version: Version,
    record: Record,
    read: Callable[[str], bytes | None],
    extra: Sequence[str],
) -> Upstream:
    """Checks every file against its row; the error names all that differ."""
    files: dict[str, bytes] = {}
    problems: list[str] = []
    spellings: dict[str, str] = {}
    for row in record.rows:
        # on Windows and macOS the second would be written over the first
        other = spellings.setdefault(row.path.casefold(), row.path)
        if other != row.path:
            problems.append(f"{row.path} differs from {other} only in upper and lower case")
        elif not row.is_inside or row.path.partition("/")[0].endswith(".data"):
            problems.append(f"{row.path} is not a plain path inside site-packages")
        elif (content := read(row.path)) is None:
            problems.append(f"{row.path} is missing")
        elif (problem := row.mismatch(content)) is not None:
            problems.append(f"{row.path} {problem}")
        else:
            files[row.path] = content
    problems.extend(f"{path} is not listed in RECORD" for path in sorted(extra))
    for needed in (TARGET, f"{record.dist_info}/METADATA", f"{record.dist_info}/WHEEL"):
        if needed not in {row.path for row in record.rows} | set(extra):
            problems.append(f"{needed} is needed, but is not there")
    if problems:
        raise CtxlockError(
            f"{NAME} {version} is not what its RECORD says, so nothing was built; install the "
            "published release again. What differs:\n  " + "\n  ".join(problems)
        )
    return Upstream(version, record.dist_info, files)
