"""Writes the source distribution: this project's files alone, bound to one upstream release."""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from packaging.version import Version

from .wheel import write_atomically

__all__ = ["write_sdist"]

# The most that a stored block of deflate holds.
_BLOCK = 0xFFFF

_DYNAMIC = (
    "Summary",
    "Description",
    "Description-Content-Type",
    "Author-email",
    "License-Expression",
    "Keywords",
    "Classifier",
    "Project-URL",
    "Requires-Python",
    "Requires-Dist",
    "Provides-Extra",
)


def write_sdist(tree: Path, version: Version, folder: Path) -> Path:
    """Packs `tree` into a source distribution of the overlay wheel of that version.

    Raises:
        CtxlockError: `folder` cannot be written to; nothing is left there then.
    """
    root = f"livekit_agents-{version}"
    files = {
        path.relative_to(tree).as_posix(): path.read_bytes()
        for path in [tree / "pyproject.toml", tree / "LICENSE", *(tree / "ctxlock").rglob("*.py")]
    }
    headers = ["Metadata-Version: 2.4", "Name: livekit-agents", f"Version: {version}"]
    headers += [f"Dynamic: {field}" for field in _DYNAMIC]
    files["PKG-INFO"] = ("\n".join(headers) + "\n").encode()

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(files):
            entry = tarfile.TarInfo(f"{root}/{path}")
            entry.size = len(files[path])
            archive.addfile(entry, io.BytesIO(files[path]))

    def write(stream: IO[bytes]) -> None:
        stream.writelines(_gzip(packed.getvalue()))

    return write_atomically(folder / f"{root}.tar.gz", write)


def _gzip(content: bytes) -> Iterator[bytes]:
    """Gzip in stored blocks, by hand: even those zlib cuts differently from version to version."""
    yield b"\x1f\x8b\x08" + bytes(6) + b"\xff"  # deflate; no flags, no time; of no known system
    for start in range(0, len(content), _BLOCK):
        block = content[start : start + _BLOCK]
        last = start + _BLOCK >= len(content)
        yield struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF) + block
    yield struct.pack("<II", zlib.crc32(content), len(content))
