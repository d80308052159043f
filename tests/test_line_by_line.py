"""The judge of `test_closed_world` sees what is not the lock's."""

from __future__ import annotations

import ast

import pytest
from activity import informed, locked
from call_pairs import ADDED
from line_by_line import unexplained
from lock_pairs import ACCEPTED, BESIDE, MISPLACED, OTHER, REFUSED

ALL = REFUSED | MISPLACED


@pytest.mark.parametrize(("original", "patched"), ACCEPTED.values(), ids=ACCEPTED)
def test_accepts_the_lock(original: str, patched: str) -> None:
    assert unexplained(original, patched) is None


@pytest.mark.parametrize(("original", "patched"), ALL.values(), ids=ALL)
def test_refuses_more_than_the_lock(original: str, patched: str) -> None:
    assert original != patched
    ast.parse(patched)
    assert unexplained(original, patched) is not None


WITHOUT = locked(*(guarded for guarded, _ in ADDED.values()), OTHER)
FULL = informed(*(told for _, told in ADDED.values()), OTHER)


def test_accepts_the_calls_of_the_scope_full() -> None:
    assert unexplained(WITHOUT, FULL) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("lock.typing(ctx, said)", "lock.type(ctx, said)", id="no call"),
        pytest.param(
            "lock.typing(ctx, said)", "lock.typing(ctx, said or text)", id="more than a name"
        ),
        pytest.param("said = ctx.add_message(", "ctx.add_message(", id="another statement"),
        pytest.param("record(event)", "return", id="a return"),
        pytest.param("listen()", "self._rt_chat_ctx_lock = RealtimeContextLock(self)", id="a lock"),
        pytest.param("listen()", "given = self._agent._chat_ctx", id="the agent's context"),
    ],
)
def test_refuses_more_than_calls(old: str, new: str) -> None:
    assert old in FULL
    assert unexplained(WITHOUT, FULL.replace(old, new, 1)) is not None


@pytest.mark.parametrize("method", BESIDE.values(), ids=BESIDE)
def test_refuses_changes_beside_the_calls(method: str) -> None:
    full = informed(*(told for _, told in ADDED.values()), method)
    assert unexplained(WITHOUT, full) is not None
