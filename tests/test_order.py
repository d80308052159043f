"""Known good and bad histories for the rule of order: each is what happened, in turn.

``? abc`` asks for a, b and c in that order; ``! abc`` does so to move them; ``= abc`` asks for no
others; ``agent abc`` and ``model abc`` are what a side held from then on.
"""

from __future__ import annotations

import pytest

from ctxlock.races.order import OrderLog


def log_of(*lines: str) -> OrderLog:
    log = OrderLog()
    for line in lines:
        what, _, items = line.partition(" ")
        if what in ("agent", "model"):
            log.see(what, items, (f"item {item}" for item in items))
        else:
            log.ask(*items, moves=what == "!", whole=what == "=")
    return log


def problems(*lines: str, excused: str = "") -> list[str]:
    found = log_of(*lines).problems(frozenset(f"item {item}" for item in excused))
    return [
        text.replace("item ", "").replace(", asked for the other way round", "") for text in found
    ]


GOOD = {
    "nothing": [],
    "nothing-was-asked-for": ["agent ab", "model ba"],
    "acknowledged-one-by-one": ["? abc", "agent abc", "model a", "model ab", "model abc"],
    "acknowledged-in-another-order": ["? abc", "agent abc", "model c", "model bc", "model abc"],
    "with-others-between": ["? abc", "agent axbyc", "model xaybc"],
    "refused": ["? abc", "agent abc", "model ac"],
    "two-that-were-not-put-in-an-order": ["? ab", "? cd", "agent abcd", "model acdb"],
    "gone-and-back-in-its-place": ["? abc", "agent abc", "model abc", "model ac", "model abc"],
    "moved-by-the-application": [
        "? abc", "agent abc", "model abc", "! cab", "agent cab", "model ab", "model cab",
    ],
    "moved-by-the-application-and-not-yet-sent": ["? ab", "model ab", "! ba", "agent ba"],
    "copied-where-the-sides-differ": ["agent ab", "model ba", "? abc", "agent abc", "model bac"],
    "then-sent-as-it-was-copied": ["agent ab", "model ba", "? abc", "model b", "model abc"],
    "left-out-and-added-elsewhere": [
        "? abc", "agent abc", "= bc", "agent bc", "= bca", "agent bca",
    ],
    "by-earlier-updates-first-and-then-as-asked": [
        "? xa", "? xb", "agent xab", "= xabc", "model xb", "model xba", "model xb", "model xabc",
    ],
    "left-out-and-back-elsewhere": ["? ab", "agent ab", "= b", "agent b", "model ba"],
}  # fmt: skip


@pytest.mark.parametrize("lines", GOOD.values(), ids=GOOD)
def test_good_histories(lines: list[str]) -> None:
    assert problems(*lines) == []


ROTATED = ["? abc", "agent abc", "model a", "agent bca"]
"""What the scope `full` does when the first of three is acknowledged."""

PAIRS = ["the agent has b before a", "the agent has c before a"]
MOVED = [
    "the agent has b, which is moved in front of a",
    "the agent has c, which is moved in front of a",
]

BAD = {
    "half-acknowledged-and-rotated": (ROTATED, [*PAIRS, *MOVED]),
    "until-all-are-acknowledged": (
        [*ROTATED, "model abc", "agent abc"], [f"for a while, {text}" for text in PAIRS] + MOVED,
    ),
    "and-copied-then": (
        [*ROTATED, "? bcad", "agent bcad", "model bcad"],
        [*PAIRS, *MOVED, "the model has b before a", "the model has c before a"],
    ),
    "with-the-model": (["? ab", "agent ab", "model ba"], ["the model has b before a"]),
    "with-the-model-for-a-while": (
        ["? ab", "agent ab", "model ba", "model ab"], ["for a while, the model has b before a"],
    ),
    "on-both-sides-alike": (
        ["? ab", "agent ba", "model ba"], ["the agent has b before a", "the model has b before a"],
    ),
    "gone-and-back-elsewhere": (
        ["? ab", "model ab", "model b", "model ba"], ["the model has b before a"],
    ),
    "sent-as-copied-and-moved-again": (
        ["agent ab", "model ba", "? ab", "model ab", "model ba"], ["the model has b before a"],
    ),
    "twice-on-both-ends": (["? ab", "agent ab", "model aba"], ["the model has b before a"]),
    "moved-by-the-application-and-back": (
        ["? ab", "agent ab", "! ba", "agent ba", "agent ab"],
        ["the agent has a before b"],
    ),
    "by-earlier-updates-and-for-ever": (
        ["? xa", "? xb", "agent xab", "= xabc", "model xb", "model xba", "model xbac"],
        ["the model has b before a"],
    ),
    "by-earlier-updates-after-it-was-as-asked": (
        ["? xa", "? xb", "agent xab", "= xabc", "model xab", "model xba", "model xabc"],
        ["for a while, the model has b before a"],
    ),
    "of-the-same-request": (
        ["? x", "agent x", "model x", "= xab", "model xba", "model xab"],
        ["for a while, the model has b before a"],
    ),
    "an-item-that-nobody-asked-for-is-moved": (
        ["agent ab", "agent ba"], ["the agent has b, which is moved in front of a"],
    ),
    "left-out-by-one-who-did-not-know-of-it": (
        ["? ab", "agent b", "= b", "model ba"], ["the model has b before a"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), BAD.values(), ids=BAD)
def test_bad_histories(lines: list[str], expected: list[str]) -> None:
    assert problems(*lines) == expected


def test_what_is_excused_is_so_with_the_model_alone() -> None:
    lines = ["? abc", "agent bac", "model bac"]
    assert problems(*lines, excused="a") == ["the agent has b before a"]


def test_items_may_be_asked_for_by_name_and_change_it() -> None:
    log = OrderLog()
    log.ask(["output of one"], ["output of two"])
    log.see("model", ["2", "1"], ["output of two", "output of one"])
    log.see("model", ["2", "1"], ["output of two", "another name"])
    assert len(log.problems()) == 1


def test_those_of_one_group_may_stand_in_any_order() -> None:
    log = OrderLog()
    log.ask("ab", "c")
    log.see("model", "bac", "bac")
    assert log.problems() == []
    log.see("model", "bca", "bca")
    assert len(log.problems()) == 1


def test_what_is_seen_twice_in_a_row_stands_there_once() -> None:
    assert len(log_of("agent ab", "model ab", "agent ab", "model ab").entries) == 2
