"""The stricter verdict on the real session: exact counts, and what it must catch where."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ctxlock.explorer.integrity import (
    FROZEN,
    HANDOFF_SERVER,
    KINDS_OF_PROBLEMS,
    RECONNECTION,
    SERVER_ITEM,
)
from ctxlock.explorer.kinds import kinds_of
from ctxlock.explorer.limits import SILENCE
from ctxlock.explorer.operations import KINDS, SEVERAL
from ctxlock.explorer.schedule import ScheduleOutcome, replay, run_schedule
from ctxlock.explorer.search import Choose, follow
from ctxlock.explorer.session_events import HAPPENINGS
from ctxlock.explorer.survey import Group, plan, tally
from ctxlock.races.releases import has_full_scope

caught_without_full_scope = pytest.mark.xfail(
    not has_full_scope(), raises=AssertionError, strict=True, reason="the scope `full` is for this"
)

INSTALLED = [kind.kind for kind in kinds_of(integrity=True)]


def available(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not set(kinds) <= set(INSTALLED), reason="not in this release")


@pytest.mark.parametrize("kind", INSTALLED)
def test_one_operation_alone_is_one_schedule(kind: str) -> None:
    assert tally(Group((kind,), 0, integrity=True)).schedules == 1


@pytest.mark.parametrize(
    ("kinds", "schedules"),
    [
        # both before their own transcripts
        pytest.param(["user speech", "user speech"], 6, id="two-steps-each"),
        pytest.param(["change of tools", "change of tools"], 2, id="one-step-each"),
        pytest.param(["change of tools", "user speech"], 3, id="one-step-and-two"),
        pytest.param(["change of instructions", "user speech"], 6, id="two-steps-and-two"),
    ],
)
def test_steps_of_an_operation_of_its_own_interleave(kinds: list[str], schedules: int) -> None:
    found = tally(Group(tuple(kinds), 0, integrity=True))
    assert (found.schedules, found.violations) == (schedules, 0)


def test_the_disturbances_are_six_with_silence_and_four_without() -> None:
    # the undisturbed one, and those; a stall ends by a late arrival or by a hold limit
    assert tally(Group(("text turn",), 1)).schedules == 5
    assert tally(Group(("text turn",), 1, integrity=True)).schedules == 7


def test_the_plan_has_every_pair() -> None:
    groups = plan(KINDS + HAPPENINGS, 2, integrity=True)
    assert len(groups) == 117  # 120, but for two cleanups, two interruptions, two reconnections
    assert all(group.integrity for group in groups)
    updates = {kind.kind for kind in KINDS}
    disturbed = [group for group in groups if group.disturbances]
    assert {g.kinds for g in plan(KINDS, 2)} <= {group.kinds for group in disturbed}
    assert all(updates & set(group.kinds) for group in disturbed)


def test_pairs_of_what_is_no_update_with_several_items_are_undisturbed() -> None:
    happenings = {kind.kind for kind in HAPPENINGS}
    groups = plan(KINDS + SEVERAL + HAPPENINGS, 2, integrity=True)
    assert len(groups) == 117 + 70  # 19 kinds and 15 make 190 and 120 pairs
    several = {kind.kind for kind in SEVERAL}
    beside = [g for g in groups if several & set(g.kinds) and happenings & set(g.kinds)]
    assert len(beside) == 28
    assert not any(group.disturbances for group in beside)


def test_the_triples_have_something_that_is_no_update() -> None:
    triples = [g for g in plan(KINDS + HAPPENINGS, 3, integrity=True) if len(g.kinds) == 3]
    happenings = {kind.kind for kind in HAPPENINGS}
    assert triples
    assert all(happenings & set(g.kinds) and not g.disturbances for g in triples)


def test_the_plan_without_the_flag_is_as_it_was() -> None:
    assert not any(group.integrity for group in plan(KINDS, 3))
    assert kinds_of("1.8.9") == [*KINDS, *SEVERAL]


SPEECH_UNATTACHED = ["start slow handoff 1", "start user speech 2", "transcribe user speech 2"]


@caught_without_full_scope
@available("slow handoff")
def test_speech_between_detaching_and_attaching() -> None:
    replay("slow handoff", "user speech", choices=SPEECH_UNATTACHED, integrity=True)


@caught_without_full_scope
def test_system_message_after_a_reconnection() -> None:
    replay("reconnection", choices=["start reconnection 1"], integrity=True)


@caught_without_full_scope
@pytest.mark.parametrize("way", ["stall", "swallow"])
def test_provider_that_never_acknowledges(way: str) -> None:
    # it never ends, as on stock, and whoever waited for the lock goes on
    choices = ["start text turn 1", "start adding replacement 2", f"{way} text turn 1"]
    assert outcome("text turn", "adding replacement", choices=choices).limit == SILENCE


@caught_without_full_scope
def test_speech_that_the_agent_did_not_note_when_its_context_is_copied() -> None:
    choices = ["start change of tools 1", "start user speech 2", "start adding replacement 3"]
    kinds = ("change of tools", "user speech", "adding replacement")
    replay(*kinds, choices=choices, integrity=True)


def outcome(*kinds: str, choices: list[str]) -> ScheduleOutcome:
    def run(choose: Choose) -> ScheduleOutcome:
        return run_schedule(kinds, choose, len(choices), integrity=True)

    return follow(run, choices).result


@pytest.mark.skipif(has_full_scope(), reason="nothing is wrong there")
@pytest.mark.parametrize(
    ("kinds", "choices", "expected"),
    [
        pytest.param(
            ["change of tools", "user speech", "adding replacement"],
            ["start change of tools 1", "start user speech 2", "start adding replacement 3"],
            SERVER_ITEM,
            id="server-item",
        ),
        pytest.param(
            ["slow handoff", "user speech"],
            SPEECH_UNATTACHED,
            HANDOFF_SERVER,
            id="handoff",
            marks=available("slow handoff"),
        ),
        pytest.param(
            ["text turn"], ["start text turn 1", "swallow text turn 1"], FROZEN, id="frozen"
        ),
        pytest.param(["reconnection"], [], RECONNECTION, id="reconnection"),
    ],
)
def test_kinds_of_problems(kinds: list[str], choices: list[str], expected: str) -> None:
    assert expected in KINDS_OF_PROBLEMS
    assert expected in outcome(*kinds, choices=choices).kinds


def test_time_passes_only_where_something_waits_for_it() -> None:
    steps: set[str] = set()

    def run(choose: Choose) -> ScheduleOutcome:
        def noting(options: list[str]) -> str:
            steps.update(options)
            return choose(options)

        return run_schedule(("text turn", "tool output"), noting, 0, integrity=True)  # type: ignore[arg-type]

    follow(run, [])
    assert steps
    assert "time passes" not in steps


def test_the_limit_of_an_interruption_is_a_choice() -> None:
    choices = ["start text turn 1", "start interruption 2", "time passes"]
    found = outcome("text turn", "interruption", choices=choices)
    assert not [problem for problem in found.problems if "never ends" in problem]


@pytest.mark.parametrize("seed", ["0", "1"])
def test_another_process_with_another_hash_seed_finds_the_same(seed: str) -> None:
    group = Group(("adding replacement", "user speech"), 1, integrity=True)
    command = [sys.executable, "-m", "ctxlock.explorer", "--integrity"]
    ran = subprocess.run(
        [*command, "--only", ",".join(group.kinds)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(ran.stdout)
    [found] = report["groups"]
    assert report["integrity"]
    here, again = tally(group), tally(group)
    for one in (found, first := here.as_json(), second := again.as_json()):
        del one["seconds"]
    assert first == second
    assert found == json.loads(json.dumps(first))
