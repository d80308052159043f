"""The lock over the realtime context of an `AgentActivity`; ctxlock added this file.

A span is a block under the lock: it reads the context, adds to it, and pushes it, until the
provider has acknowledged the push. `AgentActivity` has a `RealtimeContextLock` in place of an
`asyncio.Lock`, and tells it what happens around the spans.

- **Turns.** Tasks get the lock in the order in which they asked. A holder may take it again. The
  first in line waits 15 s at most (`HOLD_LIMIT`), then goes on beside the holder, which is not
  disturbed. From then on it is the holder: the next task waits for it alone, and has 15 s of its
  own. When agents hand over a realtime session, they hand over its lock, too.
- **The model is to have the agent's context.** A replacement sets that context at once. When its
  turn comes, it pushes the context as it is then, so what arrived during the wait stays. What the
  provider adds is recorded at the end, but in front of outputs whose push has not begun. An item
  that was removed and is reported again is not recorded; the model has it until a replacement
  without it is pushed. An item that the agent has is never moved.
- **A task may be cancelled.** What it has recorded with the agent, but not begun to push, is pushed
  by another task. A typed turn whose push has begun is recorded, also if its task is cancelled or
  the provider fails.
- **A handoff takes time.** From its announcement on, what the user says or types, and what a tool
  returns, goes to the next agent, each item to the place of its time. An output goes only if that
  agent has its call. A reply goes only to the parent of an `AgentTask`.
- **A new connection** gets back what the provider's plugin does not repeat: system messages each
  time, and what was not confirmed one time.

Where no two spans overlap, nothing differs from livekit-agents as published, except what these
rules say of items that the provider adds, of items that were removed, of handoffs and of new
connections.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from livekit.agents import llm
from livekit.agents.log import logger

if TYPE_CHECKING:
    from livekit.agents.voice.agent import Agent
    from livekit.agents.voice.agent_activity import AgentActivity

HOLD_LIMIT = 15.0  # seconds; more than any provider's own limit (OpenAI 5, Azure 10)
REPLAY_LIMIT = 5.0  # seconds that a plugin has to repeat the conversation on a new connection
REPLAY_PAUSE = 1.0  # seconds without a repeated item, after which no more is waited for

Session: TypeAlias = "llm.RealtimeSession[Any]"
Task: TypeAlias = "asyncio.Task[Any]"
Site: TypeAlias = "tuple[str, int]"  # where an update is made: a method, and a line


class Turns:
    """A lock that tasks hold in the order in which they asked; a free one is taken without a wait.

    A task that has waited says so at DEBUG: its site, the site of the holder when it asked, and the
    seconds. A task that goes on beside a holder also says so in a WARNING. The limit becomes
    needless once every plugin ends an update that is not acknowledged.

    Invariant: a task waits only while another one holds the lock.
    """

    def __init__(self) -> None:
        self._holder: Task | None = None  # whose turn it is
        self._depth = 0  # how often the holder has taken it
        self._site: Site = ("", 0)  # where the holder took it
        self._waited = False  # whether the holder had to wait for it
        self._waiters: dict[asyncio.Future[None], tuple[Task, Site]] = {}  # in order
        self._limit: asyncio.TimerHandle | None = None  # of the first in line
        self._late: dict[Task, int] = {}  # no longer waited for; how often they took it
        self._closed = False  # no task waits any more

    def locked(self) -> bool:
        """Whether a task holds the lock."""
        return self._holder is not None

    async def acquire(self, task: Task, site: Site) -> None:
        """Takes the lock for the running task, in its turn.

        Raises:
            asyncio.CancelledError: The task was cancelled while it waited; it does not hold it.
        """
        if self._holder is task:
            self._depth += 1
        elif self._closed:
            return
        elif self._holder is None:
            self._hold(task, site, waited=False)
        else:
            await self._wait(task, site)

    def release(self, task: Task) -> None:
        """Releases the lock, unless another task went on meanwhile."""
        if self._holder is task:
            self._depth -= 1
            if self._depth == 0:
                self._pass_on()
        elif task in self._late:
            self._late[task] -= 1
            if self._late[task] == 0:
                del self._late[task]

    def holds(self, task: Task) -> bool:
        """Whether a task is within a span, also if it is no longer waited for."""
        return self._holder is task or task in self._late

    def close(self) -> None:
        """Lets every task go on, now and from now on."""
        self._closed = True
        while self._waiters:
            self._pass_on()

    def _hold(self, task: Task, site: Site, *, waited: bool) -> None:
        self._holder, self._depth, self._site, self._waited = task, 1, site, waited

    async def _wait(self, task: Task, site: Site) -> None:
        loop = asyncio.get_running_loop()
        asked, waited_for, turn = loop.time(), self._site, loop.create_future()
        self._waiters[turn] = task, site
        if self._limit is None:
            self._limit = loop.call_later(HOLD_LIMIT, self._give_up)
        try:
            await turn
        except asyncio.CancelledError:
            if self._holder is task:
                self._pass_on()
            else:
                self._withdraw(turn)
            raise
        logger.debug(
            "a realtime context update waited for another one",
            extra={
                "site": in_words(site),
                "waited_for": in_words(waited_for),
                "seconds": loop.time() - asked,
            },
        )

    def _withdraw(self, turn: asyncio.Future[None]) -> None:
        """Takes a task out of the line; the task that becomes the first has its whole time."""
        was_first = next(iter(self._waiters), None) is turn
        self._waiters.pop(turn, None)
        if was_first:
            self._start_limit()

    def _pass_on(self) -> None:
        """Gives the lock to the first in line, or frees it."""
        self._holder = None
        if not self._waiters:
            return
        while self._waiters and self._holder is None:
            turn = next(iter(self._waiters))
            task, site = self._waiters.pop(turn)
            if not turn.done():  # it is done if it was cancelled just now
                self._hold(task, site, waited=True)
                turn.set_result(None)
        self._start_limit()

    def _start_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
        if self._waiters:
            self._limit = asyncio.get_running_loop().call_later(HOLD_LIMIT, self._give_up)

    def _give_up(self) -> None:
        """The first in line has waited long enough, and goes on."""
        turn, (_, site) = next(iter(self._waiters.items()))
        if turn.done():  # cancelled at this very moment
            self._withdraw(turn)
            return
        logger.warning(
            "a realtime context update was not acknowledged in %g seconds; the next one goes on",
            HOLD_LIMIT,
            extra={"site": in_words(site), "waited_for": in_words(self._site)},
        )
        assert self._holder is not None
        self._late[self._holder] = self._late.get(self._holder, 0) + self._depth
        self._pass_on()


class RealtimeContextLock(Turns):
    """The lock of one realtime session, and what is known of its context.

    Its sets contain items by their ids. To look up an item that is reported or removed costs the
    same in a long conversation as in a short one. The sets grow by one id for each removal, and for
    each reply that is recorded only here.

    Args:
        activity: The owner of the session. The session exists by now, or will have its own lock.
    """

    def __init__(self, activity: AgentActivity) -> None:
        super().__init__()
        self._activity = activity  # the one that the session is attached to, or was last
        self._removed: set[str] = set()  # removed from the agent, which has none of them
        self._placed: dict[str, str | None] = {}  # replies recorded only here; what stood before
        # to be pushed by a task that has not had its turn, and has not ended; None: all
        self._pending: dict[Task, list[llm.ChatItem] | None] = {}
        self._typed: dict[Task, llm.ChatMessage] = {}  # being pushed
        self._unconfirmed: set[str] = set()  # asked for, and not reported since
        self._starting: Task | None = None  # pushes the context of an agent that has just started
        self._unfinished: set[str] = set()  # the model may lack them, and is to get their text
        self._coming: set[str] = set()  # these go to the next agent
        self._told = 0  # how many items the provider has reported, in all
        self._told_before = 0  # how many it had reported at the last new connection
        self._connections = 0  # how many new connections there were
        self._news: asyncio.Future[None] | None = None  # ends when the next item is reported
        self._restoring: Task | None = None  # gives a new connection what no plugin repeats
        self._between = False  # between two activities, so nobody else listens
        if activity._rt_session is not None:
            self._unconfirmed = {item.id for item in self._items}
            self._starting = this_task()
            activity._rt_session.on("session_reconnected", self._reconnected)

    # -- the lock

    async def __aenter__(self) -> None:
        task, frame = this_task(), sys._getframe(1)
        try:
            await self.acquire(task, (frame.f_code.co_name, frame.f_lineno))
        except asyncio.CancelledError:
            self._abandoned(task)
            raise
        if items := self._pending.pop(task, None):
            self._unconfirmed.update(item.id for item in items)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is GeneratorExit:  # the task is thrown away, because its loop has ended
            return
        task = this_task()
        self.release(task)
        if self.holds(task):  # a span within a span
            return
        if (typed := self._typed.pop(task, None)) is not None:
            self.said(typed)
            if issubclass(kind or object, (asyncio.CancelledError, llm.RealtimeError)):
                # of these two, the activity itself records failed ones since 1.6.0
                record(self._items, typed)
            if issubclass(kind or object, asyncio.CancelledError):
                self._activity._session._conversation_item_added(typed)
        if task is self._starting:
            self._started()

    def close(self) -> None:
        """Lets every task go on: there is no session left whose context could be lost.

        The agent that runs now gets what a tool of the last agent has returned since the handoff.
        """
        super().close()
        if self._restoring is not None:
            self._restoring.cancel()
        self._bring(self._activity._session.current_agent)
        if (session := self._activity._rt_session) is not None:
            session.off("session_reconnected", self._reconnected)

    # -- what an activity tells

    def replacing(self, activity: AgentActivity, chat_ctx: llm.ChatContext) -> None:
        """`chat_ctx` will now become the context of the activity's agent, and be pushed.

        It becomes needless once `update_chat_ctx` reads the agent's context again when it has the
        lock.
        """
        if activity is not self._activity:
            return
        if self._leaving:  # a tool reports later results by a replacement
            _, new = apart(self._items, chat_ctx.items)
            self._coming |= {i for i, item in new.items() if is_of_tool(item)}
        if activity._rt_session is None:
            return
        task = this_task()
        if self._holder is not task:  # else an update in progress brings back what is left out
            self._leave_out(self._items, chat_ctx.items)
            self._pending[task] = None

    def typing(self, chat_ctx: llm.ChatContext, message: llm.ChatMessage) -> None:
        """A typed turn was added to a snapshot, and will now be pushed.

        The activity records it, by its time, when the push has ended and before the next in line
        reads the context. A turn that was removed meanwhile is recorded again. It becomes needless
        once the activity does so whatever happens to the task that pushes the turn.
        """
        self._catch_up(chat_ctx, message)
        self._typed[this_task()] = message
        self._unconfirmed.add(message.id)

    def said(self, message: llm.ChatMessage) -> None:
        """A message is recorded: a reply, a transcript or a typed turn."""
        self._removed.discard(message.id)
        if self._leaving:
            self._coming.add(message.id)
        if message.id in self._unfinished and self._starting is None and not self._closed:
            self._unfinished.discard(message.id)
            self._spawn({message.id})

    def pending(self, *items: llm.ChatItem) -> None:
        """Items are recorded with the agent, and this task is to push them.

        It becomes needless once an output is pushed whatever happens to the task that recorded it.
        """
        task = this_task()
        if task not in self._pending:
            task.add_done_callback(self._ended)
        self._pending[task] = [*(self._pending.get(task) or ()), *items]
        if self._leaving:
            self._coming |= {item.id for item in items}

    def place(self, chat_ctx: llm.ChatContext, *items: llm.ChatItem) -> None:
        """Items were added to a snapshot; after a wait, they move to where the agent has them."""
        self._catch_up(chat_ctx)
        if self._waited:
            gone = self._removed & {item.id for item in items}
            chat_ctx.items[:] = [item for item in chat_ctx.items if item.id not in gone]
            place_as(self._items, chat_ctx.items, items)

    def _catch_up(self, chat_ctx: llm.ChatContext, *added: llm.ChatItem) -> None:
        """Makes a snapshot contain what the late updates will have done when they end.

        A client that makes one update at a time compares the snapshot with that state. Otherwise it
        would undo those updates.
        """
        if self._late:
            chat_ctx.items[:] = [item for item in chat_ctx.items if item.id not in self._removed]
            put_back(chat_ctx.items, [*self._items, *added], self._unconfirmed)

    def _give_up(self) -> None:
        """As above; a typed turn that is no longer waited for is recorded now.

        The session is told of the turn when its push ends. Releases without `_upsert_item` also
        record the turn only then.
        """
        super()._give_up()
        if hasattr(llm.ChatContext, "_upsert_item"):  # else the activity records it a second time
            for task in self._late & self._typed.keys():
                record(self._items, self._typed[task])

    def tell(self, ev: llm.RemoteItemAddedEvent) -> bool:
        """The provider reports that it has added an item.

        It also reports items that were pushed. An item without a predecessor is left to the
        activity. This becomes needless once `_on_remote_item_added` records every item that was not
        removed.

        Returns:
            Whether the item is dealt with. If not, and the agent lacks the item, then the agent's
            context ends where the item was added, and the activity appends it as it always did.
        """
        item, items = ev.item, self._items
        self._told += 1
        self._end_news()
        self._unconfirmed.discard(item.id)
        if item.id in self._removed:
            return True
        if self._leaving and is_users(item) and not has(items, item):  # else a repeated report
            self._coming.add(item.id)
        last = items[-1].id if items else None
        if ev.previous_item_id is None or ev.previous_item_id == last:
            if ev.previous_item_id in self._placed:
                self._note_placed(ev)
            if self._starting is not None and is_by_provider(item) and not has(items, item):
                self._unfinished.add(item.id)
            return False
        if is_by_provider(item) and not has(items, item):
            pending = {one.id for some in self._pending.values() for one in some or ()}
            items.insert(end_before(items, pending), item.model_copy())
            self._note_placed(ev)
            if self._starting is not None:
                self._unfinished.add(item.id)
        return True

    def _end_news(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _note_placed(self, ev: llm.RemoteItemAddedEvent) -> None:
        if ev.item.type == "message" and ev.item.role == "assistant":
            self._placed[ev.item.id] = ev.previous_item_id

    def unheard(self, message_id: str) -> None:
        """Nothing of a message was played; a cleanup will now push the agent's context.

        This takes out only what an activity would not have recorded by itself: the message, and
        those of the same reply that were reported behind it. Calls stay, and messages with a text.
        An item that was reported behind the agent's last item was recorded by the activity itself,
        and stays. It becomes needless once the cleanup takes them out itself; it must do so when
        `tell` is needless.
        """
        self._pending[task := this_task()] = None
        task.add_done_callback(self._ended)
        unheard = {message_id} & self._placed.keys()
        for item in self._items if unheard else ():
            if self._placed.get(item.id) in unheard:
                unheard.add(item.id)
        gone = {i.id for i in self._items if unheard and i.id in unheard and not has_content(i)}
        if gone:
            self._items[:] = [item for item in self._items if item.id not in gone]
            self._removed |= gone

    # -- handoffs

    def hand_over(self, activity: AgentActivity, session: Session | None) -> None:
        """Hands to another activity the items that go to it, and the session with its lock, if any.

        It becomes needless once the lock is one of the resources that a handoff reuses, and the
        next agent's context is completed when the last agent has drained.
        """
        self._bring(activity._agent)
        if session is not None:
            activity._rt_chat_ctx_lock = self  # type: ignore[assignment,unused-ignore]
            self._between = True
            session.on("remote_item_added", self._told_between)
            session.on("input_audio_transcription_completed", self._transcribed_between)

    def attach(self, activity: AgentActivity, session: Session) -> None:
        """The session that was handed over is attached, and will now get the new context."""
        if self._between:
            self._between = False
            session.off("remote_item_added", self._told_between)
            session.off("input_audio_transcription_completed", self._transcribed_between)
        self._bring(activity._agent)
        before, last = self._items, self._activity
        self._activity, self._starting = activity, this_task()
        if last is not activity:  # else it would keep this activity in memory
            last._rt_chat_ctx_lock = RealtimeContextLock(last)  # type: ignore[assignment,unused-ignore]
        self._leave_out(before, self._items)
        if not self._leaving:
            self._coming.clear()

    @property
    def _leaving(self) -> bool:
        """Whether a handoff from the attached agent has been announced."""
        return self._activity._session._agent is not self._activity._agent

    def _bring(self, agent: Agent) -> None:
        if self._coming and agent is not self._activity._agent:
            back = getattr(self._activity._agent, "_old_agent", None) is agent
            for item in coming_along(self._items, agent._chat_ctx.items, self._coming, back=back):
                record(agent._chat_ctx.items, item)

    def _told_between(self, ev: llm.RemoteItemAddedEvent) -> None:
        self._activity._on_remote_item_added(ev)

    def _transcribed_between(self, ev: llm.InputTranscriptionCompleted) -> None:
        self._activity._on_input_audio_transcription_completed(ev)

    # -- what nobody else pushes

    def _ended(self, task: Task) -> None:
        """A task that was to push something has ended."""
        if self._pending.get(task):
            self._abandoned(task)
        else:
            self._pending.pop(task, None)

    def _abandoned(self, task: Task) -> None:
        """A task will not push what it has recorded: another task asks for a turn to do so."""
        if task not in self._pending:
            return
        items = self._pending.pop(task)
        if task not in _tasks and not self._closed:  # else the other was cancelled with the loop
            other = self._spawn(None if items is None else {item.id for item in items})
            self._pending[other] = items

    def _started(self) -> None:
        """A session start has pushed what the agent had; more may have come meanwhile."""
        self._starting = None
        if self._closed or not self._unfinished:
            return
        own = {item.id for item in self._items if has_content(item)}
        if came := self._unfinished & own:  # the others follow when they have their text
            self._unfinished -= came
            self._spawn(came)

    def _spawn(self, wanted: Collection[str] | None) -> Task:
        """Starts a task that pushes what the agent has of `wanted`; None: all."""
        return keep_alive(asyncio.create_task(self._complete(wanted), name="realtime context"))

    async def _complete(self, wanted: Collection[str] | None) -> None:
        try:
            async with self:
                await self._push(wanted)
        except Exception as e:  # also if the provider's context cannot be read
            logger.warning("failed to complete the realtime context", extra={"error": str(e)})

    async def _push(self, wanted: Collection[str] | None) -> None:
        """Pushes what the agent has of `wanted` and the model lacks; None: all that it has."""
        session = self._activity._rt_session
        if session is None or self._closed:
            return
        if wanted is None:
            await session.update_chat_ctx(self._activity._agent._chat_ctx)
            return
        chat_ctx = session.chat_ctx.copy()
        if put_back(chat_ctx.items, self._items, wanted):
            self._catch_up(chat_ctx)
            await session.update_chat_ctx(chat_ctx)

    # -- new connections

    def _reconnected(self, *_: object) -> None:
        """There is a new connection; the plugin repeats the conversation, or has just done so.

        A provider that never reported an item gets nothing back. It becomes needless once every
        plugin repeats the agent's context, and not only what was acknowledged to the plugin.
        """
        self._connections += 1
        self._told_before = self._told
        lacking = self._holder is not None or unrepeated(self._items, self._unconfirmed)
        if self._told and lacking and self._restoring is None:
            restore = asyncio.create_task(self._restore(), name="realtime context restored")
            self._restoring = keep_alive(restore)

    async def _restore(self) -> None:
        """Pushes what is missing, once the plugin has repeated the conversation.

        It waits until nothing was reported for a second, 5 s at most. Every task that wants the
        lock waits as long. If nothing is repeated, it releases the lock and waits for a report.
        What was not confirmed is tried once, and again if the connection is lost meanwhile. A push
        that fails is not tried again.
        """
        restored = 0
        wanted: set[str] = set()
        while restored != self._connections:
            connection = self._connections
            self._unconfirmed |= wanted
            try:
                async with self:
                    if await self._replayed():
                        restored = connection
                        wanted = {i.id for i in unrepeated(self._items, self._unconfirmed)}
                        self._unconfirmed.clear()
                        await self._push(wanted)
            except Exception as e:  # this try failed; livekit-agents as published makes none
                restored = connection
                logger.debug("failed to restore the realtime context", extra={"error": str(e)})
            if restored != connection == self._connections:
                self._news = asyncio.get_running_loop().create_future()
                await self._news
        self._restoring = None

    async def _replayed(self) -> bool:
        """Waits until nothing more is reported; returns whether something was, or could not be."""
        if not any(is_repeated(item, self._unconfirmed) for item in self._items):
            return True
        session = self._activity._rt_session
        if session is None or (self._told == self._told_before and session.chat_ctx.items):
            return True  # an adapter has repeated it before it announced the connection
        loop = asyncio.get_running_loop()
        end, told = loop.time() + REPLAY_LIMIT, self._told_before
        while loop.time() < end:
            await asyncio.sleep(REPLAY_PAUSE)
            if self._told == told != self._told_before:
                break
            told = self._told
        return self._told != self._told_before

    # -- the agent's context

    @property
    def _items(self) -> list[llm.ChatItem]:
        return self._activity._agent._chat_ctx.items

    def _leave_out(self, had: Sequence[llm.ChatItem], kept: Sequence[llm.ChatItem]) -> None:
        """Notes what is not to come back: items of `had`, with content, that `kept` lacks.

        An item without content is pushed to the model again if it gets its text. An item of `kept`
        that `had` lacks is new, and will now be pushed.
        """
        gone, new = apart(had, kept)
        for item_id, item in gone.items():
            if item_id not in new:
                (self._removed if has_content(item) else self._unfinished).add(item_id)
        for item_id in new:
            self._removed.discard(item_id)
            if item_id not in gone:
                self._unconfirmed.add(item_id)


def apart(
    had: Sequence[llm.ChatItem], kept: Sequence[llm.ChatItem]
) -> tuple[dict[str, llm.ChatItem], dict[str, llm.ChatItem]]:
    """What is only in `had`, and what is only in `kept`, by their ids.

    Objects are compared, because a copy of a context has the same objects. What both have is not
    read. An item of which each has its own object is in both results.
    """
    first = beginning(had, kept)
    had, kept = had[first:], kept[first:]
    if had and kept:
        last = beginning(had[::-1], kept[::-1])
        had, kept = had[: len(had) - last], kept[: len(kept) - last]
        both = set(map(id, had)) & set(map(id, kept))
        had = [item for item in had if id(item) not in both]
        kept = [item for item in kept if id(item) not in both]
    return {item.id: item for item in had}, {item.id: item for item in kept}


def beginning(some: Sequence[llm.ChatItem], others: Sequence[llm.ChatItem]) -> int:
    """How many items both begin with; found by halving, because comparing slices is quick."""
    same, size = 0, min(len(some), len(others))
    middle = size  # first the whole: often one is the other with more behind it
    while same < size:
        # for a copy, in which no object is the same, the first condition saves the second
        if some[middle - 1] is others[middle - 1] and some[same:middle] == others[same:middle]:
            same = middle
        else:
            size = middle - 1
        middle = (same + size + 1) // 2
    return same


def is_by_provider(item: llm.ChatItem) -> bool:
    """Whether the provider has added an item itself: a placeholder, a call, or a video's frame.

    A message with words is recorded by its sender.
    """
    if item.type != "message":
        return item.type == "function_call"
    return all(isinstance(part, llm.ImageContent) for part in item.content if part)


def is_users(item: llm.ChatItem) -> bool:
    """Whether an item is the user's."""
    return item.type == "message" and item.role == "user"


def is_of_tool(item: llm.ChatItem) -> TypeGuard[llm.FunctionCall | llm.FunctionCallOutput]:
    """Whether an item is a call or its output."""
    return item.type in ("function_call", "function_call_output")


def has_content(item: llm.ChatItem) -> bool:
    """Whether an item says something: a placeholder is a message with no text or an empty one."""
    return item.type != "message" or any(item.content)


def has(items: Iterable[llm.ChatItem], item: llm.ChatItem) -> bool:
    """Whether one of `items` is `item`, by its id."""
    return any(own.id == item.id for own in items)


def end_before(items: Sequence[llm.ChatItem], pending: Collection[str]) -> int:
    """Where `items` end, not counting the last ones if they are `pending`."""
    end = len(items)
    while end and items[end - 1].id in pending:
        end -= 1
    return end


def place_as(
    own: Sequence[llm.ChatItem], target: list[llm.ChatItem], added: Sequence[llm.ChatItem]
) -> None:
    """Moves `added` in `target` if they are on the wrong side of an item that `own` has, too.

    Args:
        own: Items in the right order; if they lack `added`, nothing is moved.
        target: Has `added` next to each other, and may have had some of them before. Nothing else
            in it is moved. In the end it has each of them once.
        added: In the order in which `target` has them.
    """
    ids = {item.id for item in added}
    last = next((n for n, item in enumerate(reversed(own)) if item.id in ids), None)
    if last is None:
        return
    at = next(n for n, item in enumerate(reversed(target)) if item.id in ids)
    others = [item for item in target if item.id not in ids]
    first = len(others) - at
    behind_own = {item.id for item in own[len(own) - last :]}
    before_own = {item.id for item in own} - ids - behind_own
    late = [n for n, item in enumerate(others) if n >= first and item.id in before_own]
    early = [n for n, item in enumerate(others) if n < first and item.id in behind_own]
    place = late[-1] + 1 if late else early[0] if early else first
    target[:] = [*others[:place], *added, *others[place:]]


def record(items: list[llm.ChatItem], item: llm.ChatItem) -> None:
    """Puts `item` in the place of the item with its id; if there is none, by its time."""
    for number, own in enumerate(items):
        if own.id == item.id:
            items[number] = item
            return
    at = len(items)
    while at and items[at - 1].created_at > item.created_at:
        at -= 1
    items.insert(at, item)


def coming_along(
    old: Sequence[llm.ChatItem],
    new: Sequence[llm.ChatItem],
    noted: Collection[str],
    *,
    back: bool,
) -> list[llm.ChatItem]:
    """What the next agent's context gets from the last agent's, in the order of `old`.

    What `new` has with content stays as it is. A call goes along if it reports on a call that `new`
    has.

    Args:
        old: The items of the agent that hands the session over.
        new: The items of the agent that gets it.
        noted: What came since the handoff was announced.
        back: Whether the handoff ends a task of the next agent, which then also gets the replies.
    """
    calls = tuple(item.call_id for item in new if item.type == "function_call")
    # a later result of a tool has the id of the call with an ending, and its own call
    reports = tuple(f"{call_id}_" for call_id in calls)
    contents = {item.id: has_content(item) for item in new}
    found: list[llm.ChatItem] = []
    for item in old:
        if item.id not in noted or contents.get(item.id):
            continue
        if is_of_tool(item):
            wanted = item.call_id in calls or item.call_id.startswith(reports)
        else:
            wanted = item.type == "message" and (item.role == "user" or back)
        if wanted:
            found.append(item)
    return found


def is_repeated(item: llm.ChatItem, unconfirmed: Collection[str]) -> bool:
    """Whether a plugin repeats an item on a new connection; it repeats no system message."""
    if item.type == "message":
        known = item.role in ("user", "assistant") and any(item.content)
    else:
        known = is_of_tool(item)
    return known and item.id not in unconfirmed


def unrepeated(items: Iterable[llm.ChatItem], unconfirmed: Collection[str]) -> list[llm.ChatItem]:
    """What the model is to have and no plugin repeats on a new connection."""

    def is_said(item: llm.ChatItem) -> bool:
        return any(item.content) if item.type == "message" else is_of_tool(item)

    return [item for item in items if is_said(item) and not is_repeated(item, unconfirmed)]


def put_back(
    remote: list[llm.ChatItem], own: Sequence[llm.ChatItem], wanted: Collection[str]
) -> bool:
    """Adds to `remote` what it lacks of `wanted`, each behind the item that precedes it in `own`.

    What is at the end of `own` goes to the end of `remote`, behind whatever is there.

    Returns:
        Whether `remote` lacked any.
    """
    known = {item.id for item in remote}
    behind: dict[str | None, list[llm.ChatItem]] = {}
    before = None
    for item in own:
        if item.id in known:
            before = item.id
        elif item.id in wanted:
            behind.setdefault(before, []).append(item)
    last = behind.pop(before, [])
    known_ones = [*remote]
    remote[:] = behind.get(None, [])
    for item in known_ones:
        remote += [item, *behind.get(item.id, ())]
    remote += last
    return bool(behind or last)


_tasks: set[Task] = set()  # asyncio itself keeps no strong reference to a task


def in_words(site: Site) -> str:
    """A site as it appears in a log record."""
    method, line = site
    return f"{method}, line {line}"


def keep_alive(task: Task) -> Task:
    """Keeps a task, which nobody waits for, alive until it is done."""
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


def this_task() -> Task:
    """The task that is running."""
    task = asyncio.current_task()
    assert task is not None
    return task
