from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import comb, factorial

import pytest

from ctxlock.explorer.search import Choose, Diverged, every_path, follow


def interleave(*lengths: int) -> Callable[[Choose], str]:
    """Threads of so many steps each; the result tells their order."""

    def run(choose: Choose) -> str:
        left = [*lengths]
        order = ""
        while any(left):
            name = choose([str(number) for number, steps in enumerate(left) if steps])
            left[int(name)] -= 1
            order += name
        return order

    return run


@pytest.mark.parametrize(
    ("lengths", "count"),
    [
        pytest.param((), 1, id="nothing"),
        pytest.param((3,), 1, id="one-thread"),
        pytest.param((1, 1), 2, id="two-steps"),
        pytest.param((2, 2), comb(4, 2), id="two-threads"),
        pytest.param((3, 5), comb(8, 3), id="uneven-threads"),
        pytest.param((1, 1, 1, 1), factorial(4), id="four-steps"),
        pytest.param((2, 2, 2), factorial(6) // 8, id="three-threads"),
    ],
)
def test_every_interleaving_once(lengths: tuple[int, ...], count: int) -> None:
    results = [execution.result for execution in every_path(interleave(*lengths))]
    assert len(results) == len(set(results)) == count


def test_the_order_is_depth_first() -> None:
    assert [e.result for e in every_path(interleave(1, 2))] == ["011", "101", "110"]


def test_choices_are_what_was_chosen() -> None:
    for execution in every_path(interleave(2, 2)):
        assert "".join(execution.choices) == execution.result
        assert follow(interleave(2, 2), execution.choices) == execution


def test_a_tree_whose_branches_differ() -> None:
    def run(choose: Choose) -> str:
        return choose(["a", "b"]) if choose(["stop", "go on"]) == "go on" else "stopped"

    assert [execution.result for execution in every_path(run)] == ["stopped", "a", "b"]


def test_a_run_is_made_only_when_it_is_asked_for() -> None:
    runs = 0

    def run(choose: Choose) -> None:
        nonlocal runs
        runs += 1
        while choose(["on", "off"]) == "on" and runs < 99:
            if runs:
                break

    assert len(list(islice(every_path(run), 1))) == runs == 1


def scripted(*forks: Sequence[str]) -> Callable[[Choose], None]:
    scripts: Iterator[Sequence[str]] = iter(forks)

    def run(choose: Choose) -> None:
        for options in next(scripts):
            choose(options.split())

    return run


@pytest.mark.parametrize(
    "second",
    [pytest.param(["x y"], id="other-names"), pytest.param([], id="an-earlier-end")],
)
def test_a_run_that_takes_another_course_is_noticed(second: list[str]) -> None:
    with pytest.raises(Diverged):
        list(every_path(scripted(["a b", "c d"], second)))


@pytest.mark.parametrize("options", [[], ["same", "same"]])
def test_a_fork_has_names_of_its_own(options: list[str]) -> None:
    with pytest.raises(ValueError, match="fork"):
        list(every_path(lambda choose: choose(options)))


def test_followed_choices_end_and_the_first_way_is_taken() -> None:
    assert follow(interleave(2, 2), ["1"]).result == "1001"


def test_forks_of_one_way_need_no_choice() -> None:
    def run(choose: Choose) -> str:
        choose(["the only one"])
        return choose(["a", "b"])

    assert follow(run, ["b"]).result == "b"
    assert follow(run, ["the only one", "b"]).result == "b"


@pytest.mark.parametrize("choices", [["2"], ["0", "1", "0"]])
def test_a_choice_that_is_not_open_is_refused(choices: list[str]) -> None:
    with pytest.raises(Diverged):
        follow(interleave(1, 1), choices)
