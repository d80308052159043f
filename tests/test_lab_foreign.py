"""The recorder of the foreign models sees patches that were made worse by hand, and says how."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ctxlock.explorer import clock  # isort: skip - takes hold of the time before livekit.agents does
from lab.foreign.judging import BadExpectations, Verdict, judge, judged, read_expected, surprises
from lab.foreign.loop import CountingLoop
from lab.foreign.provider import RecordingModel, RecordingSession
from lab.foreign.recorder import Step
from lab.foreign.steps import run
from lab.foreign.talk import on_the_virtual_clock
from lab.foreign.variants import VARIANTS, Variant
from livekit.agents import AgentSession, llm
from livekit.agents.voice import SpeechHandle
from livekit.agents.voice.agent_activity import AgentActivity

assert clock
Worse = Callable[[RecordingSession, Any], Awaitable[None]]


def go_through(variant: Variant) -> list[Step]:
    with on_the_virtual_clock() as recorder:
        return run(variant, recorder)


def worsened(push: Worse) -> Variant:
    """The ordinary model, behind a framework that pushes in another way."""

    class Handle:
        def __init__(self, session: RecordingSession) -> None:
            self._session = session

        def __getattr__(self, name: str) -> Any:
            return getattr(self._session, name)

        async def update_chat_ctx(self, chat_ctx: Any) -> None:
            await push(self._session, chat_ctx)

        async def _update_session(self, **given: Any) -> None:
            await type(self._session)._update_session(self, **given)  # type: ignore[arg-type]

    class Model(RecordingModel):
        def handed_out(self, session: RecordingSession) -> Any:
            return Handle(session)

    return Variant(model_kind=Model)


async def as_it_was(session: RecordingSession, chat_ctx: Any) -> None:
    await session.update_chat_ctx(chat_ctx)


async def in_its_own_task(session: RecordingSession, chat_ctx: Any) -> None:
    await asyncio.create_task(session.update_chat_ctx(chat_ctx))


async def a_copy(session: RecordingSession, chat_ctx: Any) -> None:
    await session.update_chat_ctx(chat_ctx.copy())


async def copied_items(session: RecordingSession, chat_ctx: Any) -> None:
    copied = chat_ctx.copy()
    copied.items[:] = [item.model_copy() for item in copied.items]
    await session.update_chat_ctx(copied)


async def a_step_later(session: RecordingSession, chat_ctx: Any) -> None:
    await asyncio.sleep(0)
    await session.update_chat_ctx(chat_ctx)


async def late(session: RecordingSession, chat_ctx: Any) -> None:
    await asyncio.sleep(0.01)
    await session.update_chat_ctx(chat_ctx)


async def swapped(session: RecordingSession, chat_ctx: Any) -> None:
    changed = chat_ctx.copy()
    changed.items[-2:] = reversed(changed.items[-2:])
    await session.update_chat_ctx(changed)


async def twice(session: RecordingSession, chat_ctx: Any) -> None:
    await session.update_chat_ctx(chat_ctx)
    await session.update_chat_ctx(chat_ctx)


async def read_before(session: RecordingSession, chat_ctx: Any) -> None:
    assert session.chat_ctx is not None
    await session.update_chat_ctx(chat_ctx)


async def not_awaited(session: RecordingSession, chat_ctx: Any) -> None:
    pushing = asyncio.ensure_future(session.update_chat_ctx(chat_ctx))
    pushing.add_done_callback(lambda done: done.exception())


@pytest.fixture(scope="module")
def usual() -> list[Step]:
    return go_through(worsened(as_it_was))


def test_the_same_model_is_seen_to_do_the_same_twice(usual: list[Step]) -> None:
    again = go_through(worsened(as_it_was))
    assert judge(usual, again, usual).first is None
    assert len(usual) == 34
    assert sum(len(step["calls"]) for step in usual) > 80


@pytest.mark.parametrize(
    ("push", "kinds"),
    [
        pytest.param(in_its_own_task, ["manner"], id="in its own task"),
        pytest.param(a_copy, ["manner"], id="a copy of the context"),
        pytest.param(copied_items, ["manner"], id="copies of the items"),
        pytest.param(a_step_later, ["manner"], id="one more step of the loop"),
        pytest.param(read_before, ["manner"], id="one more look at the context"),
        pytest.param(late, ["calls", "manner", "outcome"], id="a hundredth of a second later"),
        pytest.param(swapped, ["calls", "manner", "outcome"], id="two items swapped"),
        pytest.param(twice, ["calls", "manner"], id="sent twice"),
        pytest.param(not_awaited, ["calls", "manner", "outcome"], id="not waited for"),
    ],
)
def test_a_worse_patch_is_seen(usual: list[Step], push: Worse, kinds: list[str]) -> None:
    verdict = judge(usual, usual, go_through(worsened(push)))
    assert {*kinds} <= {*verdict.differing}


def with_a_timer(self: Any) -> None:
    asyncio.get_running_loop().call_later(5, id, self)


def with_a_task(self: Any) -> None:
    self.left = asyncio.create_task(asyncio.sleep(5))


KEPT: list[Any] = []


def after_closing(patch: pytest.MonkeyPatch, do: Callable[[Any], object]) -> None:
    """Has the activity do more when it is closed."""
    close = AgentActivity.aclose

    async def closing(self: Any) -> None:
        await close(self)
        do(self)

    patch.setattr(AgentActivity, "aclose", closing)


@pytest.mark.parametrize("leave", [with_a_timer, with_a_task, KEPT.append])
def test_what_is_left_when_a_session_is_closed_is_seen(
    usual: list[Step], monkeypatch: pytest.MonkeyPatch, leave: Callable[[Any], None]
) -> None:
    after_closing(monkeypatch, leave)
    worse = go_through(worsened(as_it_was))
    KEPT.clear()
    ends = [step["left"] for step in usual if step["step"] == "close"]
    assert ends != [step["left"] for step in worse if step["step"] == "close"]


def a_copied_item(session: Any, tell: Callable[[Any, Any], None], item: Any) -> None:
    tell(session, item.model_copy())


def an_item_told_of_late(session: Any, tell: Callable[[Any, Any], None], item: Any) -> None:
    asyncio.get_running_loop().call_later(0.01, tell, session, item)


def an_item_not_recorded_yet(session: Any, tell: Callable[[Any, Any], None], item: Any) -> None:
    items = session.current_agent._chat_ctx.items
    kept = [*items]
    items[:] = [own for own in kept if own is not item]
    tell(session, item)
    items[:] = kept


@pytest.mark.parametrize("how", [a_copied_item, an_item_told_of_late, an_item_not_recorded_yet])
def test_what_a_listener_finds_is_seen(
    usual: list[Step], monkeypatch: pytest.MonkeyPatch, how: Callable[..., None]
) -> None:
    tell = AgentSession._conversation_item_added
    monkeypatch.setattr(
        AgentSession, "_conversation_item_added", lambda self, item: how(self, tell, item)
    )
    worse = go_through(worsened(as_it_was))
    assert usual[1]["step"] == worse[1]["step"] == "typed"
    assert usual[1]["events"] != worse[1]["events"]


def test_what_came_of_a_speech_is_seen(usual: list[Step], monkeypatch: pytest.MonkeyPatch) -> None:
    spoken = [step["speeches"] for step in usual]
    assert any("interrupted" in line for lines in spoken for line in lines)
    monkeypatch.setattr(SpeechHandle, "chat_items", [])
    assert spoken != [step["speeches"] for step in go_through(worsened(as_it_was))]


def test_a_late_change_to_an_earlier_agent_is_seen(
    usual: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    after_closing(monkeypatch, lambda self: self.agent._chat_ctx.items.clear())
    verdict = judge(usual, usual, go_through(worsened(as_it_was)))
    assert verdict.first is not None and usual[verdict.first]["step"] == "handoff"


@pytest.mark.parametrize(
    "change",
    [
        {"extra": {"key": 1}},
        {"content": ["See:", llm.ImageContent(id="image", image="data:image/png;base64,BBBB")]},
    ],
)
def test_all_that_an_item_contains_is_seen(change: dict[str, Any]) -> None:
    image = llm.ImageContent(id="image", image="data:image/png;base64,AAAA")
    item = llm.ChatMessage(id="item", role="user", content=["See:", image])
    with on_the_virtual_clock() as recorder:
        assert recorder.item(item) == recorder.item(item.model_copy())
        assert recorder.item(item) != recorder.item(item.model_copy(update=change))


def test_a_lock_that_a_cancelled_update_keeps_is_seen(
    usual: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Keeping(asyncio.Lock):
        async def __aexit__(self, kind: Any, *_: Any) -> None:
            if kind is not asyncio.CancelledError:
                self.release()

    update = AgentActivity.update_chat_ctx

    async def kept(self: Any, chat_ctx: Any, **options: Any) -> None:
        if "kept" not in vars(self):
            self.kept = Keeping()
        async with self.kept:
            await update(self, chat_ctx, **options)

    monkeypatch.setattr(AgentActivity, "update_chat_ctx", kept)
    worse = go_through(worsened(as_it_was))
    at = next(n for n, step in enumerate(usual) if step["step"] == "given up")
    assert usual[at + 1]["raised"] == []
    assert worse[at + 1]["raised"] == ["the step has not ended"]


def test_a_wobbling_stock_is_no_measure(usual: list[Step]) -> None:
    other = [dict(step) for step in usual]
    other[3]["calls"] = ["another"]
    verdict = judge(usual, other, usual)
    assert verdict.wobbles and verdict.first == 3
    assert [*surprises({("lock", "Plain"): verdict}, {})] == [
        "lock, Plain: stock does not do the same twice; mend the lab."
    ]


def test_a_step_that_is_missing_differs(usual: list[Step]) -> None:
    verdict = judge(usual, usual, usual[:-1])
    assert verdict.first == len(usual) - 1
    assert set(verdict.differing) == {"calls", "manner", "outcome"}


def test_no_variant_is_left_out() -> None:
    assert len(VARIANTS) == 33


def test_a_model_that_never_rests_ends_its_script() -> None:
    class Busy(RecordingSession):
        async def take(self, chat_ctx: Any) -> None:
            self._go_on()

        def _go_on(self) -> None:
            self.later(0.01, self._go_on)

    (step,) = go_through(Variant(Busy))
    assert "it does not come to rest" in step["raised"]


def test_the_loop_counts_steps_and_tasks_and_knows_who_made_them() -> None:
    loop = CountingLoop()

    async def child() -> str:
        return loop.lineage(asyncio.current_task())

    async def parent() -> str:
        return await asyncio.create_task(child())

    work = loop.create_task(parent())
    assert loop.settle()
    assert (loop.steps, loop.tasks_made) == (3, 2)
    here = "test_the_loop_counts_steps_and_tasks_and_knows_who_made_them.<locals>"
    assert work.result() == f"{here}.child made by {here}.parent"
    loop.close()


# -- expected differences


SAME = Verdict({}, {"calls": 0, "manner": 0, "outcome": 0})
DIFFERS = Verdict({"calls": ("step 1, typed",)}, {"calls": 1, "manner": 0, "outcome": 0}, 1)


def test_expectations_are_strict_in_both_directions() -> None:
    expected = {("full", "Plain", "calls"): "it is slow"}
    assert [*surprises({("full", "Plain"): DIFFERS, ("lock", "Plain"): SAME}, expected)] == []
    assert [*surprises({("full", "Plain"): SAME}, expected)] == [
        "full, Plain: a difference in the calls was expected, and is gone: it is slow"
    ]
    assert [*surprises({("lock", "Plain"): DIFFERS}, expected)] == [
        "lock, Plain: a difference in the calls was not expected."
    ]


def test_lock_is_judged_on_every_release() -> None:
    verdicts = {("full", "Plain"): DIFFERS, ("lock", "Plain"): DIFFERS}
    assert len([*judged(verdicts, {}, newest=True)]) == 2
    (sentence,) = judged(verdicts, {}, newest=False)
    assert sentence.startswith("lock, Plain")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[none]]\nreason = "r"', "speaks of the scope none"),
        ('[[full]]\ncalls = ["A"]', "without a reason"),
        ('[[full]]\nreason = "r"\nmoods = ["A"]', "speaks of moods"),
        ('[[full]]\nreason = "r"\ncalls = ["C"]', "speaks of C; there is none"),
        ('[[full]]\nreason = "r"\ncalls = ["A", "A"]', "full, A, calls twice"),
        ("[[full]", "cannot be read"),
    ],
)
def test_a_wrong_file_of_expectations_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "expected.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadExpectations, match=said):
        read_expected(file, ["lock", "full"], ["A", "B"])


def test_all_stands_for_everything_that_was_run(tmp_path: Path) -> None:
    file = tmp_path / "expected.toml"
    file.write_text(
        '[[full]]\nreason = "r"\ncalls = "all"\noutcome = ["B", "C"]\n', encoding="utf-8"
    )
    assert read_expected(file, ["full"], ["A", "B"], whole=False) == {
        ("full", "A", "calls"): "r",
        ("full", "B", "calls"): "r",
        ("full", "B", "outcome"): "r",
    }


def test_what_is_written_down_can_be_read() -> None:
    file = Path("lab/foreign/expected.toml")
    expected = read_expected(file, ["lock", "full"], VARIANTS)
    assert {name for scope, name, _ in expected if scope == "lock"} == {"UpdatesInItsStart"}


def test_an_entry_may_be_about_some_releases_alone(tmp_path: Path) -> None:
    file = tmp_path / "expected.toml"
    file.write_text('[[lock]]\nreason = "r"\nreleases = ["1.8.8"]\ncalls = ["A"]\n')
    expected = {("lock", "A", "calls"): "r"}
    assert read_expected(file, ["lock"], ["A"], release="1.8.8") == expected
    assert read_expected(file, ["lock"], ["A"], release="1.8.9") == {}
