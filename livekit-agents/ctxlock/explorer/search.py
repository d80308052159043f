"""Every path through a tree of choices that is only known by walking it: loom's way.

A run is started afresh, asks at each fork which way to go, and ends. The next run repeats all but
the last of those answers, takes the next one there, and so on, depth-first, until no fork has an
answer left. Nothing here knows what is being explored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Choose", "Diverged", "Execution", "every_path", "follow"]

T = TypeVar("T")

Choose = Callable[[Sequence[str]], str]
"""Given the names of the ways that are open at a fork, at least one, says which to take."""


class Diverged(Exception):
    """A run did not come by the forks that an earlier run with the same answers had come by."""


@dataclass(frozen=True)
class Execution(Generic[T]):
    """One run to its end: what came of it, and the choices that led there."""

    result: T
    choices: tuple[str, ...]


@dataclass(frozen=True)
class _Fork:
    options: tuple[str, ...]
    taken: int


class _Replay:
    """Repeats the answers of a path, then takes the first way at every fork."""

    def __init__(self, path: Sequence[_Fork]) -> None:
        self.path = list(path)
        self.depth = 0

    def choose(self, options: Sequence[str]) -> str:
        given = tuple(options)
        if not given or len(set(given)) != len(given):
            raise ValueError(f"A fork needs names, each of its own, not {given}.")
        if self.depth == len(self.path):
            self.path.append(_Fork(given, 0))
        fork = self.path[self.depth]
        if fork.options != given:
            raise Diverged(f"At fork {self.depth} there was {fork.options}, and now {given}.")
        self.depth += 1
        return given[fork.taken]


def every_path(run: Callable[[Choose], T]) -> Iterator[Execution[T]]:
    """Yields every execution of ``run`` once, depth-first; lazily, so that it can be cut short.

    Args:
        run: Asks at each fork. Given the same answers it must come by the same forks.

    Raises:
        Diverged: If it does not.
    """
    path: list[_Fork] = []
    while True:
        replay = _Replay(path)
        result = run(replay.choose)
        if replay.depth < len(replay.path):
            raise Diverged(f"There were {len(replay.path)} forks, and now {replay.depth}.")
        path = replay.path
        yield Execution(result, tuple(fork.options[fork.taken] for fork in path))
        while path and path[-1].taken + 1 == len(path[-1].options):
            path.pop()
        if not path:
            return
        path[-1] = _Fork(path[-1].options, path[-1].taken + 1)


def follow(run: Callable[[Choose], T], choices: Sequence[str]) -> Execution[T]:
    """Runs once along ``choices``; behind them, and at forks of one way, the first way is taken.

    Args:
        run: As for `every_path`.
        choices: Answers to the forks at which there is a choice, from the first one on.

    Raises:
        Diverged: If a choice is not open where it should be, or is left over at the end.
    """
    left = list(choices)
    taken: list[str] = []

    def choose(options: Sequence[str]) -> str:
        if left and left[0] not in options and len(options) > 1:
            raise Diverged(f"{left[0]!r} is not among {tuple(options)}.")
        taken.append(left.pop(0) if left and left[0] in options else options[0])
        return taken[-1]

    result = run(choose)
    if left:
        raise Diverged(f"The run ended before {left[0]!r}.")
    return Execution(result, tuple(taken))
