"""How the model went on after a loss, and whether what was lost came again."""

from __future__ import annotations

from .batches import Batch
from .findings import STRONG, Loss
from .items import Item, Moment

__all__ = ["Aftermath"]

_WATCHED = 200


class Aftermath:
    """The losses of one connection of which more may be heard.

    Attributes:
        last_reply: When the last reply began that came to its end.
    """

    def __init__(self) -> None:
        self.last_reply: Moment | None = None
        self._lost: dict[str, tuple[Loss, Batch]] = {}
        self._healed: set[str] = set()
        self._watched: list[Loss] = []

    def watch(self, loss: Loss, batch: Batch) -> None:
        """Follows a loss."""
        if loss.kind == "lost":
            self._lost[loss.item.id] = loss, batch
            if len(self._lost) > _WATCHED:
                del self._lost[next(iter(self._lost))]
        self._watched = [*self._watched[-_WATCHED:], loss]

    def mourns(self, item_id: str) -> bool:
        """Whether an item is lost for certain, or was: who creates it again puts that right."""
        found = self._lost.get(item_id)
        return item_id in self._healed or (found is not None and found[0].grade == STRONG)

    def recreated(self, batch: Batch, item_id: str, at: Moment) -> None:
        """Notes that an item is asked for; if it was lost, then again."""
        found = self._lost.get(item_id)
        if found is not None and found[1] is not batch:
            found[0].restored = at

    def there(self, item_id: str) -> None:
        """Notes that an item is there; if it was lost, it is no more."""
        found = self._lost.get(item_id)
        if found is not None and found[0].restored is not None:
            del self._lost[item_id]
            if found[0].grade == STRONG:
                self._healed.add(item_id)
            self._watched = [loss for loss in self._watched if loss is not found[0]]

    def called(self, called: Item, began: Moment | None, at: Moment) -> None:
        """Notes that the model has called a tool."""
        for loss in self._since(began):
            if loss.item.tool and loss.item.tool == called.tool:
                same = "the same" if loss.arguments == called.arguments else "other"
                self._went_on(
                    loss, f"the model called {called.tool} again, with {same} arguments", at
                )

    def replied(self, began: Moment | None, at: Moment, *, said: bool) -> None:
        """Notes that the model has finished a response; whether it said anything, too."""
        if began is not None:
            self.last_reply = began
        for loss in self._since(began) if said else ():
            with_it = "with" if loss.kind == "back" else "without"
            self._went_on(loss, f"the model replied {with_it} it", at)

    def _since(self, began: Moment | None) -> list[Loss]:
        """The losses that a response knows of: those before it."""
        if began is None:
            return []
        return [loss for loss in self._watched if not began.before(loss.asked)]

    def _went_on(self, loss: Loss, how: str, at: Moment) -> None:
        loss.aftermath.append((how, at))
        self._watched = [other for other in self._watched if other is not loss]
