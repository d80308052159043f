"""The script that every variant goes through, and each environment."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from livekit.agents import llm
from livekit.agents.llm import function_tool

from .provider import Answer, Part, RecordingModel
from .recorder import Recorder, Step
from .talk import Restless, Talk

if TYPE_CHECKING:
    from .variants import Variant

__all__ = ["PUSHED", "run"]

PUSHED: ContextVar[str] = ContextVar("pushed")
"""What a push has left in the context of whoever awaited it."""

_LOOKUP = Part(call="lookup")


@function_tool
async def lookup() -> str:
    """Looks something up."""
    return "42"


@function_tool
async def wait() -> str:
    """Takes its time."""
    await asyncio.sleep(0.4)
    return "waited"


def note(text: str) -> llm.ChatMessage:
    """What an application adds."""
    return llm.ChatMessage(role="user", content=[text])


def run(variant: Variant, recorder: Recorder) -> list[Step]:
    """Takes a variant through the script; what does not start, or rest, ends it."""
    with suppress(Restless):
        _run(variant, recorder)
    return recorder.steps


def _run(variant: Variant, recorder: Recorder) -> None:
    model = variant.model(recorder, "model")
    other = variant.model(recorder, "other")
    talk = Talk(recorder, model)
    talk.models.append(other)
    started = talk.step("start, greeting", lambda: talk.start(_agent(variant, talk, "first")))
    if not started["raised"]:
        _talk(variant, talk)
        _hand_off(variant, talk, other)
        _give_up(talk)
    talk.end()
    if not started["raised"]:
        again = lambda: talk.start(_agent(variant, talk, "again"))  # noqa: E731
        if not talk.step("another AgentSession", again)["raised"]:
            talk.step("typed", lambda: talk.typed("Hello again."))
        talk.end()


def _agent(variant: Variant, talk: Talk, name: str, **options: Any) -> Any:
    @function_tool
    async def remember() -> str:
        """Adds to the context, while the reply that called has a text."""
        await talk.edit(lambda items: items.append(note("remembered")))
        return "done"

    return variant.agent_kind(name, greets=True, tools=[lookup, wait, remember], **options)


def _talk(variant: Variant, talk: Talk) -> None:
    async def edit(change: Any) -> None:
        PUSHED.set("nothing")
        try:
            await talk.edit(change)
        finally:
            talk.recorder.note("calls", f"the caller reads {PUSHED.get()!r}")

    def reply(*parts: Part, endless: bool = False) -> Answer:
        return Answer(parts, endless)

    async def heard(transcript: str | None, **how: bool) -> None:
        talk.realtime.hear(transcript, **how)

    talk.step("typed", lambda: talk.typed("Hello."))
    talk.step("tool", lambda: talk.typed("Look.", reply(Part(["One ", "moment."]), _LOOKUP)))
    answer = reply(Part(["I will."]), Part(call="remember"))
    talk.step("tool that updates the context", lambda: talk.typed("Remember.", answer))
    talk.step("added", lambda: edit(lambda items: items.append(note("A note."))))
    talk.step("inserted", lambda: edit(lambda items: items.insert(1, note("An early note."))))
    talk.step("removed", lambda: edit(lambda items: items.pop(1)))
    talk.step("instructions", lambda: talk.agent.update_instructions("Be brief."))
    talk.step("tools", lambda: talk.agent.update_tools([lookup, wait]))
    talk.step("say", lambda: _say(talk))
    talk.step("spoken", lambda: heard("What I say."))
    talk.step("spoken, transcript late", lambda: heard("What I said.", late=True))
    talk.step("typed", lambda: talk.typed("And now?"))
    unheard = reply(Part(), endless=True)
    talk.step("unheard", lambda: talk.typed("Wait.", unheard, interrupted_after=0.15))
    cut = reply(Part(["One, ", "two, ", "three."]), endless=True)
    talk.step("cut short", lambda: talk.typed("Count.", cut, interrupted_after=0.25))
    working = reply(_LOOKUP, Part(["So"]), endless=True)
    talk.step("tool, cut short", lambda: talk.typed("Look.", working, interrupted_after=0.35))


def _hand_off(variant: Variant, talk: Talk, other: RecordingModel) -> None:
    def next_agent(name: str, **options: Any) -> Any:
        return _agent(variant, talk, name, chat_ctx=talk.agent.chat_ctx.copy(), **options)

    async def reconnect() -> None:
        talk.realtime.reconnect()

    talk.step("handoff", lambda: talk.hand_off(next_agent("second")))
    talk.step("typed", lambda: talk.typed("Who are you?"))
    talk.step("reconnection", reconnect)
    talk.step("typed", lambda: talk.typed("Still there?"))
    talk.step("handoff to a new session", lambda: talk.hand_off(next_agent("third", llm=other)))
    talk.step("typed", lambda: talk.typed("And you?", Answer([_LOOKUP])))
    talk.step("all removed", lambda: talk.edit(lambda items: items.clear()))
    talk.step("instructions", lambda: talk.agent.update_instructions("Start over."))
    talk.step("typed", lambda: talk.typed("Hello?"))
    empty = lambda: talk.hand_off(_agent(variant, talk, "fourth", llm=other))  # noqa: E731
    talk.step("handoff with an empty context", empty)
    talk.step("typed", lambda: talk.typed("Bye."))


def _give_up(talk: Talk) -> None:
    """An update is cancelled while it is made, and what comes after it goes on."""

    async def in_vain() -> None:
        update = asyncio.ensure_future(talk.edit(lambda items: items.append(note("In vain."))))
        await asyncio.sleep(0.05)
        update.cancel()
        await update

    talk.step("given up", in_vain)
    talk.step("added", lambda: talk.edit(lambda items: items.append(note("Not in vain."))))
    talk.step("typed", lambda: talk.typed("Are you there?"))


async def _say(talk: Talk) -> None:
    await talk.say("I say.")
