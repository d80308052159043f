"""What the doctor is tried on: the races, and the regressions of the realtime session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial

from _realtime_support import VERSION
from doctor_runs import Log
from regressions import overlook_what_the_engine_leaves, regressions as of_the_engine

from ctxlock.races.scenarios import SCENARIOS, Scenario
from ctxlock.races.verdict import LostUpdate

Case = Callable[[Log], Awaitable[None]]

__all__ = ["HIDDEN", "MEANT", "RACES", "UNSHOWN", "races", "regressions", "run_of"]

RACES = [s for s in SCENARIOS if VERSION in s.applies and s.through_plugin]

MEANT = (
    "replacement-of_two_replacements_the_later_wins",
    "sequential-replacements",
    "server_items-turn_that_is_understood_after_its_placeholder_was_removed",
    "typed_message-late_acknowledgement_of_a_message_that_was_removed",
    "waiting_replacement-what_the_agent_held_and_the_caller_left_out_goes",
)
"""Regressions in which an application replaces what has just come by a note, within the same
moment, and means to: no log can show that."""

HIDDEN = (
    "handoff-tool_that_hands_off_while_an_update_is_pending",
    "waiting_replacement-typed_message_that_waits_in_front_of_a_replacement",
    "waiting_replacement-tool_output_that_was_recorded_and_left_out_goes",
)
"""Regressions in which a stock release loses a note to a race, and what follows hides that: a
replacement that creates it again, or a handoff that would have deleted it. Their verdict is about
the end alone."""

UNSHOWN = (
    "handoff-handoff_while_a_replacement_is_pending",
    "handoff-item_that_arrives_between_two_activities-heard-False",
    "handoff-item_that_arrives_between_two_activities-understood",
    "handoff-item_that_arrives_between_two_activities_and_goes_with_the_second",
    "handoff-replacement_during_a_resume",
    "handoff-replacement_that_waits_when_a_handoff_takes_the_session",
    "handoff-turn_of_an_earlier_agent_that_is_understood_late",
    "odd_calls-call_that_is_removed_while_it_runs_returns_with_its_output",
    "odd_calls-call_that_is_removed_while_its_output_waits",
    "odd_calls-one_of_two_parallel_calls_that_is_removed",
    "server_items-spoken_turn_that_overtakes_a_typed_message",
)
"""Regressions whose loss looks as what somebody means: docs/doctor.md says of each why."""

_LONGEST = 60.0


def run_of(scenario: Scenario) -> Case:
    """Runs a race; that it loses something is for the caller to see."""
    return partial(_run, scenario.run)


def races() -> Iterator[tuple[str, Case]]:
    """Each race that the installed release has."""
    for scenario in RACES:
        yield scenario.name, run_of(scenario)


def regressions() -> Iterator[tuple[str, Case]]:
    """Each regression that the installed release is asked for, whatever comes of it."""
    for case in of_the_engine():
        skipped = [m for m in case.marks if m.name == "skip" or (m.name == "skipif" and m.args[0])]
        if not skipped:
            yield case.id, partial(_run, case.values[0])


async def _run(run: Callable[[], Awaitable[None]], _log: Log) -> None:
    overlook_what_the_engine_leaves()
    try:
        await asyncio.wait_for(run(), _LONGEST)
    except LostUpdate:
        raise
    except Exception:  # what else is wrong is another test's matter
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
