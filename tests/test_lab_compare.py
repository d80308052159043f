from __future__ import annotations

from pathlib import Path

import pytest

from lab.__main__ import broken
from lab.compare import (
    BadExpectations,
    Expectation,
    Verdict,
    differing,
    judge,
    read_expected,
    surprises,
)
from lab.trace import Trace

KEY = ("full", "google", "greeting")
SAME, DIFFERS, INSIDE = Verdict("same"), Verdict("differs", ("x: - a",)), Verdict("inside")
UNJUDGED, UNSUPPORTED = Verdict("unjudged"), Verdict("unsupported")


def trace(outcome: str = "done", order: str = "", **channels: str) -> Trace:
    return Trace(outcome, {name: text.split() for name, text in channels.items()}, order.split())


def test_the_same_is_the_same() -> None:
    assert judge(trace(frames="a b"), trace(frames="a b"), trace(frames="a b")).kind == "same"


@pytest.mark.parametrize("frames", ["a", "a b b", "b a", "a b c", "a c"])
def test_what_is_lost_doubled_reordered_added_or_altered_differs(frames: str) -> None:
    stock = trace(frames="a b")
    assert judge(stock, stock, trace(frames=frames)).kind == "differs"


def test_a_channel_more_or_less_differs() -> None:
    less, more = trace(frames="a"), trace(frames="a", errors="e")
    assert differing(less, more) == ("errors: + e",)
    assert differing(more, less) == ("errors: - e",)


def test_only_the_order_between_channels_differs_inside() -> None:
    stock = trace(order="frames events", frames="a", events="b")
    other = trace(order="events frames", frames="a", events="b")
    assert judge(stock, stock, other).kind == "inside"


def test_calls_alone_differ_inside_and_with_frames_outside() -> None:
    stock = trace(calls="a", frames="a")
    assert judge(stock, stock, trace(calls="b", frames="a")).kind == "inside"
    verdict = judge(stock, stock, trace(calls="b", frames="b"))
    assert (verdict.kind, verdict.seen) == ("differs", 2)


def test_where_stock_differs_from_stock_nothing_is_judged() -> None:
    verdict = judge(trace(frames="a"), trace(frames="b"), trace(frames="a"))
    assert verdict.kind == "unjudged"
    assert verdict.lines == ("frames: - a", "frames: + b")


def test_another_outcome_differs() -> None:
    stock = trace(frames="a")
    assert judge(stock, stock, trace("stuck", frames="a")).kind == "differs"


def test_what_is_unsupported_on_both_is_unsupported() -> None:
    stock = trace("unsupported")
    assert judge(stock, stock, stock).kind == "unsupported"
    assert judge(stock, stock, trace("done")).kind == "differs"


# -- expected differences, strict in both directions


@pytest.mark.parametrize(
    ("verdict", "listed", "count"),
    [
        *((verdict, None, 1) for verdict in (DIFFERS, INSIDE)),
        *((verdict, "differs", 1) for verdict in (SAME, INSIDE, UNJUDGED, UNSUPPORTED)),
        (DIFFERS, "inside", 1),
        (DIFFERS, "differs", 0),
        (INSIDE, "inside", 0),
        (SAME, None, 0),
    ],
)
def test_what_is_not_as_it_is_listed_is_a_surprise(
    verdict: Verdict, listed: str | None, count: int
) -> None:
    expected = {KEY: Expectation(listed, "why")} if listed else {}
    for whole in (True, False):
        found = surprises({KEY: verdict}, expected, whole=whole)
        assert len(found) == count
        assert all(("not expected" in sentence) == (listed is None) for sentence in found)


def test_what_is_listed_and_missing_is_one_where_all_was_run() -> None:
    expected = {KEY: Expectation("differs", "why")}
    assert surprises({}, expected, whole=False) == []
    assert len(surprises({}, expected, whole=True)) == 1


def test_a_step_that_fails_on_stock_says_that_the_lab_is_broken() -> None:
    assert len(broken({KEY: Verdict("same", (), "failed"), ("lock", "x", "y"): SAME})) == 1


def test_a_lab_that_cannot_judge_is_broken() -> None:
    verdicts = {("lock", "x", str(number)): SAME for number in range(30)}
    assert broken(verdicts | {KEY: Verdict("unjudged")}) == []
    many = {("full", "x", str(number)): Verdict("unjudged") for number in range(5)}
    assert len(broken(verdicts | many)) == 1


# -- the file


def read(tmp_path: Path, text: str) -> dict[tuple[str, str, str], Expectation]:
    file = tmp_path / "expected.toml"
    file.write_text(text, encoding="utf-8")
    return read_expected(file, scopes=("lock", "full"))


def test_the_file_is_read(tmp_path: Path) -> None:
    text = '[[full]]\nis = "differs"\nreason = "why"\nsteps = { google = ["greeting"] }\n'
    assert read(tmp_path, text) == {KEY: Expectation("differs", "why")}


@pytest.mark.parametrize(
    "text",
    [
        '[[full]]\nis = "differs"\nsteps = { google = ["greeting"] }\n',
        '[[full]]\nis = "differs"\nreason = " "\nsteps = { google = ["greeting"] }\n',
        '[[full]]\nis = "same"\nreason = "why"\nsteps = { google = ["greeting"] }\n',
        '[[full]]\nis = "differs"\nreason = "why"\nsteps = { google = ["a", "a"] }\n',
        '[[half]]\nis = "differs"\nreason = "why"\nsteps = { google = ["a"] }\n',
        "[[full]\n",
    ],
    ids=["no reason", "empty reason", "no such kind", "twice", "no such scope", "no toml"],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadExpectations):
        read(tmp_path, text)


def test_lock_needs_no_entry() -> None:
    file = Path(__file__).parent.parent / "lab" / "expected.toml"
    assert not [key for key in read_expected(file, scopes=("lock", "full")) if key[0] == "lock"]
