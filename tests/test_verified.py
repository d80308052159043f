"""One file says which releases are verified: all that names the newest one agrees with it."""

from __future__ import annotations

import re
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import pytest
import tomlkit
from packages import PATCHED
from packaging.requirements import Requirement
from packaging.version import Version

import noxfile
from ctxlock.release import NEWEST_VERIFIED
from ctxlock.verified import LAST_WITHOUT_LOCK, NEWEST, VERIFIED

ROOT = Path(__file__).resolve().parent.parent
PROOF = (ROOT / "docs/proof.md").read_text(encoding="utf-8")


def test_the_releases_are_in_their_order() -> None:
    assert all(Version(a) < Version(b) for a, b in pairwise(VERIFIED))
    assert str(NEWEST_VERIFIED) == NEWEST
    assert LAST_WITHOUT_LOCK in VERIFIED


def test_the_suite_runs_on_the_newest_one() -> None:
    assert version("livekit-agents") == PATCHED, "run `uv sync`"


def test_the_plugin_is_pinned_to_the_same_number() -> None:
    groups = tomlkit.parse((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = [Requirement(pin) for pin in groups["dependency-groups"]["pins"]]
    (plugin,) = [pin for pin in pins if pin.name == "livekit-plugins-openai"]
    assert str(plugin.specifier) == f"=={NEWEST}", "run `uv run nox -s pin`"


def test_the_readme_installs_the_newest_one() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {*re.findall(r"[\d.]+\+ctxlock[\w.]+\w", text)} == {PATCHED}
    assert {*re.findall(r"livekit-agents==([\d.]+\d)", text)} == {NEWEST}


@pytest.mark.parametrize("name", noxfile.CI)
def test_what_runs_without_a_name_is_a_session(name: str) -> None:
    session, _, of = name.rstrip(")").partition("(")
    assert callable(getattr(noxfile, session))
    assert not of or of in (*VERIFIED, *noxfile.PYTHONS)


def test_the_proof_says_how_long_all_of_it_takes() -> None:
    assert f"{sum(noxfile.CI.values())} minutes" in PROOF


def test_the_proof_says_how_long_a_session_takes() -> None:
    said = re.findall(r"`uv run nox -s (\w+)[^`]*` \| (\d+) minutes", PROOF)
    assert {name for name, _ in said} & noxfile.CI.keys()
    assert {name: int(n) for name, n in said if name in noxfile.CI}.items() <= noxfile.CI.items()
