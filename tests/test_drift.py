"""What `ctxlock audit` says of a livekit-agents that is, and is not, as it was built."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli import says
from packages import Files, contents, install, put, release, write_wheel

from ctxlock import PATCH_NUMBER
from ctxlock.release import Scope
from ctxlock.target import ADDED, NOTICE, TARGET
from ctxlock.wheels.overlay import build_overlay
from ctxlock.wheels.provenance import FORMAT, PROVENANCE
from ctxlock.wheels.upstream import read_wheel

posix = pytest.mark.skipif(os.name == "nt", reason="needs a shell script")


@pytest.fixture(params=["lock", "full"])
def scope(request: pytest.FixtureRequest) -> Scope:
    chosen: Scope = request.param
    return chosen


@pytest.fixture
def wheel(scope: Scope, tmp_path: Path) -> Path:
    return patched(tmp_path, scope)


@pytest.fixture
def site(wheel: Path, tmp_path: Path) -> Path:
    return unpack(wheel, tmp_path / "site-packages")


def patched(folder: Path, scope: Scope) -> Path:
    """A patched wheel."""
    stock = write_wheel(folder / "livekit_agents-1.8.4-py3-none-any.whl", release())
    return build_overlay(read_wheel(stock), folder / "dist", scope).path


def unpack(wheel: Path, folder: Path) -> Path:
    """Installs a wheel as pip does."""
    files = {path: text for path, text in contents(wheel).items() if not path.endswith("/RECORD")}
    return install(folder, files)


def record_of(site: Path) -> Path:
    (record,) = site.glob(f"*.dist-info/{PROVENANCE}")
    return record


def audited(code: int, expected: dict[str, str], *where: str | Path) -> str:
    """What the text says; the exit code and the state of each file that differs are `expected`."""
    text = says(code, "audit", *where).out
    report = json.loads(says(code, "audit", "--json", *where).out)
    states = {entry["path"]: entry["state"] for entry in report["differences"]}
    assert states == expected
    for path, state in states.items():
        assert f"{path}: {state}\n" in text
    assert ("Every place that updates the conversation is guarded" in text) == (code == 0)
    return text


def test_as_built(scope: Scope, wheel: Path, site: Path) -> None:
    for where in ([site], ["--wheel", wheel], [site / TARGET]):
        text = audited(0, {}, *where)
        assert f"Scope {scope}: " in text
        assert "The files are as built" in text
    assert json.loads(says(0, "audit", "--json", site).out)["compared"] is True


Change = dict[str, bytes | Callable[[bytes], bytes] | None]
"""What is made of some files; `None` deletes one."""

GUTTED: Change = {ADDED: b""}
DELETED: Change = {ADDED: None}
EDITED: Change = {TARGET: lambda text: text + b"\n"}
UNPATCHED: Change = {TARGET: release()[TARGET]}  # as after a tool that put the stock file back
WITHOUT_NOTICE: Change = {TARGET: lambda text: text.replace(NOTICE.encode(), b"#")}


def changed(files: Files, change: Change) -> Files:
    after = dict(files)
    for wanted, content in change.items():
        path = next((path for path in files if path.endswith(wanted)), wanted)
        if content is None:
            del after[path]
        else:
            after[path] = content(files[path]) if callable(content) else content
    return after


CHANGES: dict[str, tuple[Scope, Change, dict[str, str]]] = {
    "the added file emptied": ("full", GUTTED, {ADDED: "differs"}),
    "the added file deleted": ("full", DELETED, {ADDED: "missing"}),
    "one added to the scope lock": ("lock", GUTTED, {ADDED: "one too many"}),
    "edited, lock": ("lock", EDITED, {TARGET: "differs"}),
    "edited": ("full", EDITED, {TARGET: "differs"}),
    "no notice, lock": ("lock", WITHOUT_NOTICE, {TARGET: "differs"}),
    "no notice": ("full", WITHOUT_NOTICE, {TARGET: "differs"}),
    "as published, lock": ("lock", UNPATCHED, {TARGET: "differs"}),
    "as published": ("full", UNPATCHED, {TARGET: "differs"}),
    "emptied": ("full", {TARGET: b""}, {TARGET: "differs"}),
    "deleted": ("full", {TARGET: None}, {TARGET: "missing"}),
    "both emptied": ("full", {TARGET: b"", ADDED: b""}, {TARGET: "differs", ADDED: "differs"}),
    "no record, lock": ("lock", {PROVENANCE: None}, {"RECORD": "missing"}),
    "no record": ("full", {PROVENANCE: None}, {"RECORD": "missing"}),
}


@pytest.mark.parametrize("how", ["folder", "wheel"])
@pytest.mark.parametrize(("scope", "change", "expected"), CHANGES.values(), ids=CHANGES)
def test_names_what_differs(
    scope: Scope,
    change: Change,
    expected: dict[str, str],
    how: str,
    wheel: Path,
    site: Path,
    tmp_path: Path,
) -> None:
    own = record_of(site).relative_to(site).as_posix()
    files = changed(contents(wheel), change)
    if how == "wheel":
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, content in files.items():
                archive.writestr(path, content)
        where: list[str | Path] = ["--wheel", wheel]
    else:
        put(tmp_path / "other", files)
        where = [tmp_path / "other"]
    states = {own if path == "RECORD" else path: state for path, state in expected.items()}
    text = audited(1, states, *where)
    assert "The files are not as built." in text
    afresh = how == "folder" and {*expected.values()} != {"one too many"}
    assert ("Install it again" in text) == afresh
    assert ("Build or fetch the wheel again." in text) == (how == "wheel")
    removed = how == "folder" and expected.get(ADDED) == "one too many"
    assert (f"Remove {ADDED}." in text) == removed


def relabelled(scope: str) -> Callable[[Path, dict[str, Any]], None]:
    """The version says `scope`."""

    def change(site: Path, record: dict[str, Any]) -> None:
        info = record_of(site).parent
        info.rename(
            info.with_name(f"livekit_agents-1.8.4+ctxlock.{PATCH_NUMBER}.{scope}.dist-info")
        )

    return change


def rescoped(site: Path, record: dict[str, Any]) -> None:
    """The record says the other scope, and nothing else does."""
    record["scope"] = "lock" if record["scope"] == "full" else "full"


def without_the_added(site: Path, record: dict[str, Any]) -> None:
    """As of the scope lock: the record, the version and the files; but not the file's parts."""
    record.update(scope="lock", added={})
    (site / ADDED).unlink()
    relabelled("lock")(site, record)


@pytest.mark.parametrize(
    ("scope", "change"),
    [
        ("lock", rescoped),
        ("full", rescoped),
        ("lock", relabelled("full")),
        ("full", relabelled("lock")),
        ("full", without_the_added),
    ],
)
def test_a_record_that_contradicts_itself(
    scope: Scope, change: Callable[[Path, dict[str, Any]], None], site: Path
) -> None:
    record = json.loads(record_of(site).read_text())
    change(site, record)
    path = record_of(site)
    path.write_text(json.dumps(record))
    for where in (site, site / TARGET):
        text = audited(1, {path.relative_to(site).as_posix(): "differs"}, where)
        assert f"Scope {scope}: " in text  # as the file shows
        assert "The files are as built" not in text


def test_a_wheel_by_the_name_of_another_scope(scope: Scope, wheel: Path) -> None:
    other = "full" if scope == "lock" else "lock"
    renamed = wheel.rename(wheel.with_name(wheel.name.replace(f".{scope}-", f".{other}-")))
    (path,) = (path for path in contents(renamed) if path.endswith(PROVENANCE))
    audited(1, {path: "differs"}, "--wheel", renamed)


@pytest.mark.parametrize(
    ("scope", "version"),
    [
        ("lock", "1.8.4+ctxlock.1"),
        ("full", "1.8.4+ctxlock.1.full"),
        ("full", "1.8.4"),
        ("full", "1.8.4+own"),
        ("lock", "1.8.4+own.full"),
        ("full", "mine"),
    ],
)
def test_other_labels(scope: Scope, version: str, site: Path) -> None:
    """Patch 1 did not name the scope lock; somebody else's label says nothing of it."""
    info = record_of(site).parent
    info.rename(info.with_name(f"livekit_agents-{version}.dist-info"))
    text = audited(0, {}, site)
    assert f"Scope {scope}: " in text


def test_without_the_file(site: Path) -> None:
    (site / TARGET).unlink()
    text = audited(1, {TARGET: "missing"}, site)
    assert "There is no class" not in text
    assert (
        json.loads(says(1, "audit", "--json", site).out)["not_understood"]
        == f"{site / TARGET} is missing."
    )


@pytest.mark.parametrize("scope", ["full"], indirect=True)
@pytest.mark.parametrize("change", [GUTTED, DELETED, {}])
def test_what_it_would_have_of_the_scope_full(change: Change, wheel: Path, tmp_path: Path) -> None:
    files = contents(wheel)
    put(tmp_path / "other", changed(files, change))
    states = {ADDED: "missing" if change == DELETED else "differs"} if change else {}
    text = " ".join(audited(int(change != {}), states, tmp_path / "other").split())
    assert ("if the added file were as built." in text) == (change != {})


@posix
@pytest.mark.parametrize("scope", ["full"], indirect=True)
def test_of_an_interpreter(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # -S keeps this environment's packages out, PYTHONPATH brings the others in
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(site))
    audited(0, {}, "--python", python)
    (site / ADDED).write_bytes(b"")
    audited(1, {ADDED: "differs"}, "--python", python)
    (site / TARGET).unlink()
    expected = {ADDED: "differs", TARGET: "missing"}
    audited(1, expected, "--python", python)


def test_a_stock_install_with_a_stray_file(tmp_path: Path) -> None:
    site = install(tmp_path / "site", release())
    text = audited(1, {}, site)  # bare
    assert "ompared" not in text
    put(site, {ADDED: b""})
    text = audited(1, {ADDED: "one too many"}, site)
    assert f"Remove {ADDED}." in text
    assert "again" not in text


def test_a_bare_file_is_not_compared(site: Path, tmp_path: Path) -> None:
    lone = tmp_path / "agent_activity.py"
    lone.write_bytes((site / TARGET).read_bytes())
    text = audited(0, {}, lone)
    assert "Not compared: there is no dist-info folder with a ctxlock.json beside it." in text
    assert json.loads(says(0, "audit", "--json", lone).out)["compared"] is False


def test_a_folder_without_a_dist_info(site: Path) -> None:
    record_of(site).parent.rename(site / "elsewhere")
    text = audited(1, {f"livekit_agents-*.dist-info/{PROVENANCE}": "missing"}, site)
    assert "Install it again" in text
    text = audited(0, {}, site / TARGET)  # named as a file, it is a lone one
    assert "Not compared" in text


def test_a_file_in_its_place_is_compared(site: Path) -> None:
    (site / TARGET).write_bytes((site / TARGET).read_bytes() + b"\n")
    audited(1, {TARGET: "differs"}, site / TARGET)


def test_more_than_one_dist_info(site: Path) -> None:
    (site / "Livekit.Agents-1.0.0.dist-info").mkdir()
    (site / "livekit_plugins_openai-1.0.0.dist-info").mkdir()
    said = says(3, "audit", site).err
    assert f"{site} holds more than one dist-info folder of livekit-agents" in said
    assert "Livekit.Agents-1.0.0.dist-info" in said
    assert "openai" not in said
    assert "remove them and install one release again." in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param("{", "does not say what was patched", id="garbled"),
        pytest.param("[]", "does not say what was patched", id="no object"),
        pytest.param(
            json.dumps({"format": FORMAT + 1}), "this ctxlock reads format 1; use", id="later"
        ),
    ],
)
def test_a_record_that_cannot_be_read(content: str, said: str, site: Path) -> None:
    record = record_of(site)
    record.write_text(content)
    printed = says(3, "audit", site).err
    assert printed.startswith(f"ctxlock: {record} ")
    assert said in printed


@posix
@pytest.mark.parametrize("path", [PROVENANCE, ADDED])
def test_a_folder_in_the_place_of_a_file(path: str, site: Path) -> None:
    file = record_of(site) if path == PROVENANCE else site / ADDED
    file.unlink(missing_ok=True)
    file.mkdir()
    assert f"{file} could not be read: Is a directory; it must" in says(3, "audit", site).err


def test_a_file_twice_in_a_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(TARGET, b"")
    assert "holds a file of the same name twice" in says(3, "audit", "--wheel", wheel).err


def test_fits_a_terminal(site: Path) -> None:
    put(site, {TARGET: b"", ADDED: b""})
    lines = says(1, "audit", site).out.splitlines()
    assert all(len(line) <= 80 or str(site) in line for line in lines)
