from __future__ import annotations

import errno
import gzip
import os
import struct
import tarfile
import zlib
from email.parser import BytesParser
from pathlib import Path, PurePosixPath
from typing import NoReturn

import pytest
from packaging.metadata import Metadata
from packaging.utils import parse_sdist_filename
from packaging.version import Version

from ctxlock import PATCH_NUMBER
from ctxlock.buildapi import TREE
from ctxlock.errors import CtxlockError
from ctxlock.release import NEWEST_VERIFIED, choose_release, choose_scope, overlay_version
from ctxlock.wheels.sdist import write_sdist

VERSION = overlay_version(Version("1.8.4"), "lock")
ROOT = f"livekit_agents-{VERSION}"


@pytest.fixture
def sdist(tmp_path: Path) -> Path:
    return write_sdist(TREE, VERSION, tmp_path)


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {m.name: file.read() for m in archive if (file := archive.extractfile(m))}


def unpack(path: Path, folder: Path) -> Path:
    for name, content in members(path).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder / ROOT


def test_is_named_by_the_release(sdist: Path) -> None:
    assert sdist.name == f"{ROOT}.tar.gz"
    assert parse_sdist_filename(sdist.name) == (
        "livekit-agents",
        Version(f"1.8.4+ctxlock.{PATCH_NUMBER}.lock"),
    )


def test_holds_this_projects_files_alone(sdist: Path) -> None:
    found = members(sdist)
    expected = {f"{ROOT}/pyproject.toml", f"{ROOT}/LICENSE", f"{ROOT}/PKG-INFO"}
    expected |= {
        f"{ROOT}/{path.relative_to(TREE).as_posix()}" for path in (TREE / "ctxlock").rglob("*.py")
    }
    assert found.keys() == expected
    assert not any("livekit" in PurePosixPath(name).parts for name in found)
    for name, content in found.items():
        if not name.endswith("/PKG-INFO"):
            assert content == (TREE / PurePosixPath(name).relative_to(ROOT)).read_bytes()


def test_pkg_info(sdist: Path) -> None:
    content = members(sdist)[f"{ROOT}/PKG-INFO"]
    metadata = Metadata.from_email(content)
    assert (metadata.name, str(metadata.version)) == (
        "livekit-agents",
        f"1.8.4+ctxlock.{PATCH_NUMBER}.lock",
    )
    said = BytesParser().parsebytes(content)
    assert set(said) == {"Metadata-Version", "Name", "Version", "Dynamic"}
    assert said.get_payload() == ""


def test_entries_are_canonical(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        entries = archive.getmembers()
    assert [entry.name for entry in entries] == sorted(entry.name for entry in entries)
    for entry in entries:
        assert entry.isreg()
        assert not entry.pax_headers
        assert (entry.mtime, entry.mode, entry.uid, entry.gid) == (0, 0o644, 0, 0)
        assert (entry.uname, entry.gname) == ("", "")


def test_two_are_identical(tmp_path: Path, sdist: Path) -> None:
    again = write_sdist(TREE, VERSION, tmp_path / "again")
    assert sdist.read_bytes() == again.read_bytes()
    # gzip's own flags and time
    assert sdist.read_bytes()[3:8] == bytes(5)


def test_no_byte_is_left_to_zlib(sdist: Path) -> None:
    """Each block is stored, and all but the last are as long as can be."""
    packed, place = sdist.read_bytes(), 10
    sizes: list[int] = []
    while place < len(packed) - 8:
        last, size = struct.unpack_from("<BH", packed, place)
        place += 5 + size
        sizes.append(size)
        assert last == (place == len(packed) - 8)  # and the bits that say how it is packed are 0
    assert len(sizes) > 1
    assert set(sizes[:-1]) == {0xFFFF}
    assert gzip.decompress(packed)[:100].startswith(ROOT.encode())


def test_one_made_of_itself_is_identical(tmp_path: Path, sdist: Path) -> None:
    tree = unpack(sdist, tmp_path)
    bound = choose_release(None, tree)
    assert bound == Version("1.8.4") != NEWEST_VERIFIED
    version = overlay_version(bound, choose_scope(None, tree))
    assert write_sdist(tree, version, tmp_path / "again").read_bytes() == sdist.read_bytes()


def test_stray_files_stay_out(tmp_path: Path, sdist: Path) -> None:
    tree = unpack(sdist, tmp_path)
    for stray in (
        "ctxlock/__pycache__/build.cpython-311.pyc",
        "ctxlock/notes.txt",
        "ctxlock/.build.py.swp",
        "dist/a.whl",
        "build/lib/a.py",
    ):
        (tree / stray).parent.mkdir(parents=True, exist_ok=True)
        (tree / stray).write_bytes(b"stray")
    again = write_sdist(tree, VERSION, tmp_path / "again")
    assert again.read_bytes() == sdist.read_bytes()


def test_a_file_in_the_folders_place(tmp_path: Path) -> None:
    (tmp_path / "dist").write_bytes(b"here first")
    with pytest.raises(CtxlockError, match=r"tar\.gz could not be written to .*; name a folder"):
        write_sdist(TREE, VERSION, tmp_path / "dist")
    assert (tmp_path / "dist").read_bytes() == b"here first"


def test_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(zlib, "crc32", fail)  # asked for at the very end
    with pytest.raises(CtxlockError, match=os.strerror(errno.ENOSPC)):
        write_sdist(TREE, VERSION, tmp_path)
    assert not list(tmp_path.iterdir())
