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


@pytest.mark.parametrize(
    ("initial", "events", "expected"),
    [
        pytest.param("a", [], ["a"], id="nothing"),
        pytest.param("", [adds("a", 1, 3), adds("b", 2, 4)], ["ab"], id="two-additions"),
        pytest.param("a", [removes("a", 1, 2)], [""], id="a-removal"),
        pytest.param(
            "", [adds("a", 1, 2), removes("a", 3, 4)], [""], id="removed-after-it-was-added"
        ),
        pytest.param(
            "", [adds("a", 1, 3), removes("a", 2, 4)], ["", "a"], id="removed-at-the-same-time"
        ),
        pytest.param("", [adds("a", 1, 2, certain=False)], ["", "a"], id="given-up-on"),
        pytest.param(
            "a",
            [removes("a", 1, 2, certain=False), adds("b", 3, 4)],
            ["ab", "b"],
            id="a-removal-given-up-on",
        ),
        pytest.param(
            "", [adds("a", 1, 2), replaces("r", "b", 3, 4)], ["b"], id="replaced-afterwards"
        ),
        pytest.param("", [replaces("r", "b", 1, 2), adds("a", 3, 4)], ["ab"], id="replaced-before"),
        pytest.param(
            "x",
            [adds("a", 1, 3), replaces("r", "b", 2, 4)],
            ["ab", "b"],
            id="replaced-at-the-same-time",
        ),
        pytest.param(
            "",
            [adds("a", 1, 9), adds("c", 2, 9), replaces("r", "b", 3, 9)],
            ["ab", "abc", "b", "bc"],
            id="replaced-beside-two",
        ),
        pytest.param(
            "",
            [adds("a", 1, 2, certain=False), replaces("r", "b", 3, 4)],
            ["ab", "b"],
            id="an-addition-that-may-come-late",
        ),
    ],
)
def test_finals(initial: str, events: list[HistoryEntry], expected: list[str]) -> None:
    assert finals(initial, *events) == expected


def strict(name: str, captured: str, stays: str, began: int, ended: int) -> HistoryEntry:
    return HistoryEntry(
        name, began, ended, captured=frozenset(captured), stays=frozenset(stays), spares=False
    )


@pytest.mark.parametrize(
    ("initial", "events", "expected"),
    [
        pytest.param(
            "", [strict("r", "b", "a", 1, 4), adds("a", 2, 3)], ["ab"], id="arrived-while-it-waited"
        ),
        pytest.param(
            "", [adds("a", 1, 3), strict("r", "b", "", 2, 4)], ["ab", "b"], id="known-by-then"
        ),
        pytest.param("a", [strict("r", "b", "", 1, 2)], ["b"], id="known-and-left-out"),
        pytest.param("a", [strict("r", "b", "a", 1, 2)], ["ab"], id="not-the-callers-to-remove"),
        pytest.param(
            "",
            [strict("r", "b", "a", 1, 9), strict("q", "b", "", 4, 9), adds("a", 2, 3)],
            ["b"],
            id="left-out-by-a-later-one",
        ),
        pytest.param(
            "a",
            [strict("r", "b", "a", 1, 4), removes("a", 2, 3)],
            ["b"],
            id="removed-by-another",
        ),
    ],
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


@pytest.mark.parametrize(
    ("initial", "final", "events", "problems"),
    [
        pytest.param("", "ab", [adds("a", 1, 3), adds("b", 2, 4)], [], id="both-stay"),
        pytest.param("", "b", [adds("a", 1, 3), adds("b", 2, 4)], ["a is lost"], id="lost"),
        pytest.param("a", "", [], ["a is lost"], id="lost-that-was-there-before"),
        pytest.param("a", "a", [removes("a", 1, 2)], ["a is back"], id="back"),
        pytest.param("", "aa", [adds("a", 1, 2)], ["a is there twice"], id="twice"),
        pytest.param("", "z", [], ["z came from nowhere"], id="from-nowhere"),
        pytest.param(
            "u",
            "ub",
            [replaces("r", "", 1, 3), adds("b", 2, 4)],
            ["u is back"],
            id="a-replacement-undone",
        ),
        pytest.param(
            "",
            "b",
            [
                HistoryEntry("r", 1, 3, adds=frozenset("a"), captured=frozenset("a")),
                adds("b", 2, 4),
            ],
            ["a is lost"],
            id="what-a-replacement-added-is-lost",
        ),
        pytest.param(
            "",
            "b",
            [adds("b", 1, 2), adds("a", 3, 4), replaces("r", "b", 5, 6)],
            [],
            id="a-replacement-deletes-what-its-caller-left-out",
        ),
        pytest.param(
            "", "b", [adds("a", 1, 2, certain=False), adds("b", 3, 4)], [], id="never-happened"
        ),
    ],
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
