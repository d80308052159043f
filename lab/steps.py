"""The steps, each in a fresh session over a fresh far end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from livekit.agents import function_tool, llm

from .far_end import Setting
from .world import World, done

__all__ = ["STEPS", "Step"]


Run = Callable[[World], Awaitable[None]]


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        run: What happens.
        usual: How the far end behaves in it, but for the delay.
    """

    run: Run
    usual: Setting

    def setting(self, delay: float) -> Setting:
        """How the far end behaves in it."""
        return replace(self.usual, delay=delay)


STEPS: dict[str, Step] = {}
"""All of them, by name, in the order of the table."""


def step(*, ready_after: float = 0.0, traits: tuple[str, ...] = ()) -> Callable[[Run], Run]:
    """Makes a step of a function, and names it after that."""

    def made(run: Run) -> Run:
        setting = Setting(ready_after=ready_after, traits=frozenset(traits))
        STEPS[run.__name__.replace("_", " ")] = Step(run, setting)
        return run

    return made


# -- what several have in common


def look_up(world: World) -> Any:
    """A tool that returns a sentence."""

    @function_tool(name="look_up", description="Looks something up.")
    async def tool(topic: str) -> str:
        world.recorder.note("acts", f"look_up({topic})")
        return f"{topic} is forty-two"

    return tool


def update_from_tool(world: World, name: str, change: Callable[[llm.ChatContext], object]) -> Any:
    """A tool that changes its agent's context."""

    @function_tool(name=name, description="Changes the conversation.")
    async def tool() -> str:
        chat_ctx = world.current.chat_ctx.copy()
        change(chat_ctx)
        await world.attempt(f"update in {name}", world.current.update_chat_ctx(chat_ctx))
        return "done"

    return tool


async def handed_over(world: World, **options: Callable[[], Any]) -> None:
    """A tool hands over to another agent, which greets; its options are made when it is."""

    @function_tool(name="hand_over", description="Hands over to somebody else.")
    async def tool() -> Any:
        world.recorder.note("acts", "hand_over()")
        given = {name: make() for name, make in options.items()}
        chat_ctx = world.current.chat_ctx.copy(exclude_instructions=True)
        bob = world.agent("Bob", on_entering=world.greet, chat_ctx=chat_ctx, **given)
        return bob, "They will help."

    await world.start(world.agent("Ann", tools=[tool]))
    await world.typed("Please call hand_over.", "Hello, Bob.")


def adds(*texts: str, role: Any = "user") -> Callable[[llm.ChatContext], None]:
    """A change that adds messages at the end."""

    def change(chat_ctx: llm.ChatContext) -> None:
        for text in texts:
            chat_ctx.add_message(role=role, content=text)

    return change


def trims(count: int) -> Callable[[llm.ChatContext], None]:
    """A change that takes out the first messages."""

    def change(chat_ctx: llm.ChatContext) -> None:
        messages = [item for item in chat_ctx.items if item.type == "message"]
        gone = {item.id for item in messages[:count]}
        chat_ctx.items[:] = [item for item in chat_ctx.items if item.id not in gone]

    return change


def a_conversation() -> llm.ChatContext:
    """A context with everything that an application puts into one."""
    chat_ctx = llm.ChatContext.empty()
    chat_ctx.add_message(role="system", content="The shop closes at six.")
    chat_ctx.add_message(role="user", content="When do you close?")
    about: dict[str, Any] = {"call_id": "call_0", "name": "look_up"}
    call = llm.FunctionCall(id="item_call", arguments="{}", **about)
    output = llm.FunctionCallOutput(id="item_output", output="six", is_error=False, **about)
    chat_ctx.items += [call, output]
    chat_ctx.add_message(role="assistant", content="We close at six.")
    chat_ctx.add_message(role="user", content="Thank you.")
    return chat_ctx


# -- the steps


@step()
async def start(world: World) -> None:
    """A session starts with nothing."""
    await world.start(world.agent("Ann"))


@step()
async def initial_context(world: World) -> None:
    """A session starts with a conversation, and goes on."""
    await world.start(world.agent("Ann", chat_ctx=a_conversation(), tools=[look_up(world)]))
    await world.typed("And on Sundays?")


@step()
async def greeting(world: World) -> None:
    """The first agent greets on entering."""
    await world.start(world.agent("Ann", on_entering=world.greet, tools=[look_up(world)]))
    await world.typed("Good morning.")


@step()
async def greeting_with_context(world: World) -> None:
    """The first agent greets on entering, and has a conversation already."""
    agent = world.agent("Ann", on_entering=world.greet, chat_ctx=a_conversation())
    await world.start(agent)


@step()
async def greeting_after_handoff(world: World) -> None:
    """The next agent greets; it may use the session of the one before."""
    await world.start(world.agent("Ann"))
    await world.typed("Good morning.")
    world.session.update_agent(world.agent("Bob", on_entering=world.greet))
    await world.settle("handed over")
    await world.typed("Good evening.")


@step()
async def greeting_after_handoff_to_a_new_session(world: World) -> None:
    """The next agent greets; it has a model of its own."""
    await world.start(world.agent("Ann"))
    await world.typed("Good morning.")
    chat_ctx = world.current.chat_ctx.copy(exclude_instructions=True)
    options = {"llm": world.model(), "chat_ctx": chat_ctx, "tools": [look_up(world)]}
    world.session.update_agent(world.agent("Bob", on_entering=world.greet, **options))
    await world.settle("handed over")
    await world.typed("Good evening.")


@step()
async def typed_turns(world: World) -> None:
    """The user types twice."""
    await world.start(world.agent("Ann"))
    await world.typed("First.", "Second.")


@step()
async def reply_with_instructions(world: World) -> None:
    """The application asks for a reply."""
    await world.start(world.agent("Ann"))
    await world.reply("ask for a reply", instructions="Say something kind.")


@step()
async def spoken_turns(world: World) -> None:
    """The user speaks twice."""
    await world.start(world.agent("Ann"))
    await world.spoken("One.", "Two.")


@step()
async def spoken_without_transcript(world: World) -> None:
    """The user speaks and is not understood, then types."""
    await world.start(world.agent("Ann"))
    await world.spoken(None)
    await world.typed("Did you hear me?")


@step()
async def tool_after_typed_turn(world: World) -> None:
    """The model calls a tool, having said that it will."""
    await world.start(world.agent("Ann", tools=[look_up(world)]))
    await world.typed("Please call look_up with rain.", "Thanks.")


@step()
async def tool_without_words(world: World) -> None:
    """The model calls a tool and says nothing."""
    await world.start(world.agent("Ann", tools=[look_up(world)]))
    await world.typed("Please quietly call look_up with snow.")


@step()
async def tool_after_spoken_turn(world: World) -> None:
    """The model calls a tool because of what it has heard."""
    await world.start(world.agent("Ann", tools=[look_up(world)]))
    await world.spoken("Please call look_up with rain.")


@step()
async def tool_in_a_greeting(world: World) -> None:
    """The first reply calls a tool."""

    async def enter() -> None:
        world.session.generate_reply(instructions="Please call look_up with wind.")

    await world.start(world.agent("Ann", on_entering=enter, tools=[look_up(world)]))


@step()
async def context_added(world: World) -> None:
    """The application adds messages between turns."""
    await world.start(world.agent("Ann"))
    await world.typed("First.")
    await world.update(adds("One.", "Two.", "Three."), "add three")
    await world.update(adds("Be brief.", role="system"), "add a system message")
    await world.typed("Second.")


@step()
async def context_removed(world: World) -> None:
    """The application takes messages out between turns."""
    await world.start(world.agent("Ann"))
    await world.typed("First.", "Second.")
    await world.update(trims(2), "trim two")
    await world.typed("Third.")
    await world.update(lambda chat_ctx: chat_ctx.items.clear(), "take out all")
    await world.typed("Fourth.")


@step()
async def context_replaced(world: World) -> None:
    """The application removes and adds in one update, in the middle, too."""
    await world.start(world.agent("Ann"))
    await world.typed("First.", "Second.")

    def change(chat_ctx: llm.ChatContext) -> None:
        trims(1)(chat_ctx)
        chat_ctx.items.insert(1, llm.ChatMessage(role="user", content=["In the middle."]))
        adds("At the end.")(chat_ctx)

    await world.update(change, "replace")
    await world.typed("Third.")


@step()
async def context_added_in_a_tool(world: World) -> None:
    """A tool adds a message while the reply that called it has text."""
    tool = update_from_tool(world, "note_it", adds("A note."))
    await world.start(world.agent("Ann", tools=[tool]))
    await world.typed("Please call note_it.", "Thanks.")


@step()
async def context_added_in_a_spoken_tool(world: World) -> None:
    """As before, but the user has spoken."""
    tool = update_from_tool(world, "note_it", adds("A note."))
    await world.start(world.agent("Ann", tools=[tool]))
    await world.spoken("Please call note_it.", "Thanks.")


@step()
async def context_removed_in_a_tool(world: World) -> None:
    """A tool takes a message out while the reply that called it has text."""
    tool = update_from_tool(world, "forget_it", trims(1))
    await world.start(world.agent("Ann", tools=[tool]))
    await world.typed("Remember me.", "Please call forget_it.", "Thanks.")


@step()
async def instructions_changed(world: World) -> None:
    """The application changes the instructions between turns."""
    await world.start(world.agent("Ann"))
    await world.typed("First.")
    await world.hurry()
    await world.typed("Second.")


@step()
async def tools_changed(world: World) -> None:
    """The application changes the tools between turns."""
    await world.start(world.agent("Ann"))
    await world.typed("First.")
    await world.attempt("update the tools", world.current.update_tools([look_up(world)]))
    await world.settle("tools updated")
    await world.typed("Please call look_up with rain.")


@step()
async def say(world: World) -> None:
    """The agent says a given text, where the model can or there is a voice; there is none."""
    await world.start(world.agent("Ann"))
    world.recorder.note("acts", "say")
    if (handle := world.asked("say", world.session.say, "The line is recorded.")) is not None:
        await world.attempt("say", done(handle))
    await world.settle("said")
    await world.typed("Good.")


@step()
async def say_with_sound(world: World) -> None:
    """The agent says a given text, of which there is a record, before a turn and after."""
    await world.start(world.agent("Ann"))
    for text in ("The line is recorded.", "Please hold."):
        world.recorder.note("acts", f"say: {text}")
        await world.attempt(text, done(world.session.say(text, audio=_sound())))
        await world.settle(f"said: {text}")
        await world.typed("Good.")


@step()
async def handoff_by_a_tool(world: World) -> None:
    """A tool hands over; the next agent greets."""
    await handed_over(world)


@step()
async def handoff_by_a_tool_to_a_new_session(world: World) -> None:
    """A tool hands over to an agent with a model of its own, which greets."""
    await handed_over(world, llm=world.model)


@step()
async def handoff_and_back(world: World) -> None:
    """Two agents without a word, there and back."""
    ann = world.agent("Ann")
    await world.start(ann)
    await world.typed("Hello, Ann.")
    world.session.update_agent(world.agent("Bob"))
    await world.settle("to Bob")
    await world.typed("Hello, Bob.")
    world.session.update_agent(ann)
    await world.settle("to Ann")
    await world.typed("Hello again.")


@step()
async def interruption(world: World) -> None:
    """The application interrupts a reply that plays."""
    await world.start(world.agent("Ann"))
    await world.typed("First.")
    await world.begun("Tell me more.")
    await world.attempt("interrupt", world.session.interrupt())
    await world.settle("interrupted")
    world.far_end.finish_reply()
    await world.settle("finished")
    await world.typed("Go on.")


@step()
async def interruption_by_speech(world: World) -> None:
    """The user speaks while a reply plays."""
    await world.start(world.agent("Ann"))
    await world.spoken("First.")
    world.far_end.hold_reply()
    world.recorder.note("acts", "say: Tell me more.")
    await world.far_end.user_says("Tell me more.")
    await world.settle("it speaks", 0.35)
    world.far_end.finish_reply()
    await world.spoken("Stop.")
    await world.typed("Go on.")


@step()
async def interruption_of_a_tool(world: World) -> None:
    """A reply is interrupted while its tool runs."""
    gate = asyncio.Event()

    @function_tool(name="look_up", description="Looks something up.")
    async def tool() -> str:
        await gate.wait()
        return "found"

    await world.start(world.agent("Ann", tools=[tool]))
    world.recorder.note("acts", "type")
    world.session.generate_reply(user_input="Please call look_up.")
    await world.settle("it looks up", 1)
    await world.attempt("interrupt", world.session.interrupt())
    await world.settle("interrupted")
    gate.set()
    await world.settle("found")
    await world.typed("Go on.")


@step()
async def dropped_connection(world: World) -> None:
    """The connection dies between turns."""
    await world.start(world.agent("Ann"))
    await world.typed("First.")
    await world.update(adds("Be brief.", role="system"), "add a system message")
    await world.far_end.drop()
    await world.settle("dropped", 10)
    await world.typed("Second.")
    await world.update(trims(1), "trim one")
    await world.typed("Third.")


@step()
async def dropped_in_a_reply(world: World) -> None:
    """The connection dies while a reply plays."""
    await world.start(world.agent("Ann"))
    await world.begun("Tell me more.")
    await world.far_end.drop()
    world.far_end.finish_reply()
    await world.settle("dropped", 10)
    await world.typed("Second.")


@step()
async def go_away(world: World) -> None:
    """The provider asks its client to connect anew."""
    await world.start(world.agent("Ann", tools=[look_up(world)]))
    await world.typed("First.")
    await world.far_end.go_away()
    await world.settle("gone", 10)
    await world.typed("Please call look_up with rain.")


@step()
async def long_session(world: World) -> None:
    """Half an hour passes, in which plugins connect anew of their own accord."""
    await world.start(world.agent("Ann", tools=[look_up(world)]))
    await world.typed("First.")
    await world.update(adds("Be brief.", role="system"), "add a system message")
    await world.settle("later", 1800)
    await world.typed("Please call look_up with rain.", "Thanks.")


@step(traits=("reuses_ids",))
async def id_used_again(world: World) -> None:
    """A restarted provider numbers its items anew; the application has trimmed the first ones."""
    await world.start(world.agent("Ann"))
    await world.typed("First.")
    await world.update(trims(2), "trim two")
    await world.hurry()
    await world.typed("Second.", "Third.")


@step(traits=("never_deletes",))
async def deletions_ignored(world: World) -> None:
    """The provider never deletes."""
    await world.start(world.agent("Ann"))
    await world.typed("First.", "Second.")
    await world.update(trims(2), "trim two")
    await world.settle("trimmed", 15)
    await world.typed("Third.")


@step(ready_after=17.0, traits=("ready_late",))
async def ready_late(world: World) -> None:
    """The session is ready only after 17 s; the agent greets at once."""
    await world.start(world.agent("Ann", on_entering=world.greet))
    await world.settle("ready", 30)
    await world.typed("First.")


@step(ready_after=17.0, traits=("ready_late",))
async def ready_late_with_a_turn(world: World) -> None:
    """The session is ready only after 17 s; the user types meanwhile."""
    await world.start(world.agent("Ann", chat_ctx=a_conversation()))
    await world.typed("Are you there?")
    await world.settle("ready", 30)
    await world.typed("And now?")


@step()
async def close_in_a_reply(world: World) -> None:
    """The session ends while a reply plays."""
    await world.start(world.agent("Ann"))
    await world.begun("Tell me more.")
    await world.close()


@step()
async def close_with_a_turn_waiting(world: World) -> None:
    """The session ends as soon as the user has typed."""
    await world.start(world.agent("Ann"))
    world.session.generate_reply(user_input="Are you there?")
    await world.close()


async def _sound() -> Any:
    from livekit import rtc

    for _ in range(3):
        yield rtc.AudioFrame(bytes(4800), 24000, 1, 2400)
