"""Is what a run ended with what some sequential order of its operations gives? Knossos's question.

A state is a set of item names. An operation that certainly happened took effect at one moment
between its beginning and its end; one that timed out, was rejected or was cancelled may have taken
effect at any moment after its beginning, or never. Nothing here knows where histories come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

__all__ = ["History", "HistoryEntry", "State", "repeated"]

State = frozenset[str]

_NOTHING: State = frozenset()


@dataclass(frozen=True)
class HistoryEntry:
    """One operation of a history.

    Attributes:
        name: What it is called, each of its own.
        began: The step at which it began.
        ended: The step at which it was seen to have ended; None if it never was.
        adds: The items it adds.
        removes: The items it removes.
        captured: The whole context that an explicit replacement was given when it began, or None.
            It is the replacement's input, and what it leaves out is deleted on purpose. Of an item
            that another operation adds at the same time the lock layer promises nothing: the
            replacement deletes it if it comes later and its caller knew nothing of it, and
            spares it if the item reached the agent's own context first. Both are accepted
            here; that the agent and the model agree in the end is checked elsewhere.
        stays: What a replacement does not delete though it was left out, as nobody could know of it
            then, or it was not the caller's to remove.
        spares: Whether it may spare what another operation adds at the same time, as above. If not,
            only what stays does.
        certain: Whether it must have taken effect.
    """

    name: str
    began: int
    ended: int | None = None
    adds: State = _NOTHING
    removes: State = _NOTHING
    captured: State | None = None
    stays: State = _NOTHING
    spares: bool = True
    certain: bool = True

    def precedes(self, other: HistoryEntry) -> bool:
        """Whether it was over, effects and all, before the other began."""
        return self.certain and self.ended is not None and self.ended < other.began

    def overlaps(self, other: HistoryEntry) -> bool:
        """Whether neither was over before the other began."""
        return not (self.precedes(other) or other.precedes(self))


@dataclass(frozen=True)
class History:
    """What a run began with and what was done."""

    initial: State
    events: tuple[HistoryEntry, ...]

    def finals(self) -> set[State]:
        """Every state in which some sequential order of the operations can end."""
        found: set[State] = set()
        seen: set[tuple[frozenset[int], State]] = set()
        todo: list[tuple[frozenset[int], State]] = [(frozenset(), self.initial)]
        while todo:
            done, state = todo.pop()
            if (done, state) in seen:
                continue
            seen.add((done, state))
            if len(done) == len(self.events):
                found.add(state)
            for number, event in enumerate(self.events):
                if number in done or self._comes_too_early(number, done):
                    continue
                after = done | {number}
                if not event.certain:
                    todo.append((after, state))
                todo += [(after, outcome) for outcome in self._outcomes(event, state)]
        return found

    def explain(self, final: Sequence[str], excused: State = _NOTHING) -> list[str]:
        """What is wrong with a final context; nothing if some sequential order ends in it.

        Args:
            final: The names of its items.
            excused: Items of which nothing is known, and which are not looked at.
        """
        lost, extra = self.difference(final, excused)
        problems = [f"{name} is there twice" for name in sorted(repeated(final))]
        problems += [f"{name} is lost" for name in sorted(lost)]
        problems += [self._too_much(name) for name in sorted(extra)]
        return problems

    def difference(self, final: Sequence[str], excused: State = _NOTHING) -> tuple[State, State]:
        """What is lost and what is too much, by the nearest end of a sequential order.

        The arguments are as for `explain`.
        """
        state = frozenset(final) - excused
        finals = {wanted - excused for wanted in self.finals()}
        if state in finals:
            return _NOTHING, _NOTHING
        nearest = min(finals, key=lambda wanted: (len(wanted ^ state), sorted(wanted)))
        return nearest - state, state - nearest

    def _too_much(self, name: str) -> str:
        known = name in self.initial or any(name in event.adds for event in self.events)
        return f"{name} is back" if known else f"{name} came from nowhere"

    def _comes_too_early(self, number: int, done: frozenset[int]) -> bool:
        event = self.events[number]
        return any(other.precedes(event) for at, other in enumerate(self.events) if at not in done)

    def _outcomes(self, event: HistoryEntry, state: State) -> Iterator[State]:
        if event.captured is None:
            yield (state - event.removes) | event.adds
            return
        concurrent = frozenset(
            chain.from_iterable(o.adds for o in self.events if o is not event and o.overlaps(event))
        )
        left_out = state - event.captured
        kept = event.captured | (left_out & event.stays)
        unknown = sorted((left_out - kept) & concurrent) if event.spares else []
        for size in range(len(unknown) + 1):
            for spared in combinations(unknown, size):
                yield kept | frozenset(spared)


def repeated(names: Sequence[str]) -> set[str]:
    """The names that are there more than once."""
    return {name for name in names if names.count(name) > 1}
