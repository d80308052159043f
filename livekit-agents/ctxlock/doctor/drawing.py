"""One page about an examination, with the sequence diagram of each loss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..reports.diagram import diagram
from ..reports.markup import Element, el
from ..reports.page import document
from ..reports.timeline import TimelineStep
from .examination import Examination
from .findings import EXPLAINED, REPEATED, STRONG, CallReport, Loss
from .items import Moment
from .report import advice, clock, meaning, place, remarks, sentences, verdict

__all__ = ["page", "steps"]

MOST = 200
"""Losses that are drawn; a page with more of them nobody reads."""


def page(found: Examination) -> str:
    """The page as HTML; it needs nothing else."""
    losses = [(c, loss) for c in found.calls for loss in c.losses if loss.grade != EXPLAINED]
    losses.sort(key=lambda pair: pair[1].grade != STRONG)
    css = "bad" if found.lost else "well"
    more = [el("p", f"{len(losses) - MOST} more are not drawn.")] if len(losses) > MOST else []
    return document(
        "ctxlock doctor",
        el("h1", "What was lost in these calls?"),
        *(el("p", sentence, class_=f"verdict {css}") for sentence in sentences(found)),
        el("p", " ".join(remarks(found)), class_="remark"),
        *(el("p", sentence) for sentence in advice(found)),
        _legend(found),
        *(_section(found, *pair) for pair in losses[:MOST]),
        *more,
        _footer(found),
    )


def steps(found: Examination, loss: Loss) -> list[TimelineStep]:
    """What the log shows of a loss, line by line, as the steps of a diagram."""
    return list(_steps(found, loss))


def _steps(found: Examination, loss: Loss) -> Iterator[TimelineStep]:
    later, _, earlier = loss.race.partition(" during ")
    item, what = loss.item, _bare(loss.what)
    if loss.race == REPEATED:
        yield from _repeated(found, loss, what)
        return
    if loss.kind == "lost":
        if item.asked is not None:
            text = f"{_at(found, item.asked)}: create {what}"
            yield TimelineStep("agent", "provider", text, earlier, opens="provider")
        elif item.acked is not None:
            text = f"{_at(found, item.acked)}: {what} is there"
            yield TimelineStep("provider", "agent", text, earlier)
    yield TimelineStep(
        "agent", "agent", f"{later}: made from an older copy (inferred)", later, dashed=True
    )
    if loss.kind == "lost" and item.asked is not None and item.acked is not None:
        text = f"{_at(found, item.acked)}: {what} acknowledged"
        yield TimelineStep("provider", "agent", text, earlier, closes="provider")
    verb = "delete" if loss.kind == "lost" else "create again"
    asks = [f"{verb} {what}"] + [f"create {_bare(words)}" for _, words in loss.created]
    yield TimelineStep(
        "agent", "provider", f"{_at(found, loss.batch[0])}: {', '.join(asks)}", later
    )
    if loss.deleted is not None:
        done = "deleted" if loss.kind == "lost" else "created again:"
        text = f"{_at(found, loss.deleted)}: {done} {what}"
        yield TimelineStep("provider", "provider", text, later, harm=True)
    for how, at in loss.aftermath:
        yield TimelineStep("provider", "agent", f"{_at(found, at)}: {how}")
    if loss.restored is not None:
        text = f"{_at(found, loss.restored)}: {what} is created again"
        yield TimelineStep("agent", "provider", text)


def _repeated(found: Examination, loss: Loss, what: str) -> Iterator[TimelineStep]:
    asked = f"{_at(found, loss.batch[0])}: delete {what}"
    yield TimelineStep("agent", "provider", asked, "removal")
    yield TimelineStep("agent", "agent", "the connection is lost, and made again", "reconnection")
    if loss.deleted is not None:
        back = f"{_at(found, loss.deleted)}: {what} is there again"
        yield TimelineStep("provider", "provider", back, "reconnection", harm=True)


def _section(found: Examination, call: CallReport, loss: Loss) -> Element:
    heading = f"{verdict(loss)}: {_bare(loss.what)}"
    told = steps(found, loss)
    chip = el("span", loss.grade, class_=f"chip {'bad' if loss.grade == STRONG else 'none'}")
    text = [el("p", f"It says: {loss.item.text}", class_="detail")] if loss.item.text else []
    words = el("ol", *(el("li", f"{step.source}: {step.text}") for step in told))
    return el(
        "section",
        el("h2", heading),
        el("p", f"{call.name}, {place(found, loss.asked)}: {loss.race}"),
        el(
            "figure",
            el("figcaption", el("strong", loss.item.id), " ", chip),
            el("ul", *(el("li", reason) for reason in loss.reasons), class_="detail"),
            *text,
            diagram(told, f"{heading}, {loss.grade}", lock=False),
            el("details", el("summary", "In words"), words),
        ),
    )


def _legend(found: Examination) -> Element:
    said = (
        "Time runs downwards; each step names its line in the log. A bar on the provider means "
        "that an acknowledgement is awaited. The dotted step is not in the log: that an update was "
        "made from an older copy of the conversation is what its deletion shows. The red step is "
        "the loss."
    )
    words = (el("p", word) for word in meaning(found))
    title = el("summary", "What the words mean, and how to read the diagrams")
    return el("details", title, *words, el("p", said), class_="legend")


def _footer(found: Examination) -> Element:
    if found.with_text:
        said = "It shows what callers said: keep it as you keep that."
    else:
        said = "No texts are shown, only ids, types, tools, lengths, and the names of job and room."
    return el("footer", f"Written by ctxlock doctor. {said}")


def _at(found: Examination, moment: Moment) -> str:
    time = f"{clock(moment)}, " if moment.time is not None else ""
    several = f"{Path(found.files[moment.where.file]).name}:" if len(found.files) > 1 else "line "
    return f"{time}{several}{moment.where.line}"


def _bare(words: str) -> str:
    return words.partition(" (")[0]
