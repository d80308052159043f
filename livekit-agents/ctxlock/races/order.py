"""Do items stay in the order in which they were asked for, and does an agent leave them there?

What was asked for is the application's word: the list that it gave to a replacement or a handoff,
outputs in the order in which the tools returned, one update after another that was over. What was
seen is what each side held, from moment to moment. The two sides are not compared with each other,
as both may be wrong in the same way. Nothing here knows where the items come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations

__all__ = ["AGENT", "MODEL", "Asked", "OrderLog", "Seen"]

AGENT, MODEL = "agent", "model"

Pair = tuple[str, str]


@dataclass(frozen=True)
class Asked:
    """An order that was asked for.

    Attributes:
        groups: Ids, or names where no id was known yet; those of one group may stand in any order.
        moves: Whether it was asked for on purpose, whatever was asked for before. If not, the
            caller had copied what the agent held, so that where both differ the earlier one holds:
            a mistake that was copied was not asked for.
        whole: Whether it is all that is wanted. What the agent held and this leaves out loses its
            place, and has another if it is asked for again.
    """

    groups: tuple[tuple[str, ...], ...]
    moves: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Seen:
    """What a side held.

    Attributes:
        side: `AGENT` or `MODEL`.
        items: The id and the name of each item, in order.
    """

    side: str
    items: tuple[Pair, ...]


@dataclass
class OrderLog:
    """What was asked for and what was seen, in the order in which it happened.

    Attributes:
        entries: All of it; what was seen twice in a row stands there once.
    """

    entries: list[Asked | Seen] = field(default_factory=list)
    _last: dict[str, Seen] = field(default_factory=dict)

    def ask(self, *groups: Iterable[str], moves: bool = False, whole: bool = False) -> None:
        """Notes that items were asked for in this order; the arguments are those of `Asked`."""
        given = tuple(filter(None, (tuple(group) for group in groups)))
        self.entries.append(Asked(given, moves, whole))

    def see(self, side: str, ids: Iterable[str], names: Iterable[str]) -> None:
        """Notes what a side holds."""
        seen = Seen(side, tuple(zip(ids, names, strict=True)))
        if self._last.get(side) != seen:
            self._last[side] = seen
            self.entries.append(seen)

    def problems(self, excused: frozenset[str] = frozenset()) -> list[str]:
        """What did not stay in its order, on either side, at any moment.

        Args:
            excused: The names of items whose place with the model is not looked at.
        """
        return list(_Reading(self.entries, excused).problems())


class _Reading:
    """Goes through a log once."""

    def __init__(self, entries: Sequence[Asked | Seen], excused: frozenset[str]) -> None:
        self._entries = entries
        self._names: dict[str, str] = {}
        self._ids: dict[str, list[str]] = {}
        out: set[str] = set()
        for item_id, name in (i for seen in entries if isinstance(seen, Seen) for i in seen.items):
            self._names[item_id] = name
            known = self._ids.setdefault(name, [])
            if item_id not in known:
                known.append(item_id)
            if name in excused:
                out.add(item_id)
        self._excused = out
        self._asked: list[tuple[dict[str, int], bool]] = []
        # by side: what stood the other way round when it was asked for, and has not come to pass
        self._to_come: dict[str, set[Pair]] = {AGENT: set(), MODEL: set()}
        # what the model was to have by earlier updates when it was asked for, and did not have yet:
        # they bring it in an order of their own, until the update that asks for this one is made
        self._under_way: set[Pair] = set()
        self._held: dict[str, list[str]] = {AGENT: [], MODEL: []}

    def problems(self) -> Iterator[str]:
        found: dict[tuple[str, str], None] = {}
        for entry in self._entries:
            if isinstance(entry, Asked):
                self._ask(entry)
            else:
                found |= dict.fromkeys((entry.side, text) for text in self._look(entry))
        self._under_way.clear()
        last = {(side, text): None for side in self._held for text in self._now(side)}
        for side, text in found | last:
            passing = "" if (side, text) in last or " is moved " in text else "for a while, "
            yield f"{passing}the {side} has {text}"

    def _ask(self, asked: Asked) -> None:
        ranks = {
            item_id: rank
            for rank, group in enumerate(asked.groups)
            for key in group
            for item_id in [key, *self._ids.get(key, [])]
        }
        left_out = set(self._held[AGENT]) - set(ranks) if asked.whole else set()
        for earlier, _ in self._asked:
            for item_id in left_out:
                earlier.pop(item_id, None)
        if asked.whole:
            known = {item_id for earlier, _ in self._asked for item_id in earlier}
            missing = (known & ranks.keys()) - set(self._held[MODEL])
            self._under_way |= {
                (x, y)
                for x, y in permutations(known & ranks.keys(), 2)
                if ranks[x] < ranks[y] and missing & {x, y}
            }
        self._asked.append((ranks, asked.moves))
        for side, held in self._held.items():
            self._to_come[side] |= {(x, y) for y, x in _inverted(held, ranks)}

    def _look(self, seen: Seen) -> Iterator[str]:
        before = self._held[seen.side]
        out = self._excused if seen.side == MODEL else ()
        held = [item_id for item_id, _ in seen.items if item_id not in out]
        self._held[seen.side] = held
        place = {item_id: at for at, item_id in enumerate(held)}
        self._to_come[seen.side] = {
            (x, y) for x, y in self._to_come[seen.side] if _before(place, y, x)
        }
        if seen.side == MODEL:
            self._under_way -= {(x, y) for x, y in self._under_way if _before(place, x, y)}
        yield from self._now(seen.side)
        if seen.side == AGENT:
            moved = {item_id: at for at, item_id in enumerate(before)}
            for first, second in _inverted(held, moved):
                if not any(_before(ranks, first, second) for ranks, _ in self._asked):
                    yield f"{self._names[first]}, which is moved in front of {self._names[second]}"

    def _now(self, side: str) -> Iterator[str]:
        """What a side holds in another order than was asked for."""
        for number, (ranks, _) in enumerate(self._asked):
            for first, second in _inverted(self._held[side], ranks):
                pair = second, first
                excused = pair in self._to_come[side] or (side == MODEL and pair in self._under_way)
                if not excused and self._holds(number, second, first):
                    names = self._names[first], self._names[second]
                    yield f"{names[0]} before {names[1]}, asked for the other way round"

    def _holds(self, number: int, first: str, second: str) -> bool:
        """Whether nothing else that was asked for has it the other way round, and stands."""
        _, moves = self._asked[number]
        earlier, later = self._asked[:number], self._asked[number + 1 :]
        undone = any(moves and _before(ranks, second, first) for ranks, moves in later)
        return not undone and (moves or not any(_before(r, second, first) for r, _ in earlier))


def _before(ranks: Mapping[str, int], first: str, second: str) -> bool:
    return first in ranks and second in ranks and ranks[first] < ranks[second]


def _inverted(items: Sequence[str], ranks: Mapping[str, int]) -> Iterator[Pair]:
    """The pairs, first and second, that stand the other way round than their ranks do."""
    ranked = [item for item in items if item in ranks]
    if all(ranks[one] <= ranks[other] for one, other in pairwise(ranked)):
        return
    for at, first in enumerate(ranked):
        for second in ranked[at + 1 :]:
            if ranks[first] > ranks[second]:
                yield first, second
