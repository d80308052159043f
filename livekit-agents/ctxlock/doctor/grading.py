"""How strong the evidence is that a deletion was not meant; and why, in words.

Only the application knows what it meant. A deletion that nobody meant is made by an update whose
copy of the conversation is older than the item. Such an update waits, in the engine, until the
item is acknowledged; it is sent in that moment; it deletes what is newest, and nothing else; and it
adds what it is there for. One who means to delete does so later, or more, or adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from .findings import EXPLAINED, STRONG, WEAK

__all__ = ["Evidence", "grade"]

_HUMAN = 1.0
"""Seconds within which nobody has read something and acted on it."""


@dataclass(frozen=True)
class Evidence:
    """What the lines say of one deletion.

    Attributes:
        returned: It is no deletion: what was deleted is created again.
        waited: Whether the batch was sent in the moment in which the one before it was answered,
            and the item is of that one, or of one that this had waited for.
        age: Seconds between the acknowledgement and the batch, or None.
        whole: Whether the times are in whole seconds.
        round_trip: Seconds; the bound that "at once" goes by.
        measured: The round trip as it is, or None.
        new_only: Whether the batch deletes only what is as new.
        creates: How many items the batch creates.
        one_kind: Whether these are one message, or outputs of tools alone.
        front: Whether what it deletes is the beginning of the conversation.
        summary: Whether it puts one message in the place of several.
        handoff: Whether the instructions changed between the item and the batch.
        pair: What of a pair is left alone: `call` without its output, `reply` without its turn.
        used: Whether the model has replied since, with the item before it.
        replied: Whether it is of the model's own making, a reply or a call.
        unfinished: Whether it is, and its response was not completed by then.
        under_way: Whether it is, and that response came to its end later, as nobody had cut it
            short.
        unheard: Whether it is what the caller said, and was not transcribed by then.
        speech: Whether it is a message.
    """

    returned: bool = False
    waited: bool = False
    age: float | None = None
    whole: bool = False
    round_trip: float = 0.05
    measured: float | None = None
    new_only: bool = True
    creates: int = 1
    one_kind: bool = True
    front: bool = False
    summary: bool = False
    handoff: bool = False
    pair: str = ""
    used: bool = False
    replied: bool = False
    unfinished: bool = False
    under_way: bool = False
    unheard: bool = False
    speech: bool = True

    @property
    def at_once(self) -> bool:
        """Whether nobody can have seen the item and acted on that."""
        if self.age is None:
            return False
        if self.whole:
            return self.age == 0
        return self.age <= self.round_trip or (self.waited and self.age < _HUMAN)

    @property
    def nobody_heard(self) -> bool:
        """Whether no application can have heard it, so that it does not matter what else goes.

        A handoff to an agent with another context takes along all that there is, and means to.
        """
        at_once = self.age is not None and self.age <= self.round_trip and not self.whole
        waited = self.one_gap if self.handoff else self.waited
        return self.unheard and at_once and waited

    @property
    def one_gap(self) -> bool:
        """Whether only what is newest goes."""
        return self.at_once and self.new_only and not self.front


def grade(evidence: Evidence) -> tuple[str, list[str]]:
    """Returns the grade of a deletion, and the reasons for it."""
    reasons = [_when(evidence)]
    if evidence.waited:
        reasons.append(
            "the update that did it was sent as soon as the one before was acknowledged: it had "
            "waited for that, and was made earlier"
        )
    if evidence.pair == "call":
        reasons.append("its function call stays, and has no output now")
    if evidence.pair == "reply":
        reasons.append("the reply to it stays")
    if evidence.under_way:
        reasons.append("the model was still making it, and came to the end, as nobody stopped it")
    explained = _explanation(evidence)
    if explained:
        return EXPLAINED, [*reasons, explained]
    against = _against(evidence)
    if not evidence.at_once:
        kept = evidence.pair or evidence.waited or evidence.under_way
        if kept or (evidence.age or 0) < _HUMAN:
            return WEAK, [*reasons, *against, "but there was time to mean it"]
        return EXPLAINED, [*reasons, "there was time to mean it"]
    if against:
        return WEAK, [*reasons, *against]
    if evidence.nobody_heard:
        return STRONG, [*reasons, "there was no transcript of it yet, so nobody knew what it says"]
    adds = "one new item" if evidence.creates == 1 else f"{evidence.creates} new outputs"
    if evidence.returned:
        return STRONG, [*reasons, f"the update that creates it again is there for {adds}"]
    return STRONG, [*reasons, f"the update creates {adds}, and deletes nothing older"]


def _when(evidence: Evidence) -> str:
    done = "deleted" if not evidence.returned else "created again"
    known = "acknowledged" if not evidence.returned else "deleted"
    if evidence.age is None:
        return f"it was {done}; the log does not tell when it was {known}"
    if evidence.whole:
        return f"it was {done} {evidence.age:.0f} s after it was {known}, in whole seconds"
    after = f"{evidence.age * 1000:.0f} ms" if evidence.age < 1 else f"{evidence.age:.1f} s"
    trips = f" ({evidence.age / evidence.measured:.1f} round trips)" if evidence.measured else ""
    if evidence.age < 0.001:
        after, trips = "less than 1 ms", ""
    return f"it was {done} {after}{trips} after it was {known}"


def _explanation(evidence: Evidence) -> str:
    """What else it is for certain enough, or nothing."""
    if evidence.nobody_heard:
        return ""
    if evidence.handoff and not evidence.pair and not evidence.one_gap:
        return "the instructions changed in between: a handoff to an agent with another context"
    if evidence.replied and evidence.speech and evidence.creates == 0:
        return "a reply that was taken back, as what was never played is"
    if evidence.at_once and (evidence.new_only or not evidence.front):
        return ""
    if evidence.summary:
        return "a summary, or a trim that adds: several items go, one message comes"
    if evidence.front:
        return "trimming: it was at the beginning of the conversation"
    if evidence.used and evidence.pair != "reply":
        return "the model has replied with it before: removal of what is no longer needed"
    return ""


def _against(evidence: Evidence) -> list[str]:
    """What speaks against a loss."""
    said: list[str] = []
    if evidence.nobody_heard:
        return said
    if evidence.handoff:
        said.append("but the instructions changed in between, as at a handoff")
    if evidence.at_once and not evidence.new_only:
        said.append("but the update deletes older items as well: a replacement, by its shape")
    if evidence.creates == 0 and evidence.returned:
        said.append("but the update creates nothing else: it may be there to bring it back")
    elif evidence.creates == 0:
        said.append("but the update creates nothing: it may be there to delete")
    elif not evidence.one_kind:
        said.append(f"but the update creates {evidence.creates} items: a replacement, by its shape")
    if evidence.replied and not (evidence.waited or evidence.under_way):
        said.append("but it is of the model's own making, and the update had not waited")
    elif evidence.unfinished:
        said.append("but it is of the model's own making, and may have been cut off")
    if evidence.used:
        said.append("but the model has replied with it before")
    return said
