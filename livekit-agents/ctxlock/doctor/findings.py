"""What is told of a call: what was lost, how sure that is, and what else went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from .items import Item, Moment

__all__ = ["EXPLAINED", "REPEATED", "STRONG", "WEAK", "CallReport", "Loss", "Trouble"]

STRONG = "strong"
WEAK = "weak"
EXPLAINED = "explained"

REPEATED = "reconnection during a removal"
"""The race of what a new connection brings back, which was to be deleted."""


@dataclass
class Loss:
    """An item that a batch deleted, or brought back, though another update had it otherwise.

    Attributes:
        kind: `lost` or `back`.
        grade: `strong`, `weak` or `explained`.
        reasons: Why, in words.
        item: What was lost, as it was then.
        what: The item in words.
        asked: When the batch was sent.
        deleted: When its loss was confirmed; none if the log does not show that.
        batch: The batch's first and last line.
        created: What the batch created, in words.
        others: How many more items it deleted.
        race: The race of `ctxlock verify` that it is, as far as the lines tell.
        age: Seconds between the item's acknowledgement and the batch.
        round_trip: The round trip of this call then.
        aftermath: How the model went on.
        restored: When the item was created again.
        arguments: A fingerprint of the arguments of the call that a lost output is of.
    """

    kind: str
    grade: str
    reasons: list[str]
    item: Item
    what: str
    asked: Moment
    batch: tuple[Moment, Moment]
    created: list[tuple[str, str]] = field(default_factory=list)
    others: int = 0
    race: str = ""
    age: float | None = None
    round_trip: float | None = None
    deleted: Moment | None = None
    aftermath: list[tuple[str, Moment]] = field(default_factory=list)
    restored: Moment | None = None
    arguments: str = ""


@dataclass
class Trouble:
    """Something else that a conversation suffered, or that the scope `full` did.

    Attributes:
        kind: `refused`, `slow`, `unanswered`, `reconnection`, `not repeated`, `no output`,
            `no call` or `waited`.
    """

    kind: str
    text: str
    at: Moment


@dataclass
class CallReport:
    """All that is told of one call.

    Attributes:
        name: What the lines call it, or `the only call`.
        complete: Whether its beginning is there.
        dropped: Troubles that were counted and not kept, for there were too many.
    """

    name: str
    first: Moment
    last: Moment
    events: int = 0
    connections: int = 0
    complete: bool = True
    waits: int = 0
    round_trip: float | None = None
    losses: list[Loss] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    dropped: int = 0

    def graded(self, grade: str) -> list[Loss]:
        """The losses of a grade."""
        return [loss for loss in self.losses if loss.grade == grade]
