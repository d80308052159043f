"""One page that shows a comparison: a table, and a diagram of each race. It needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from .comparison import Comparison, RaceOutcome, Races
from .diagram import diagram
from .markup import Element, el, serialize
from .timeline import short, steps

__all__ = ["document", "page"]


def document(title: str, *content: Element) -> str:
    """A page as HTML, with the style sheet inside, and no script."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("link", rel="icon", href="data:,"),  # else a browser asks for one
        el("title", title),
        el("style", files(__package__).joinpath("page.css").read_text(encoding="utf-8")),
    )
    body = el("body", *content)
    return "<!DOCTYPE html>\n" + serialize(el("html", head, body, lang="en")) + "\n"


def page(comparison: Comparison) -> str:
    """The page that shows a comparison."""
    groups = comparison.groups()
    races = [name for name in groups[0][0].outcomes if any(_ran(group, name) for group in groups)]
    well = "well" if comparison.kept else "bad"
    return document(
        "ctxlock verify",
        el("h1", "Do overlapping updates lose items?"),
        *(el("p", sentence, class_=f"verdict {well}") for sentence in comparison.sentences()),
        *([el("p", comparison.remark, class_="remark")] if comparison.remark else []),
        *(_table(group, races, several=len(groups) > 1) for group in groups),
        _legend(),
        *(_race(groups, name) for name in races),
        el("footer", "Written by ctxlock verify. Each diagram shows what was recorded in its run."),
    )


def _ran(group: Sequence[Races], name: str) -> bool:
    return any(races.outcomes[name].verdict != "not applicable" for races in group)


def _table(group: Sequence[Races], races: Sequence[str], *, several: bool) -> Element:
    shown = [name for name in races if _ran(group, name)]
    heads = [el("th", f"{r.column} {r.version}".replace("+", "\u200b+")) for r in group]
    rows = [
        el(
            "tr",
            el("td", el("a", name, href=f"#{_anchor(name)}")),
            *(el("td", _chip(r.outcomes[name])) for r in group),
        )
        for name in shown
    ]
    caption = [el("caption", f"Through {group[0].provider}")] if several else []
    header = el("thead", el("tr", el("th", "race"), *heads))
    return el("table", *caption, header, el("tbody", *rows))


def _legend() -> Element:
    return el(
        "details",
        el("summary", "How to read the diagrams"),
        el(
            "p",
            "Time runs downwards. Each colour is one kind of update of the model's conversation. "
            "An update takes a snapshot, changes it, and pushes it. A bar on the lock: an update "
            "holds the lock. A bar on the provider: an acknowledgement is delayed. A push deletes "
            "whatever its snapshot does not have. If another update has created that meanwhile, "
            "the step is red. A dotted line: no lock was taken.",
        ),
        class_="legend",
    )


def _race(groups: Sequence[Sequence[Races]], name: str) -> Element:
    shown = [group for group in groups if _ran(group, name)]
    first = shown[0][0].outcomes[name]
    parts: list[Element] = [el("h2", name)]
    if first.description:
        parts.append(el("p", f"{first.description}."))
    for number, group in enumerate(shown):
        columns = el("div", *(_figure(races, name) for races in group), class_="columns")
        if number == 0:
            parts.append(columns)
        else:
            parts.append(el("details", el("summary", f"Through {group[0].provider}"), columns))
    return el("section", *parts, id=_anchor(name))


def _figure(races: Races, name: str) -> Element:
    outcome = races.outcomes[name]
    label = f"{races.column} {races.version}"
    parts = [el("figcaption", el("strong", label), " ", _chip(outcome))]
    if outcome.detail:
        parts.append(el("p", outcome.detail.partition("\n")[0], class_="detail"))
    lost = outcome.verdict == "lost"
    told = steps(outcome.events, lost=lost)
    if told:
        parts.append(diagram(told, f"{name}, {label}: {outcome.verdict}"))
        parts += [_end(event, lost) for event in outcome.events if event["kind"] == "end"]
        words = el("ol", *(el("li", f"{step.source}: {step.text}") for step in told))
        parts.append(el("details", el("summary", "In words"), words))
    return el("figure", *parts)


def _end(event: dict[str, Sequence[str]], lost: bool) -> Element:
    """What each side has in the end; of a race that lost, what only one of them has is marked."""
    model, agent = event["model"], event.get("agent")
    odd = set(model) ^ set(agent) if lost and agent is not None else set()
    if not any(name.startswith("function_call") for name in agent or ()):
        # in the oldest releases an agent's context has no tool items at all
        odd = {name for name in odd if not name.startswith("function_call")}
    rows = [el("dt", "the model has"), _items(model, odd)]
    if agent is not None:
        rows += [el("dt", "the agent has"), _items(agent, odd)]
    return el("dl", *rows)


def _items(names: Sequence[str], odd: set[str]) -> Element:
    chips = [
        el("span", short(name), class_="item odd" if name in odd else "item") for name in names
    ]
    return el("dd", *chips) if chips else el("dd", "nothing")


def _chip(outcome: RaceOutcome) -> Element:
    kind = "well" if outcome.verdict == "kept" else "bad" if not outcome.good else "none"
    return el("span", outcome.verdict, class_=f"chip {kind}")


def _anchor(name: str) -> str:
    return name.replace(" ", "-")
