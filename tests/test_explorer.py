"""The explorer on the real session: exact counts, known good and bad schedules, the same twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from _realtime_support import VERSION, fails_on_stock, needs

from ctxlock.explorer.kinds import kinds_of
from ctxlock.explorer.limits import DROPPED_TURN, FAILED_REPLACEMENT, LATE_ARRIVAL
from ctxlock.explorer.operations import KINDS, SEVERAL
from ctxlock.explorer.schedule import replay, run_schedule
from ctxlock.explorer.search import Choose, follow
from ctxlock.explorer.survey import Group, plan, tally
from ctxlock.races.releases import has_full_scope, is_patched

EXPLORER = (sys.executable, "-m", "ctxlock.explorer")

ONE_STEP = ["text turn", "adding replacement", "deleting replacement"]
patched_only = pytest.mark.skipif(not is_patched(VERSION), reason="only the patched release does")


@pytest.mark.parametrize("kind", [kind.kind for kind in kinds_of()])
def test_one_operation_alone(kind: str) -> None:
    # a handoff's instructions are acknowledged first; there is nothing else to choose
    found = tally(Group((kind,), 0))
    assert (found.schedules, found.violations, found.limits) == (1, 0, {})


@pytest.mark.parametrize("first", ONE_STEP)
@pytest.mark.parametrize("second", ONE_STEP)
def test_two_operations_of_one_acknowledgement_each(first: str, second: str) -> None:
    # either may start first, and the other before or after the acknowledgement
    assert tally(Group((first, second), 0)).schedules == 4


@patched_only
def test_three_operations_of_one_acknowledgement_each() -> None:
    # 6 orders of starting; of a a b b c c in that order, with starts before their own
    # acknowledgements and acknowledgements in order, there are 5 (Catalan)
    found = tally(Group(("text turn", "adding replacement", "deleting replacement"), 0))
    assert (found.schedules, found.violations) == (30, 0)


def test_three_items_are_acknowledged_one_by_one() -> None:
    # beside a text turn: one before the other or the other way round, or the one that comes second
    # asked for before the first, second or third acknowledgement, or the only one
    found = tally(Group(("text turn", "replacement adding three"), 0))
    assert found.schedules == 6


def test_the_budget_is_told() -> None:
    group = Group(("text turn", "text turn"), 0)
    assert tally(group, 3).exhausted
    assert not tally(group, 4).exhausted


def test_the_plan_has_every_pair_and_triple() -> None:
    groups = plan(KINDS, 3)
    pairs = [group for group in groups if len(group.kinds) == 2]
    assert len(pairs) == 35  # 36, but for two cleanups at once
    assert len(groups) - len(pairs) == 112  # 120, but for eight with two cleanups or three
    assert {group.disturbances for group in pairs} == {1}


def test_updates_of_several_items_are_in_pairs_of_which_few_are_disturbed() -> None:
    several = {kind.kind for kind in SEVERAL}
    groups = [group for group in plan(KINDS + SEVERAL, 3) if several & set(group.kinds)]
    assert len(groups) == 42  # 12 kinds and 8 make 78 and 36 pairs
    disturbed = [group.kinds for group in groups if group.disturbances]
    assert disturbed == [
        (kind, "replacement adding three")
        for kind in ("text turn", "tool output", "adding replacement")
    ]


@fails_on_stock(before="1.8.9", raises=AssertionError)
def test_stale_snapshot_is_caught() -> None:
    replay("tool output", "text turn", choices=["start tool output 1", "start text turn 2"])


@needs("1.5.3")
@fails_on_stock(since="1.5.3", raises=AssertionError)
def test_replacement_during_a_session_start_is_caught() -> None:
    choices = ["start session start 2", "start adding replacement 1"]
    replay("adding replacement", "session start", choices=choices)


@patched_only
@pytest.mark.parametrize(
    "kinds",
    [
        ("text turn", "adding replacement"),
        pytest.param(("spoken message", "tool output"), marks=needs("1.8.9")),
    ],
)
def test_patched_release_is_linearizable_under_every_disturbance(kinds: tuple[str, str]) -> None:
    found = tally(Group(kinds, 1))
    assert (found.violations, found.exhausted) == (0, False)
    assert found.schedules == 50


def test_late_arrival_is_a_known_limit() -> None:
    choices = ["start deleting replacement 2", "start text turn 1"]
    choices.append("time out deleting replacement 2")

    def run(choose: Choose) -> str:
        return run_schedule(["text turn", "deleting replacement"], choose, 1).limit

    assert follow(run, choices).result == LATE_ARRIVAL


@patched_only
def test_turn_dropped_by_a_handoff_is_a_known_limit() -> None:
    choices = ["start interrupted tool output 2", "start session start 3"]

    def run(choose: Choose) -> str:
        kinds = ["text turn", "interrupted tool output", "session start"]
        return run_schedule(kinds, choose).limit

    assert follow(run, choices).result == DROPPED_TURN


@pytest.mark.skipif(has_full_scope(), reason="what was added during the wait stays there")
@patched_only
def test_failed_replacement_is_a_known_limit() -> None:
    choices = ["start text turn 1", "start adding replacement 2", "start adding replacement 3"]
    choices += ["acknowledge text turn 1", "acknowledge adding replacement 2"]
    choices.append("cancel waiting adding replacement 3")

    def run(choose: Choose) -> str:
        kinds = ["text turn", "adding replacement", "adding replacement"]
        return run_schedule(kinds, choose, 1).limit

    assert follow(run, choices).result == FAILED_REPLACEMENT


@patched_only
@pytest.mark.parametrize(
    ("group", "violations", "at_limits"),
    [
        (Group(("text turn", "deleting replacement"), 1), 0, 8),
        (Group(("text turn", "interrupted tool output", "session start"), 0), 0, 3),
    ],
    ids=["late arrival", "dropped turn"],
)
def test_no_more_comes_to_a_known_limit_than_is_known(
    group: Group, violations: int, at_limits: int
) -> None:
    found = tally(group)
    assert (found.violations, sum(found.limits.values())) == (violations, at_limits)


@pytest.mark.parametrize("seed", ["0", "1"])
def test_another_process_with_another_hash_seed_finds_the_same(seed: str) -> None:
    group = Group(("tool output", "adding replacement"), 1)
    ran = subprocess.run(
        [*EXPLORER, "--jobs", "2", "--only", ",".join(group.kinds)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    [found] = json.loads(ran.stdout)["groups"]
    here = tally(group)
    for both in (found, expected := here.as_json()):
        del both["seconds"]
    assert found == json.loads(json.dumps(expected))


@fails_on_stock(before="1.8.9", raises=AssertionError)
def test_a_late_update_from_a_stale_snapshot_is_no_known_limit() -> None:
    group = Group(("tool output", "text turn"), 1)
    steps = ["start tool output 1", "start text turn 2", "acknowledge tool output 1"]
    outcome = follow(group.run, [*steps, "time out text turn 2"]).result
    if outcome.limit:
        pytest.fail("it is taken for one")
    assert not outcome.problems
