"""The lock of the scope `full` by itself, on a session that acknowledges what it is told to."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from added_module import added_module, ids, user

from livekit.agents import llm
from livekit.rtc import EventEmitter

full: Any = added_module()


class Session(EventEmitter[str]):
    """A realtime session that notes what is pushed, and acknowledges it at once."""

    def __init__(self) -> None:
        super().__init__()
        self.activity: Any = None
        self.chat_ctx = llm.ChatContext([])
        self.pushed: list[list[str]] = []

    @property
    def own(self) -> list[llm.ChatItem]:
        """The items of the agent."""
        items: list[llm.ChatItem] = self.activity._agent._chat_ctx.items
        return items

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        self.chat_ctx = chat_ctx.copy()
        self.pushed.append(ids(chat_ctx.items))


def lock_of(session: Session, *items: llm.ChatItem) -> Any:
    """The lock of an activity that has nothing but a session, and an agent with these items."""
    agent = SimpleNamespace(_chat_ctx=llm.ChatContext(list(items)))
    talk = SimpleNamespace(_agent=agent, current_agent=agent)
    session.activity = SimpleNamespace(_rt_session=session, _agent=agent, _session=talk)
    return full.RealtimeContextLock(session.activity)


def output(name: str) -> llm.FunctionCallOutput:
    return llm.FunctionCallOutput(id=name, call_id=name, output="found", is_error=False)


def tell(session: Session, lock: Any, item: llm.ChatItem, behind: str | None) -> bool:
    """As the activity does: what is not dealt with goes to the end, if the agent lacks it."""
    event = llm.RemoteItemAddedEvent(previous_item_id=behind, item=item)
    dealt_with: bool = lock.tell(event)
    if not dealt_with and item.id not in ids(session.own):
        session.own.append(item)
    return dealt_with


async def settle() -> None:
    """Lets all tasks but this one come to an end, and those that begin then."""
    await asyncio.sleep(0)
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)


async def test_what_two_calls_of_one_task_left_is_pushed() -> None:
    session = Session()
    lock = lock_of(session, user("a"), output("x"), output("y"))

    async def tool() -> None:
        lock.pending(output("x"))
        lock.pending(output("y"))

    await asyncio.create_task(tool())
    await settle()
    assert session.pushed == [["x", "y"]]


async def test_an_output_that_was_left_out_during_the_wait_is_taken_from_the_snapshot() -> None:
    session, a, x = Session(), user("a"), output("x")
    lock = lock_of(session, a, x)
    placed: list[list[str]] = []

    async def tool() -> None:
        async with lock:
            snapshot = llm.ChatContext([a, x])
            lock.place(snapshot, x)
            placed.append(ids(snapshot.items))

    async with lock:
        waiting = asyncio.create_task(tool())
        await asyncio.sleep(0)
        other = asyncio.create_task(_replace(session, lock, a))
        await asyncio.sleep(0)
    await asyncio.gather(waiting, other)
    assert placed == [["a"]]


async def _replace(session: Session, lock: Any, *items: llm.ChatItem) -> None:
    chat_ctx = llm.ChatContext(list(items))
    lock.replacing(session.activity, chat_ctx)
    session.activity._agent._chat_ctx = chat_ctx


async def test_a_session_that_is_closed_starts_nothing_more() -> None:
    session = Session()
    lock = lock_of(session, llm.ChatMessage(id="rule", role="system", content=["Be brief."]))
    tell(session, lock, user("a"), None)
    lock.close()
    session.emit("session_reconnected", object())
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_turn_that_came_during_the_start_is_pushed_once_when_it_has_its_text() -> None:
    session = Session()
    lock = lock_of(session, user("a"))  # by the task that starts the session
    tell(session, lock, user("turn", ""), "a")
    async with lock:
        pass
    said = user("turn")
    session.own[-1] = said
    for _ in range(2):
        lock.said(said)
    assert len(asyncio.all_tasks()) == 2
    await settle()
    assert session.pushed == [["turn"]]


async def test_replies_told_behind_one_that_was_recorded_here_are_unheard_with_it() -> None:
    session = Session()
    lock = lock_of(session, user("a"), user("b"))
    async with lock:
        pass
    first = llm.ChatMessage(id="first", role="assistant", content=[])
    second = llm.ChatMessage(id="second", role="assistant", content=[])
    assert tell(
        session, lock, first, "a"
    )  # not where the agent's context ends: the lock records it
    assert not tell(session, lock, second, "first")  # there it ends: the activity records it
    lock.unheard("first")
    assert ids(session.own) == ["a", "b"]
    await settle()


async def test_a_message_with_words_is_not_unfinished_because_it_came_during_the_start() -> None:
    session = Session()
    lock = lock_of(session, user("a"))
    said = user("said")
    assert not tell(session, lock, said, "a")
    async with lock:
        pass
    lock.said(said)
    await settle()
    assert session.pushed == []
