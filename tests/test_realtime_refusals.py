"""What a provider refuses: nothing is sent, or waited for, that stock would not send or wait for.

The clock is virtual. OpenAI's client ends such an update at once if the error names the event that
it is about, and else after its limit of 5 s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from _realtime_support import BEYOND_THE_LOCK, RECORDS_CALLS_AGAIN, closed_by_full, needs
from handoffs import tool_with_errand
from virtual_time import now, timed, until

from ctxlock.races.fake_realtime import FakeRealtimeModel
from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.push import Delete, Operation, Push
from ctxlock.races.releases import has_full_scope
from ctxlock.races.response import Response
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import LostUpdate, name_items
from livekit.agents import llm

pytestmark = needs(BEYOND_THE_LOCK, RECORDS_CALLS_AGAIN)

PATIENCE = 5.0  # of the client
HELLO = 'user "hello"'

each_error = pytest.mark.parametrize(
    "patience", [pytest.param(0.0, id="event-named"), pytest.param(PATIENCE, id="event-not-named")]
)


class RefusingPush(Push):
    """An update of which the server refuses a part.

    Args:
        refuses: What it refuses.
        patience: Seconds after which the client gives up, if it is not told at once.
    """

    def __init__(self, refuses: Callable[[Operation], bool], patience: float) -> None:
        super().__init__(held=True)
        self._refuses, self._patience = refuses, patience

    def send(
        self, operations: Sequence[Operation], deliver: Callable[[int], None]
    ) -> asyncio.Future[None]:
        acknowledged = super().send(operations, deliver)
        refused = [op.item_id for op in operations if self._refuses(op)]
        if not refused or not self._patience:
            self.reject(*refused) if refused else self.release()
        else:
            self.pending = [op for op in self.pending if op.item_id not in refused]
            deliver(len(self.pending))
            give_up = lambda: self.time_out(lost=True)  # noqa: E731
            asyncio.get_running_loop().call_later(self._patience, give_up)
        return acknowledged


class Watch:
    """How long each update takes from now on, of a provider that refuses something.

    Args:
        talk: The session.
        refuses: What the provider refuses.
        patience: As above.
    """

    def __init__(
        self, talk: Harness, refuses: Callable[[Operation], bool], patience: float
    ) -> None:
        realtime: Any = talk.realtime
        realtime.engine.new_push = lambda: RefusingPush(refuses, patience)
        self._talk = talk
        self._update = realtime.update_chat_ctx
        self._first = len(realtime.pushes)
        self._seconds: list[float] = []
        realtime.update_chat_ctx = self._update_chat_ctx

    def seconds(self) -> list[float]:
        """How long each update since the last call took."""
        seconds, self._seconds = self._seconds, []
        return seconds

    def operations(self) -> int:
        """How many operations were asked for."""
        return sum(len(push.operations) for push in self._talk.realtime.pushes[self._first :])

    async def _update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        began = now()
        try:
            await self._update(chat_ctx)
        finally:
            self._seconds.append(now() - began)


def answering(text: str, *, after: str | None = None) -> Callable[[Response], None]:
    """The model's reply, which may call a tool first."""

    def reply(response: Response) -> None:
        response.message(text)
        response.done()

    def call(response: Response) -> None:
        assert after is not None
        response.call(after)
        response.done()

    replies = [call] if after else []

    def next_reply(response: Response) -> None:
        (replies.pop(0) if replies else reply)(response)

    return next_reply


@each_error
@timed
async def test_task_whose_provider_deletes_nothing(patience: float) -> None:
    """Only its start and its end try to delete something; the turns go to the end."""
    lookup, errands = tool_with_errand()
    weather = GatedTool("weather")
    weather.finish()
    async with running(agent_with(lookup), model=FakeRealtimeModel()) as talk:
        await talk.replace(note("before"))
        watch = Watch(talk, lambda op: isinstance(op, Delete), patience)
        response = talk.realtime.respond()
        response.call("lookup")
        await lookup.started.wait()
        response.done()
        await until(10.0)
        assert watch.seconds() == [patience]
        await errands[0].update_tools([weather.tool])
        for number in range(4):
            calls = "weather" if number == 2 else None
            talk.realtime.on_reply = answering(f"{number}!", after=calls)
            await talk.text_turn(f"{number}?")
            await idle()
            assert watch.seconds() == [0.0] * (2 if calls else 1)
        errands[0].end()
        await until(40.0)
        assert watch.seconds() == [patience, 0.0]
        assert name_items(talk.realtime.server.items)[:-1] == [
            *('user "before"', "function_call lookup"),
            *('user "0?"', 'assistant "0!"', 'user "1?"', 'assistant "1!"'),
            *('user "2?"', "function_call weather", "function_call_output of weather"),
            *('assistant "2!"', 'user "3?"', 'assistant "3!"', "function_call_output of lookup"),
        ]
        assert watch.operations() == 10


@each_error
@timed
async def test_provider_that_refuses_a_message(patience: float) -> None:
    """Stock sends it again with each session start, and never otherwise."""
    async with running(agent_with(), model=FakeRealtimeModel()) as talk:
        await talk.replace(note("before"))
        refused = note("refused")
        watch = Watch(talk, lambda op: op.item_id == refused.id, patience)
        talk.replace(refused)
        await until(10.0)
        assert watch.seconds() == [patience]
        await talk.text_turn("hello")
        assert watch.seconds() == [0.0]
        agent = agent_with()
        await agent.update_chat_ctx(talk.local)
        talk.hand_off(agent)
        await until(20.0)
        assert watch.seconds() == [patience]
        await talk.text_turn("and now?")
        assert watch.seconds() == [0.0]
        assert watch.operations() == 4


@each_error
@timed
async def test_reconnection_after_a_message_was_refused(patience: float) -> None:
    """The scope full tries once more, as it may have been lost with the connection.

    A turn that is asked for meanwhile waits for that; the one after the next reconnection does not.
    """
    async with running(agent_with(), model=FakeRealtimeModel()) as talk:
        await talk.replace(note("before"))
        refused = note("refused")
        watch = Watch(talk, lambda op: op.item_id == refused.id, patience)
        talk.replace(refused)
        await until(10.0)
        tried, waited = watch.operations(), list[float]()
        for _ in range(3):
            watch.seconds()
            asked = now()
            talk.realtime.cut()
            await talk.text_turn("hello")
            waited.append(now() - asked)
            await until(now() + 10.0)
        assert waited == [patience if has_full_scope() else 0.0, 0.0, 0.0]
        again = [i.id for push in talk.realtime.pushes for i in push.creates].count(refused.id)
        assert tried == 1
        assert again == (2 if has_full_scope() else 1)


@timed
@closed_by_full("what was not acknowledged in time is with the agent alone")
async def test_reconnection_after_a_message_was_lost() -> None:
    async with running(agent_with(), model=FakeRealtimeModel()) as talk:
        await talk.replace(note("before"))
        push = talk.realtime.hold()
        talk.text_turn("hello")
        await push.entered.wait()
        push.time_out(lost=True)
        await idle()
        talk.realtime.cut()
        await until(10.0)
        if HELLO not in name_items(talk.realtime.server.items):
            raise LostUpdate(f"{HELLO} is not put back.")
        await talk.text_turn("and now?")
        await talk.expect('user "before"', HELLO, 'user "and now?"')
