"""The commonest pattern of all: an application copies the context, looks something up, and adds.

    chat_ctx = agent.chat_ctx.copy()
    found = await look_up(...)
    chat_ctx.add_message(role="user", content=found)
    await agent.update_chat_ctx(chat_ctx)

Meanwhile a turn or a reply begins, of which there is no text yet. The copy does not have it, and so
the update takes its placeholder away; then its text comes. In the end the agent, the model and the
next agent have both, the note and the text, each once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from lab.foreign.provider import Answer, Part, RecordingModel, RecordingSession
from lab.foreign.recorder import Recorder
from lab.foreign.talk import LabAgent, Talk
from lab.foreign.variants import TellsItsOwn, TellsNothing
from livekit.agents import llm
from livekit.agents.llm import function_tool

__all__ = ["CASES", "judge_case"]

NOTE = "The order is on its way."
TEXT = "Where is my order?"
REPLY = "I will look."
_WORDS = Part(["I ", "will ", "look."])

Case = Callable[[Talk], Awaitable[str]]
"""Acts the pattern out, and returns the text that came late."""

_KINDS: dict[str, type[RecordingSession]] = {
    "tells of all": RecordingSession,
    "tells of its own": TellsItsOwn,
    "tells of nothing": TellsNothing,
}


async def _update_with_a_held_copy(talk: Talk, seconds: float, meanwhile: Any = None) -> None:
    chat_ctx = talk.agent.chat_ctx.copy()
    if meanwhile is not None:
        meanwhile()
    await asyncio.sleep(seconds)  # the look-up
    chat_ctx.items.append(llm.ChatMessage(role="user", content=[NOTE]))
    await talk.agent.update_chat_ctx(chat_ctx)


def _spoken_turn(seconds: float, **how: bool) -> Case:
    async def case(talk: Talk) -> str:
        hear = partial(talk.realtime.hear, TEXT, **how)
        await _update_with_a_held_copy(talk, seconds, hear)
        return TEXT

    return case


async def _reply(talk: Talk) -> str:
    """A reply begins, and its words come after the update."""
    await _update_with_a_held_copy(talk, 0.05, partial(talk.realtime.respond, Answer([_WORDS])))
    return REPLY


async def _reply_to_a_typed_turn(talk: Talk) -> str:
    """The user types; the copy is taken when the turn is in, and the reply begins after that."""
    talk.model.answers.append(Answer([_WORDS]))
    talk.model.replies.clear()
    handle = talk.session.generate_reply(user_input=TEXT)
    await asyncio.sleep(0.12)
    await _update_with_a_held_copy(talk, 0.1)
    await handle
    return REPLY


async def _in_a_tool(talk: Talk) -> str:
    """A tool does it, while the reply that called the tool has a text that is not recorded yet."""
    await talk.typed(TEXT, Answer([_WORDS, Part(call="check_quickly")]))
    return REPLY


async def _in_a_tool_while_the_user_speaks(talk: Talk) -> str:
    """A tool does it, and the user says something meanwhile."""
    talk.loop.call_later(0.35, talk.realtime.hear, TEXT)
    await talk.typed("Check it.", Answer([Part(call="check")]))
    await asyncio.sleep(3)
    return TEXT


_PATTERNS: dict[str, Case] = {
    "spoken turn": _spoken_turn(0.35, late=True, reply=False),
    "spoken turn, understood during the update": _spoken_turn(0.35, reply=False),
    "spoken turn, understood after its reply": _spoken_turn(0.55, late=True),
    "reply": _reply,
    "reply to a typed turn": _reply_to_a_typed_turn,
    "in a tool": _in_a_tool,
    "in a tool while the user speaks": _in_a_tool_while_the_user_speaks,
}

CASES = {
    f"{pattern}; the model {kind}": (pattern, kind) for pattern in _PATTERNS for kind in _KINDS
}
"""Each pattern with each kind of model."""


def judge_case(name: str, recorder: Recorder) -> list[str]:
    """Acts a case out.

    Returns:
        What is not as it should be, in sentences.
    """
    pattern, kind = CASES[name]
    talk = Talk(recorder, RecordingModel(recorder, _KINDS[kind]))
    late = ""

    async def act() -> None:
        nonlocal late
        late = await _PATTERNS[pattern](talk)

    async def hand_off() -> None:
        await talk.hand_off(LabAgent("next", chat_ctx=talk.agent.chat_ctx.copy()))

    talk.step("start", lambda: talk.start(LabAgent("first", tools=_tools(talk))))
    wrong = [f"The step raised {line}." for line in talk.step("act", act)["raised"]]
    wrong += _missing("the agent", talk.agent._chat_ctx.items, late)
    talk.step("handoff", hand_off)
    wrong += _missing("the next agent", talk.agent._chat_ctx.items, late)
    wrong += _missing("the model", talk.realtime.items, late)
    talk.end()
    return wrong


def _tools(talk: Talk) -> list[Any]:
    @function_tool
    async def check() -> str:
        """Looks the order up, and tells of it."""
        await _update_with_a_held_copy(talk, 0.4)
        return "checked"

    @function_tool
    async def check_quickly() -> str:
        """Does so before the reply that called has ended."""
        await _update_with_a_held_copy(talk, 0.02)
        return "checked"

    return [check, check_quickly]


def _missing(who: str, items: Iterable[llm.ChatItem], late: str) -> list[str]:
    texts = [item.text_content for item in items if item.type == "message"]
    return [
        f"In the end {who} has {text!r} {texts.count(text)} times, and not once."
        for text in (NOTE, late)
        if texts.count(text) != 1
    ]
