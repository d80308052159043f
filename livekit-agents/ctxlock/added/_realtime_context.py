"""Through here an `AgentActivity` reads and changes the context of its realtime session.

This file is not part of livekit-agents as published; ctxlock added it. For each realtime session it
keeps what the activities share that take turns with it, so that

- one update is made at a time, from a snapshot taken once the one before is acknowledged;
- the attached agent's context holds what the model's holds, in its order, but for what was removed:
  a replacement pushes it as it is when its turn comes, and what arrived meanwhile stays;
- an update that was asked for goes on if the task that asked for it is cancelled;
- an update that is not acknowledged within `HOLD_LIMIT` is given up. It may have happened; what it
  would have added goes along with the next one, unless it has arrived by then.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from livekit.agents import llm
from livekit.agents.log import logger
from livekit.agents.types import NOT_GIVEN, NotGivenOr
from livekit.agents.utils import is_given

if TYPE_CHECKING:
    from livekit.agents.voice.agent_activity import AgentActivity

__all__ = ["HOLD_LIMIT", "RealtimeContext"]

Session: TypeAlias = "llm.RealtimeSession[Any]"

HOLD_LIMIT = 15.0
"""Seconds; more than any provider's own limit (OpenAI 5, Azure 10)."""

_UPDATE = getattr(llm.RealtimeSession, "_update_session", None)
"""It logs a push of the context that was not acknowledged, and then nobody knows."""


class _GivenUp(llm.RealtimeError):
    """An update was not made, or not acknowledged, and then it may have happened all the same."""


class _Shared:
    """What belongs to one realtime session.

    Attributes:
        owner: The activity that updated it last: the one it is attached to, if to any.
        known: Ids of the items that were recorded, pushed or left out. One that the owner's agent
            lacks was taken from it, and is not to come back.
        unclaimed: Ids of the items that the provider added while no activity was attached.
        owed: Ids of the items whose push has not been acknowledged.
        tasks: The updates that wait or are under way.
        closing: Done when the session is being closed.
    """

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.owner: weakref.ref[RealtimeContext] | None = None
        self.known: set[str] = set()
        self.unclaimed: set[str] = set()
        self.owed: set[str] = set()
        self.tasks: set[asyncio.Task[bool]] = set()
        self.closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def attached(self) -> RealtimeContext | None:
        """The owner, unless it has been detached."""
        owner = None if self.owner is None else self.owner()
        return None if owner is None or owner._activity._rt_session is None else owner

    def added(self, ev: llm.RemoteItemAddedEvent) -> None:
        """Notes an item that no activity is told of."""
        if self.attached is None:
            self.unclaimed.add(ev.item.id)

    def reconnected(self, _: object) -> None:
        """Has pushed again what a provider does not replay by itself.

        That is what it had not acknowledged, and messages of the system.
        """
        if (owner := self.attached) is None:
            return
        roles = {item.role for item in owner._items if item.type == "message"}
        if self.owed or not roles <= {"user", "assistant"}:
            owner._begin("reconnection", owner._push_own)


_sessions: weakref.WeakKeyDictionary[Session, _Shared] = weakref.WeakKeyDictionary()


def _shared(session: Session) -> _Shared:
    shared = _sessions.get(session)
    if shared is None:
        _sessions[session] = shared = _Shared()
        session.on("remote_item_added", shared.added)
        session.on("session_reconnected", shared.reconnected)
    return shared


class RealtimeContext:
    """One activity's way to the context of its realtime session.

    An update raises `llm.RealtimeError` if its push does, if it was given up, or if the session was
    closed before its end.
    """

    def __init__(self, activity: AgentActivity) -> None:
        self._activity = activity

    async def append(self, added: llm.ChatContext, site: str, *, by_time: bool = False) -> None:
        """Adds items to the model's context.

        Args:
            added: The items. Those that the agent's context lacks are recorded there as they are
                sent; those that a replacement takes from there before that are not sent.
            site: What the update is for.
            by_time: Whether they are placed by when they were created, rather than at the end.
        """
        recorded = self._ids & _ids_of(added.items)
        fresh = [item for item in added.items if item.id not in recorded]

        async def push(session: Session) -> None:
            items = [item for item in added.items if item.id not in recorded - self._ids]
            target = self._current(session, items)
            there = _ids_of(target.items)
            for item in items:
                if item.id not in there:
                    target.insert(item) if by_time else target.items.append(item)
            self._items.extend(fresh)
            try:
                await self._push(session, target)
            except llm.RealtimeError:
                raise
            except Exception:
                lost = _ids_of(fresh) - _ids_of(session.chat_ctx.items)
                self._items[:] = [item for item in self._items if item.id not in lost]
                raise

        task = self._begin(site, push)
        try:
            there = await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(lambda _: self._tell(fresh))
            raise
        if not there:
            raise llm.RealtimeError(f"a handoff took the realtime session before the {site}")

    async def replace(self, site: str) -> None:
        """Makes the model's context what the agent's is when the update's turn comes.

        If a handoff has taken the session by then, it is the new agent's and nothing is pushed.
        """
        await asyncio.shield(self._begin(site, self._push_own))

    async def start(
        self,
        push: Callable[..., Awaitable[None]],
        chat_ctx: NotGivenOr[llm.ChatContext] = NOT_GIVEN,
        **others: Any,
    ) -> None:
        """Gives a session that was just attached what its new agent has.

        Args:
            push: The session's own method.
            chat_ctx: Whether the context is pushed, if given: the agent's, as it is by then. What
                the provider added while no activity was attached becomes part of it.
            others: What `push` takes besides.
        """

        async def push_all(session: Session) -> None:
            if not is_given(chat_ctx):
                await push(**others)
                return
            shared, remote = _shared(session), session.chat_ctx.items
            for item in remote:
                if item.id in shared.unclaimed - shared.known:
                    _place(self._items, item.model_copy(), remote)
            shared.unclaimed.clear()
            own = self._activity._agent._chat_ctx
            if getattr(push, "__func__", push) is not _UPDATE:
                await self._push(session, own, lambda target: push(chat_ctx=target, **others))
                return
            await push(**others)
            try:
                await self._push(session, own)
            except llm.RealtimeError:
                logger.exception("failed to push the context of the new agent")

        with suppress(_GivenUp):  # the agent starts all the same, as with a provider that refuses
            await asyncio.shield(self._begin("session start", push_all))

    def replacing(self, _: llm.ChatContext) -> None:
        """Notes what the agent and the model have, before the agent's context becomes another."""
        if (session := self._activity._rt_session) is not None:
            _shared(session).known |= self._ids | _ids_of(session.chat_ctx.items)

    def forget(self, item_id: str) -> None:
        """Removes a message that was never played from the agent's context."""
        self._items[:] = [item for item in self._items if item.id != item_id]
        _shared(self._session).known.add(item_id)

    def keep(self, item: llm.ChatItem) -> None:
        """Records an item with the agent, or what became of it, unless it was removed."""
        session = self._activity._rt_session
        for n, other in enumerate(self._items):
            if other.id == item.id:
                self._items[n] = item
                return
        if session is None or item.id not in _shared(session).known:
            self._activity._agent._chat_ctx.insert(item)

    def record(self, ev: llm.RemoteItemAddedEvent) -> None:
        """Has the agent's context hold, in its place, an item that the model's now holds.

        One that was taken from the agent's, and is late or replayed, is taken from the model's too.
        """
        if (session := self._activity._rt_session) is None:
            return
        shared = _shared(session)
        item = next((item for item in self._items if item.id == ev.item.id), None)
        if item is None and ev.item.id in shared.known:
            self._begin("removal", self._push_own)
            return
        shared.known.add(ev.item.id)
        shared.owed.discard(ev.item.id)
        _place(self._items, item or ev.item.model_copy(), session.chat_ctx.items)

    async def aclose(self) -> None:
        """Ends every update and closes the session."""
        session, shared = self._session, _shared(self._session)
        if not shared.closing.done():
            shared.closing.set_result(None)
        await session.aclose()
        if shared.tasks:
            await asyncio.wait(shared.tasks)

    @property
    def lock(self) -> asyncio.Lock | None:
        """Held while the session's context is read, pushed and acknowledged."""
        session = self._activity._rt_session
        return None if session is None else _shared(session).lock

    @property
    def _session(self) -> Session:
        session = self._activity._rt_session
        if session is None:
            raise llm.RealtimeError("there is no realtime session")
        return session

    @property
    def _items(self) -> list[llm.ChatItem]:
        return self._activity._agent._chat_ctx.items

    @property
    def _ids(self) -> set[str]:
        return _ids_of(self._items)

    def _begin(self, site: str, push: Callable[[Session], Awaitable[None]]) -> asyncio.Task[bool]:
        session = self._session
        shared = _shared(session)
        shared.owner = weakref.ref(self)
        task = asyncio.create_task(self._hold(session, site, push), name=f"realtime {site}")
        shared.tasks.add(task)
        task.add_done_callback(shared.tasks.discard)
        task.add_done_callback(_retrieve)
        return task

    async def _hold(
        self, session: Session, site: str, push: Callable[[Session], Awaitable[None]]
    ) -> bool:
        """Pushes when its turn has come; returns whether the activity still had the session."""
        shared = _shared(session)
        async with shared.lock:
            if self._activity._rt_session is not session:
                return False
            if shared.closing.done():
                raise _GivenUp(f"the realtime session was closed before the {site}")
            pushing = asyncio.ensure_future(push(session))
            pushing.add_done_callback(_retrieve)
            try:
                either = {pushing, shared.closing}
                await asyncio.wait(either, timeout=HOLD_LIMIT, return_when=asyncio.FIRST_COMPLETED)
                if pushing.done():
                    pushing.result()
                    return True
                if not shared.closing.done():
                    logger.warning(
                        "gave up the realtime context update of the %s, "
                        "which was not acknowledged in %g seconds",
                        site,
                        HOLD_LIMIT,
                    )
                raise _GivenUp(f"the update of the {site} was not acknowledged")
            finally:
                pushing.cancel()  # and not waited for, as a provider may ignore that

    async def _push_own(self, session: Session) -> None:
        await self._push(session, self._activity._agent._chat_ctx)

    async def _push(
        self,
        session: Session,
        target: llm.ChatContext,
        push: Callable[[llm.ChatContext], Awaitable[None]] | None = None,
    ) -> None:
        shared = _shared(session)
        new = _ids_of(target.items) - _ids_of(session.chat_ctx.items)
        shared.known |= new
        shared.owed |= new
        try:
            await (push or session.update_chat_ctx)(target)
        except (llm.RealtimeError, asyncio.CancelledError):
            raise
        except Exception:
            shared.owed -= new  # it would fail again
            raise
        shared.owed -= new

    def _current(self, session: Session, added: Sequence[llm.ChatItem]) -> llm.ChatContext:
        """The model's context as it should be by now, ready for `added` to join it.

        That is without what could not be deleted from it, and with what is owed to it, the calls
        among that which were deleted before the outputs in `added` had the agent record them again.
        """
        shared, current = _shared(session), session.chat_ctx.copy()
        gone, there = shared.known - self._ids, _ids_of(current.items)
        answered = {item.call_id for item in added if item.type == "function_call_output"}
        current.items[:] = [item for item in current.items if item.id not in gone]
        for item in self._items:
            again = item.type == "function_call" and item.call_id in answered
            if item.id not in there and item.id in (shared.known if again else shared.owed):
                _place(current.items, item, self._items)
        return current

    def _tell(self, items: Sequence[llm.ChatItem]) -> None:
        """Records in the session's history what was sent for a task that was cancelled."""
        for item in items:
            if item.type == "message" and item.id in self._ids:
                self._activity._session._conversation_item_added(item)


def _ids_of(items: Iterable[llm.ChatItem]) -> set[str]:
    return {item.id for item in items}


def _place(items: list[llm.ChatItem], item: llm.ChatItem, order: Sequence[llm.ChatItem]) -> None:
    """Puts `item` where `order` has it, behind what `order` does not have."""
    rank = {other.id: n for n, other in enumerate(order)}
    own = rank.get(item.id, len(rank))
    others = [other for other in items if other.id != item.id]
    before = [n for n, other in enumerate(others) if rank.get(other.id, own) < own]
    behind = [n for n, other in enumerate(others) if rank.get(other.id, own) > own]
    first = before[-1] + 1 if before else 0
    last = next((n for n in behind if n >= first), first if behind else len(others))
    now = next((n for n, other in enumerate(items) if other.id == item.id), None)
    if now is None or not first <= now <= last:
        items[:] = [*others[:last], item, *others[last:]]


def _retrieve(task: asyncio.Future[Any]) -> None:
    """Whoever asked for it may be gone, and then nobody else needs to hear of its failure."""
    if not task.cancelled():
        task.exception()
