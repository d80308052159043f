"""The page of diagrams: what is on it, and that it stays together in a browser."""

from __future__ import annotations

import html
import os
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ctxlock.races.__main__ import recorded
from ctxlock.races.instrumentation import watching_locks
from ctxlock.races.scenarios import SCENARIOS
from ctxlock.reports.comparison import Comparison, RaceOutcome, Races
from ctxlock.reports.page import page
from ctxlock.reports.timeline import steps

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RACE = "text turn during a tool output"
OUTPUT = "function_call_output of lookup"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# What a release without a lock does in that race: the turn's snapshot is older than the output.
LOST: list[dict[str, Any]] = [
    {"kind": "sent", "by": "tool output", "push": 1, "creates": [OUTPUT], "deletes": []},
    {"kind": "held", "by": "tool output", "push": 1},
    {"kind": "snapshot", "by": "text turn", "items": ["function_call lookup"]},
    {"kind": "asked", "by": "text turn", "push": 2},
    {"kind": "let go", "by": "tool output", "push": 1},
    {"kind": "created", "by": "tool output", "push": 1, "items": [OUTPUT]},
    {"kind": "sent", "by": "text turn", "push": 2, "creates": ['user "<b>"'], "deletes": [OUTPUT]},
    {"kind": "deleted", "by": "text turn", "push": 2, "items": [OUTPUT]},
    {"kind": "created", "by": "text turn", "push": 2, "items": ['user "<b>"']},
    {"kind": "end", "model": ['user "<b>"'], "agent": [OUTPUT, 'user "<b>"']},
]


@cache
def kept() -> dict[str, Any]:
    """What the installed, patched release does in that race."""
    (scenario,) = [scenario for scenario in SCENARIOS if scenario.name == RACE]
    with watching_locks():
        return recorded(scenario, None)


@cache
def written() -> str:
    found = kept()
    outcomes = {
        "stock": RaceOutcome("lost", f"{OUTPUT} is lost.", "what happens", LOST),
        "patched": RaceOutcome(found["outcome"], "", "what happens", found["events"]),
    }
    columns = (Races(name, "1.8.9", {RACE: outcome}) for name, outcome in outcomes.items())
    return page(Comparison(tuple(columns)))


def test_the_recorded_events_tell_the_race() -> None:
    events = kept()["events"]
    told = [(event["kind"], event.get("by")) for event in events]
    assert told.index(("held", "tool output")) < told.index(("waits", "text turn"))
    assert told.index(("acknowledged", "tool output")) < told.index(("locked", "text turn"))
    (wait,) = [event for event in events if event["kind"] == "waits"]
    assert (wait["by"], wait["on"]) == ("text turn", "tool output")
    # the waiter takes its snapshot once it has the lock, and the tool's output is in it
    assert told.index(("locked", "text turn")) < told.index(("snapshot", "text turn"))
    (snapshot,) = [e for e in events if (e["kind"], e.get("by")) == ("snapshot", "text turn")]
    assert OUTPUT in snapshot["items"]
    assert not [event for event in events if event["kind"] == "deleted"]
    assert events[-1]["kind"] == "end" and events[-1]["model"] == events[-1]["agent"]


def test_who_did_harm() -> None:
    (harm,) = [step for step in steps(LOST, lost=True) if step.harm]
    assert (harm.text, harm.by) == ("push 2 deleted output of lookup", "text turn")
    assert not [step for step in steps(LOST, lost=False) if step.harm]


def test_an_item_that_came_back() -> None:
    events = [
        {"kind": "deleted", "push": 1, "items": ["A"]},
        {"kind": "created", "push": 2, "items": ["A"]},
    ]
    assert [step.harm for step in steps(events, lost=True)] == [False, True]


def test_nothing_happened() -> None:
    assert steps([], lost=False) == []


def test_text_is_escaped_and_nothing_is_fetched() -> None:
    text = written()
    assert "<b>" not in text and "&lt;b&gt;" in text
    assert "<script" not in text
    assert not re.findall(r'(?:src|href)="(?!#|data:)', text)
    assert text.count("<svg") == 2
    assert f"{OUTPUT} is lost." in html.unescape(text)
    assert "text turn waits for the lock, which tool output holds" in html.unescape(text)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        if os.environ.get("CI"):
            pytest.fail(f"None of {', '.join(BROWSERS)} is installed.")
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield started
        started.close()


def opened(browser: Browser, folder: Path, **how: Any) -> tuple[Page, list[str]]:
    """The page in a browser, and what it asked for or complained of."""
    file = folder / "page.html"
    file.write_text(written(), encoding="utf-8")
    shown = browser.new_page(**how)
    said: list[str] = []
    shown.on("console", lambda message: said.append(message.text))
    shown.on("pageerror", lambda error: said.append(str(error)))
    shown.on("request", lambda request: said.append(request.url))
    shown.goto(file.as_uri())
    own = [file.as_uri(), "data:,"]
    return shown, [line for line in said if line not in own]


# Of each text in a diagram, whether it stays within the diagram; of the page, how wide it is.
INSIDE = """svgs => svgs.every(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].every(text => {
    const own = text.getBoundingClientRect();
    return own.left >= box.left - 1 && own.right <= box.right + 1;
  });
})"""


@pytest.mark.parametrize("width", [390, 1200])
def test_fits_the_screen(browser: Browser, tmp_path: Path, width: int) -> None:
    shown, said = opened(browser, tmp_path, viewport={"width": width, "height": 800})
    assert said == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    diagrams = shown.locator("svg")
    assert diagrams.count() == 2
    assert diagrams.evaluate_all(INSIDE)
    stock, patched = (diagrams.nth(number).bounding_box() for number in (0, 1))
    assert stock is not None and patched is not None
    stacked = patched["y"] >= stock["y"] + stock["height"]
    assert stacked == (width == 390)
    assert shown.locator(".harm").count() == 1
    shown.close()


def test_dark_mode_differs(browser: Browser, tmp_path: Path) -> None:
    colours = []
    for scheme in ("light", "dark"):
        shown, said = opened(browser, tmp_path, color_scheme=scheme)
        assert said == []
        colours.append(
            shown.evaluate(
                "['body', '.by0 text', '.harm text'].map(s => getComputedStyle("
                "document.querySelector(s))).flatMap(s => [s.backgroundColor, s.fill])"
            )
        )
        shown.close()
    light, dark = colours
    assert light[0] != dark[0]  # the page
    assert light[3] != dark[3] and light[5] != dark[5]  # the texts
