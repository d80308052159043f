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
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
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


class _Shared:
    """What belongs to one realtime session.

    Attributes:
        owner: The activity that updated it last, which it is attached to, if to any.
        seen: Ids of the items that the provider told an attached activity of.
        ours: Ids of the items that were pushed, rather than added by the provider.
        owed: Ids of the items whose push failed, or was given up.
        removed: Ids of the items that a replacement left out, or that were never played.
        tasks: The updates that wait or are under way.
        closing: Done when the session is being closed.
    """

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.owner: weakref.ref[RealtimeContext] | None = None
        self.seen: set[str] = set()
        self.ours: set[str] = set()
        self.owed: set[str] = set()
        self.removed: set[str] = set()
        self.tasks: set[asyncio.Task[bool]] = set()
        self.closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def begin(
        self, site: str, push: Callable[[], Awaitable[None]], attached: Callable[[], bool]
    ) -> asyncio.Task[bool]:
        """Pushes when it is this update's turn; the task tells whether the session was still there.

        Args:
            site: What the update is for.
            push: Takes the snapshot and pushes.
            attached: Whether the activity still has the session.
        """
        task = asyncio.create_task(self._hold(site, push, attached), name=f"realtime {site}")
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(_retrieve)
        return task

    async def _hold(
        self, site: str, push: Callable[[], Awaitable[None]], attached: Callable[[], bool]
    ) -> bool:
        async with self.lock:
            if not attached():
                return False
            if self.closing.done():
                raise llm.RealtimeError(f"the realtime session was closed before the {site}")
            pushing = asyncio.ensure_future(push())
            pushing.add_done_callback(_retrieve)
            try:
                either = {pushing, self.closing}
                await asyncio.wait(either, timeout=HOLD_LIMIT, return_when=asyncio.FIRST_COMPLETED)
                if pushing.done():
                    pushing.result()
                    return True
                if not self.closing.done():
                    logger.warning(
                        "gave up the realtime context update of the %s, "
                        "which was not acknowledged in %g seconds",
                        site,
                        HOLD_LIMIT,
                    )
                raise llm.RealtimeError(f"the update of the {site} was not acknowledged")
            finally:
                pushing.cancel()  # and not waited for, as a provider may ignore that

    def reconnected(self, _: object) -> None:
        """Pushes the owner's context: a provider replays only what it had acknowledged."""
        if self.owner is not None and (owner := self.owner()) is not None:
            owner._begin("reconnection", owner._push_own)


_sessions: weakref.WeakKeyDictionary[Session, _Shared] = weakref.WeakKeyDictionary()


def _shared(session: Session) -> _Shared:
    shared = _sessions.get(session)
    if shared is None:
        _sessions[session] = shared = _Shared()
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
            target = self._without_removed(session)
            there = _ids_of(target.items)
            for item in self._owed(session):
                _place(target.items, item, self._items)
            for item in self._with_calls(session, items, there):
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
                if item.id not in shared.seen | shared.ours | shared.removed | self._ids:
                    _place(self._items, item.model_copy(), remote)
            await self._push(
                session,
                self._activity._agent._chat_ctx,
                lambda target: push(chat_ctx=target, **others),
            )

        await asyncio.shield(self._begin("session start", push_all))

    def replacing(self, chat_ctx: llm.ChatContext) -> None:
        """Notes what the context leaves out that the agent's is about to become."""
        if (session := self._activity._rt_session) is not None:
            shared = _shared(session)
            shared.removed |= self._ids | _ids_of(session.chat_ctx.items)
            shared.removed -= _ids_of(chat_ctx.items)

    def forget(self, item_id: str) -> None:
        """Removes a message that was never played from the agent's context."""
        self._items[:] = [item for item in self._items if item.id != item_id]
        _shared(self._session).removed.add(item_id)

    def keep(self, item: llm.ChatItem) -> None:
        """Records an item with the agent, or what became of it, unless it was removed."""
        session = self._activity._rt_session
        for n, other in enumerate(self._items):
            if other.id == item.id:
                self._items[n] = item
                return
        if session is None or item.id not in _shared(session).removed:
            self._activity._agent._chat_ctx.insert(item)

    def record(self, ev: llm.RemoteItemAddedEvent) -> None:
        """Has the agent's context hold, in its place, an item that the model's now holds."""
        if (session := self._activity._rt_session) is None:
            return
        shared = _shared(session)
        shared.seen.add(ev.item.id)
        shared.owed.discard(ev.item.id)
        item = next((item for item in self._items if item.id == ev.item.id), None)
        if item is not None or ev.item.id not in shared.removed | shared.ours:
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
        _shared(session).owner = weakref.ref(self)
        return _shared(session).begin(
            site, lambda: push(session), lambda: self._activity._rt_session is session
        )

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
        shared.ours |= new
        shared.removed -= new
        shared.owed -= new
        try:
            await (push or session.update_chat_ctx)(target)
        except (llm.RealtimeError, asyncio.CancelledError):
            shared.owed |= new
            raise

    def _without_removed(self, session: Session) -> llm.ChatContext:
        """The model's context without what a replacement that failed could not delete."""
        snapshot = session.chat_ctx.copy()
        gone = _shared(session).removed - self._ids
        snapshot.items[:] = [item for item in snapshot.items if item.id not in gone]
        return snapshot

    def _owed(self, session: Session) -> list[llm.ChatItem]:
        owed = _shared(session).owed - _ids_of(session.chat_ctx.items)
        return [item for item in self._items if item.id in owed]

    def _with_calls(
        self, session: Session, items: Sequence[llm.ChatItem], there: set[str]
    ) -> Iterator[llm.ChatItem]:
        """The items, each output behind its call, if that was removed and is recorded again."""
        again = (_shared(session).removed & self._ids) - there
        calls = [i for i in self._items if i.type == "function_call" and i.id in again]
        for item in items:
            if item.type == "function_call_output":
                yield from (call for call in calls if call.call_id == item.call_id)
            yield item

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
