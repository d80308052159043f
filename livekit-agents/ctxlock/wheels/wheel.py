"""Reads wheels, and writes them the same to the byte whoever builds; knows nothing of locks."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from email.parser import BytesParser
from pathlib import Path
from typing import IO

from packaging.version import Version

from ..errors import CtxlockError

__all__ = [
    "check_writable",
    "read_entries",
    "replace_version",
    "wheel_filename",
    "write_atomically",
    "write_wheel",
]

_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_MODE = 0o100644 << 16

# They become part of a path.
_TAG = re.compile(r"[A-Za-z0-9_.]+(-[A-Za-z0-9_.]+){2}")
_BUILD = re.compile(r"[0-9][A-Za-z0-9_.]*")


def read_entries(wheel: Path) -> list[tuple[str, bytes]]:
    """The files in a wheel, the same name as often as it stands there.

    Raises:
        CtxlockError: It cannot be read, or is damaged.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            return [
                (entry.filename, archive.read(entry))
                for entry in archive.infolist()
                if not entry.is_dir()
            ]
    except OSError as e:
        raise CtxlockError(f"{wheel} could not be read: {e.strerror or e}.") from None
    except Exception:  # zipfile lets through whatever its decompressors raise
        raise CtxlockError(
            f"{wheel} is no wheel: it is not a zip file, or is damaged; build or fetch it again."
        ) from None


def write_wheel(folder: Path, filename: str, dist_info: str, files: Mapping[str, bytes]) -> Path:
    """Writes a wheel: entries sorted, dist-info last, times and modes fixed, nothing compressed.

    Compressed bytes would depend on the zlib that the interpreter links.

    Args:
        folder: Where it goes.
        filename: What it is called.
        dist_info: The name of its dist-info folder.
        files: Its files by path, without RECORD, which is made here.

    Returns:
        The wheel's path.

    Raises:
        CtxlockError: `folder` cannot be written to; nothing is left there then.
    """
    ordered = sorted(files, key=lambda path: (path.startswith(f"{dist_info}/"), path))
    record = io.StringIO(newline="")
    rows = csv.writer(record, lineterminator="\n")
    rows.writerows((path, _digest(files[path]), len(files[path])) for path in ordered)
    rows.writerow((f"{dist_info}/RECORD", "", ""))

    def write(stream: IO[bytes]) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            for path in ordered:
                archive.writestr(_entry(path), files[path])
            archive.writestr(_entry(f"{dist_info}/RECORD"), record.getvalue().encode())

    return write_atomically(folder / filename, write)


def write_atomically(path: Path, write: Callable[[IO[bytes]], None]) -> Path:
    """Has `write` fill a temporary file beside `path`, and puts it in place once it is whole.

    Raises:
        CtxlockError: The folder cannot be written to.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as stream:
            temporary = Path(stream.name)
            write(stream)
        temporary.chmod(0o644)
        os.replace(temporary, path)
    except OSError as e:
        raise CtxlockError(
            f"{path.name} could not be written to {path.parent}: {e.strerror or e}; name a folder "
            "that you may write to."
        ) from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
    return path


def check_writable(path: Path) -> None:
    """Sees that `write_atomically` can write to `path`, before long work begins.

    Raises:
        CtxlockError: It is a folder or a device, its folder is missing or may not be written to.
    """
    if path.exists() and not path.is_file():
        raise CtxlockError(f"{path} exists, but is not a file; name a file to write.")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as e:
        raise CtxlockError(
            f"{path.name} cannot be written to {path.parent}: {e.strerror or e}; name a file in "
            "an existing folder that you may write to."
        ) from None


def wheel_filename(name: str, version: Version, wheel: bytes) -> str:
    """The file name that belongs to a WHEEL file's tags.

    Args:
        name: The project's name.
        version: The wheel's version.
        wheel: The content of its WHEEL file.

    Raises:
        CtxlockError: It is of a later format, or its tags are none.
    """
    headers = BytesParser().parsebytes(wheel, headersonly=True)
    wheel_version = str(headers["Wheel-Version"])
    if wheel_version.partition(".")[0] != "1":
        raise CtxlockError(
            f"The WHEEL file of this release has Wheel-Version {wheel_version}, but only 1.x is "
            "understood; choose another release."
        )
    tags = [str(tag) for tag in headers.get_all("Tag", [])]
    build = [str(number) for number in headers.get_all("Build", [])]
    if not tags or not all(map(_TAG.fullmatch, tags)) or not all(map(_BUILD.fullmatch, build)):
        raise CtxlockError(
            f"The WHEEL file of this release has tags or a build number that are not understood: "
            f"{', '.join([*tags, *build]) or 'none'}; choose another release."
        )
    columns = zip(*(tag.split("-") for tag in tags), strict=True)
    parts = [".".join(sorted(set(column))) for column in columns]
    return "-".join([re.sub(r"[-_.]+", "_", name).lower(), str(version), *build, *parts]) + ".whl"


def replace_version(metadata: bytes, version: Version) -> bytes:
    """METADATA with another version, and otherwise the same bytes.

    Raises:
        CtxlockError: It has no version.
    """
    changed, count = re.subn(
        rb"\A((?:[^\r\n]+\r?\n)*?Version:[ \t]*)[^\r\n]*",
        rb"\g<1>" + str(version).encode(),
        metadata,
    )
    if count != 1:
        raise CtxlockError("The METADATA of this release names no version; choose another one.")
    return changed


def _digest(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return f"sha256={digest.rstrip(b'=').decode()}"


def _entry(path: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, _EPOCH)
    entry.create_system = _UNIX
    entry.external_attr = _MODE
    return entry
