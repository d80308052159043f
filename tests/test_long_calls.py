"""How the cost of long calls is counted, and what of it breaks the rule."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import counts
import long_calls
import pytest
from packages import FULL, PATCHED

from ctxlock.verified import NEWEST
from livekit.agents import llm


def counted(**changed: tuple[int, int]) -> dict[str, dict[str, dict[str, int]]]:
    """The counts of one event at 100 and 10,000 items, some of them more than usual."""
    usual = {"visited": (500, 50_000), "compared": (0, 0), "copied": (1, 1), "tasks": (3, 3)}
    both = usual | changed
    lengths = ("100", "10000")
    return {
        "update": {at: {kind: n[i] for kind, n in both.items()} for i, at in enumerate(lengths)}
    }


async def test_the_meter_sees_each_kind_and_leaves_nothing_behind() -> None:
    item = llm.ChatMessage(role="user", content=["hello"])
    same = item.model_copy()
    meter = long_calls.Meter()
    with meter.on():
        assert item.id  # one visit
        assert item == same  # one comparison
        copied = llm.ChatContext([item]).copy()
        copied.items[0].model_copy()
        copied.items[0].model_copy(deep=True)
        await asyncio.create_task(asyncio.sleep(0))
    seen = meter.as_json()
    assert seen["visited"] >= 1
    assert (seen["compared"], seen["copied"], seen["tasks"]) == (1, 3, 1)
    assert item == item.model_copy()
    await asyncio.create_task(asyncio.sleep(0))
    assert meter.as_json() == seen


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, []),
        ({"visited": (507, 50_007)}, []),
        ({"visited": (400, 40_000)}, []),
        ({"visited": (600, 60_000)}, ["visited: +100 at 100 items, +10,000 at 10,000"]),
        ({"compared": (0, 1)}, ["compared: +0 at 100 items, +1 at 10,000"]),
        ({"tasks": (4, 4)}, ["tasks: +1"]),
        ({"copied": (1, 2)}, ["copied: +1"]),
    ],
)
def test_the_rule(changed: Mapping[str, tuple[int, int]], said: list[str]) -> None:
    assert counts.broken(counted(), counted(**changed)) == {"update": said}


def test_what_is_expected_must_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "EXPECTED", {"full": {"update": "it is known to"}})
    assert counts.unexpected("full", {"update": ["tasks: +1"]}) == []
    assert counts.unexpected("lock", {"update": []}) == []
    (unknown,) = counts.unexpected("lock", {"update": ["tasks: +1"]})
    assert unknown == "lock: update costs more than it may: tasks: +1."
    (gone,) = counts.unexpected("full", {"update": []})
    assert "take it from the expected failures" in gone


async def test_every_event_is_counted_and_comes_to_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(long_calls, "COUNTED", (4, 8))
    found = await long_calls.counts()
    assert {*long_calls.EVENTS} < {*found}
    assert all({*lengths} == {"4", "8"} for lengths in found.values())
    assert all(lengths["8"]["visited"] > 0 for lengths in found.values())
    assert await long_calls.counts() == found, "the same each time"


def test_wrong_usage_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert counts.main(["python"]) == 2
    assert "SCOPE=PYTHON" in capsys.readouterr().err


def test_the_usage_says_what_the_interpreters_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert counts.main([]) == 2
    assert "`uv run nox -s long_calls` makes them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "version", "right"),
    [
        ("stock", NEWEST, True),
        ("lock", PATCHED, True),
        ("lock", NEWEST, False),
        ("lock", FULL, False),
        ("stock", PATCHED, False),
    ],
)
def test_an_environment_is_what_it_is_called(name: str, version: str, right: bool) -> None:
    assert (counts.misnamed(name, version) is None) is right
