from __future__ import annotations

import errno
import os
import stat
import zipfile
from email.parser import BytesParser
from pathlib import Path
from typing import IO, NoReturn

import pytest
from hypothesis import given, settings, strategies as st
from packages import DIST_INFO, RECORD, assert_valid, release, wheel_file
from packaging.version import Version

from ctxlock.errors import CtxlockError
from ctxlock.wheels.wheel import replace_version, wheel_filename, write_atomically, write_wheel

NAME = "livekit_agents-1.8.4-py3-none-any.whl"


def test_is_canonical(tmp_path: Path) -> None:
    # by name alone, the last of these would come after the dist-info folder
    wheel = write_wheel(tmp_path, NAME, DIST_INFO, {**release(), "tools/x.py": b""})
    assert wheel == tmp_path / NAME
    assert_valid(wheel)
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
    names = [entry.filename for entry in entries]
    inside = [name.startswith(f"{DIST_INFO}/") for name in names]
    assert inside == sorted(inside)
    count = inside.index(True)
    assert names[:count] == sorted(names[:count])
    assert names[count:-1] == sorted(names[count:-1])
    assert names[-1] == RECORD
    for entry in entries:
        assert entry.date_time == (1980, 1, 1, 0, 0, 0)
        assert entry.external_attr >> 16 == stat.S_IFREG | 0o644
        assert entry.create_system == 3
        assert entry.compress_type == zipfile.ZIP_STORED
        assert not entry.extra and not entry.comment
        assert not entry.flag_bits & 0x08, "no data descriptor"


_segments = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='/\\:*?"<>|'), min_size=1
).filter(lambda name: name.strip(". "))


@settings(deadline=None)
@given(st.dictionaries(st.lists(_segments, min_size=1, max_size=3).map("/".join), st.binary()))
def test_any_file_is_listed_and_comes_back(
    tmp_path_factory: pytest.TempPathFactory, more: dict[str, bytes]
) -> None:
    lowered = {path.lower() for path in more}
    if len(lowered) < len(more):
        return  # `assert_valid` asks for names that a case-insensitive system can hold
    folder = tmp_path_factory.mktemp("wheel")
    files = {**release(), **{f"livekit/{path}": content for path, content in more.items()}}
    wheel = write_wheel(folder, NAME, DIST_INFO, files)
    assert_valid(wheel)
    with zipfile.ZipFile(wheel) as archive:
        assert {n: archive.read(n) for n in archive.namelist() if n != RECORD} == files


def test_a_name_with_a_comma_and_a_letter_beyond_ascii(tmp_path: Path) -> None:
    files = {**release(), 'livekit/agents/a, "b" ü.txt': b"x"}
    assert_valid(write_wheel(tmp_path, NAME, DIST_INFO, files))


def test_folders_are_made_and_their_names_may_be_any(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "ein Ördner" / "räder", NAME, DIST_INFO, release())
    assert_valid(wheel)


def test_a_relative_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert write_wheel(Path("dist"), NAME, DIST_INFO, release()) == Path("dist", NAME)
    assert_valid(tmp_path / "dist" / NAME)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_others_may_read_it(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, NAME, DIST_INFO, release())
    assert stat.S_IMODE(wheel.stat().st_mode) == 0o644


def test_replaces_an_older_one(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"older")
    assert_valid(write_wheel(tmp_path, NAME, DIST_INFO, release()))
    assert [file.name for file in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_to(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_bytes(b"here first")
    with pytest.raises(CtxlockError) as refused:
        write_wheel(tmp_path / folder, NAME, DIST_INFO, release())
    message = str(refused.value)
    assert message.startswith(f"{NAME} could not be written to {tmp_path / folder}: ")
    assert message.endswith("; name a folder that you may write to.")
    assert (tmp_path / "file").read_bytes() == b"here first"


class Full(OSError):
    """What a system says of a full disk."""

    def __init__(self) -> None:
        super().__init__(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("older", [None, b"older"])
@pytest.mark.parametrize("error", [Full, KeyboardInterrupt, ValueError])
def test_nothing_half_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
    older: bytes | None,
) -> None:
    write, left = zipfile.ZipFile.writestr, iter(range(2))

    def writestr(self: zipfile.ZipFile, entry: zipfile.ZipInfo, content: bytes) -> None:
        if next(left, None) is None:
            raise error
        write(self, entry, content)

    if older is not None:
        (tmp_path / NAME).write_bytes(older)
    monkeypatch.setattr(zipfile.ZipFile, "writestr", writestr)
    expected = CtxlockError if error is Full else error
    with pytest.raises(expected) as failed:
        write_wheel(tmp_path, NAME, DIST_INFO, release())
    if error is Full:
        assert os.strerror(errno.ENOSPC) in str(failed.value)
    assert {f.name: f.read_bytes() for f in tmp_path.iterdir()} == (
        {} if older is None else {NAME: older}
    )


def test_nothing_is_left_if_it_cannot_be_put_in_place(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(CtxlockError, match="could not be written to"):
        write_wheel(tmp_path, NAME, DIST_INFO, release())
    assert [file.name for file in tmp_path.iterdir()] == [NAME]


def test_an_error_of_few_words(tmp_path: Path) -> None:
    def fail(stream: IO[bytes]) -> NoReturn:
        raise OSError("it would not")

    with pytest.raises(CtxlockError, match="it would not; name a folder"):
        write_atomically(tmp_path / "x", fail)


def test_nobody_sees_a_part_of_it(tmp_path: Path) -> None:
    def write(stream: IO[bytes]) -> None:
        stream.write(b"a part")
        stream.flush()
        assert not (tmp_path / NAME).exists()

    write_atomically(tmp_path / NAME, write)
    assert (tmp_path / NAME).read_bytes() == b"a part"


MANY_LINUX = "cp310-abi3-manylinux_2_17_x86_64", "cp310-abi3-manylinux2014_x86_64"


@pytest.mark.parametrize(
    ("version", "tags", "tag"),
    [
        ("1.8.9+ctxlock.3.lock", ["py3-none-any"], "py3-none-any"),
        ("1.6.11rc1", ["py3-none-any"], "py3-none-any"),
        ("1!2.0.0.post1", ["py3-none-any"], "py3-none-any"),
        ("1.8.9.dev3+a.1", ["py3-none-any"], "py3-none-any"),
        ("1.8.9", ["py3-none-any", "py2-none-any"], "py2.py3-none-any"),
        ("2.0.0", MANY_LINUX, "cp310-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64"),
        ("2.0.0", ["cp310-abi3-macosx_11_0_arm64"], "cp310-abi3-macosx_11_0_arm64"),
        ("2.0.0b1", ["cp310-abi3-manylinux_2_28_x86_64"], "cp310-abi3-manylinux_2_28_x86_64"),
    ],
)
def test_names_the_wheel_by_its_tags(
    tmp_path: Path, version: str, tags: list[str], tag: str
) -> None:
    name = f"livekit_agents-{version}-{tag}.whl"
    assert wheel_filename("livekit-agents", Version(version), wheel_file(*tags)) == name
    files = {**release(version), f"livekit_agents-{version}.dist-info/WHEEL": wheel_file(*tags)}
    assert_valid(write_wheel(tmp_path, name, f"livekit_agents-{version}.dist-info", files))


def test_names_the_build_number() -> None:
    wheel = wheel_file("py3-none-any") + b"Build: 2\n"
    assert wheel_filename("A.b--C", Version("1"), wheel) == "a_b_c-1-2-py3-none-any.whl"


@pytest.mark.parametrize(
    ("wheel", "reason"),
    [
        pytest.param(wheel_file(), "tags .* not understood: none", id="no tag"),
        pytest.param(wheel_file("any"), "tags .* not understood: any", id="no triple"),
        pytest.param(wheel_file("py3-none-any/../../x"), "not understood: py3", id="a path"),
        pytest.param(wheel_file("py3-none-änÿ"), "tags .* not understood", id="not ASCII"),
        pytest.param(
            wheel_file("py3-none-any") + b"Build: ../1\n", r"not understood: .*\.\./1", id="build"
        ),
        pytest.param(wheel_file("py3-none-any", version="2.0"), "Wheel-Version 2.0", id="later"),
        pytest.param(b"Tag: py3-none-any\n", "Wheel-Version None", id="no version"),
    ],
)
def test_refuses_what_a_name_cannot_be_made_of(wheel: bytes, reason: str) -> None:
    with pytest.raises(CtxlockError, match=f"{reason}.*; choose another release\\.$"):
        wheel_filename("livekit-agents", Version("1.8.4"), wheel)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"Metadata-Version: 2.4\nName: a\n\nVersion: 1\n", id="in the description"),
        pytest.param(b"Metadata-Version: 2.4\r\n\r\nVersion: 1\r\n", id="in the text, CRLF"),
        pytest.param(b"Summary: a\n Version: 1\n", id="in a folded line"),
    ],
)
def test_metadata_without_a_version(metadata: bytes) -> None:
    with pytest.raises(CtxlockError, match=r"METADATA .* names no version"):
        replace_version(metadata, Version("1"))


_lines = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])).map(str.strip)


@settings(deadline=None)
@given(st.lists(_lines), _lines, st.text(st.characters(exclude_categories=["Cs"])))
def test_metadata_round_trip(headers: list[str], version: str, description: str) -> None:
    above = [f"X-{n}: {line}" for n, line in enumerate(headers)]
    text = "\n".join([*above, f"Version: {version}", "Name: a", "", description])
    after = replace_version(text.encode(), Version("1+x.1"))
    assert BytesParser().parsebytes(after, headersonly=True)["Version"] == "1+x.1"
    assert replace_version(after, Version("2")) == replace_version(text.encode(), Version("2"))
    assert len(text.encode()) - len(version.encode()) == len(after) - len("1+x.1")
