from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from packages import DIST_INFO, assert_valid, contents, install, release
from packaging.requirements import Requirement

from ctxlock import PATCH_NUMBER, buildapi
from ctxlock.release import NEWEST_VERIFIED, SCOPE_VARIABLE, VARIABLE
from ctxlock.target import TARGET

LOCAL = f"+ctxlock.{PATCH_NUMBER}.lock"
WHEEL_NAME = f"livekit_agents-1.8.4{LOCAL}-py3-none-any.whl"
CHOSEN = {"upstream": "1.8.4"}
EDITABLE = (
    "livekit-agents is patched from the published release, so there is nothing to install in "
    "editable mode; install it without -e."
)


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (VARIABLE, SCOPE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build environment that has stock 1.8.4."""
    site = install(tmp_path / "site", release())
    monkeypatch.syspath_prepend(str(site))
    return site


@pytest.fixture
def sdist_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hooks, run from a source distribution for 1.8.4."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "PKG-INFO").write_text(f"Name: livekit-agents\nVersion: 1.8.4{LOCAL}\n")
    monkeypatch.setattr(buildapi, "TREE", tree)
    return tree


def test_has_every_hook() -> None:
    for hook in buildapi.__all__:
        assert callable(getattr(buildapi, hook))
    assert "prepare_metadata_for_build_editable" not in buildapi.__all__


@pytest.mark.parametrize("version", ["1.8.4", "2.0.0b1", "1.6.11rc1", "1.8.9.post1"])
def test_requires_the_stock_release_only(version: str) -> None:
    (text,) = buildapi.get_requires_for_build_wheel({"upstream": version})
    requirement = Requirement(text)
    assert requirement.name == "livekit-agents"
    assert requirement.specifier.contains(version, prereleases=True)
    for label in ("1", "1.full", "2.lock", "2.full"):
        assert not requirement.specifier.contains(f"{version}+ctxlock.{label}", prereleases=True)


def test_requires_what_the_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    (default,) = buildapi.get_requires_for_build_wheel()
    assert Requirement(default).specifier.contains(NEWEST_VERIFIED)
    monkeypatch.setenv(VARIABLE, "1.8.4")
    (chosen,) = buildapi.get_requires_for_build_wheel()
    assert Requirement(chosen).specifier.contains("1.8.4")


def test_requires_what_the_source_distribution_is_for(sdist_tree: Path) -> None:
    (text,) = buildapi.get_requires_for_build_wheel()
    assert Requirement(text).specifier.contains("1.8.4")


def test_a_source_distribution_requires_nothing() -> None:
    assert buildapi.get_requires_for_build_sdist(CHOSEN) == []


def test_builds_a_wheel(site: Path, tmp_path: Path) -> None:
    assert buildapi.build_wheel(str(tmp_path / "dist"), CHOSEN) == WHEEL_NAME
    assert_valid(tmp_path / "dist" / WHEEL_NAME)


def test_the_scope_full(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_setting = buildapi.build_wheel(str(tmp_path / "a"), {**CHOSEN, "scope": "full"})
    assert by_setting == WHEEL_NAME.replace(".lock", ".full")
    monkeypatch.setenv(SCOPE_VARIABLE, "full")
    assert buildapi.build_wheel(str(tmp_path / "b"), CHOSEN) == by_setting
    assert (tmp_path / "a" / by_setting).read_bytes() == (tmp_path / "b" / by_setting).read_bytes()


def test_the_prepared_metadata_is_the_wheels(site: Path, tmp_path: Path) -> None:
    prepared = tmp_path / "prepared"
    name = buildapi.prepare_metadata_for_build_wheel(str(prepared), CHOSEN)
    assert name == DIST_INFO.replace("1.8.4", f"1.8.4{LOCAL}")
    files = contents(tmp_path / buildapi.build_wheel(str(tmp_path), CHOSEN, str(prepared / name)))
    written = {
        path.relative_to(prepared).as_posix(): path.read_bytes()
        for path in prepared.rglob("*")
        if path.is_file()
    }
    assert f"{name}/METADATA" in written
    assert written.items() <= files.items()


def test_the_source_distribution_agrees_with_the_wheel(
    site: Path, sdist_tree: Path, tmp_path: Path
) -> None:
    wheel = buildapi.build_wheel(str(tmp_path))
    assert wheel == WHEEL_NAME
    assert (tmp_path / wheel).read_bytes() == (
        tmp_path / "again" / buildapi.build_wheel(str(tmp_path / "again"), CHOSEN)
    ).read_bytes()


def test_builds_a_source_distribution(tmp_path: Path) -> None:
    # no livekit-agents is needed for it
    name = buildapi.build_sdist(str(tmp_path), CHOSEN)
    assert name == f"livekit_agents-1.8.4{LOCAL}.tar.gz"
    assert (tmp_path / name).is_file()


Hook = Callable[[str, Mapping[str, object]], str]
HOOKS = [buildapi.build_wheel, buildapi.prepare_metadata_for_build_wheel]


@pytest.mark.parametrize("hook", HOOKS)
def test_another_release_is_installed(site: Path, tmp_path: Path, hook: Hook) -> None:
    with pytest.raises(SystemExit) as refused:
        hook(str(tmp_path / "dist"), {"upstream": "1.8.5"})
    assert str(refused.value) == (
        "ctxlock: livekit-agents 1.8.4 is installed, but 1.8.5 is to be patched; build with "
        "isolation, or install livekit-agents==1.8.5 first."
    )
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize("hook", HOOKS)
def test_an_overlay_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: Hook
) -> None:
    site = install(tmp_path / "site", release(f"1.8.4{LOCAL}"))
    monkeypatch.syspath_prepend(str(site))
    with pytest.raises(SystemExit, match=r"is patched already.*Build with isolation"):
        hook(str(tmp_path / "dist"), CHOSEN)
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize("hook", HOOKS)
def test_what_is_installed_was_edited(site: Path, tmp_path: Path, hook: Hook) -> None:
    (site / TARGET).write_bytes(b"")
    with pytest.raises(SystemExit, match=f"(?s)so nothing was built.*{TARGET} has 0 bytes"):
        hook(str(tmp_path / "dist"), CHOSEN)
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize(
    "hook",
    [
        buildapi.get_requires_for_build_wheel,
        lambda settings: buildapi.build_sdist("dist", settings),
        lambda settings: buildapi.build_wheel("dist", settings),
        lambda settings: buildapi.prepare_metadata_for_build_wheel("dist", settings),
    ],
)
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"upstream": "1.8.5"}, "this source distribution is made for 1.8.4"),
        ({"upstream": "latest"}, "is no release number"),
        ({"upstraem": "1.8.4"}, "did you mean 'upstream'"),
        ({"scope": "x"}, "^ctxlock: The config setting 'scope' is 'x', which is no scope; give"),
    ],
)
def test_every_hook_heeds_the_settings(
    sdist_tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hook: Callable[[Mapping[str, object]], object],
    settings: Mapping[str, object],
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=reason):
        hook(settings)
    assert not Path("dist").exists()


@pytest.mark.parametrize(
    "hook",
    [buildapi.get_requires_for_build_editable, lambda: buildapi.build_editable("dist")],
)
def test_editable_is_refused(hook: Callable[[], object]) -> None:
    with pytest.raises(SystemExit) as refused:
        hook()
    assert str(refused.value) == f"ctxlock: {EDITABLE}"
