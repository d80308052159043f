"""The table of releases, and the sweep that makes it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import packages
import pytest
import release_table
import sweep
from activity import NAME, PUSH, REPLACING, locked, module
from packaging.version import Version
from release_table import PAGE, TABLE, Release, SiteStates, dump, load, render

from ctxlock.environments.installer import Installer
from ctxlock.errors import CtxlockError
from ctxlock.patching.patch import Patched, patch_source
from ctxlock.release import NEWEST_VERIFIED, OLDEST, Scope
from ctxlock.target import ADDED, TARGET
from ctxlock.verified import LAST_WITHOUT_LOCK, NEWEST, VERIFIED

RELEASES = load(TABLE.read_text(encoding="utf-8"))
FINAL = sorted(version for version in RELEASES if not version.is_prerelease)

SOURCE = module(REPLACING).encode()
SITES = (SiteStates("replacement", "bare", "guarded"),)
FOUND = Release(hashlib.sha256(SOURCE).hexdigest(), SITES, ("replacements",))


# What is checked in.


def test_the_table_goes_from_the_oldest_to_the_newest_verified() -> None:
    assert (FINAL[0], FINAL[-1]) == (OLDEST, NEWEST_VERIFIED)
    assert len(FINAL) >= 100


def test_the_patch_leaves_no_site_bare_or_unchecked() -> None:
    after = {site.after for release in RELEASES.values() for site in release.sites}
    assert after == {"guarded", "read-only"}


def test_upstream_left_two_sites_bare() -> None:
    sites = RELEASES[Version("1.8.9")].sites
    assert {s.role for s in sites if s.before == "bare"} == {"session start", "spoken message"}
    assert [s.role for s in sites if s.before == "unchecked"] == ["replacement"]


def test_the_scope_full_refuses_one_release() -> None:
    refused = {version: release.refused for version, release in RELEASES.items() if release.refused}
    assert [*refused] == [Version("2.0.0b1")]
    assert "build with the scope lock" in refused[Version("2.0.0b1")]


def test_a_part_is_there_from_one_release_on() -> None:
    oldest = {"replacements", "typed messages", "closing"}
    since = {"tool outputs": "1.2.9", "server items": "1.5.0", "handoffs": "1.5.3"}
    since["unheard messages"] = "1.5.12"
    for version in FINAL:
        brought = {part for part, first in since.items() if version >= Version(first)}
        assert {*RELEASES[version].parts} == oldest | brought, version


def test_every_site_has_a_role() -> None:
    roles = {site.role for release in RELEASES.values() for site in release.sites}
    assert not roles & {"other", "comparison"}


def test_the_same_content_has_the_same_sites() -> None:
    assert len({release.sha256 for release in RELEASES.values()}) == len({*RELEASES.values()})


def test_the_table_is_written_as_the_sweep_writes_it() -> None:
    assert TABLE.read_text(encoding="utf-8") == dump(RELEASES)


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(RELEASES), "run `uv run nox -s releases`"


def test_the_regressions_run_on_the_newest_of_each_minor() -> None:
    newest = {version.release[:2]: version for version in FINAL}
    verified = sorted(map(Version, VERIFIED))
    assert {*newest.values()} <= {*verified} <= {*FINAL}


@pytest.mark.network
@pytest.mark.parametrize("version", [str(OLDEST), "1.0.23", LAST_WITHOUT_LOCK, NEWEST, "2.0.0b1"])
def test_a_release_is_what_the_table_says(version: str, tmp_path: Path) -> None:
    release = Version(version)
    assert sweep.examine(sweep.fetch(release, tmp_path)) == RELEASES[release]


# How it is made.


def test_examines_a_file() -> None:
    assert sweep.examine(SOURCE) == FOUND


def test_tells_that_a_session_is_not_checked_again() -> None:
    push = """\
    async def sync(self, ctx):
        if self._rt_session is not None:
            async with self._rt_chat_ctx_lock:
                await self._rt_session.update_chat_ctx(ctx)
    """
    (site,) = sweep.examine(locked(push).encode()).sites
    assert (site.before, site.after) == ("unchecked", "guarded")


def test_notes_that_the_scope_full_refuses() -> None:
    found = sweep.examine(module(PUSH).encode(), NAME)
    assert [site.after for site in found.sites] == ["guarded"]
    assert found.parts == ()
    assert found.refused is not None
    assert found.refused.startswith("The scope full cannot follow what goes on here")


def test_that_the_scope_lock_refuses_is_an_error() -> None:
    with pytest.raises(CtxlockError, match="There is no class AgentActivity"):
        sweep.examine(b"x = 1\n", NAME)


@pytest.mark.parametrize(
    ("scope", "change", "reason"),
    [
        ("lock", {"source": b"return\n"}, "does not compile"),
        ("full", {"source": b"return\n"}, "does not compile"),
        ("full", {"added": {ADDED: b"return\n"}}, "does not compile"),
        ("full", {"added": {}}, f"adds no {ADDED}"),
        ("full", {"sites": ()}, "leaves other sites"),
    ],
)
def test_what_is_wrong_with_a_result_is_an_error(
    scope: Scope, change: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def patch(source: bytes, filename: str, wanted: Scope) -> Patched:
        patched = patch_source(source, filename, wanted)
        return replace(patched, **change) if wanted == scope else patched

    monkeypatch.setattr(sweep, "patch_source", patch)
    with pytest.raises(CtxlockError, match=reason):
        sweep.examine(SOURCE, NAME)


def test_the_json_reads_back() -> None:
    table = {Version("1.10.0"): FOUND, Version("1.9.0"): Release("0", (), refused="No.")}
    text = dump(table)
    assert load(text) == table
    assert text.index('"1.9.0"') < text.index('"1.10.0"')
    with pytest.raises(ValueError, match="has format 1"):
        load(text.replace('"format": 2', '"format": 1'))


def test_the_page_counts() -> None:
    again = Release("0" * 64, (*FOUND.sites, *FOUND.sites, SiteStates("late", "unchecked", "bare")))
    page = render({Version("1.9.0"): FOUND, Version("1.9.1"): again, Version("1.9.2"): again})
    assert "3 releases of livekit-agents, with 2 different contents" in page
    assert "7 sites. As published, 5 are bare and 2 unchecked; after the patch, 2 are." in page
    rows = page.splitlines()[-5:]
    assert rows[0] == "| release | sha256 | replacement | late | full |"
    assert rows[2] == f"| 1.9.0 | `{FOUND.sha256[:12]}` | bare | | a |"
    assert rows[3] == "| 1.9.1 | `000000000000` | bare, bare | unchecked | |"


def test_the_page_names_parts_and_refusals() -> None:
    oldest = Release("0" * 64, SITES, ("one", "three"))
    later = Release("1" * 64, SITES, ("one", "two", "three"))
    refused = Release("2" * 64, SITES, refused="It differs.")
    page = render({Version("1.9.0"): oldest, Version("1.9.1"): later, Version("2.0.0"): refused})
    assert "has: **a** one, **b** three, **c** two." in page
    assert "The scope full refuses 1 of them." in page
    assert "\n- 2.0.0: It differs.\n" in page
    assert [row.split(" | ")[-1] for row in page.splitlines()[-3:]] == [
        "ab |",
        "abc |",
        "refused |",
    ]
    assert "build says" not in render({Version("1.9.0"): oldest})


class Swept:
    """The command line over a small table and an index of one tiny release for all numbers."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.table, self.page = folder / "releases.json", folder / "releases.md"
        self.write({Version("1.9.0"): FOUND, Version("1.9.1"): FOUND})
        self.changes: packages.Files = {}
        monkeypatch.setattr(sweep, "TABLE", self.table)
        monkeypatch.setattr(sweep, "PAGE", self.page)
        monkeypatch.setattr(Installer, "fetch", self.fetch)

    def fetch(self, release: str, folder: Path) -> None:
        packages.install(folder, packages.release(release) | self.changes)

    def write(self, table: release_table.Table) -> None:
        self.table.write_text(dump(table), encoding="utf-8")

    def read(self) -> dict[Version, Release]:
        return load(self.table.read_text(encoding="utf-8"))


@pytest.fixture
def swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Swept:
    return Swept(tmp_path, monkeypatch)


def test_regenerates_both_files(swept: Swept) -> None:
    swept.write(dict.fromkeys(swept.read(), Release("0", ())))
    assert sweep.main([]) == 0
    assert swept.read() == {Version("1.9.0"): FOUND, Version("1.9.1"): FOUND}
    assert swept.page.read_text(encoding="utf-8") == render(swept.read())


def test_adds_a_new_release(swept: Swept) -> None:
    swept.write({Version("1.9.1"): Release("0", ())})
    assert sweep.main(["1.9.2"]) == 0
    assert swept.read() == {Version("1.9.1"): Release("0", ()), Version("1.9.2"): FOUND}


def test_a_check_writes_nothing(swept: Swept, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep.main(["--check"]) == 0
    assert "2 releases swept, 1 different contents." in capsys.readouterr().out
    changed = {Version("1.9.0"): FOUND, Version("1.9.1"): Release("0", FOUND.sites)}
    swept.write(changed)
    assert sweep.main(["--check"]) == 1
    assert "not what the table says: 1.9.1." in capsys.readouterr().err
    assert swept.read() == changed
    assert not swept.page.exists()


def test_a_check_compares_the_parts(swept: Swept, capsys: pytest.CaptureFixture[str]) -> None:
    fewer = replace(FOUND, parts=())
    swept.write({Version("1.9.0"): fewer, Version("1.9.1"): replace(FOUND, refused="It differs.")})
    assert sweep.main(["--check"]) == 1
    assert "not what the table says: 1.9.0, 1.9.1." in capsys.readouterr().err


def test_one_that_fails_ends_it(swept: Swept, capsys: pytest.CaptureFixture[str]) -> None:
    before = swept.read()
    swept.changes[TARGET] = b"x = 1\n"
    assert sweep.main([]) == 3
    assert "sweep: " in (said := capsys.readouterr().err)
    assert "There is no class AgentActivity" in said
    assert swept.read() == before


def test_no_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep.main(["--check", "newest"]) == 3
    assert "is no release number" in capsys.readouterr().err
