from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from ctxlock.races.search import Choose, Diverged, explore, follow


def interleave(*lengths: int) -> Callable[[Choose], str]:
    """A run of threads with so many steps each, which says in what order they went."""

    def run(choose: Choose) -> str:
        left = {f"{thread}": steps for thread, steps in enumerate(lengths)}
        order = ""
        while any(left.values()):
            thread = choose([name for name, steps in left.items() if steps])
            left[thread] -= 1
            order += thread
        return order

    return run


@pytest.mark.parametrize("lengths", [(1,), (1, 1), (2, 2), (3, 2), (1, 1, 1), (2, 2, 2), (3, 3, 1)])
def test_every_schedule_once(lengths: tuple[int, ...]) -> None:
    expected = math.factorial(sum(lengths)) // math.prod(map(math.factorial, lengths))
    found = [execution.result for execution in explore(interleave(*lengths))]
    assert len(found) == len(set(found)) == expected


def test_the_choices_lead_there_again() -> None:
    run = interleave(2, 2)
    for execution in explore(run):
        assert follow(run, execution.choices) == execution


def test_a_run_that_comes_by_another_fork_is_noticed() -> None:
    runs = iter(["ab", "cd"])
    with pytest.raises(Diverged, match="At fork 0"):
        list(explore(lambda choose: choose(next(runs))))


def test_a_choice_that_is_not_open() -> None:
    with pytest.raises(Diverged, match="is not among"):
        follow(lambda choose: choose("ab"), ["c"])


def test_a_choice_that_is_left_over() -> None:
    with pytest.raises(Diverged, match="ended before"):
        follow(lambda choose: choose("ab"), ["a", "b"])


def test_names_must_differ() -> None:
    with pytest.raises(ValueError, match="each of its own"):
        list(explore(lambda choose: choose("aa")))
