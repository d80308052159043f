from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from packaging.version import Version

from ctxlock import PATCH_NUMBER
from ctxlock.errors import CtxlockError
from ctxlock.release import (
    DEFAULT_SCOPE,
    NEWEST_VERIFIED,
    SCOPE_VARIABLE,
    VARIABLE,
    Scope,
    choose_release,
    choose_scope,
    overlay_version,
    overlay_versions,
    parse,
    scope_of,
    warn_if_unverified,
)
from ctxlock.verified import NEWEST


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv(SCOPE_VARIABLE, raising=False)


@pytest.fixture
def sdist(tmp_path: Path) -> Path:
    """The tree of a source distribution for 1.8.4."""
    (tmp_path / "PKG-INFO").write_text(
        f"Metadata-Version: 2.4\nName: livekit-agents\nVersion: 1.8.4+ctxlock.{PATCH_NUMBER}.lock\n"
    )
    return tmp_path


@pytest.mark.parametrize("settings", [None, {}, {"--global-option": "x"}, {"editable_mode": "y"}])
def test_the_default_is_the_newest_verified(
    tmp_path: Path, settings: dict[str, object] | None
) -> None:
    assert choose_release(settings, tmp_path) == NEWEST_VERIFIED


def test_the_setting(tmp_path: Path) -> None:
    assert choose_release({"upstream": "1.8.4"}, tmp_path) == Version("1.8.4")


def test_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1.0.23")
    assert choose_release(None, tmp_path) == Version("1.0.23")


def test_an_empty_variable_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    assert choose_release(None, tmp_path) == NEWEST_VERIFIED


def test_the_setting_goes_before_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "1.0.23")
    assert choose_release({"upstream": "1.8.4"}, tmp_path) == Version("1.8.4")


@pytest.mark.parametrize("release", [f"{NEWEST}.post1", "99.0.0b1", "99.0.0", "1!1.0.0"])
def test_a_later_release_warns(capsys: pytest.CaptureFixture[str], release: str) -> None:
    warn_if_unverified(Version(release))
    said = capsys.readouterr()
    assert said.out == "", "a frontend may read the output"
    assert f"livekit-agents {release} is later than {NEWEST_VERIFIED}" in said.err
    assert "because every check passed" in said.err


@pytest.mark.parametrize("release", ["1.0.0", "1.6.11rc1", f"{NEWEST}.dev1", NEWEST])
def test_a_verified_one_does_not(capsys: pytest.CaptureFixture[str], release: str) -> None:
    warn_if_unverified(Version(release))
    assert capsys.readouterr() == ("", "")


def test_a_source_distribution_is_bound(sdist: Path) -> None:
    assert choose_release(None, sdist) == Version("1.8.4")
    assert choose_release({"upstream": "1.8.4"}, sdist) == Version("1.8.4")


@pytest.mark.parametrize("by", ["setting", "variable"])
def test_a_contradiction(sdist: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    if by == "variable":
        monkeypatch.setenv(VARIABLE, "1.8.5")
    with pytest.raises(CtxlockError) as refused:
        choose_release({"upstream": "1.8.5"} if by == "setting" else {}, sdist)
    source = VARIABLE if by == "variable" else "The config setting 'upstream'"
    assert str(refused.value) == (
        f"{source} asks for livekit-agents 1.8.5, but this source distribution is made for 1.8.4; "
        "leave it out, or build from the repository."
    )


@pytest.mark.parametrize("content", ["", "Name: livekit-agents\n", "Version: newest\n", "\0"])
def test_a_damaged_pkg_info(tmp_path: Path, content: str) -> None:
    (tmp_path / "PKG-INFO").write_text(content)
    with pytest.raises(CtxlockError, match=r"PKG-INFO names no valid version; unpack .* again\.$"):
        choose_release(None, tmp_path)


def test_only_the_headers_of_pkg_info_count(sdist: Path) -> None:
    with (sdist / "PKG-INFO").open("a") as file:
        file.write("\nVersion: 1.8.5\n")
    assert choose_release(None, sdist) == Version("1.8.4")


@pytest.mark.parametrize("key", ["upstraem", "Upstream", "UPSTREAM", "--upstream", "up-stream"])
def test_a_slip_of_the_key(tmp_path: Path, key: str) -> None:
    with pytest.raises(CtxlockError, match=f"setting '{key}' is unknown; did you mean 'upstream'"):
        choose_release({key: "1.8.4"}, tmp_path)


@pytest.mark.parametrize(
    "junk", [None, "", " ", "newest", "1.8.x", "==1.8.4", "1.8.4;x", 1.8, ["1.8.4"], True]
)
def test_what_is_no_version(tmp_path: Path, junk: object) -> None:
    with pytest.raises(CtxlockError) as refused:
        choose_release({"upstream": junk}, tmp_path)
    assert str(refused.value) == (
        f"The config setting 'upstream' is {junk!r}, which is no release number; give one such as "
        f"{NEWEST_VERIFIED}."
    )


def test_a_variable_that_is_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "latest")
    with pytest.raises(CtxlockError, match=f"^{VARIABLE} is 'latest', which is no release number"):
        choose_release(None, tmp_path)


@pytest.mark.parametrize("local", ["1.8.4+ctxlock.1", "1.8.4+mine"])
def test_a_local_version(local: str) -> None:
    with pytest.raises(CtxlockError, match=r"^It is 1\.8\.4\+.*no stock release; give 1\.8\.4\.$"):
        parse(local, "It")


@pytest.mark.parametrize("short", ["1", "1.8", "1.8.9.0"])
def test_a_number_that_is_not_full(short: str) -> None:
    with pytest.raises(CtxlockError, match=f"^It is {short}, which is not the full number"):
        parse(short, "It")


@pytest.mark.parametrize("old", ["0.12.20", "1.0.0rc9", "1.0.0.dev1"])
def test_a_release_before_the_sites(old: str) -> None:
    with pytest.raises(
        CtxlockError, match=f"^livekit-agents {old} is too old; ctxlock patches 1.0.0"
    ):
        parse(old, "It")


@pytest.mark.parametrize(
    ("text", "release"), [("v1.8.4", "1.8.4"), (" 1.8.4\n", "1.8.4"), ("2.0.0-beta.1", "2.0.0b1")]
)
def test_spellings(text: str, release: str) -> None:
    assert str(parse(text, "It")) == release


@pytest.mark.parametrize("release", ["1.8.9", "2.0.0b1", "1.8.9.post1", "1!2.0.0.dev3"])
def test_the_overlays_version_satisfies_a_pin(release: str) -> None:
    version = overlay_version(Version(release))
    assert str(version) == f"{release}+ctxlock.{PATCH_NUMBER}.{DEFAULT_SCOPE}"
    assert version.public == release
    assert version > Version(release)


def test_the_scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_scope(None, tmp_path) == DEFAULT_SCOPE == "lock"
    monkeypatch.setenv(SCOPE_VARIABLE, "full")
    assert choose_scope({}, tmp_path) == "full"
    assert choose_scope({"scope": "lock"}, tmp_path) == "lock"


def test_the_scope_of_a_source_distribution(sdist: Path) -> None:
    assert choose_scope(None, sdist) == "lock"
    with pytest.raises(CtxlockError, match=r"full is asked for, but .* is made for lock"):
        choose_scope({"scope": "full"}, sdist)
    info = sdist / "PKG-INFO"
    info.write_text(info.read_text().replace(".lock", ".full"))
    assert choose_scope(None, sdist) == "full"
    assert choose_release(None, sdist) == Version("1.8.4")


@pytest.mark.parametrize("junk", ["", "Full", "all", None, ["full"]])
def test_no_scope(tmp_path: Path, junk: object) -> None:
    with pytest.raises(CtxlockError, match="which is no scope; give lock or full"):
        choose_scope({"scope": junk}, tmp_path)


def test_a_slip_in_the_name_of_the_scope(tmp_path: Path) -> None:
    with pytest.raises(CtxlockError, match="'scop' is unknown; did you mean 'scope'"):
        choose_scope({"scop": "full"}, tmp_path)


@pytest.mark.parametrize(
    ("label", "scope"),
    [("1", "lock"), ("1.full", "full"), ("2.lock", "lock"), ("2.full", "full")],
)
def test_the_scope_of_every_label_that_was_written(label: str, scope: Scope) -> None:
    version = Version(f"1.8.4+ctxlock.{label}")
    assert scope_of(version) == scope
    assert version in overlay_versions(Version("1.8.4"))


def test_the_version_says_the_scope() -> None:
    for scope in get_args(Scope):
        version = overlay_version(Version("1.8.4"), scope)
        assert str(version) == f"1.8.4+ctxlock.{PATCH_NUMBER}.{scope}"
        assert scope_of(version) == scope
        assert version in overlay_versions(Version("1.8.4"))


def test_the_default_is_the_highest_version_of_a_release() -> None:
    """So that `==1.8.4` takes it where a folder or an index has whatever was ever built."""
    assert overlay_version(Version("1.8.4")) == max(overlay_versions(Version("1.8.4")))
    assert overlay_version(Version("1.8.4")) < Version("1.8.5")


def test_a_later_patch_knows_every_label_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxlock.release.PATCH_NUMBER", 12)
    labels = {str(version.local) for version in overlay_versions(Version("1.8.4"))}
    assert {"ctxlock.1", "ctxlock.1.full"} <= labels
    assert {f"ctxlock.{n}.{s}" for n in range(2, 13) for s in get_args(Scope)} <= labels
    assert len(labels) == 24


@pytest.mark.parametrize(
    ("setting", "values"), [("upstream", ["1.8.4", "1.8.8"]), ("scope", ["lock", "full"])]
)
def test_a_setting_that_is_given_twice(tmp_path: Path, setting: str, values: list[str]) -> None:
    choose = choose_release if setting == "upstream" else choose_scope
    with pytest.raises(CtxlockError, match=f"'{setting}' is given 2 times; give it once"):
        choose({setting: values}, tmp_path)
