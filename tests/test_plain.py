"""A file of the scope `full`, read as the file of the scope `lock` that it was made of."""

from __future__ import annotations

import ast

import pytest
from activity import IMPORT, NAME, informed, locked
from call_pairs import ADDED, ALONE

from ctxlock.analysis.sites import find_sites
from ctxlock.analysis.without_calls import calls_of, parts_of, plain_source, without_calls
from ctxlock.errors import NotUnderstood

TWO = (ADDED["replacement"], ADDED["text turn"])
GUARDED = locked(*(guarded for guarded, _ in TWO))
TOLD = informed(*(told for _, told in TWO))


def calls(source: str) -> list[str]:
    return [ast.unparse(call) for _, call in calls_of(ast.parse(source))]


@pytest.mark.parametrize(("guarded", "told"), ADDED.values(), ids=ADDED)
def test_gives_back_what_there_was(guarded: str, told: str) -> None:
    before, after = locked(guarded), informed(told)
    assert plain_source(after.encode()) == before.encode()
    assert ast.dump(without_calls(ast.parse(after))) == ast.dump(ast.parse(before))


@pytest.mark.parametrize("method", ALONE.values(), ids=ALONE)
def test_takes_nothing_away(method: str) -> None:
    assert plain_source(informed(method).encode()) == locked(method).encode()
    assert not calls(informed(method))


@pytest.mark.parametrize(("guarded", "told"), ADDED.values(), ids=ADDED)
def test_a_file_without_the_import_is_as_it_is(guarded: str, told: str) -> None:
    source = informed(told).replace(IMPORT, "")
    assert plain_source(source.encode()) == source.encode()
    assert ast.dump(without_calls(ast.parse(source))) == ast.dump(ast.parse(source))
    assert parts_of(source) == ()


OTHERWISE = {
    "another item": ("typing(ctx, said)", "typing(ctx, ctx)"),
    "more": ("typing(ctx, said)", "typing(ctx, said, 1)"),
    "what is run": ("typing(ctx, said)", "typing(ctx, await said)"),
    "another call": ("typing(ctx, said)", "said(said)"),
    "no call of the lock's": ("typing(ctx, said)", "typed(ctx, said)"),
    "awaited": ("self._rt_chat_ctx_lock.typing", "await self.typing"),
    "used": ("self._rt_chat_ctx_lock.typing", "x = self._rt_chat_ctx_lock.typing"),
    "behind something else": ("add_message", "insert"),
    "in front": (
        "said = ctx.",
        "self._rt_chat_ctx_lock.typing(ctx, said)\n            said = ctx.",
    ),
    "twice": (
        "typing(ctx, said)",
        "typing(ctx, said)\n            self._rt_chat_ctx_lock.typing(ctx, said)",
    ),
    "in another method": ("_realtime_reply_task", "_other"),
    "in a line with more": ("typing(ctx, said)", "typing(ctx, said); log()"),
    "with a comment": ("typing(ctx, said)", "typing(ctx, said)  # so"),
    "in another class": ("class AgentActivity", "class Other"),
    "not of this activity": ("replacing(self, given)", "replacing(other, given)"),
    "another's": ("RealtimeContextLock(self)", "RealtimeContextLock(other)"),
    "past": ("given = self._agent._chat_ctx\n", "other = self._agent._chat_ctx\n"),
}


@pytest.mark.parametrize(("old", "new"), OTHERWISE.values(), ids=OTHERWISE)
def test_what_has_another_shape_stays(old: str, new: str) -> None:
    assert TOLD.count(old) == 1
    wrong = TOLD.replace(old, new)
    assert plain_source(wrong.encode()) != GUARDED.encode()
    if "#" not in new:
        with pytest.raises(NotUnderstood):
            find_sites(wrong, NAME)
