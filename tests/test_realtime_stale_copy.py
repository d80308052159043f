"""A copy of the context that was taken before somebody spoke, and is made the agent's after.

Who speaks has a placeholder by then, which the copy lacks. What is left out goes from both sides;
but what is said with words in the end is with the agent, the model and the next agent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from _realtime_support import CATCHES_FAILED_UPDATES, closed_by_full, needs
from siblings import both_ways, through
from silent_provider import SilentModel, SilentSession

from ctxlock.races.harness import GatedTool, Harness, idle, running, update_chat_ctx
from ctxlock.races.names import name_items
from ctxlock.races.scenario import agent_with, note
from livekit.agents import Agent, llm

pytestmark = needs(CATCHES_FAILED_UPDATES)

BEFORE, HEARD, REPLY, A = 'user "before"', 'user "good day"', 'assistant "Hello."', 'user "A"'
CALL, OUTPUT = "function_call lookup", "function_call_output of lookup"

forgotten = closed_by_full(
    "its words are with the agent alone, as the model forgot the placeholder"
)

Finish = Callable[[], None]


def speak(talk: Harness) -> Finish:
    """The user speaks, and is understood later."""
    heard = talk.realtime.hear()
    return lambda: talk.realtime.transcribe(heard, "good day")


def reply(talk: Harness) -> Finish:
    """The model begins a reply, and ends it later."""
    response = talk.realtime.respond()
    message = response.message()

    def finish() -> None:
        message.write("Hello.")
        response.done()

    return finish


@asynccontextmanager
async def talking(over: Any, *tools: GatedTool) -> AsyncIterator[Harness]:
    with through(over):
        async with running(agent_with(*tools)) as talk:
            await talk.replace(note("before"))
            yield talk


def with_words(items: list[llm.ChatItem]) -> llm.ChatContext:
    """What an application hands on that has no use for empty messages."""
    return llm.ChatContext([i for i in items if i.type != "message" or any(i.content)])


async def hand_on(talk: Harness) -> None:
    """Another agent takes over, with a copy of what this one has."""
    context = talk.session.current_agent.chat_ctx.copy()
    talk.hand_off(Agent(instructions="Go on.", chat_ctx=context))
    await idle()


@both_ways
@pytest.mark.parametrize(
    ("begin", "said"),
    [pytest.param(speak, HEARD, id="turn"), pytest.param(reply, REPLY, id="reply")],
)
class TestCopyThatLacksAPlaceholder:
    @forgotten
    async def test_words_that_come_after(
        self, over: Any, begin: Callable[[Harness], Finish], said: str
    ) -> None:
        async with talking(over) as talk:
            copy = talk.local
            finish = begin(talk)
            await idle()
            copy.items.append(note("A"))
            await update_chat_ctx(talk.activity, copy)
            finish()
            await talk.expect(BEFORE, said, A)
            await talk.text_turn("hello")
            await talk.expect(BEFORE, said, A, 'user "hello"')
            await hand_on(talk)
            await talk.expect(BEFORE, said, A, 'user "hello"')

    @forgotten
    async def test_words_that_come_while_it_is_pushed(
        self, over: Any, begin: Callable[[Harness], Finish], said: str
    ) -> None:
        async with talking(over) as talk:
            copy = talk.local
            finish = begin(talk)
            await idle()
            copy.items.append(note("A"))
            push = talk.realtime.hold()
            talk.start(update_chat_ctx(talk.activity, copy))
            await push.entered.wait()
            finish()
            await idle()
            push.release()
            await talk.expect(BEFORE, said, A)
            await hand_on(talk)
            await talk.expect(BEFORE, said, A)


@both_ways
class TestHandoff:
    """The agent that takes over has a copy without empty messages."""

    @forgotten
    @pytest.mark.parametrize("held", [False, True], ids=["after-its-start", "at-its-start"])
    async def test_words_of_the_turn_that_caused_it(self, over: Any, held: bool) -> None:
        agents: list[Agent] = []

        async def leave() -> Agent:
            context = with_words(talk.local.items)
            agents.append(Agent(instructions="Go on.", chat_ctx=context))
            return agents[0]

        lookup = GatedTool("lookup", leave)
        async with talking(over, lookup) as talk:
            await talk.replace(note("old"))
            heard = talk.realtime.hear()
            await idle()
            push = talk.realtime.hold()
            await talk.call(lookup)
            await push.entered.wait()
            if held:
                talk.realtime.transcribe(heard, "good day")
                await idle()
            push.release()
            await idle()
            if not held:
                talk.realtime.transcribe(heard, "good day")
            await talk.expect(BEFORE, 'user "old"', HEARD)
            assert talk.session.current_agent is agents[0]
            await talk.replace(note("A"))
            await talk.expect(BEFORE, 'user "old"', HEARD, A)


@both_ways
async def test_id_that_is_used_again(over: Any) -> None:
    # some providers number the items of each connection anew
    async with talking(over) as talk:
        first = talk.realtime.hear("item_1")
        await idle()
        talk.realtime.transcribe(first, "good day")
        await idle()
        await talk.replace(without=[HEARD])
        await talk.activity.agent.update_instructions("Answer at length.")
        again = talk.realtime.hear("item_1")
        await idle()
        talk.realtime.transcribe(again, "and now?")
        await talk.expect(BEFORE, 'user "and now?"')
        await hand_on(talk)
        await talk.expect(BEFORE, 'user "and now?"')


class EarlySession(SilentSession):
    """A provider whose context has a reply before the agent has, and from which nothing goes."""

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        both = self.chat_ctx.copy()
        known = {item.id for item in both.items}
        both.items += [item for item in chat_ctx.items if item.id not in known]
        await super().update_chat_ctx(both)


async def test_tool_that_replaces_the_context_while_the_reply_that_called_it_has_text() -> None:
    async def add_a_note() -> str:
        await talk.replace(note("A"))
        return "done"

    lookup = GatedTool("lookup", add_a_note)
    model = SilentModel(EarlySession)
    async with running(agent_with(lookup), model=model) as talk:
        await talk.replace(note("before"))
        response = model.sessions[0].respond()
        message = response.message()
        message.write("Hello.")
        for item in model.sessions[0].engine.both_sides(message.id):
            item.content.append("Hello.")
        response.call("lookup")
        await idle()
        response.break_off()  # its text is there already
        await idle()
        for whose in (talk.local.items, talk.realtime.server.items):
            names = name_items(whose)
            assert all(names.count(name) == 1 for name in (BEFORE, A, REPLY))
        await hand_on(talk)
        assert name_items(talk.local.items).count(REPLY) == 1
        assert name_items(talk.realtime.server.items).count(REPLY) == 1
