"""Real frontends build real releases; what they leave must be the same, to the byte."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from frontends import Frontends
from packages import assert_valid, contents
from packaging.utils import parse_wheel_filename

from ctxlock import PATCH_NUMBER
from ctxlock.buildapi import TREE
from ctxlock.environments.installer import Installer
from ctxlock.patching.patch import patch_source
from ctxlock.release import NEWEST_VERIFIED, SCOPE_VARIABLE, VARIABLE, overlay_versions
from ctxlock.target import TARGET
from ctxlock.wheels.overlay import build_overlay
from ctxlock.wheels.provenance import PROVENANCE
from ctxlock.wheels.upstream import read_installed
from lab.interpreters import find_python

pytestmark = [
    pytest.mark.network,
    pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed"),
]

LOCAL = f"+ctxlock.{PATCH_NUMBER}.lock"
WHEEL_NAME = f"livekit_agents-{NEWEST_VERIFIED}{LOCAL}-py3-none-any.whl"
EDITABLE = "there is nothing to install in editable mode; install it without -e."


def sha256(file: Path) -> str:
    """The hash of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def frontends(tmp_path_factory: pytest.TempPathFactory) -> Frontends:
    return Frontends(tmp_path_factory.mktemp("frontends"))


@pytest.fixture(scope="module")
def wheel(frontends: Frontends) -> Path:
    """The overlay of the newest verified release, built by uv from the tree."""
    return frontends.uv(TREE, "--wheel")


@pytest.fixture(scope="module")
def sdist(frontends: Frontends) -> Path:
    """The source distribution for it."""
    return frontends.uv(TREE, "--sdist")


def test_the_wheel(wheel: Path) -> None:
    assert wheel.name == WHEEL_NAME
    assert_valid(wheel)
    files = contents(wheel)
    sites = json.loads(files[f"livekit_agents-{NEWEST_VERIFIED}{LOCAL}.dist-info/{PROVENANCE}"])[
        "sites"
    ]
    assert {site["state"] for site in sites} == {"guarded", "read-only"}


def test_differs_from_upstream_in_five_things_only(frontends: Frontends, wheel: Path) -> None:
    folder = frontends.new_folder()
    pip = (frontends.python, "-m", "pip", "download", "-q", "--no-deps", "-d", folder)
    frontends.succeed(*pip, f"livekit-agents=={NEWEST_VERIFIED}")
    (stock,) = folder.iterdir()
    old, new = (f"livekit_agents-{NEWEST_VERIFIED}{x}.dist-info" for x in ("", LOCAL))
    before = {path.replace(old, new): text for path, text in contents(stock).items()}
    after = contents(wheel)
    assert after.keys() == before.keys() | {f"{new}/{PROVENANCE}"}
    changed = {path for path, text in before.items() if after[path] != text}
    assert changed == {TARGET, f"{new}/METADATA", f"{new}/RECORD"}
    line = f"\nVersion: {NEWEST_VERIFIED}".encode()
    assert after[f"{new}/METADATA"] == before[f"{new}/METADATA"].replace(
        line, line + LOCAL.encode(), 1
    )
    assert after[TARGET] == patch_source(before[TARGET], TARGET).source


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda frontends, _: frontends.pip(TREE), id="pip, from the tree"),
        pytest.param(lambda frontends, sdist: frontends.uv(sdist, "--wheel"), id="uv, from sdist"),
        pytest.param(lambda frontends, sdist: frontends.pip(sdist), id="pip, from sdist"),
    ],
)
def test_builds_the_same_again(
    frontends: Frontends, wheel: Path, sdist: Path, build: Callable[[Frontends, Path], Path]
) -> None:
    again = build(frontends, sdist)
    assert (again.name, again.read_bytes()) == (wheel.name, wheel.read_bytes())


def test_pip_builds_the_same_from_git(frontends: Frontends, wheel: Path) -> None:
    source = f"git+{frontends.repository().as_uri()}#subdirectory={TREE.name}"
    again = frontends.pip(source)
    assert (again.name, again.read_bytes()) == (wheel.name, wheel.read_bytes())


@pytest.mark.parametrize("minor", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_every_python_builds_the_same(
    frontends: Frontends, wheel: Path, sdist: Path, minor: str
) -> None:
    """Whatever zlib it links; wheel and source distribution."""
    base = find_python(minor)
    if base is None:
        pytest.skip(f"Python {minor} is not installed")
    expected = {built.name: sha256(built) for built in (wheel, sdist)}
    source = frontends.uv(TREE, "--sdist", base=base)
    made = [source, frontends.uv(TREE, "--wheel", base=base)]
    made.append(frontends.pip(source, python=frontends.environment("pip", base=base)))
    assert [(built.name, sha256(built)) for built in made] == [
        (name, expected[name]) for name in (sdist.name, wheel.name, wheel.name)
    ]


def test_overlays_beside_the_stock_release(
    frontends: Frontends, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of whatever patched wheels there ever were is not what a build starts from."""
    stock, folder = frontends.new_folder(), frontends.new_folder()
    Installer().fetch(str(NEWEST_VERIFIED), stock)
    for version in overlay_versions(NEWEST_VERIFIED):
        monkeypatch.setattr("ctxlock.wheels.overlay.overlay_version", lambda *_, v=version: v)
        build_overlay(read_installed([str(stock)]), folder)
    assert len(list(folder.iterdir())) == 2 * PATCH_NUMBER
    by_pip = frontends.pip(TREE, "--find-links", folder)
    by_uv = frontends.uv(TREE, "--wheel", "--find-links", folder)
    assert sha256(by_pip) == sha256(by_uv) == sha256(wheel)


def test_an_overlay_of_a_later_patch_beside_the_stock_release(
    frontends: Frontends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its label is not known yet: the installer may take it, and then nothing is built."""
    stock, folder = frontends.new_folder(), frontends.new_folder()
    Installer().fetch(str(NEWEST_VERIFIED), stock)
    monkeypatch.setattr("ctxlock.release.PATCH_NUMBER", PATCH_NUMBER + 1)
    build_overlay(read_installed([str(stock)]), folder)
    said = frontends.refused(TREE, "--find-links", folder)
    assert "do not let it search a folder or an index of patched wheels" in said


def test_a_setting_and_the_variable_choose_the_release(frontends: Frontends) -> None:
    by_variable = frontends.uv(TREE, "--wheel", **{VARIABLE: "1.8.4"})
    by_setting = frontends.pip(TREE, "-C", "upstream=1.8.4")
    assert by_variable.name == by_setting.name == f"livekit_agents-1.8.4{LOCAL}-py3-none-any.whl"
    assert by_variable.read_bytes() == by_setting.read_bytes()


def test_uv_does_not_reuse_the_wheel_of_another_release(frontends: Frontends, wheel: Path) -> None:
    for release in (str(NEWEST_VERIFIED), "1.8.4", str(NEWEST_VERIFIED)):
        folder = frontends.new_folder()
        install = ("uv", "pip", "install", "-q", "--no-deps", "-p", frontends.python)
        frontends.succeed(*install, "--target", folder, TREE, **{VARIABLE: release})
        (dist_info,) = folder.glob("*.dist-info")
        assert dist_info.name == f"livekit_agents-{release}{LOCAL}.dist-info"


def test_a_contradiction_of_the_source_distribution(frontends: Frontends, sdist: Path) -> None:
    said = frontends.refused(sdist, "-C", "upstream=1.8.4")
    assert f"this source distribution is made for {NEWEST_VERIFIED}" in said


def test_a_setting_and_the_variable_choose_the_scope(frontends: Frontends) -> None:
    by_variable = frontends.uv(TREE, "--wheel", **{SCOPE_VARIABLE: "full"})
    by_setting = frontends.pip(TREE, "-C", "scope=full")
    assert by_variable.name == by_setting.name == WHEEL_NAME.replace(".lock", ".full")
    assert by_variable.read_bytes() == by_setting.read_bytes()


def test_a_release_with_a_compiled_core(frontends: Frontends) -> None:
    """It is no release that the scope full can be built from, either."""
    said = frontends.refused(TREE, "-C", "upstream=2.0.0b1", "-C", "scope=full")
    if "no wheels with a matching" in said:
        pytest.skip("2.0.0b1 has no wheel for this platform")
    assert "build with the scope lock: leave out `-C scope=full`" in said
    out = frontends.new_folder()
    done = frontends.run("uv", "build", "--wheel", TREE, "-o", out, "-C", "upstream=2.0.0b1")
    assert done.returncode == 0, done.stderr
    assert f"2.0.0b1 is later than {NEWEST_VERIFIED}" in done.stderr
    (built,) = out.glob("*.whl")
    assert_valid(built)
    assert all(tag.platform != "any" for tag in parse_wheel_filename(built.name)[3])


@pytest.mark.parametrize("frontend", ["pip", "uv"])
def test_editable_is_refused(frontends: Frontends, frontend: str) -> None:
    pip = (
        ("uv", "pip", "install", "-p", frontends.python)
        if frontend == "uv"
        else (frontends.python, "-m", "pip", "install")
    )
    done = frontends.run(*pip, "--no-deps", "-e", TREE)
    assert done.returncode != 0
    assert EDITABLE in done.stderr + done.stdout


def test_building_on_an_overlay_is_refused(frontends: Frontends, wheel: Path) -> None:
    python = frontends.environment("libcst>=1.8.2", "packaging>=24")
    frontends.succeed("uv", "pip", "install", "-q", "--no-deps", "-p", python, wheel)
    said = frontends.refused(TREE, "--no-build-isolation", "-p", python)
    assert f"livekit-agents {NEWEST_VERIFIED}{LOCAL} is patched already" in said


def test_pip_installs_it(frontends: Frontends, wheel: Path) -> None:
    folder = frontends.new_folder()
    install = ("pip", "install", "-q", "--no-deps", "--no-index", "--target", folder)
    frontends.succeed(frontends.python, "-m", *install, wheel)
    assert (folder / TARGET).read_bytes() == contents(wheel)[TARGET]
