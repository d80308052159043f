"""What applications and providers do, one thing at a time; nothing overlaps.

Each action has a generator of random numbers of its own, seeded by the script and its place in it,
so that a script can be cut short without changing what comes before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from lab.foreign.provider import Answer, Part, RecordingModel
from lab.foreign.steps import lookup
from lab.foreign.talk import LabAgent, Talk
from livekit.agents import AgentTask, StopResponse, ToolError, llm
from livekit.agents.llm import function_tool

__all__ = ["ACTIONS", "WEIGHTS", "Play"]

Items = list[llm.ChatItem]
Action = Callable[["Play", Random], Awaitable[object]]

ACTIONS: dict[str, Action] = {}
"""Every action, by its name."""

WEIGHTS: dict[str, int] = {}
"""How often each of them is chosen, relative to the others."""


def action(weight: int = 1) -> Callable[[Action], Action]:
    """Registers an action."""

    def register(function: Action) -> Action:
        name = function.__name__.replace("_", " ")
        ACTIONS[name], WEIGHTS[name] = function, weight
        return function

    return register


@function_tool
async def slow_lookup() -> str:
    """Takes its time."""
    await asyncio.sleep(0.3)
    return "43"


@function_tool
async def failing() -> str:
    """Tells the model that it failed."""
    raise ToolError("the shelf is empty")


@function_tool
async def broken() -> str:
    """Has a bug."""
    raise ValueError("a bug")


@function_tool
async def stopping() -> None:
    """Wants no reply."""
    raise StopResponse


TOOLS = [lookup, slow_lookup, failing, broken, stopping]
_NAMES = ["lookup", "slow_lookup", "failing", "broken", "stopping"]


class Errand(AgentTask[str]):
    """A task of its own that ends when the model calls its tool."""

    def __init__(self, name: str, chat_ctx: llm.ChatContext) -> None:
        super().__init__(instructions="Run an errand.", chat_ctx=chat_ctx)
        self._id = name

    async def on_enter(self) -> None:
        """Has the model begin."""
        self.session.generate_reply(instructions="Begin the errand.")

    @function_tool
    async def finish(self) -> None:
        """Ends it."""
        self.complete("the errand is done")


class Play:
    """A talk that a script goes on with.

    Attributes:
        talk: The talk.
        count: How many names were given.
    """

    def __init__(self, talk: Talk, make_model: Callable[[str], RecordingModel]) -> None:
        self.talk = talk
        self.count = 0
        self._make_model = make_model

    def name(self, kind: str) -> str:
        """A name that nothing else has."""
        self.count += 1
        return f"{kind}-{self.count}"

    def agent(self, **options: Any) -> LabAgent:
        """An agent with the usual tools, and some that need to know the talk."""
        return LabAgent(self.name("agent"), tools=[*TOOLS, *self._own_tools()], **options)

    def another_model(self) -> RecordingModel:
        """A model of its own, which has sessions of its own."""
        model = self._make_model(self.name("model"))
        self.talk.models.append(model)
        return model

    def _own_tools(self) -> list[Any]:
        @function_tool
        async def remember() -> str:
            """Adds to the context."""
            await self.talk.edit(lambda items: items.append(self.message("user", "remembered")))
            return "remembered"

        @function_tool
        async def instruct() -> str:
            """Changes the instructions."""
            await self.talk.agent.update_instructions("Be kind.")
            return "instructed"

        @function_tool
        async def errand() -> str:
            """Has a task do it."""
            chat_ctx = self.talk.agent.chat_ctx.copy(exclude_function_call=True)
            task = Errand(self.name("task"), chat_ctx)
            self.talk.agents.append(task)
            return await task

        @function_tool
        async def transfer() -> Any:
            """Hands over to another agent."""
            agent = self.agent(chat_ctx=self.talk.agent.chat_ctx.copy())
            self.talk.agents.append(agent)
            return agent, "transferred"

        return [remember, instruct, errand, transfer]

    def message(self, role: Any, text: str) -> llm.ChatMessage:
        """A message whose text tells it from all others."""
        self.count += 1
        return llm.ChatMessage(
            id=f"app-{self.count}", role=role, content=[f"{text} {self.count}"] if text else []
        )


def _spoken(random: Random) -> Part:
    return Part([f"Reply {random.randrange(100)}, ", "and ", "more."][: random.randrange(1, 4)])


def _perhaps_spoken(random: Random) -> list[Part]:
    return [_spoken(random)] if random.random() < 0.5 else []


# -- turns


@action(4)
async def typed(play: Play, random: Random) -> None:
    """The user types, and the model replies."""
    parts = [_spoken(random) for _ in range(random.choice([1, 1, 1, 2]))]
    await play.talk.typed(f"Typed {random.randrange(100)}.", Answer(parts))


@action()
async def typed_without_a_reply(play: Play, random: Random) -> None:
    """The model says nothing, or refuses to reply."""
    refused = llm.RealtimeError("no reply")
    answer = random.choice([Answer(), Answer([Part([""])]), Answer(fails=refused)])
    await play.talk.typed("Say nothing.", answer)


@action(4)
async def tool(play: Play, random: Random) -> None:
    """The model calls a tool or two, with or without a word before."""
    calls = [Part(call=random.choice(_NAMES)) for _ in range(random.choice([1, 1, 2]))]
    before = _perhaps_spoken(random)
    await play.talk.typed("Use a tool.", Answer([*before, *calls]))


@action(2)
async def tool_that_changes(play: Play, random: Random) -> None:
    """A tool changes the context or the instructions, while its reply has a text or has none."""
    before = _perhaps_spoken(random)
    call = Part(call=random.choice(["remember", "instruct"]))
    await play.talk.typed("Change something.", Answer([*before, call]))


@action(2)
async def agent_task(play: Play, random: Random) -> None:
    """A tool has an AgentTask do its work."""
    finish = Answer([_spoken(random), Part(call="finish")])
    errand = Answer([Part(call="errand")])
    if play.talk.model_now is play.talk.model:
        return await play.talk.typed("Run an errand.", errand, finish)
    play.talk.model.answers.append(finish)  # the task has no model of its own
    await play.talk.typed("Run an errand.", errand)


@action(2)
async def interruption(play: Play, random: Random) -> None:
    """A reply is interrupted before its first word, after some, or after its tool."""
    kinds = {
        "unheard": ([Part()], 0.15),
        "cut short": ([Part(["One, ", "two, ", "three, ", "four."])], 0.25),
        "second unheard": ([Part(["One."]), Part()], 0.35),
        "tool": ([Part(call="lookup"), Part(["So "])], 0.35),
        "slow tool": ([Part(call="slow_lookup"), Part(["So "])], 0.15),
    }
    parts, after = kinds[random.choice(list(kinds))]
    await play.talk.typed("Go on.", Answer(parts, endless=True), interrupted_after=after)


@action(3)
async def spoken(play: Play, random: Random) -> None:
    """The user speaks; what was said is understood before the reply, after it, or never."""
    text = None if random.random() < 0.25 else f"Spoken {random.randrange(100)}."
    late, reply = random.random() < 0.4, random.random() < 0.8
    play.talk.model_now.answers.append(Answer([_spoken(random)]))
    play.talk.realtime.hear(text, late=late, reply=reply)


@action()
async def spoken_over(play: Play, random: Random) -> None:
    """The user speaks while a reply goes on."""
    talk = play.talk
    endless = Answer([Part(["La ", "la ", "la "])], endless=True)
    talk.model_now.answers.extend([endless, Answer([_spoken(random)])])
    talk.model_now.replies.clear()
    talk.session.generate_reply(user_input="Sing.")
    await talk.reply_begins(talk.model_now)
    await asyncio.sleep(random.choice([0.05, 0.15, 0.25]))
    talk.realtime.hear("Stop.", late=random.random() < 0.5)


@action(2)
async def say(play: Play, random: Random) -> None:
    """The application has the agent say something."""
    handle = play.talk.say(f"Said {random.randrange(100)}.")
    if random.random() < 0.3:
        await asyncio.sleep(0.05)
        handle.interrupt()
    await handle


# -- changes


@action(2)
async def instructions(play: Play, random: Random) -> None:
    """The application changes the instructions."""
    await play.talk.agent.update_instructions(f"Be number {random.randrange(100)}.")


@action(2)
async def tools(play: Play, random: Random) -> None:
    """The application changes the tools."""
    own = [tool for tool in play.talk.agent.tools if tool not in TOOLS]
    await play.talk.agent.update_tools([*random.sample(TOOLS, random.randrange(6)), *own])


@action(4)
async def context_added(play: Play, random: Random) -> None:
    """The application adds items to the context, at the end, in the middle or in front."""
    role = random.choice(["user", "user", "assistant", "system", "developer"])
    added = [play.message(role, "Added") for _ in range(random.choice([1, 1, 2, 3]))]

    def change(items: Items) -> None:
        at = random.choice([len(items), len(items), random.randrange(len(items) + 1), 0])
        items[at:at] = added

    await play.talk.edit(change)


@action(2)
async def odd_item_added(play: Play, random: Random) -> None:
    """An image, an empty message, an item twice, a call with its output, an output alone."""

    def change(items: Items) -> None:
        kind = random.choice(["image", "empty", "twice", "call", "output"])
        message = play.message("user", "Odd" if kind != "empty" else "")
        if kind == "image":
            message.content.append(llm.ImageContent(image="data:image/png;base64,AAAA"))
        if kind == "twice" and items:
            items.append(random.choice(items))
        elif kind in ("call", "output"):
            own, of = message.id, dict[str, Any](call_id=message.id)
            call = llm.FunctionCall(id=f"{own}-call", name="lookup", arguments="{}", **of)
            output = llm.FunctionCallOutput(id=f"{own}-output", output="44", is_error=False, **of)
            items.extend([call, output] if kind == "call" else [output])
        else:
            items.append(message)

    await play.talk.edit(change)


@action(3)
async def context_removed(play: Play, random: Random) -> None:
    """The application removes some items, or cuts the context down to the last ones."""

    def change(items: Items) -> None:
        if random.random() < 0.3:
            del items[: -random.randrange(1, 5)]
        for _ in range(random.choice([1, 1, 2])):
            if items:
                del items[random.randrange(len(items))]

    await play.talk.edit(change)


@action(2)
async def context_reordered(play: Play, random: Random) -> None:
    """The application moves an item, or shuffles all."""

    def change(items: Items) -> None:
        if random.random() < 0.3:
            random.shuffle(items)
        elif items:
            items.insert(random.randrange(len(items)), items.pop(random.randrange(len(items))))

    await play.talk.edit(change)


@action(2)
async def context_replaced(play: Play, random: Random) -> None:
    """The application gives an item another text, or replaces all by a summary."""

    def change(items: Items) -> None:
        messages = [n for n, item in enumerate(items) if item.type == "message"]
        if not messages or random.random() < 0.3:
            items[:] = [play.message("assistant", "Summary")]
            return
        at = random.choice(messages)
        items[at] = items[at].model_copy(update={"content": [f"Other {random.randrange(100)}."]})

    await play.talk.edit(change)


# -- agents and connections


@action(3)
async def handoff(play: Play, random: Random) -> None:
    """Another agent takes over, with all of the context, a part or nothing of it."""
    before = play.talk.agent.chat_ctx
    without = before.copy(exclude_function_call=True, exclude_handoff=True)
    last, none = before.copy().truncate(max_items=3), llm.ChatContext([])
    chat_ctx = random.choice([before.copy(), before.copy(), without, last, none])
    await play.talk.hand_off(play.agent(chat_ctx=chat_ctx, greets=random.random() < 0.5))


@action(2)
async def handoff_to_a_new_session(play: Play, random: Random) -> None:
    """The next agent has a model of its own."""
    chat_ctx = play.talk.agent.chat_ctx.copy()
    agent = play.agent(chat_ctx=chat_ctx, greets=random.random() < 0.5, llm=play.another_model())
    await play.talk.hand_off(agent)


@action(2)
async def handoff_by_a_tool(play: Play, random: Random) -> None:
    """A tool returns the next agent."""
    answer = Answer([*_perhaps_spoken(random), Part(call="transfer")])
    await play.talk.typed("Transfer me.", answer)


@action(2)
async def reconnection(play: Play, random: Random) -> None:
    """The connection is lost, with or without a reply that goes on."""
    if random.random() < 0.3:
        play.talk.realtime.respond(Answer([Part(["Lost ", "words "])], endless=True))
        await asyncio.sleep(0.15)
    play.talk.realtime.reconnect()
