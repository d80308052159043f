from __future__ import annotations

import itertools

import pytest

from ctxlock.explorer.history import History, HistoryEntry


def adds(name: str, began: int, ended: int | None, *, certain: bool = True) -> HistoryEntry:
    return HistoryEntry(name, began, ended, adds=frozenset([name]), certain=certain)


def removes(name: str, began: int, ended: int | None, *, certain: bool = True) -> HistoryEntry:
    return HistoryEntry(f"-{name}", began, ended, removes=frozenset([name]), certain=certain)


def replaces(name: str, captured: str, began: int, ended: int | None) -> HistoryEntry:
    return HistoryEntry(name, began, ended, captured=frozenset(captured))


def finals(initial: str, *events: HistoryEntry) -> list[str]:
    return sorted("".join(sorted(state)) for state in History(frozenset(initial), events).finals())


def explain(initial: str, final: str, *events: HistoryEntry, excused: str = "") -> list[str]:
    return History(frozenset(initial), events).explain(list(final), frozenset(excused))


FINALS = {
    "nothing": ("a", [], ["a"]),
    "two-additions": ("", [adds("a", 1, 3), adds("b", 2, 4)], ["ab"]),
    "a-removal": ("a", [removes("a", 1, 2)], [""]),
    "removed-after-it-was-added": ("", [adds("a", 1, 2), removes("a", 3, 4)], [""]),
    "removed-at-the-same-time": ("", [adds("a", 1, 3), removes("a", 2, 4)], ["", "a"]),
    "given-up-on": ("", [adds("a", 1, 2, certain=False)], ["", "a"]),
    "a-removal-given-up-on": (
        "a",
        [removes("a", 1, 2, certain=False), adds("b", 3, 4)],
        ["ab", "b"],
    ),
    "replaced-afterwards": ("", [adds("a", 1, 2), replaces("r", "b", 3, 4)], ["b"]),
    "replaced-before": ("", [replaces("r", "b", 1, 2), adds("a", 3, 4)], ["ab"]),
    "replaced-at-the-same-time": ("x", [adds("a", 1, 3), replaces("r", "b", 2, 4)], ["ab", "b"]),
    "replaced-beside-two": (
        "",
        [adds("a", 1, 9), adds("c", 2, 9), replaces("r", "b", 3, 9)],
        ["ab", "abc", "b", "bc"],
    ),
    "an-addition-that-may-come-late": (
        "",
        [adds("a", 1, 2, certain=False), replaces("r", "b", 3, 4)],
        ["ab", "b"],
    ),
}


@pytest.mark.parametrize(("initial", "events", "expected"), FINALS.values(), ids=FINALS)
def test_finals(initial: str, events: list[HistoryEntry], expected: list[str]) -> None:
    assert finals(initial, *events) == expected


def strict(name: str, captured: str, stays: str, began: int, ended: int) -> HistoryEntry:
    return HistoryEntry(
        name, began, ended, captured=frozenset(captured), stays=frozenset(stays), spares=False
    )


STRICT_FINALS = {
    "arrived-while-it-waited": ("", [strict("r", "b", "a", 1, 4), adds("a", 2, 3)], ["ab"]),
    "known-by-then": ("", [adds("a", 1, 3), strict("r", "b", "", 2, 4)], ["ab", "b"]),
    "known-and-left-out": ("a", [strict("r", "b", "", 1, 2)], ["b"]),
    "not-the-callers-to-remove": ("a", [strict("r", "b", "a", 1, 2)], ["ab"]),
    "left-out-by-a-later-one": (
        "",
        [strict("r", "b", "a", 1, 9), strict("q", "b", "", 4, 9), adds("a", 2, 3)],
        ["b"],
    ),
    "removed-by-another": ("a", [strict("r", "b", "a", 1, 4), removes("a", 2, 3)], ["b"]),
}


@pytest.mark.parametrize(
    ("initial", "events", "expected"), STRICT_FINALS.values(), ids=STRICT_FINALS
)
def test_finals_of_strict_replacements(
    initial: str, events: list[HistoryEntry], expected: list[str]
) -> None:
    assert finals(initial, *events) == expected


def test_deleting_what_arrived_is_a_loss_by_the_stricter_rule_alone() -> None:
    arrived = adds("a", 2, 3)
    assert explain("", "b", replaces("r", "b", 1, 4), arrived) == []
    assert explain("", "b", strict("r", "b", "a", 1, 4), arrived) == ["a is lost"]


def test_the_order_of_the_events_in_the_list_is_no_matter() -> None:
    events = [adds("a", 1, 3), replaces("r", "bx", 2, 5), removes("x", 4, 6)]
    found = {tuple(finals("x", *order)) for order in itertools.permutations(events)}
    assert found == {("ab", "abx", "b", "bx")}


VERDICTS = {
    "both-stay": ("", "ab", [adds("a", 1, 3), adds("b", 2, 4)], []),
    "lost": ("", "b", [adds("a", 1, 3), adds("b", 2, 4)], ["a is lost"]),
    "lost-that-was-there-before": ("a", "", [], ["a is lost"]),
    "back": ("a", "a", [removes("a", 1, 2)], ["a is back"]),
    "twice": ("", "aa", [adds("a", 1, 2)], ["a is there twice"]),
    "from-nowhere": ("", "z", [], ["z came from nowhere"]),
    "a-replacement-undone": ("u", "ub", [replaces("r", "", 1, 3), adds("b", 2, 4)], ["u is back"]),
    "what-a-replacement-added-is-lost": (
        "",
        "b",
        [
            HistoryEntry("r", 1, 3, adds=frozenset("a"), captured=frozenset("a")),
            adds("b", 2, 4),
        ],
        ["a is lost"],
    ),
    "a-replacement-deletes-what-its-caller-left-out": (
        "",
        "b",
        [adds("b", 1, 2), adds("a", 3, 4), replaces("r", "b", 5, 6)],
        [],
    ),
    "never-happened": ("", "b", [adds("a", 1, 2, certain=False), adds("b", 3, 4)], []),
}


@pytest.mark.parametrize(
    ("initial", "final", "events", "problems"), VERDICTS.values(), ids=VERDICTS
)
def test_verdicts(
    initial: str, final: str, events: list[HistoryEntry], problems: list[str]
) -> None:
    assert explain(initial, final, *events) == problems


def test_what_is_excused_is_not_looked_at() -> None:
    assert explain("ax", "a", adds("b", 1, 2), excused="b") == ["x is lost"]


def test_an_uncertain_event_precedes_nothing() -> None:
    first, second = adds("a", 1, 2, certain=False), adds("b", 3, 4)
    assert not first.precedes(second)
    assert first.overlaps(second)


def test_touching_events_are_in_order() -> None:
    assert adds("a", 1, 2).precedes(adds("b", 3, 4))
    assert adds("a", 1, 3).overlaps(adds("b", 3, 4))
