"""Runs that the doctor's rules were not made with: deletions meant, and losses by overlap.

Whoever wrote them had not read the rules. In a meant one every deletion is a second or more, and
three round trips or more, after its item; in the losses two updates overlap.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from _realtime_support import VERSION
from doctor_runs import Log, LogClock, Run, far_ends_kept, logged, told

from ctxlock.races import backend
from ctxlock.races.harness import GatedTool, Harness, idle, running, update_chat_ctx
from ctxlock.races.loopback.model import serving
from ctxlock.races.scenario import agent_with, note
from livekit.agents import Agent, AgentSession, llm

__all__ = ["LOSSES", "MEANT", "heldout"]

Pause = Callable[..., Awaitable[None]]
Case = Callable[[Harness, Pause], Awaitable[None]]

MEANT: dict[str, Case] = {}
LOSSES: dict[str, Case] = {}

PIXEL = "data:image/png;base64,iVBORw0KGgo="
SAYS = type(VERSION)("1.8.9") <= VERSION  # there what is said can lose something, and little else


def _meant(case: Case) -> Case:
    MEANT[case.__name__.strip("_").replace("_", " ")] = case
    return case


def _loss(case: Case) -> Case:
    LOSSES[case.__name__.strip("_").replace("_", " ")] = case
    return case


def heldout(
    name: str, *, pace: float = 1.5, round_trip: float = 0.06, spoken: bool = False
) -> Callable[..., Coroutine[Any, Any, Run]]:
    """One of the cases, as a function of the path that its log is written to.

    Args:
        name: The case's name.
        pace: Seconds between one step and the next.
        round_trip: Seconds between what is sent and the answer.
        spoken: Whether the model speaks.
    """

    async def run(path: Path, how: Any = None, log: Log | None = None, **fields: str) -> Run:
        log = log or Log()
        log.clock = LogClock(round_trip)
        over = backend.over(partial(serving, spoken=spoken))
        with logged(log, how, **fields), far_ends_kept(log), _wishes() as wishes, over:
            async with running(agent_with(), looking=False) as talk:

                async def pause(seconds: float = pace) -> None:
                    await idle()
                    log.clock.pause(seconds)

                _replying(talk)
                await {**MEANT, **LOSSES}[name](talk, pause)
                await idle()
        reports, counts, _ = told(path, log.lines)
        return Run(_truth(log, *wishes), reports, counts)

    return run


@contextmanager
def _wishes() -> Iterator[tuple[set[str], set[str]]]:
    """The ids of what the application has ever left out, and of what it has not named again."""
    ever: set[str] = set()
    still: set[str] = set()
    replace, hand_off = Agent.update_chat_ctx, AgentSession.update_agent

    def left_out(old: llm.ChatContext, new: llm.ChatContext) -> None:
        kept = {item.id for item in new.items}
        ever.update({item.id for item in old.items} - kept)
        still.update({item.id for item in old.items} - kept)
        still.difference_update(kept)

    async def replacing(self: Agent, chat_ctx: llm.ChatContext, **how: Any) -> None:
        left_out(self.chat_ctx, chat_ctx)
        await replace(self, chat_ctx, **how)

    def handing_off(self: AgentSession[Any], agent: Agent) -> None:
        left_out(self.current_agent.chat_ctx, agent.chat_ctx)
        hand_off(self, agent)

    first = patch.object(Agent, "update_chat_ctx", replacing)
    with first, patch.object(AgentSession, "update_agent", handing_off):
        yield ever, still


def _truth(log: Log, ever: set[str], still: set[str]) -> set[str]:
    """What was deleted although nobody left it out, and what was left out and came back."""
    wrong: set[str] = set()
    for end in log.ends:
        deleted: set[str] = set()
        for push in end.pushes:
            created = {item.id for item in push.creates}
            wrong |= (set(push.deletes) - created - ever) | (created & deleted & still)
            deleted |= set(push.deletes)
    return wrong


# -- words


def _replying(talk: Harness) -> None:
    def reply(response: Any) -> None:
        response.message("Certainly.")
        response.done()

    talk.realtime.on_reply = reply


def message(role: Any, *content: Any) -> llm.ChatMessage:
    return llm.ChatMessage(role=role, content=list(content))


def _image() -> llm.ChatMessage:
    return message("user", "What is on it?", llm.ImageContent(image=PIXEL))


async def _set(talk: Harness, items: Iterable[Any]) -> None:
    await talk.start(update_chat_ctx(talk.activity, llm.ChatContext(list(items))))


async def _typed(talk: Harness, pause: Pause, *texts: str) -> None:
    for text in texts:
        talk.text_turn(text)
        await pause()


async def _spoken(talk: Harness, pause: Pause, *texts: str) -> None:
    """The caller says something, and the model answers by itself."""
    for text in texts:
        talk.realtime.transcribe(talk.realtime.hear(), text)
        await idle()
        response = talk.realtime.respond()
        response.message("I see.")
        response.done()
        await pause()


async def _tools(talk: Harness, *names: str) -> list[GatedTool]:
    """Tools that the model has called in one response."""
    tools = [GatedTool(name) for name in names]
    talk.activity.agent._tools = [tool.tool for tool in tools]
    await talk.activity.update_tools([tool.tool for tool in tools])
    await talk.call(*tools)
    return tools


async def _used(talk: Harness, pause: Pause, *names: str) -> None:
    """Tools are called and return, and the model goes on with what they returned."""
    for tool in await _tools(talk, *names):
        tool.finish()
    await pause()


def _but(talk: Harness, *kinds: str) -> list[Any]:
    return [item for item in talk.local.items if item.type not in kinds]


# -- meant


@_meant
async def _picture_replaced_by_its_caption(talk: Harness, pause: Pause) -> None:
    picture = _image()
    await _set(talk, [*talk.local.items, picture])
    await pause()
    kept = [item for item in talk.local.items if item.id != picture.id]
    await _set(talk, [*kept, message("user", "(a picture of a red car)")])
    await pause()


@_meant
async def _picture_removed_when_it_was_answered(talk: Harness, pause: Pause) -> None:
    picture = _image()
    await _set(talk, [*talk.local.items, picture])
    await pause()
    await _typed(talk, pause, "what colour is it?")
    await _set(talk, [item for item in talk.local.items if item.id != picture.id])
    await pause()


@_meant
async def _last_four_items_kept_after_each_turn(talk: Harness, pause: Pause) -> None:
    for text in ("one", "two", "three", "four"):
        await _typed(talk, pause, text)
        await _set(talk, talk.local.truncate(max_items=4).items)
        await pause()


@_meant
async def _summary_that_keeps_the_last_two(talk: Harness, pause: Pause) -> None:
    await _used(talk, pause, "lookup")
    await _typed(talk, pause, "one", "two", "three")
    items = talk.local.items
    await _set(talk, [message("system", "So far: a booking."), *items[-2:]])
    await pause()


@_meant
async def _summary_at_the_end(talk: Harness, pause: Pause) -> None:
    await _typed(talk, pause, "one", "two")
    await _set(talk, [message("assistant", "So far: one, two.")])
    await pause()
    await _typed(talk, pause, "three")
    await _set(talk, [message("assistant", "So far: one, two, three.")])
    await pause()


@_meant
async def _clock_as_a_system_message(talk: Harness, pause: Pause) -> None:
    clock: llm.ChatMessage | None = None
    for minute in range(4):
        kept = [item for item in talk.local.items if clock is None or item.id != clock.id]
        clock = message("system", f"It is 10:0{minute}.")
        await _set(talk, [clock, *kept])
        await pause()
        await _spoken(talk, pause, "what time is it?")


@_meant
async def _clock_with_nothing_in_between(talk: Harness, pause: Pause) -> None:
    clock: llm.ChatMessage | None = None
    for minute in range(4):
        kept = [item for item in talk.local.items if clock is None or item.id != clock.id]
        clock = message("system", f"It is 10:0{minute}.")
        await _set(talk, [*kept, clock])
        await pause()


@_meant
async def _found_documents_replaced_before_each_turn(talk: Harness, pause: Pause) -> None:
    found: llm.ChatMessage | None = None
    for text in ("price?", "opening hours?", "address?"):
        kept = [item for item in talk.local.items if found is None or item.id != found.id]
        found = message("system", f"Found about {text}")
        await _set(talk, [*kept, found])
        await _typed(talk, pause, text)


@_meant
async def _chain_of_handoffs(talk: Harness, pause: Pause) -> None:
    await _used(talk, pause, "lookup")
    for name in ("billing", "sales", "support"):
        await _typed(talk, pause, f"{name}, please")
        history = llm.ChatContext(_but(talk, "agent_handoff")[-3:])
        talk.hand_off(Agent(instructions=f"You are {name}.", chat_ctx=history))
        await pause()


@_meant
async def _handoff_without_calls_and_results(talk: Harness, pause: Pause) -> None:
    await _used(talk, pause, "lookup", "book")
    history = llm.ChatContext(_but(talk, "function_call", "function_call_output"))
    talk.hand_off(Agent(instructions="Go on.", chat_ctx=history))
    await pause()
    await _typed(talk, pause, "hello?")


@_meant
async def _handoff_there_and_back(talk: Harness, pause: Pause) -> None:
    front = talk.activity.agent
    await _typed(talk, pause, "billing, please")
    talk.hand_off(Agent(instructions="You are billing."))
    await pause()
    await _typed(talk, pause, "my bill is wrong")
    talk.hand_off(front)
    await pause()


@_meant
async def _number_blanked_in_what_was_typed(talk: Harness, pause: Pause) -> None:
    await _typed(talk, pause, "my card is 4111")
    items = [
        message("user", "my card is ****")
        if getattr(i, "text_content", "") == "my card is 4111"
        else i
        for i in talk.local.items
    ]
    await _set(talk, items)
    await pause()


@_meant
async def _number_blanked_in_what_was_said(talk: Harness, pause: Pause) -> None:
    await _spoken(talk, pause, "my card is 4111")
    items = [
        message("user", "my card is ****") if getattr(i, "role", "") == "user" else i
        for i in talk.local.items
    ]
    await _set(talk, items)
    await pause()


@_meant
async def _number_blanked_before_the_reply(talk: Harness, pause: Pause) -> None:
    talk.realtime.transcribe(talk.realtime.hear(), "my card is 4111")
    await pause()
    await _set(talk, [message("user", "my card is ****")])
    await pause()


@_meant
async def _same_number_said_twice_and_one_dropped(talk: Harness, pause: Pause) -> None:
    await _typed(talk, pause, "4111", "4111")
    items = talk.local.items
    second = [i for i in items if getattr(i, "role", "") == "user"][-1]
    await _set(talk, [i for i in items if i.id != second.id])
    await pause()


@_meant
async def _provisional_result_replaced_by_the_real_one(talk: Harness, pause: Pause) -> None:
    await _used(talk, pause, "lookup")
    output = next(i for i in talk.local.items if i.type == "function_call_output")
    real = llm.FunctionCallOutput(
        call_id=output.call_id, name="lookup", output="three rooms", is_error=False
    )
    await _set(talk, [real if i.id == output.id else i for i in talk.local.items])
    await pause()


@_meant
async def _long_results_shortened(talk: Harness, pause: Pause) -> None:
    await _used(talk, pause, "lookup", "book")
    items = [
        llm.FunctionCallOutput(call_id=i.call_id, name=i.name, output="(old)", is_error=False)
        if i.type == "function_call_output"
        else i
        for i in talk.local.items
    ]
    await _set(talk, items)
    await pause()


@_meant
async def _results_of_two_tools_removed_at_the_next_turn(talk: Harness, pause: Pause) -> None:
    await _used(talk, pause, "lookup", "book")
    await _typed(talk, pause, "thanks")
    await _set(talk, _but(talk, "function_call_output"))
    await pause()


@_meant
async def _calls_and_results_removed_with_a_note(talk: Harness, pause: Pause) -> None:
    await _used(talk, pause, "lookup", "book")
    await _set(talk, [*_but(talk, "function_call", "function_call_output"), note("booked: 12")])
    await pause()


@_meant
async def _reply_replaced_by_a_corrected_one(talk: Harness, pause: Pause) -> None:
    await _typed(talk, pause, "how much is it?")
    kept = [i for i in talk.local.items if getattr(i, "role", "") != "assistant"]
    await _set(talk, [*kept, message("assistant", "It is 12 euros.")])
    await pause()


@_meant
async def _everything_cleared(talk: Harness, pause: Pause) -> None:
    await _used(talk, pause, "lookup")
    await _typed(talk, pause, "start again")
    await _set(talk, [])
    await pause()
    await _typed(talk, pause, "hello")


@_meant
async def _everything_cleared_but_a_new_greeting(talk: Harness, pause: Pause) -> None:
    await _spoken(talk, pause, "that is all")
    await _set(talk, [message("assistant", "Welcome. How can I help?")])
    await pause()


@_meant
async def _last_turn_forgotten(talk: Harness, pause: Pause) -> None:
    await _typed(talk, pause, "one")
    talk.realtime.transcribe(talk.realtime.hear(), "forget that")
    await pause()
    await _set(talk, talk.local.items[:-1])
    await pause()


@_meant
async def _note_removed_after_the_reply_to_it(talk: Harness, pause: Pause) -> None:
    hint = note("(be brief)")
    await _set(talk, [*talk.local.items, hint])
    await _typed(talk, pause, "tell me all")
    await _set(talk, [i for i in talk.local.items if i.id != hint.id])
    await pause()


@_meant
async def _old_result_removed_in_front_of_a_turn(talk: Harness, pause: Pause) -> None:
    await _used(talk, pause, "lookup")
    await _set(talk, _but(talk, "function_call_output"))
    await _typed(talk, pause, "and now?")


@_meant
async def _two_replacements_in_a_row_drop_old_items(talk: Harness, pause: Pause) -> None:
    await _used(talk, pause, "lookup")
    await _typed(talk, pause, "one")
    await _set(talk, _but(talk, "function_call_output"))
    await _set(talk, [*_but(talk, "function_call", "function_call_output"), note("booked")])
    await pause()


@_meant
async def _reply_cut_short_and_removed(talk: Harness, pause: Pause) -> None:
    response = talk.realtime.respond()
    response.message().write("Well, the thing is")
    await pause()
    talk.interrupt()
    await pause()
    kept = [i for i in talk.local.items if getattr(i, "role", "") != "assistant"]
    await _set(talk, [*kept, note("(the caller did not listen)")])
    await pause()


# -- lost


def _later(talk: Harness) -> Callable[[], object]:
    """An update that no lock of the release makes wait."""
    return (lambda: talk.say("One moment.")) if SAYS else (lambda: talk.text_turn("hello?"))


@_loss
async def _results_of_two_tools_at_once(talk: Harness, pause: Pause) -> None:
    first, second = await _tools(talk, "lookup", "book")

    def finish() -> None:
        first.finish()
        second.finish()

    await pause()
    await talk.overlap(finish, _later(talk))
    await pause()


@_loss
async def _picture(talk: Harness, pause: Pause) -> None:
    await _typed(talk, pause, "look")
    picture = _image()
    await talk.overlap(lambda: talk.replace(picture), _later(talk))
    await pause()


@_loss
async def _three_notes_at_once(talk: Harness, pause: Pause) -> None:
    notes = [note("A"), message("system", "B"), message("assistant", "C")]
    await talk.overlap(lambda: talk.replace(*notes), _later(talk))
    await pause()


@_loss
async def _result_and_two_turns_behind_it(talk: Harness, pause: Pause) -> None:
    (lookup,) = await _tools(talk, "lookup")

    def two() -> None:
        _later(talk)()
        talk.text_turn("are you there?")

    await pause()
    await talk.overlap(lookup.finish, two)
    await pause()


@_loss
async def _clock_replaced_in_front_of_a_turn(talk: Harness, pause: Pause) -> None:
    await talk.replace(message("system", "It is 10:00."))
    await pause()
    new = message("system", "It is 10:01.")
    await talk.overlap(lambda: talk.replace(new, without=['system "It is 10:00."']), _later(talk))
    await pause()


@_loss
async def _beginning_trimmed_in_front_of_a_turn(talk: Harness, pause: Pause) -> None:
    await _typed(talk, pause, "one", "two", "three")
    kept = [*talk.local.items[-2:], note("a member")]
    update = update_chat_ctx(talk.activity, llm.ChatContext(kept))
    await talk.overlap(lambda: talk.start(update), _later(talk))
    await pause()


@_loss
async def _summary_in_front_of_a_result(talk: Harness, pause: Pause) -> None:
    await _typed(talk, pause, "one", "two", "three")
    (lookup,) = await _tools(talk, "lookup")
    await pause()
    kept = [message("system", "So far: one, two."), *talk.local.items[-2:]]
    update = update_chat_ctx(talk.activity, llm.ChatContext(kept))

    def both() -> None:
        lookup.finish()
        if SAYS:
            talk.say("One moment.")

    await talk.overlap(lambda: talk.start(update), both)
    await pause()


@asynccontextmanager
async def _an_update_waiting(talk: Harness, first: Callable[[], object]) -> AsyncIterator[None]:
    """In the block an update waits for that of `first`, which is acknowledged at its end."""
    push = talk.realtime.hold()
    first()
    await push.entered.wait()
    _later(talk)()
    await idle()
    yield
    await idle()
    push.release()


@_loss
async def _reply_made_while_an_update_waits(talk: Harness, pause: Pause) -> None:
    await _spoken(talk, pause, "hello")
    async with _an_update_waiting(talk, lambda: talk.replace(note("A"))):
        response = talk.realtime.respond()
        response.message("By the way, we close at six.")
        response.done()
    await pause()


@_loss
async def _call_made_while_an_update_waits(talk: Harness, pause: Pause) -> None:
    lookup = GatedTool("lookup")
    talk.activity.agent._tools = [lookup.tool]
    await talk.activity.update_tools([lookup.tool])
    await _spoken(talk, pause, "hello")
    async with _an_update_waiting(talk, lambda: talk.replace(note("A"))):
        response = talk.realtime.respond()
        response.call("lookup")
        response.done()
    await pause()
    lookup.finish()
    await pause()


@_loss
async def _turn_spoken_after_a_result_that_waits(talk: Harness, pause: Pause) -> None:
    (lookup,) = await _tools(talk, "lookup")
    await pause()
    async with _an_update_waiting(talk, lookup.finish):
        talk.realtime.hear()
    await pause()


@_loss
async def _result_removed_and_back_with_a_turn(talk: Harness, pause: Pause) -> None:
    await _used(talk, pause, "lookup")
    await talk.overlap(
        lambda: talk.replace(without=["function_call_output of lookup"]), _later(talk)
    )
    await pause()


@_loss
async def _turn_spoken_while_a_replacement_waits(talk: Harness, pause: Pause) -> None:
    await _spoken(talk, pause, "hello")
    async with _an_update_waiting(talk, lambda: talk.replace(note("A"))):
        talk.realtime.transcribe(talk.realtime.hear(), "my number is 12")
    await pause()
    await _spoken(talk, pause, "did you get it?")


@_loss
async def _result_of_the_second_agent(talk: Harness, pause: Pause) -> None:
    await _typed(talk, pause, "billing, please")
    history = llm.ChatContext(_but(talk, "agent_handoff"))
    talk.hand_off(Agent(instructions="You are billing.", chat_ctx=history))
    await pause()
    (lookup,) = await _tools(talk, "lookup")
    await pause()
    await talk.overlap(lookup.finish, _later(talk))
    await pause()


@_loss
async def _result_acknowledged_two_seconds_late(talk: Harness, pause: Pause) -> None:
    await _typed(talk, pause, "one", "two")
    (lookup,) = await _tools(talk, "lookup")
    await pause()
    push = talk.realtime.hold()
    lookup.finish()
    await push.entered.wait()
    await pause()
    _later(talk)()
    await pause(0.5)
    push.release()
    await pause()


@_loss
async def _result_of_a_long_call(talk: Harness, pause: Pause) -> None:
    await _typed(talk, pause, *map(str, range(12)))
    await _used(talk, pause, "lookup")
    (book,) = await _tools(talk, "book")
    await pause()
    await talk.overlap(book.finish, _later(talk))
    await pause()
    await talk.call(book)
    await pause()


@_loss
async def _turn_typed_during_what_is_said(talk: Harness, pause: Pause) -> None:
    await _typed(talk, pause, "one")
    first = (lambda: talk.say("Welcome.")) if SAYS else (lambda: talk.text_turn("one more"))
    await talk.overlap(first, lambda: talk.text_turn("hello"))
    await pause()


@_loss
async def _picture_while_a_result_waits(talk: Harness, pause: Pause) -> None:
    (lookup,) = await _tools(talk, "lookup")
    await pause()
    picture = _image()
    await talk.overlap(lambda: talk.replace(picture), lookup.finish)
    await pause()


@_loss
async def _note_while_a_result_and_what_is_said_wait(talk: Harness, pause: Pause) -> None:
    (lookup,) = await _tools(talk, "lookup")
    await pause()

    def both() -> None:
        _later(talk)()
        lookup.finish()

    await talk.overlap(lambda: talk.replace(note("a member")), both)
    await pause()
