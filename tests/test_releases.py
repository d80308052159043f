from __future__ import annotations

import pytest
from packaging.version import Version
from release_table import PAGE, TABLE, Release, SiteStates, dump, load, render
from sweep import main

from ctxlock.release import NEWEST_VERIFIED, OLDEST

COMMITTED = load(TABLE.read_text(encoding="utf-8"))


def test_page_is_rendered_from_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(COMMITTED)


def test_table_is_written_as_it_is_read() -> None:
    assert TABLE.read_text(encoding="utf-8") == dump(COMMITTED)


def test_table_reaches_from_the_oldest_to_the_newest_verified() -> None:
    stable = [release for release in COMMITTED if not release.is_prerelease]
    assert (min(stable), max(stable)) == (OLDEST, NEWEST_VERIFIED)
    assert len(stable) == 100
    assert Version("2.0.0b1") in COMMITTED


@pytest.mark.parametrize("release", COMMITTED, ids=str)
def test_no_site_is_left(release: Version) -> None:
    for site in COMMITTED[release].sites:
        assert site.after == ("read-only" if site.before == "read-only" else "guarded")


def test_upstream_left_two_sites_bare() -> None:
    sites = COMMITTED[Version("1.8.9")].sites
    assert {s.role for s in sites if s.before == "bare"} == {"session start", "spoken message"}
    assert [s.role for s in sites if s.before == "unchecked"] == ["replacement"]


def test_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="has format 2, not 1"):
        load('{"format": 2, "releases": {}}')


@pytest.mark.network
@pytest.mark.parametrize("release", ["1.0.0", "1.0.23", "1.8.8", "1.8.9"])
def test_release_is_what_the_table_says(release: str) -> None:
    assert main(["--check", release]) == 0


@pytest.mark.network
def test_a_difference_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Release("0" * 64, (SiteStates("replacement", "bare", "guarded"),))
    monkeypatch.setattr("sweep.load", lambda _: {Version("1.0.0"): other})
    assert main(["--check"]) == 1
    assert "not what the table says: 1.0.0" in capsys.readouterr().err


def test_no_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "newest"]) == 3
    assert "is no release number" in capsys.readouterr().err
