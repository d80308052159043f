from __future__ import annotations

import hashlib
import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn, get_args

import pytest
from activity import NAME, PUSH, REPLACING, locked, module
from hypothesis import given, settings, strategies as st
from lock_pairs import UPSTREAMS
from methods import SEND, taking
from packages import Files, assert_valid, contents, install, release, wheel_file, write_wheel
from packaging.metadata import Metadata
from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from ctxlock import PATCH_NUMBER
from ctxlock.errors import CtxlockError, NothingToGuard, NotUnderstood
from ctxlock.patching.patch import patch_source
from ctxlock.release import Scope
from ctxlock.target import ADDED, TARGET
from ctxlock.wheels.overlay import Overlay, build_overlay, metadata_files
from ctxlock.wheels.provenance import PROVENANCE
from ctxlock.wheels.upstream import Upstream, read_installed, read_wheel

LOCAL = f"+ctxlock.{PATCH_NUMBER}.lock"
DIST_INFO = f"livekit_agents-1.8.4{LOCAL}.dist-info"

FULL = f"+ctxlock.{PATCH_NUMBER}.full"
"""What the scope `full` adds to the version."""


def stock(files: Files | None = None, version: str = "1.8.4") -> Upstream:
    return Upstream(
        Version(version), f"livekit_agents-{version}.dist-info", files or release(version)
    )


def build(folder: Path, files: Files | None = None, version: str = "1.8.4") -> Overlay:
    return build_overlay(stock(files, version), folder)


def test_what_comes_out(tmp_path: Path) -> None:
    overlay = build(tmp_path)
    assert overlay.path == tmp_path / f"livekit_agents-1.8.4{LOCAL}-py3-none-any.whl"
    assert overlay.version == Version(f"1.8.4{LOCAL}")
    assert overlay.sites == patch_source(release()[TARGET], TARGET).sites
    assert [path.name for path in tmp_path.iterdir()] == [overlay.path.name]
    assert_valid(overlay.path)


def test_a_release_that_is_not_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build(tmp_path)
    assert capsys.readouterr() == ("", "")
    build(tmp_path, version="9.0.0")
    said = capsys.readouterr()
    assert said.out == "", "a frontend may read the output"
    assert "9.0.0 is later than" in said.err


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="plain"),
        pytest.param({"entry_points.txt": b"[console_scripts]\na = b:c\n"}, id="entry points"),
        pytest.param({"sboms/core.cyclonedx.json": b"{}"}, id="folder in dist-info"),
    ],
)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_differs_from_upstream_in_five_things_only(
    tmp_path: Path, more: Files, newline: bytes
) -> None:
    files = {path: text.replace(b"\n", newline) for path, text in release(more=more).items()}
    upstream = read_wheel(write_wheel(tmp_path / "stock.whl", files))
    before = contents(tmp_path / "stock.whl")
    after = contents(build_overlay(upstream, tmp_path).path)
    # the folder's name
    before = {path.replace(upstream.dist_info, DIST_INFO): text for path, text in before.items()}
    # the record
    assert after.keys() - before.keys() == {f"{DIST_INFO}/{PROVENANCE}"}
    assert not before.keys() - after.keys()
    changed = {path for path, text in before.items() if after[path] != text}
    assert changed == {TARGET, f"{DIST_INFO}/METADATA", f"{DIST_INFO}/RECORD"}
    line = newline + b"Version: 1.8.4"
    metadata = before[f"{DIST_INFO}/METADATA"]
    assert after[f"{DIST_INFO}/METADATA"] == metadata.replace(line, line + LOCAL.encode())
    patched = patch_source(before[TARGET], TARGET)
    assert (after[TARGET], patched.added) == (patched.source, {})


def test_source_with_crlf_stays_so(tmp_path: Path) -> None:
    files = {**release(), TARGET: module(REPLACING).replace("\n", "\r\n").encode()}
    patched = contents(build(tmp_path, files).path)[TARGET]
    assert patched.count(b"\n") == patched.count(b"\r\n") > module(REPLACING).count("\n")


def test_the_metadata_stays_valid(tmp_path: Path) -> None:
    after = contents(build(tmp_path).path)[f"{DIST_INFO}/METADATA"]
    metadata = Metadata.from_email(after)
    assert metadata.version == Version(f"1.8.4{LOCAL}")
    assert metadata.version in SpecifierSet("==1.8.4")
    assert metadata.version in SpecifierSet(">=1.8.4")
    assert metadata.requires_python == SpecifierSet(">=3.10")
    assert metadata.provides_extra == ["openai"]
    assert metadata.description is not None
    assert "Version: 9.9.9" in metadata.description


def test_the_scope_full_adds_a_module(tmp_path: Path) -> None:
    overlay = build_overlay(stock(), tmp_path / "full", "full")
    assert str(overlay.version) == f"1.8.4{FULL}"
    full, files = contents(overlay.path), contents(build(tmp_path / "lock").path)
    assert b"class RealtimeContextLock" in full[ADDED]
    assert full[ADDED] == patch_source(release()[TARGET], TARGET, "full").added[ADDED]
    assert {path.replace(LOCAL, FULL) for path in files} == full.keys() - {ADDED}
    (record,) = (json.loads(full[path]) for path in full if path.endswith(PROVENANCE))
    assert record["scope"] == "full"
    assert record["added"] == {ADDED: hashlib.sha256(full[ADDED]).hexdigest()}


def test_overwrites_nothing(tmp_path: Path) -> None:
    with pytest.raises(CtxlockError, match=f"already has a file {ADDED}"):
        build_overlay(stock(release() | {ADDED: b""}), tmp_path, "full")
    assert list(tmp_path.iterdir()) == []


def test_what_the_scope_full_cannot_follow_can_be_locked(tmp_path: Path) -> None:
    upstream = stock(release() | {TARGET: module(PUSH).encode()})
    with pytest.raises(NotUnderstood, match="build with the scope lock: leave out `-C scope=full`"):
        build_overlay(upstream, tmp_path, "full")
    assert list(tmp_path.iterdir()) == []
    assert build_overlay(upstream, tmp_path, "lock").path.is_file()


def test_provenance(tmp_path: Path) -> None:
    files = contents(build(tmp_path).path)
    text = files[f"{DIST_INFO}/{PROVENANCE}"]
    patched = files[TARGET].decode().splitlines()
    line = next(n for n, text in enumerate(patched, 1) if "async with self._rt" in text)
    assert json.loads(text) == {
        "format": 1,
        "upstream": "1.8.4",
        "patch": PATCH_NUMBER,
        "scope": "lock",
        "added": {},
        "target": TARGET,
        "sha256": {
            "before": hashlib.sha256(release()[TARGET]).hexdigest(),
            "after": hashlib.sha256(files[TARGET]).hexdigest(),
        },
        "sites": [
            {
                "role": "replacement",
                "function": "update_chat_ctx",
                "lines": [line, line + 2],
                "state": "guarded",
                "rechecked": True,
            }
        ],
    }
    assert text.endswith(b"}\n")
    assert list(json.loads(text)) == sorted(json.loads(text))


def test_the_patched_file_says_so(tmp_path: Path) -> None:
    head = contents(build(tmp_path).path)[TARGET].decode().split("\n\n")[0]
    assert "livekit-agents" in head
    assert "has been modified by ctxlock" in head


@pytest.mark.parametrize(
    ("version", "tags", "tag"),
    [
        ("1.6.11rc1", ["py3-none-any"], "py3-none-any"),
        ("1.8.9.post1", ["py3-none-any"], "py3-none-any"),
        ("1.9.0.dev2", ["py3-none-any"], "py3-none-any"),
        ("1!1.0.0", ["py3-none-any"], "py3-none-any"),
        ("1.8.4", ["py3-none-any", "py2-none-any"], "py2.py3-none-any"),
        ("2.0.0b1", ["cp310-abi3-manylinux_2_28_x86_64"], "cp310-abi3-manylinux_2_28_x86_64"),
    ],
)
def test_names(tmp_path: Path, version: str, tags: list[str], tag: str) -> None:
    files = {
        **release(version),
        f"livekit_agents-{version}.dist-info/WHEEL": wheel_file(*tags),
        "livekit/agents/_core.abi3.so": bytes(range(256)),
    }
    overlay = build(tmp_path, files, version)
    name = f"livekit_agents-{version}{LOCAL}-{tag}.whl"
    assert overlay.path.name == name
    assert_valid(overlay.path)
    assert parse_wheel_filename(name)[1] in SpecifierSet(f"=={version}", prereleases=True)


def test_pips_and_uvs_trees_give_the_same_wheel(tmp_path: Path) -> None:
    overlays = {build(tmp_path / "wheel").path.read_bytes()}
    for installer in ("pip", "uv"):
        site = install(tmp_path / installer, release(), installer)
        upstream = read_installed([str(site)])
        overlays.add(build_overlay(upstream, tmp_path / f"from {installer}").path.read_bytes())
    assert len(overlays) == 1


@settings(deadline=None)
@given(st.randoms(use_true_random=False))
def test_builds_are_identical(
    tmp_path_factory: pytest.TempPathFactory, shuffler: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("wheels")
    files = list(release().items())
    shuffler.shuffle(files)
    first, second = build(folder / "a"), build(folder / "b", dict(files))
    assert first.path.read_bytes() == second.path.read_bytes()


def test_builds_at_the_same_time(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        (path,) = {o.path for o in pool.map(lambda _: build(tmp_path), range(32))}
    assert_valid(path)
    assert list(tmp_path.iterdir()) == [path]


def test_stock_suffices_for_the_scope_lock(tmp_path: Path) -> None:
    upstream = stock({**release(), TARGET: locked(UPSTREAMS).encode()})
    with pytest.raises(
        NothingToGuard, match="for the scope lock the stock release is enough, so install"
    ):
        build_overlay(upstream, tmp_path / "dist", "lock")
    assert not (tmp_path / "dist").exists()


def test_an_overlay_cannot_be_overlaid(tmp_path: Path) -> None:
    overlay = build(tmp_path).path
    with pytest.raises(CtxlockError, match=rf"is a patched wheel, .* \(1\.8\.4\{LOCAL}\)"):
        read_wheel(overlay)
    patched = {**release(), TARGET: contents(overlay)[TARGET]}
    with pytest.raises(NothingToGuard, match="every place is guarded already"):
        build(tmp_path / "dist", patched)
    full = contents(build_overlay(stock(), tmp_path / "full", "full").path)
    informed = stock({**release(), TARGET: full[TARGET]})
    for scope in get_args(Scope):
        with pytest.raises(NothingToGuard, match="this is patched already"):
            build_overlay(informed, tmp_path / "dist", scope)
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("", id="no class"),
        pytest.param("class AgentActivity(:\n", id="no Python"),
        pytest.param(module(PUSH.replace("self._rt_session", "alias")), id="no site"),
        pytest.param(module(taking("if ctx: return", SEND)), id="return in a span"),
    ],
)
def test_nothing_is_written_if_the_rewrite_refuses(tmp_path: Path, source: str) -> None:
    with pytest.raises(NotUnderstood, match=f"^{TARGET}:\\d+: ") as refused:
        build(tmp_path / "dist", {**release(), TARGET: source.encode()})
    assert refused.value.filename.endswith(NAME)
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("METADATA", b"Name: livekit-agents\n", "METADATA .* names no version"),
        ("WHEEL", wheel_file(), "has tags .* not understood: none"),
        ("WHEEL", wheel_file("py3-none-any", version="2.0"), "Wheel-Version 2.0"),
    ],
)
def test_nothing_is_written_if_a_file_is_of_no_use(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    with pytest.raises(CtxlockError, match=reason):
        build(tmp_path / "dist", release(more={name: content}))
    assert not (tmp_path / "dist").exists()


def test_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_metadata_is_the_wheels(tmp_path: Path) -> None:
    name, files = metadata_files(stock(), "lock")
    built = contents(build(tmp_path).path)
    assert name == DIST_INFO
    inside = {
        path.removeprefix(f"{name}/"): c for path, c in built.items() if path.startswith(name)
    }
    del inside["RECORD"], inside[PROVENANCE]
    assert files == inside
