"""Names a loss after the race of `ctxlock verify` that it is, as far as the lines tell."""

from __future__ import annotations

from collections.abc import Sequence

from .batches import Batch
from .findings import Loss
from .items import MODEL, PROVIDER, REPLAY, Item

__all__ = ["race_of"]

_OUTPUT = "tool output"


def race_of(loss: Loss, by: Batch, made: Sequence[Item], earlier: Batch | None) -> str:
    """The race; a caller's turn, a reply or a reconnection is in none of `ctxlock verify`'s.

    Args:
        loss: What was lost.
        by: The batch that deleted it, or brought it back.
        made: What that batch created besides.
        earlier: The batch that had created what was lost, if it is remembered.
    """
    later = _update(made, by)
    if loss.kind == "back":
        return (
            f"{later} during {'never-played cleanup' if loss.item.origin == MODEL else 'a removal'}"
        )
    first = _first(loss.item, earlier)
    if first == later == _OUTPUT:
        return "tool output during another"
    return f"{later} during {'an' if first.startswith('i') else 'a'} {first}"


def _update(made: Sequence[Item], batch: Batch) -> str:
    """What kind of update a batch is, by what it creates."""
    if made and all(item.kind == "function_call_output" for item in made):
        return f"interrupted {_OUTPUT}" if made[0].interrupted else _OUTPUT
    if len(made) == 1 and made[0].role == "assistant":
        return "spoken message"
    if len(made) == 1 and made[0].role == "user" and batch.reply_follows:
        return "text turn"
    return "replacement"


def _first(item: Item, batch: Batch | None) -> str:
    if item.origin in _ELSEWHERE:
        return _ELSEWHERE[item.origin]
    if item.kind == "function_call_output":
        return f"interrupted {_OUTPUT}" if item.interrupted else _OUTPUT
    if item.role == "assistant":
        return "spoken message"
    if item.role == "user" and batch is not None and batch.reply_follows:
        return "text turn"
    return "replacement"


_ELSEWHERE = {PROVIDER: "caller's turn", MODEL: "reply", REPLAY: "reconnection"}
