"""What the explorer makes of order: known wrong versions are caught, and a replay each.

The wrong ones are made here of whatever livekit-agents is installed, so that it does not matter
which it is: a provider that scrambles, an agent that is scrambled while an update is under way, and
both sides in the same wrong order, which no comparison of the two can see.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from _realtime_support import TELLS_OF_ITEMS, VERSION, needs

from ctxlock.explorer.integrity import ASKED_ORDER
from ctxlock.explorer.schedule import replay
from ctxlock.explorer.survey import Group, tally
from ctxlock.races.engine import Engine
from ctxlock.races.push import Create, Operation
from ctxlock.races.releases import is_patched
from livekit.agents.voice.agent_activity import AgentActivity

OTHER_WAY_ROUND = "asked for the other way round"
MOVED = "is moved in front of"

Verdict = pytest.mark.parametrize("integrity", [False, True], ids=["lenient", "strict"])


def problems(kind: str, integrity: bool) -> list[str]:
    """What is wrong with one operation alone: its only schedule's first problem or nothing."""
    found = tally(Group((kind,), 0, integrity))
    assert found.schedules == 1
    if found.violations and integrity:
        assert ASKED_ORDER in found.problems
    return list(found.replays)


@Verdict
@pytest.mark.parametrize(
    "kind",
    [
        "two tool outputs",
        pytest.param("two interrupted outputs", marks=needs("1.7.0")),
        "replacement adding three",
        pytest.param("session start with two", marks=needs("1.5.3")),
    ],
)
def test_several_items_keep_their_order(kind: str, integrity: bool) -> None:
    assert problems(kind, integrity) == []


@Verdict
def test_provider_that_inserts_each_item_at_the_same_place(
    integrity: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    difference = Engine._difference

    def scrambled(self: Engine, chat_ctx: Any) -> list[Operation]:
        operations = difference(self, chat_ctx)
        creates = [op for op in operations if isinstance(op, Create)]
        return [
            Create(creates[0].previous_id, op.item) if isinstance(op, Create) else op
            for op in operations
        ]

    monkeypatch.setattr(Engine, "_difference", scrambled)
    found = tally(Group(("replacement adding three",), 0, integrity))
    assert found.violations == 1
    [problem] = found.replays
    assert OTHER_WAY_ROUND in problem or "order is another" in problem


@Verdict
def test_both_sides_in_the_same_wrong_order(
    integrity: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # by time, as the last of the three was made first
    monkeypatch.setattr(AgentActivity, "update_chat_ctx", by_time(AgentActivity.update_chat_ctx))
    [problem] = problems("replacement adding three", integrity)
    assert OTHER_WAY_ROUND in problem
    assert "for a while" not in problem


def by_time(update: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(update)
    async def sorted_first(self: Any, chat_ctx: Any, **options: Any) -> None:
        chat_ctx.items.sort(key=lambda item: item.created_at)
        await update(self, chat_ctx, **options)

    return sorted_first


@Verdict
@needs(TELLS_OF_ITEMS)
def test_agent_whose_items_are_moved_between_two_acknowledgements(
    integrity: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = AgentActivity._on_remote_item_added

    def to_the_end(self: Any, ev: Any) -> None:
        told(self, ev)
        items = self._agent._chat_ctx.items
        if (item := self._agent._chat_ctx.get_by_id(ev.item.id)) is not None:
            items[:] = [*(other for other in items if other is not item), item]

    monkeypatch.setattr(AgentActivity, "_on_remote_item_added", to_the_end)
    [problem] = problems("replacement adding three", integrity)
    assert OTHER_WAY_ROUND in problem
    assert problem.startswith("for a while, the agent")


patched_only = pytest.mark.skipif(not is_patched(VERSION), reason="only the patched release does")


def test_three_half_acknowledged() -> None:
    replay("replacement adding three", choices=[])


@patched_only
@pytest.mark.parametrize("acknowledged", [1, 2])
def test_copy_that_is_taken_when_three_are_half_acknowledged(acknowledged: int) -> None:
    three = "replacement adding three 1"
    choices = [f"start {three}", *[f"acknowledge {three}"] * acknowledged]
    replay(
        "replacement adding three",
        "adding replacement",
        choices=[*choices, "start adding replacement 2"],
    )


@patched_only
def test_note_behind_a_typed_message_that_is_not_acknowledged() -> None:
    replay(
        "text turn",
        "adding replacement",
        choices=["start text turn 1", "start adding replacement 2"],
    )
