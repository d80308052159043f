"""What counts as a lost update, and what its message tells."""

from __future__ import annotations

import pytest

from ctxlock.races.fake_realtime import FakeRealtimeModel
from ctxlock.races.verdict import LostUpdate, check
from livekit.agents import llm

A, B, C = (llm.ChatMessage(id=name, role="user", content=[name.lower()]) for name in "ABC")


def context(*items: llm.ChatItem) -> llm.ChatContext:
    return llm.ChatContext(list(items))


async def test_passes_what_is_right() -> None:
    realtime = FakeRealtimeModel().session()
    await realtime.update_chat_ctx(context(A, B))
    check(realtime, kept=['user "a"'], gone=["C"], local=context(A, B))


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"kept": ['user "c"']}, 'user "c" is lost[.]'),
        (
            {"kept": ['user "c"'], "local": context(A, B, C)},
            '^user "c" is lost, though the agent has it[.]',
        ),
        ({"gone": ["A"]}, 'user "a" is back, though it was deleted'),
        ({"local": context(A)}, 'only the model has user "b"'),
        ({"local": context(A, B, C)}, 'only the agent has user "c"'),
        ({"local": context(B, A)}, "order is another"),
    ],
)
async def test_says_what_is_wrong_and_who_did_it(expected: dict[str, object], said: str) -> None:
    realtime = FakeRealtimeModel().session()
    await realtime.update_chat_ctx(context(A, B))
    with pytest.raises(LostUpdate, match=said) as failure:
        check(realtime, **expected)  # type: ignore[arg-type]
    assert 'push 1: creates user "a" (A), creates user "b" (B)' in str(failure.value)


async def test_order_matters_only_when_asked() -> None:
    realtime = FakeRealtimeModel().session()
    await realtime.update_chat_ctx(context(A, B))
    check(realtime, local=context(B, A), ordered=False)
