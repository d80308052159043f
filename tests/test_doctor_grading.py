"""What makes evidence strong, weak or explained: each thing alone; and the small parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ctxlock.doctor.contents import Contents
from ctxlock.doctor.findings import EXPLAINED, STRONG, WEAK
from ctxlock.doctor.grading import Evidence, grade
from ctxlock.doctor.items import PROVIDER, Item, describe
from ctxlock.doctor.times import Clock, of_field, of_text

LOSS = Evidence(waited=True, age=0.001, round_trip=0.06, pair="call")
LATE = Evidence(age=5.0, round_trip=0.06)

TABLE: list[tuple[str, Evidence, dict[str, Any], str, str]] = [
    ("a loss", LOSS, {}, STRONG, "creates one new item"),
    ("of a message", LOSS, {"pair": ""}, STRONG, "creates one new item"),
    ("of two outputs", LOSS, {"creates": 2}, STRONG, "creates 2 new outputs"),
    ("by one that waited longer", LOSS, {"age": 0.9}, STRONG, "one new item"),
    ("by one that waited a second", LOSS, {"age": 1.0}, WEAK, "time to mean it"),
    ("within a round trip", LOSS, {"waited": False, "age": 0.06}, STRONG, "one new item"),
    ("beyond a round trip", LOSS, {"waited": False, "age": 0.07}, WEAK, "time to mean it"),
    ("without a time", LOSS, {"age": None}, WEAK, "time to mean it"),
    ("in the same second", LOSS, {"whole": True, "age": 0.0}, STRONG, "one new item"),
    ("in the next second", LOSS, {"whole": True, "age": 1.0}, WEAK, "time to mean it"),
    ("with older items", LOSS, {"new_only": False}, WEAK, "deletes older items"),
    ("creating nothing", LOSS, {"creates": 0}, WEAK, "may be there to delete"),
    ("creating several", LOSS, {"creates": 2, "one_kind": False}, WEAK, "creates 2 items"),
    ("of a whole reply", LOSS, {"pair": "", "replied": True}, STRONG, "one new item"),
    (
        "of a reply that may have been cut off",
        LOSS,
        {"pair": "", "replied": True, "unfinished": True},
        WEAK,
        "may have been cut off",
    ),
    (
        "of a reply, by one that had not waited",
        LOSS,
        {"pair": "", "replied": True, "waited": False},
        WEAK,
        "the update had not waited",
    ),
    (
        "of a reply under way, by one that had not waited",
        LOSS,
        {"pair": "", "replied": True, "waited": False, "under_way": True},
        STRONG,
        "as nobody stopped it",
    ),
    ("of a reply under way, late", LATE, {"replied": True, "under_way": True}, WEAK, "time to"),
    (
        "of what nobody heard, with anything",
        LOSS,
        {"unheard": True, "creates": 0, "new_only": False, "pair": ""},
        STRONG,
        "no transcript of it yet",
    ),
    (
        "of what nobody heard, at a handoff that keeps the rest",
        LOSS,
        {"unheard": True, "creates": 0, "handoff": True, "waited": False, "pair": ""},
        STRONG,
        "no transcript of it yet",
    ),
    (
        "of what nobody heard, at a handoff that takes all",
        LOSS,
        {"unheard": True, "creates": 0, "handoff": True, "new_only": False, "pair": ""},
        EXPLAINED,
        "another context",
    ),
    (
        "of what nobody heard, by one that had not waited",
        LOSS,
        {"unheard": True, "creates": 0, "waited": False, "pair": ""},
        WEAK,
        "may be there to delete",
    ),
    ("of what nobody heard, late", LATE, {"unheard": True}, EXPLAINED, "there was time"),
    (
        "of what nobody heard, in whole seconds",
        LOSS,
        {"unheard": True, "creates": 0, "whole": True, "age": 0.0},
        WEAK,
        "may be there to delete",
    ),
    ("after its use", LOSS, {"used": True}, WEAK, "has replied with it"),
    ("at a handoff", LOSS, {"handoff": True}, WEAK, "as at a handoff"),
    ("as the only gap at a handoff", LOSS, {"handoff": True, "pair": ""}, WEAK, "as at a handoff"),
    (
        "with all the rest at a handoff",
        LOSS,
        {"handoff": True, "pair": "", "front": True},
        EXPLAINED,
        "another context",
    ),
    ("of all there is", LOSS, {"pair": "", "front": True}, STRONG, "one new item"),
    (
        "by what would be a summary, if it were older",
        LOSS,
        {"pair": "", "front": True, "summary": True},
        STRONG,
        "one new item",
    ),
    ("back", LOSS, {"returned": True, "pair": ""}, STRONG, "is there for one new item"),
    (
        "back, and nothing else",
        LOSS,
        {"returned": True, "pair": "", "creates": 0},
        WEAK,
        "may be there to bring it back",
    ),
    (
        "cleanup",
        LOSS,
        {"pair": "", "replied": True, "creates": 0},
        EXPLAINED,
        "never played",
    ),
    (
        "of a call",
        LOSS,
        {"pair": "", "replied": True, "creates": 0, "speech": False},
        WEAK,
        "may be there to delete",
    ),
    ("late", LATE, {}, EXPLAINED, "there was time"),
    ("late, of one of a pair", LATE, {"pair": "call"}, WEAK, "time to mean it"),
    ("late, by one that waited", LATE, {"waited": True}, WEAK, "time to mean it"),
    ("half a second late", LATE, {"age": 0.5}, WEAK, "time to mean it"),
    ("late, and used", LATE, {"pair": "call", "used": True}, EXPLAINED, "no longer needed"),
    ("late, and replied to", LATE, {"pair": "reply", "used": True}, WEAK, "time to mean it"),
    ("late, at the beginning", LATE, {"pair": "reply", "front": True}, EXPLAINED, "trimming"),
    ("late, for a summary", LATE, {"front": True, "summary": True}, EXPLAINED, "a summary"),
    ("late, at a handoff", LATE, {"handoff": True}, EXPLAINED, "another context"),
    (
        "a reply, at a handoff",
        LATE,
        {"handoff": True, "replied": True, "creates": 0},
        EXPLAINED,
        "another context",
    ),
]


@pytest.mark.parametrize(
    ("base", "change", "expected", "reason"),
    [pytest.param(*row[1:], id=row[0]) for row in TABLE],
)
def test_grade(base: Evidence, change: dict[str, Any], expected: str, reason: str) -> None:
    graded, reasons = grade(replace(base, **change))
    assert graded == expected
    assert reason in "; ".join(reasons)


@pytest.mark.parametrize(
    ("text", "seconds", "whole"),
    [
        ("1970-01-02T00:00:01Z", 86_401.0, True),
        ("1970-01-02T00:00:01.25+00:00", 86_401.25, False),
        ("1970-01-02T02:00:01.5+02:00", 86_401.5, False),
        ("1970-01-01 19:00:01,500 -0500", 86_401.5, False),
        ("x 1970-01-02 00:00:01,500 - DEBUG", 86_401.5, False),
        ("1970-01-02T00:00:01.123456789Z", 86_401.123456789, False),
        ("\r14:13:20 DEBUG", 51_200.0, True),
        ("14:13:20.5 DEBUG", 51_200.5, False),
    ],
)
def test_times(text: str, seconds: float, whole: bool) -> None:
    stamp = of_text(text)
    assert stamp is not None
    assert stamp[0] == pytest.approx(seconds)
    assert stamp[1] is whole


@pytest.mark.parametrize("text", ["", "hello", "1:2:3", "2026-13-45 00:00:00", "a:14:13:20:b"])
def test_no_time(text: str) -> None:
    assert of_text(text) is None


@pytest.mark.parametrize("value", [1_790_000_000.5, 1_790_000_000_500, 1_790_000_000_500_000_000])
def test_times_as_numbers(value: float) -> None:
    stamp = of_field(value)
    assert stamp is not None
    assert stamp[0] == pytest.approx(1_790_000_000.5)
    assert stamp[1] is False


def test_midnight() -> None:
    clock = Clock()
    assert [clock.read(s) for s in (86_399.0, 1.0, 0.5, 5.0)] == [
        86_399.0,
        86_401,
        86_400.5,
        86_405,
    ]
    assert clock.read(1_790_000_000.0) == 1_790_000_000.0


def test_the_words_count_the_round_trips_that_there_were() -> None:
    _, reasons = grade(replace(LATE, age=8.0, round_trip=0.1, measured=2.0))
    assert reasons[0] == "it was deleted 8.0 s (4.0 round trips) after it was acknowledged"


@pytest.mark.parametrize(
    ("length", "words"), [(0, ""), (1, " (1 character)"), (2, " (2 characters)")]
)
def test_what_an_item_is(length: int, words: str) -> None:
    assert describe(Item("a", role="system", length=length)) == f"a system message{words}"


def test_order() -> None:
    contents = Contents()
    contents.place(Item("b", role="user", origin=PROVIDER), None)
    contents.place(Item("d", role="assistant", origin="model"))
    contents.place(Item("c", role="user"), "b")
    contents.place(Item("a", role="system"), "root")
    contents.place(Item("e"), "an item of before the log")
    assert [item.id for item in contents._until("nothing")] == ["a", "b", "c", "d", "e"]
    assert contents.reply_to(contents.items["c"]) == "d"
    assert contents.reply_to(contents.items["b"]) == ""
    assert contents.first("b", set())  # instructions do not count
    assert not contents.first("c", set())
    assert contents.first("c", {"b"})
