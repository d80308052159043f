"""Draws the steps of a race as a sequence diagram."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from .markup import Element, el
from .timeline import LANES, TimelineStep

__all__ = ["diagram"]

_ALWAYS = ("agent", "provider")
_WIDTH = 344
_MARGIN = 36
_HEAD = 30
_LINE = 15
_GAP = 15
_CHARACTERS = 42
_GLYPH = 6.6
"""About how wide a character is, to keep a text inside."""


def diagram(steps: Sequence[TimelineStep], title: str, *, lock: bool = True) -> Element:
    """An SVG as wide as a telephone, in the colours that the page's style sheet defines.

    Args:
        steps: What happened, in order.
        title: What it is, for those who do not see it.
        lock: Whether the lock has a lane even if no step is about it: there is none, then.
    """
    used = {lane for step in steps for lane in (step.source, step.target)}
    lanes = [lane for lane in LANES if lane in used or (lane == "lock" and lock) or lane in _ALWAYS]
    pitch = (_WIDTH - 2 * _MARGIN) / (len(lanes) - 1)
    at = {lane: _MARGIN + round(pitch * number) for number, lane in enumerate(lanes)}
    colours = {by: n for n, by in enumerate(dict.fromkeys(s.by for s in steps if s.opens or s.by))}

    rows: list[Element] = []
    bars: list[Element] = []
    open_since: dict[str, tuple[int, str]] = {}
    y = _HEAD + 8
    for step in steps:
        lines = textwrap.wrap(step.text, _CHARACTERS) or [""]
        y += _GAP + _LINE * len(lines)
        css = "harm" if step.harm else f"by{colours[step.by] % 4}" if step.by else "plain"
        rows.append(_row(step, lines, at, y, css))
        if step.opens:
            open_since[step.opens] = (y, css)
        if step.closes in open_since:
            since, css = open_since.pop(step.closes)
            bars.append(_bar(at[step.closes], since, y, css))
    y += 14
    bars += [_bar(at[lane], since, y, css) for lane, (since, css) in open_since.items()]
    lives = [_lifeline(lane, at[lane], y, idle=lane not in used) for lane in lanes]
    return el(
        "svg",
        el("title", title),
        *lives,
        *bars,
        *rows,
        viewBox=f"0 0 {_WIDTH} {y + 6}",
        role="img",
        aria_label=title,
        class_="diagram",
    )


def _lifeline(lane: str, x: int, bottom: int, *, idle: bool) -> Element:
    name = f"no {lane}" if idle and lane == "lock" else lane
    return el(
        "g",
        el("line", x1=x, y1=_HEAD, x2=x, y2=bottom, class_="life"),
        el("rect", x=x - 34, y=4, width=68, height=_HEAD - 6, rx=6, class_="head"),
        el("text", name, x=x, y=21, text_anchor="middle", class_="lane"),
        class_="idle" if idle else "lifeline",
    )


def _bar(x: int, top: int, bottom: int, css: str) -> Element:
    height = max(bottom - top, 6)
    return el("rect", x=x - 5, y=top, width=10, height=height, rx=3, class_=f"bar {css}")


def _row(step: TimelineStep, lines: Sequence[str], at: dict[str, int], y: int, css: str) -> Element:
    start, end = at[step.source], at[step.target]
    x, anchor = _place(start, end, max(map(len, lines)))
    bottom = y - (9 if start == end else 5)
    texts = [
        el("text", line, x=x, y=bottom - _LINE * number, text_anchor=anchor)
        for number, line in enumerate(reversed(lines))
    ]
    texts.reverse()
    if start == end:
        mark = [el("circle", cx=start, cy=y, r=4, class_="dot")]
    else:
        tip = -6 if end > start else 6
        points = f"{end},{y} {end + tip},{y - 4} {end + tip},{y + 4}"
        mark = [
            el("line", x1=start, y1=y, x2=end, y2=y, class_="arrow"),
            el("polygon", points=points, class_="tip"),
        ]
    return el("g", *mark, *texts, class_=f"row {css}{' dashed' if step.dashed else ''}")


def _place(start: int, end: int, characters: int) -> tuple[int, str]:
    """Where a text goes, and what of it goes there; what happens at an edge keeps to that edge."""
    if start == end == _MARGIN:
        return 2, "start"
    if start == end == _WIDTH - _MARGIN:
        return _WIDTH - 2, "end"
    half = characters * _GLYPH / 2
    return round(min(max((start + end) / 2, half), _WIDTH - half)), "middle"
