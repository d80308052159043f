"""Tiny releases of livekit-agents, as wheels and as installers leave them, for the builder's tests.

A release is a mapping from path to content, without RECORD.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping
from email.parser import BytesParser
from pathlib import Path

from activity import REPLACING, module
from packaging.utils import parse_wheel_filename

from ctxlock.release import NEWEST_VERIFIED, overlay_version
from ctxlock.target import TARGET

Files = dict[str, bytes]

PATCHED, FULL = (str(overlay_version(NEWEST_VERIFIED, scope)) for scope in ("lock", "full"))
"""The versions of the patched wheels of the newest verified release."""

VERSION = "1.8.4"
DIST_INFO = f"livekit_agents-{VERSION}.dist-info"
METADATA = f"{DIST_INFO}/METADATA"
WHEEL = f"{DIST_INFO}/WHEEL"
RECORD = f"{DIST_INFO}/RECORD"


def metadata(version: str = VERSION) -> bytes:
    """A METADATA that an overlay has to keep; some of its lines only look like a version."""
    return f"""\
Metadata-Version: 2.4
Name: livekit-agents
Version: {version}
Summary: Voices
License: Do as you like, whatever the
 Version: is
Requires-Python: >=3.10
Requires-Dist: livekit>=1
Provides-Extra: openai
Requires-Dist: livekit-plugins-openai>={version}; extra == 'openai'
Description-Content-Type: text/markdown

# Agents
Version: 9.9.9
""".encode()


def wheel_file(*tags: str, version: str = "1.0") -> bytes:
    """A WHEEL with `tags`."""
    lines = [f"Wheel-Version: {version}", "Generator: a-backend 1.0", "Root-Is-Purelib: true"]
    return "".join(f"{line}\n" for line in [*lines, *(f"Tag: {tag}" for tag in tags)]).encode()


def release(version: str = VERSION, more: Mapping[str, bytes] | None = None) -> Files:
    """A stock release; `more` maps names in its dist-info folder to their content."""
    dist_info = f"livekit_agents-{version}.dist-info"
    return {
        "livekit/agents/__init__.py": b"",
        "livekit/agents/version.py": f'__version__ = "{version}"\n'.encode(),
        TARGET: module(REPLACING).encode(),
        "livekit/agents/resources/chime.ogg": bytes(range(256)),
        f"{dist_info}/WHEEL": wheel_file("py3-none-any"),
        f"{dist_info}/METADATA": metadata(version),
        f"{dist_info}/licenses/LICENSE": b"Do as you like.\n",
        **{f"{dist_info}/{name}": content for name, content in (more or {}).items()},
    }


def record(files: Mapping[str, bytes], own: str, algorithm: str = "sha256") -> bytes:
    """The RECORD of `files`; `own` is its path."""
    table = io.StringIO(newline="")
    rows = csv.writer(table, lineterminator="\n")
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.new(algorithm, content).digest())
        rows.writerow((path, f"{algorithm}={digest.rstrip(b'=').decode()}", len(content)))
    rows.writerow((own, "", ""))
    return table.getvalue().encode()


def write_wheel(path: Path, files: Mapping[str, bytes], listed: bytes | None = None) -> Path:
    """Writes a stock wheel, as unlike an overlay's canonical form as it may be."""
    own = record_path(files)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in {**files, own: listed or record(files, own)}.items():
            wheel.writestr(name, content)
    return path


def install(folder: Path, files: Mapping[str, bytes], installer: str = "pip") -> Path:
    """Installs `files` into `folder`, and leaves there what pip or uv leaves."""
    own = record_path(files)
    dist_info = own.removesuffix("/RECORD")
    added = {f"{dist_info}/INSTALLER": installer.encode(), f"{dist_info}/REQUESTED": b""}
    unhashed = []
    if installer == "pip":
        added[f"{dist_info}/direct_url.json"] = b"{}"
        unhashed = ["livekit/agents/__pycache__/version.cpython-311.pyc"]
    else:
        added |= {f"{dist_info}/uv_cache.json": b"{}", f"{dist_info}/uv_build.json": b"{}"}
    table = record({**files, **added}, own) + "".join(f"{p},,\n" for p in unhashed).encode()
    put(folder, {**files, **added, **dict.fromkeys(unhashed, b"bytecode"), own: table})
    return folder


def put(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes `files` below `folder`."""
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def record_path(files: Iterable[str]) -> str:
    """Where the RECORD of `files` belongs."""
    return next(path for path in files if path.endswith("/METADATA")).replace("METADATA", "RECORD")


def contents(wheel: Path) -> Files:
    """The files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def assert_valid(wheel: Path) -> None:
    """The wheel is what the formats ask for: its name, its tags, and a RECORD of every file."""
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
    assert len({name.lower() for name in names}) == len(names)
    files = contents(wheel)
    name, version, _, tags = parse_wheel_filename(wheel.name)
    dist_info = f"{name.replace('-', '_')}-{version}.dist-info"
    assert {path.partition("/")[0] for path in names if ".dist-info/" in path} == {dist_info}
    said = BytesParser().parsebytes(files[f"{dist_info}/METADATA"], headersonly=True)
    assert (said["Name"], said["Version"]) == (name, str(version))
    said = BytesParser().parsebytes(files[f"{dist_info}/WHEEL"], headersonly=True)
    assert said["Wheel-Version"] == "1.0"
    assert set(said.get_all("Tag", [])) == {str(tag) for tag in tags}
    own = f"{dist_info}/RECORD"
    listed = files.pop(own)
    assert listed == record(files, own)
