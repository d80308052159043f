from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from packages import (
    DIST_INFO,
    METADATA,
    RECORD,
    VERSION,
    WHEEL,
    Files,
    install,
    metadata,
    put,
    record,
    release,
    write_wheel,
)
from packaging.version import Version

from ctxlock.errors import CtxlockError
from ctxlock.target import TARGET
from ctxlock.wheels.upstream import Upstream, read_installed, read_wheel

OTHER = "livekit/agents/version.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A stock release as pip installs it."""
    return install(tmp_path, release())


def refusal(folder: Path) -> str:
    with pytest.raises(CtxlockError) as refused:
        read_installed([str(folder)])
    return str(refused.value)


def refusal_of_a_wheel(folder: Path, files: Files, listed: bytes | None = None) -> str:
    with pytest.raises(CtxlockError) as refused:
        read_wheel(write_wheel(folder / "a.whl", files, listed))
    return str(refused.value)


def problems(folder: Path) -> list[str]:
    """What differs, by the error for an installed release that was tampered with."""
    head, *rest = refusal(folder).split("\n  ")
    assert head == (
        f"livekit-agents {VERSION} is not what its RECORD says, so nothing was built; install the "
        "published release again. What differs:"
    )
    return rest


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_the_installers_agree_with_the_wheel(tmp_path: Path, installer: str) -> None:
    installed = read_installed([str(install(tmp_path / "site", release(), installer))])
    assert installed == Upstream(Version(VERSION), DIST_INFO, release())
    assert installed == read_wheel(write_wheel(tmp_path / "stock.whl", release()))
    assert installed.target == release()[TARGET]


@pytest.mark.parametrize("version", ["1.0.0", "1.6.11rc1", "1.8.9.post1", "2.0.0b1", "1!2.0.0"])
def test_versions(tmp_path: Path, version: str) -> None:
    files = release(version)
    assert read_installed([str(install(tmp_path / "a", files))]).version == Version(version)
    assert read_wheel(write_wheel(tmp_path / "b.whl", files)).version == Version(version)


def test_the_first_on_the_path_counts(tmp_path: Path) -> None:
    for version in ("1.8.4", "1.8.5"):
        install(tmp_path / version, release(version))
    paths = [str(tmp_path / v) for v in ("empty", "1.8.5", "1.8.4")]
    assert read_installed(paths).version == Version("1.8.5")


def test_sys_path_is_the_default(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tree))
    assert read_installed().version == Version(VERSION)


@pytest.mark.parametrize("folder", ["with a space", "mit Ümläut", "日本"])
def test_folder_names(tmp_path: Path, folder: str) -> None:
    assert read_installed([str(install(tmp_path / folder, release()))]).files == release()


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({**release(), 'livekit/agents/a, b ü "c".txt': b"x"}, id="a name"),
        pytest.param(
            {**release(), "livekit/agents/x.data/y": b"", "livekit/agents/z.dist-info/y": b""},
            id="folders of package data",
        ),
        pytest.param({p: t.replace(b"\n", b"\r\n") for p, t in release().items()}, id="CRLF"),
    ],
)
def test_what_a_release_may_hold(tmp_path: Path, files: Files) -> None:
    assert read_installed([str(install(tmp_path / "site", files))]).files == files
    assert read_wheel(write_wheel(tmp_path / "a.whl", files)).files == files


def test_symlinks_as_uv_can_make_them(tmp_path: Path) -> None:
    cache, site = install(tmp_path / "cache", release()), tmp_path / "site"
    try:
        for file in cache.rglob("*"):
            link = site / file.relative_to(cache)
            if file.is_file():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(file)
    except OSError:
        pytest.skip("symlinks may not be made here")
    assert read_installed([str(site)]).files == release()


def test_absent(tmp_path: Path) -> None:
    assert refusal(tmp_path) == (
        "livekit-agents is not installed here; the backend patches the release that its build "
        "requirements install, so build with isolation or install it first."
    )


def test_without_its_record(tree: Path) -> None:
    (tree / RECORD).unlink()
    assert refusal(tree) == (
        f"livekit-agents {VERSION} has no RECORD to check it against; reinstall it from a wheel."
    )


@pytest.mark.parametrize("version", ["1.8.4+ctxlock.1", "1.8.4+mine"])
def test_an_overlay_or_a_build_of_ones_own(tmp_path: Path, version: str) -> None:
    files = release(version)
    assert refusal(install(tmp_path / "site", files)) == (
        f"livekit-agents {version} is patched already, or somebody's own build; the patch is "
        "made from the stock release 1.8.4. Build with isolation, or install that first. If an "
        "installer chose this one in its place, do not let it search a folder or an index of "
        "patched wheels."
    )
    assert refusal_of_a_wheel(tmp_path, files) == (
        f"{tmp_path / 'a.whl'} is a patched wheel, or somebody's own build ({version}); give the "
        "stock wheel of livekit-agents 1.8.4."
    )


@pytest.mark.parametrize("version", ["0.12.20", "1.0.0rc9"])
def test_too_old(tmp_path: Path, version: str) -> None:
    files = release(version)
    expected = f"livekit-agents {version} is too old; ctxlock patches 1.0.0 and later."
    assert refusal(install(tmp_path / "site", files)) == expected
    assert refusal_of_a_wheel(tmp_path, files) == expected


@pytest.mark.parametrize("path", [TARGET, OTHER, METADATA, WHEEL])
def test_an_edited_file(tree: Path, path: str) -> None:
    content = (tree / path).read_bytes()
    (tree / path).write_bytes(content[:-1] + b"#")
    assert problems(tree) == [f"{path} has another sha256 than RECORD says"]
    (tree / path).write_bytes(content + b"#")
    size = len(content)
    assert problems(tree) == [f"{path} has {size + 1} bytes where RECORD says {size}"]


def test_an_edit_of_the_version(tree: Path) -> None:
    (tree / METADATA).write_bytes(metadata("1.8.5"))
    assert "METADATA has another sha256" in refusal(tree)


@pytest.mark.parametrize("path", [TARGET, OTHER, WHEEL])
def test_a_missing_file(tree: Path, path: str) -> None:
    (tree / path).unlink()
    assert problems(tree) == [f"{path} is missing"]
    (tree / path).mkdir()  # in its place
    assert problems(tree) == [f"{path} is missing"]


@pytest.mark.parametrize("path", [TARGET, OTHER, WHEEL])
def test_a_file_missing_from_record(tree: Path, path: str) -> None:
    rows = (tree / RECORD).read_text().splitlines(keepends=True)
    (tree / RECORD).write_text("".join(row for row in rows if not row.startswith(path)))
    assert problems(tree) == [f"{path} is not listed in RECORD"]


@pytest.mark.parametrize("path", [TARGET, WHEEL])
def test_a_release_without_what_is_needed(tmp_path: Path, path: str) -> None:
    files = release()
    del files[path]
    expected = [f"{path} is needed, but is not there"]
    assert problems(install(tmp_path / "site", files)) == expected
    assert refusal_of_a_wheel(tmp_path, files).split("\n  ")[1:] == expected


@pytest.mark.parametrize(
    "path",
    [
        "livekit/agents/voice/extra.py",
        "livekit/agents/new/extra.so",
        f"{DIST_INFO}/extra.json",
        "livekit/agents/INSTALLER",
    ],
)
def test_an_unlisted_file(tree: Path, path: str) -> None:
    put(tree, {path: b"x"})
    assert problems(tree) == [f"{path} is not listed in RECORD"]


def test_unlisted_bytecode_is_nobodys_concern(tree: Path) -> None:
    put(tree, {"livekit/agents/voice/__pycache__/agent_activity.cpython-310.pyc": b"x"})
    assert read_installed([str(tree)]).files == release()


def test_everything_at_once(tree: Path) -> None:
    (tree / TARGET).write_bytes(b"")
    (tree / OTHER).unlink()
    put(tree, {"livekit/agents/z.py": b"", "livekit/agents/a.py": b""})
    with (tree / RECORD).open("a") as table:
        table.write("../evil.py,sha256=x,1\n")
    size = len(release()[TARGET])
    assert problems(tree) == [
        f"{OTHER} is missing",
        f"{TARGET} has 0 bytes where RECORD says {size}",
        "../evil.py is not a plain path inside site-packages",
        "livekit/agents/a.py is not listed in RECORD",
        "livekit/agents/z.py is not listed in RECORD",
    ]


@pytest.mark.parametrize(
    "path",
    [
        "../evil.py",
        "livekit/../../evil.py",
        "livekit/agents/../agents/version.py",
        "/etc/hostname",
        "C:/Windows/x.py",
        "//host/share/x.py",
        f"./{TARGET}",
        "livekit_agents-1.8.4.data/scripts/x",
    ],
)
@pytest.mark.parametrize("slash", ["/", "\\"])
def test_paths_that_lead_elsewhere(tmp_path: Path, path: str, slash: str) -> None:
    files = release()
    site = install(tmp_path / "site", files)
    written = path.replace("/", slash)
    row = record({written: b"x"}, RECORD).splitlines(keepends=True)[0]
    with (site / RECORD).open("ab") as table:
        table.write(row)
    assert problems(site) == [f"{path} is not a plain path inside site-packages"]
    listed = row + record(files, RECORD)
    said = refusal_of_a_wheel(tmp_path, {written: b"x", **files}, listed)
    assert "is not a plain path inside site-packages" in said


@pytest.mark.parametrize("other", ["livekit/agents/VERSION.py", "LiveKit/agents/version.py"])
def test_paths_that_differ_in_case_only(tmp_path: Path, other: str) -> None:
    """One would be written over the other where case does not count."""
    files = {**release(), other: b"x"}
    said = f"{other} differs from livekit/agents/version.py only in upper and lower case"
    assert problems(install(tmp_path / "site", files)) == [said]
    assert said in refusal_of_a_wheel(tmp_path, files)


@pytest.mark.parametrize("change", ["backslashes", "CRLF", "both"])
def test_records_as_windows_has_them(tree: Path, change: str) -> None:
    text = (tree / RECORD).read_bytes()
    if change != "CRLF":
        text = text.replace(b"/", b"\\")
    if change != "backslashes":
        text = text.replace(b"\n", b"\r\n")
    (tree / RECORD).write_bytes(text)
    assert read_installed([str(tree)]).files == release()


ENTRY_POINTS = b"[console_scripts]\nlk-agents = a:b\n[gui_scripts]\nlk-gui = a:b\n[x]\nother = a\n"


@pytest.mark.parametrize(
    "script",
    [
        "../../../bin/lk-agents",
        "../../../bin/lk-gui",
        "../../Scripts/lk-agents.exe",
        "../../Scripts/lk-agents-script.py",
        "..\\..\\Scripts\\lk-agents.exe",
        "D:\\Python\\Scripts\\lk-agents.exe",
        "/usr/local/bin/lk-agents",
        pytest.param("bin/lk-agents", id="target folder"),
    ],
)
def test_scripts_are_the_installers(tmp_path: Path, script: str) -> None:
    files = release(more={"entry_points.txt": ENTRY_POINTS})
    site = install(tmp_path, files)
    with (site / RECORD).open("ab") as table:
        table.write(record({script: b"#!python"}, RECORD).splitlines(keepends=True)[0])
    put(site, {"bin/lk-agents": b"#!python"})
    assert read_installed([str(site)]).files == files


@pytest.mark.parametrize("script", ["../../../bin/other", "../../../bin/sh", "../../lk-agents"])
def test_other_files_outside_are_not(tmp_path: Path, script: str) -> None:
    site = install(tmp_path, release(more={"entry_points.txt": ENTRY_POINTS}))
    with (site / RECORD).open("a") as table:
        table.write(f"{script},,\n")
    assert problems(site) == [f"{script} is not a plain path inside site-packages"]


def neighbour(folder: Path, path: str, slash: str = "/") -> None:
    """Installs another distribution that has one file."""
    files = {path: b"", "livekit_plugins_x-1.dist-info/METADATA": b"Name: livekit-plugins-x\n"}
    listed = record(files, "livekit_plugins_x-1.dist-info/RECORD").replace(b"/", slash.encode())
    put(folder, {**files, "livekit_plugins_x-1.dist-info/RECORD": listed})


@pytest.mark.parametrize("slash", ["/", "\\"])
@pytest.mark.parametrize("path", ["livekit/plugins/x.py", "livekit/x.py", "livekit/agents/x.py"])
def test_files_of_other_distributions_are_not_blamed(tmp_path: Path, path: str, slash: str) -> None:
    # with a file in the shared folder itself, all of it is walked
    files = {"livekit/py.typed": b"", **release()}
    neighbour(tmp_path, path, slash)
    assert read_installed([str(install(tmp_path, files))]).files == files


def test_a_neighbour_that_lists_nothing(tmp_path: Path) -> None:
    neighbour(tmp_path, "livekit/plugins/x.py")
    (tmp_path / "livekit_plugins_x-1.dist-info" / "RECORD").unlink()
    assert read_installed([str(install(tmp_path, release()))]).files == release()
    put(tmp_path, {"livekit/agents/x.py": b""})
    assert problems(tmp_path) == ["livekit/agents/x.py is not listed in RECORD"]


def test_two_of_them_in_one_folder(tree: Path) -> None:
    install(tree, release("1.8.5"))
    assert refusal(tree) == (
        f"{tree} holds more than one dist-info folder of livekit-agents; remove them and install "
        "one release again."
    )


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="absent"),
        pytest.param(b"", id="empty"),
        pytest.param(b"Name: livekit-agents\n\nVersion: 1.8.4\n", id="in the description"),
        pytest.param(b"Name: livekit-agents\nVersion: new\n", id="invalid"),
    ],
)
def test_no_version(tree: Path, content: bytes | None) -> None:
    (tree / METADATA).unlink()
    if content is not None:
        (tree / METADATA).write_bytes(content)
    assert refusal(tree) == (
        "The METADATA of livekit-agents names no valid version; install the published release "
        "again."
    )


@pytest.mark.parametrize("path", [METADATA, RECORD])
def test_not_utf8(tree: Path, path: str) -> None:
    (tree / path).write_bytes((tree / path).read_bytes() + b"\xff")
    assert refusal(tree) == (
        "METADATA or RECORD of livekit-agents is not encoded in UTF-8; install the published "
        "release again."
    )


@pytest.mark.parametrize("algorithm", ["sha384", "sha512"])
def test_longer_hashes(tmp_path: Path, algorithm: str) -> None:
    files = release()
    wheel = write_wheel(tmp_path / "a.whl", files, record(files, RECORD, algorithm))
    assert read_wheel(wheel).files == files


@pytest.mark.parametrize("algorithm", ["md5", "sha1"])
def test_weaker_hashes(tmp_path: Path, algorithm: str) -> None:
    files = release()
    said = refusal_of_a_wheel(tmp_path, files, record(files, RECORD, algorithm))
    assert said.count("has no hash in RECORD that can be trusted") == len(files)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        pytest.param(
            {**release(), OTHER: release()[OTHER] + b"#"},
            f"{OTHER} has 23 bytes where RECORD says 22",
            id="edited",
        ),
        pytest.param(
            {path: text for path, text in release().items() if path != OTHER},
            f"{OTHER} is missing",
            id="one less",
        ),
        pytest.param(
            {**release(), "livekit/agents/x.py": b""},
            "livekit/agents/x.py is not listed in RECORD",
            id="one more",
        ),
    ],
)
def test_a_wheel_that_was_tampered_with(tmp_path: Path, files: Files, problem: str) -> None:
    head, *rest = refusal_of_a_wheel(tmp_path, files, record(release(), RECORD)).split("\n  ")
    assert "is not what its RECORD says" in head
    assert rest == [problem]


def test_a_wheel_with_a_file_twice(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "a.whl", release())
    with zipfile.ZipFile(wheel, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(TARGET, release()[TARGET])
    with pytest.raises(CtxlockError, match="holds a file of the same name twice"):
        read_wheel(wheel)


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="empty"),
        pytest.param({RECORD: b""}, id="no METADATA"),
        pytest.param(release(), id="no RECORD"),
        pytest.param({**release(), RECORD: b"", "a-1.dist-info/RECORD": b""}, id="two"),
    ],
)
def test_a_zip_file_that_is_no_wheel(tmp_path: Path, files: Files) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
    with pytest.raises(CtxlockError, match=r"a\.whl is no wheel: it needs one dist-info folder"):
        read_wheel(tmp_path / "a.whl")


def test_a_wheel_of_another_project(tmp_path: Path) -> None:
    changed = {METADATA: metadata().replace(b"Name: livekit-agents", b"Name: livekit-api")}
    said = refusal_of_a_wheel(tmp_path, {**release(), **changed})
    assert "a wheel of livekit-api; one of livekit-agents is needed" in said


def test_no_file_and_no_zip_file(tmp_path: Path) -> None:
    with pytest.raises(CtxlockError, match=r"a\.whl could not be read: No such file"):
        read_wheel(tmp_path / "a.whl")
    (tmp_path / "a.whl").write_bytes(b"PK no")
    with pytest.raises(CtxlockError, match=r"a\.whl is no wheel: it is not a zip file"):
        read_wheel(tmp_path / "a.whl")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_wheel_is_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("wheel")
    wheel = write_wheel(folder / "a.whl", release())
    content = bytearray(wheel.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    wheel.write_bytes(content)
    try:
        read = read_wheel(wheel)
    except CtxlockError as e:
        assert str(e)
    else:
        assert read.files == release()


@settings(deadline=None)
@given(path=st.sampled_from(sorted(release())), place=st.integers(0), byte=st.integers(0, 255))
def test_no_edit_goes_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, path: str, place: int, byte: int
) -> None:
    files = release()
    content = bytearray(files[path] or b"x")
    content[place % len(content)] = byte
    site = install(tmp_path_factory.mktemp("site"), files)
    (site / path).write_bytes(content)
    try:
        read = read_installed([str(site)])
    except CtxlockError:
        assert bytes(content) != files[path]
    else:
        assert read.files == files
        assert bytes(content) == files[path]
