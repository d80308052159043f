"""The methods that hold the sites of real releases, edited: patched soundly, or refused by line.

They are cut out of the published files when the tests run. `CTXLOCK_FUZZ` says how many cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from textwrap import dedent

import pytest
from activity import HEAD, LOCK, NAME, PUSH, REPLACING, fetch, module, patched_or_refused
from crude_finder import naked
from edits import breaking, edited, keeping
from line_by_line import unexplained
from methods import HOLD, SEND, block, taking
from real_methods import CASES, PARTS, RELEASES, cut, say

from ctxlock.analysis.sites import Site, find_sites
from ctxlock.release import Scope
from ctxlock.verified import LAST_WITHOUT_LOCK

pytestmark = pytest.mark.network


@dataclass(frozen=True)
class Method:
    """A method of a release that holds sites, written from column 0."""

    release: str
    name: str
    text: str
    locked: bool

    def source(self, text: str | None = None, small: str = PUSH) -> str:
        """A module of it and a `small` one; with `text` in its place, where that is given."""
        head = HEAD + LOCK if self.locked else HEAD
        return module(self.text if text is None else text, small, head=head)


def read(release: str, stock: bytes) -> list[Method]:
    """The methods of a stock file that hold sites."""
    text = stock.decode()
    locked, methods = "_rt_chat_ctx_lock" in text, cut(text)
    functions = {site.function for site in find_sites(stock, NAME)}
    return [Method(release, name, dedent(methods[name]), locked) for name in sorted(functions)]


@pytest.fixture(scope="module")
def methods(tmp_path_factory: pytest.TempPathFactory) -> list[Method]:
    return [
        method
        for release in RELEASES
        for method in read(release, fetch(release, tmp_path_factory.mktemp("stock")).read_bytes())
    ]


@pytest.fixture(scope="module")
def counts(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """Counts what became of the cases, and says so in the end."""
    found: Counter[str] = Counter()
    yield found
    said = ", ".join(f"{count} {what}" for what, count in sorted(found.items()))
    say(request, f"edits of real methods: {said}")


def judge(source: str, scope: Scope = "lock") -> tuple[Site, ...] | None:
    """The sites of what was patched, or None for what was refused with a line."""
    text = patched_or_refused(source, scope)
    if text is None:
        return None
    sites = find_sites(text, NAME)
    assert not any(site.state == "bare" or site.rechecked is False for site in sites)
    assert not naked(text)
    assert unexplained(source, text) is None
    return sites


def test_the_cut_methods_are_patched(methods: list[Method]) -> None:
    for method in methods:
        assert judge(method.source())


def test_the_crude_rules_see_what_is_unsound(methods: list[Method]) -> None:
    stock = [method for method in methods if method.release == LAST_WITHOUT_LOCK]
    bare = {method.name: len(naked(method.source())) for method in stock}
    assert bare["_realtime_generation_task_impl"] == 1 + 3  # and the small method's beside it
    assert len(naked(module(taking(block(HOLD, SEND))))) == 1


@pytest.mark.parametrize("part", range(PARTS))
def test_edits_that_keep_the_structure_are_accepted(
    methods: list[Method], counts: Counter[str], part: int
) -> None:
    for case in range(part, CASES // 4, PARTS):
        random = Random(f"kept {case}")
        method = random.choice(methods)
        text = edited(keeping, random, method.text, 1, 4)
        sites = judge(method.source(text).replace("\n", random.choice(["\n", "\r\n"])))
        assert sites is not None, f"case {case}, {method.name} of {method.release}:\n{text}"
        expected = Counter((s.role, s.function) for s in find_sites(method.source(), NAME))
        assert Counter((site.role, site.function) for site in sites) == expected
        counts["kept and accepted"] += 1


@pytest.mark.parametrize("part", range(PARTS))
def test_edits_that_break_it_are_sound_or_refused(
    methods: list[Method], counts: Counter[str], part: int
) -> None:
    for case in range(part, CASES - CASES // 4, PARTS):
        random = Random(f"broken {case}")
        method = random.choice(methods)
        text = edited(breaking, random, method.text, 1, 3)
        accepted = judge(method.source(text)) is not None
        counts["broken and accepted" if accepted else "broken and refused"] += 1


def test_the_cut_methods_are_told(methods: list[Method]) -> None:
    for method in methods:
        assert judge(method.source(small=REPLACING), "full")


@pytest.mark.parametrize("part", range(PARTS))
def test_edits_are_told_or_refused(methods: list[Method], counts: Counter[str], part: int) -> None:
    for case in range(part, CASES // 2, PARTS):
        random = Random(f"told {case}")
        method = random.choice(methods)
        text = edited(random.choice([keeping, breaking]), random, method.text, 1, 3)
        told = judge(method.source(text, REPLACING), "full")
        counts["told" if told else "not told"] += 1
