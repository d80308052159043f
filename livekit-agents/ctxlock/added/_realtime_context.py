"""Reads and changes the context of an `AgentActivity`'s realtime session; ctxlock added this.

- Activities that share a session make one update at a time, from a snapshot taken once the one
  before is acknowledged. It goes on if the task that asked for it is cancelled.
- The attached agent's context holds what the model's holds, in its order, but for what was removed:
  a replacement pushes it as it is when its turn comes, and what arrived meanwhile stays.
- An update raises what its push raises. If it is not acknowledged within `HOLD_LIMIT`, it is
  given up and raises `llm.RealtimeError`; what the model then lacks is sent again, after the next.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from livekit.agents import llm
from livekit.agents.log import logger

if TYPE_CHECKING:
    from livekit.agents.voice.agent_activity import AgentActivity

HOLD_LIMIT = 15.0  # seconds; more than any provider's own limit (OpenAI 5, Azure 10)

Session: TypeAlias = "llm.RealtimeSession[Any]"
Context: TypeAlias = llm.ChatContext
Items: TypeAlias = Iterable[llm.ChatItem]
Push: TypeAlias = Callable[..., Awaitable[None]]


class _Shared:
    """What belongs to one realtime session; items stand here as their ids."""

    def __init__(self, session: Session, owner: RealtimeContext) -> None:
        self.lock = asyncio.Lock()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.owner = weakref.ref(owner)  # who asked for an update last
        # recorded, pushed or left out; one that the owner's agent lacks is not to come back
        self.known: set[str] = set()
        self.owed: set[str] = set()  # pushed, and not acknowledged
        self.told = False  # whether the provider tells of items
        self.arrived: set[str] = set()  # during a handoff, so that the next agent is to have them
        session.on("remote_item_added", self.added)
        session.on("session_reconnected", lambda _: self.reconnected(session.chat_ctx.items))

    @property
    def attached(self) -> RealtimeContext | None:
        """The owner, unless it has been detached."""
        owner = self.owner()
        return owner if owner is not None and owner.shared is self else None

    def added(self, ev: llm.RemoteItemAddedEvent) -> None:
        """Has the agent hold what the model now holds, and the next one what comes in a handoff."""
        self.told, owner, item = True, self.attached, ev.item
        handoff = owner is None or owner._activity._session._activity_lock.locked()
        if handoff and item.type == "message" and (owner is None or item.role == "user"):
            self.arrived |= {item.id} - self.known
        if owner is not None:
            owner._record(item)

    def reconnected(self, repeated: Items) -> None:
        """Pushes what was not repeated; if nothing was yet, only if something will be missing."""
        if (owner := self.attached) is not None:
            roles = {item.role for item in owner._items if item.type == "message"}
            if repeated or self.owed or not roles <= {"user", "assistant"}:
                owner._begin("reconnection", owner._push)


_sessions: weakref.WeakKeyDictionary[Session, _Shared] = weakref.WeakKeyDictionary()


class RealtimeContext:
    """One activity's way to the context of its realtime session."""

    def __init__(self, activity: AgentActivity) -> None:
        self._activity = activity

    async def append(self, added: llm.ChatContext, site: str) -> None:
        """Adds items to the model's context, where the agent's has them; messages to that, too.

        What a replacement takes from the agent's before they are sent is not sent.
        """
        fresh = [i for i in added.items if i.type == "message" and i.id not in _ids(self._items)]

        async def push(session: Session) -> None:
            self._items.extend(fresh)
            known, target = _sessions[session].known, session.chat_ctx.copy()
            gone = known - _ids(self._items)
            target.items[:] = [item for item in target.items if item.id not in gone]
            # that a call was deleted does not keep its output from coming, which needs it
            outputs = {item.call_id for item in added.items if item.type == "function_call_output"}
            calls = [i for i in self._items if i.type == "function_call" and i.call_id in outputs]
            for item in [*(call for call in calls if call.id in known), *added.items]:
                if item.id not in gone | _ids(target.items):
                    _place(target.items, item, self._items)
            await self._push(session, target, fresh)

        try:
            pushed = await asyncio.shield(self._begin(site, push))
        except asyncio.CancelledError:  # whoever was cancelled cannot tell the session's history
            for item in fresh:
                self._activity._session._conversation_item_added(item)
            raise
        if not pushed:
            raise llm.RealtimeError(f"the realtime session was gone before the {site}")

    async def replace(self, site: str) -> None:
        """Makes the model's context what the agent's is when its turn comes, if it still does."""
        await asyncio.shield(self._begin(site, self._push))

    async def start(self, push: Push, chat_ctx: object, **others: Any) -> None:
        """Calls `push`, of a session just attached, with a context that has what arrived for it."""
        latest = self._activity._session._update_activity_atask
        last = latest is None or latest.done() or latest is asyncio.current_task()

        async def push_all(session: Session) -> None:
            shared = _sessions[session]
            shared.known -= shared.arrived
            for item in session.chat_ctx.items:
                if item.id in shared.arrived:
                    self._record(item)
            if last:  # no other handoff waits, whose agent is to have it, too
                shared.arrived.clear()
            given = isinstance(chat_ctx, llm.ChatContext)
            if given and type(session)._update_session is not llm.RealtimeSession._update_session:
                return await push(chat_ctx=self._activity._agent._chat_ctx, **others)
            await push(**others)
            if given:  # apart, as `push` hides if that is not acknowledged
                await self._push(session)

        try:
            await asyncio.shield(self._begin("session start", push_all))
        except llm.RealtimeError as error:  # the agent starts all the same
            logger.warning("the realtime session may lack what the new agent has: %s", error)

    def replacing(self, _: llm.ChatContext) -> None:
        """Notes what the agent and the model have, before the agent's context becomes another."""
        if (session := self._activity._rt_session) is not None:
            _sessions[session].known |= _ids(self._items) | _ids(session.chat_ctx.items)

    def forget(self, item_id: str) -> None:
        """Removes a message that was never played from the agent's context."""
        self._items[:] = [item for item in self._items if item.id != item_id]
        if (shared := self.shared) is not None:
            shared.known.add(item_id)

    def keep(self, item: llm.ChatItem) -> None:
        """Records an item with the agent, or what became of it, unless it was removed."""
        if item.id in _ids(self._items):
            self._items[:] = [item if own.id == item.id else own for own in self._items]
        elif (shared := self.shared) is None or item.id not in shared.known:
            self._activity._agent._chat_ctx.insert(item)

    async def aclose(self) -> None:
        """Closes the session and ends every update."""
        if (session := self._activity._rt_session) is not None:
            await session.aclose()
            _sessions[session].closed.cancel()

    @property
    def shared(self) -> _Shared | None:
        """What belongs to the session, its lock too; `None` while there is no session."""
        session = self._activity._rt_session
        if session is not None and session not in _sessions:
            _sessions[session] = _Shared(session, self)
        return None if session is None else _sessions[session]

    @property
    def _items(self) -> list[llm.ChatItem]:
        return self._activity._agent._chat_ctx.items

    def _begin(self, site: str, push: Push) -> asyncio.Task[bool]:
        """Has `push` called in its turn; the result is whether the session was still there."""
        session, shared = self._activity._rt_session, self.shared
        if session is None or shared is None:
            raise llm.RealtimeError(f"there is no realtime session for the {site}")

        async def hold() -> bool:
            async with shared.lock:
                if self._activity._rt_session is not session or shared.closed.done():
                    return False
                pushing = asyncio.ensure_future(push(session))
                # nobody may be left to hear of its failure
                pushing.add_done_callback(lambda done: done.cancelled() or done.exception())
                ends = {pushing, shared.closed}
                try:
                    await asyncio.wait(ends, timeout=HOLD_LIMIT, return_when="FIRST_COMPLETED")
                    if pushing.done() or shared.closed.done():
                        return pushing.done() and pushing.result() is None
                finally:
                    pushing.cancel()  # and not waited for, as a provider may ignore that
            reason = f"which was not acknowledged in {HOLD_LIMIT:g} seconds"
            logger.warning("gave up the realtime context update of the %s, %s", site, reason)
            raise llm.RealtimeError(f"gave up the update of the {site}, {reason}")

        shared.owner = weakref.ref(self)
        task = asyncio.create_task(hold(), name=f"realtime {site}")
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def _push(self, session: Session, goal: Context | None = None, fresh: Items = ()) -> None:
        """Makes the model's context `goal`, in which `fresh` is new, or else the agent's."""
        shared, goal = _sessions[session], goal or self._activity._agent._chat_ctx
        sent = [i for i in goal.items if getattr(i, "content", i.type.startswith("function_"))]
        new = _ids(sent) - _ids(session.chat_ctx.items)
        shared.owed |= new
        shared.known |= new & _ids(self._items)
        try:
            await session.update_chat_ctx(goal)
        except Exception as error:
            if not isinstance(error, llm.RealtimeError):  # it was not sent
                self._items[:] = [i for i in self._items if i.id not in _ids(fresh)]
            raise
        shared.owed &= _ids(self._items) - (set() if shared.told else new)
        if shared.owed and self.shared is shared:
            self._begin("resending", self._resend)

    async def _resend(self, session: Session) -> None:
        """Sends what is owed, each alone as it may be refused, and up to the first that fails."""
        for item in [own for own in self._items if own.id in _sessions[session].owed]:
            _sessions[session].owed.discard(item.id)
            _place((alone := session.chat_ctx.copy()).items, item, self._items)
            await session.update_chat_ctx(alone)

    def _record(self, item: llm.ChatItem) -> None:
        """Records what the model has; what was taken from the agent's is taken from there, too."""
        session, shared = self._activity._rt_session, self.shared
        assert session is not None and shared is not None
        if item.id in shared.known - _ids(self._items):
            self._begin("removal", self._push)
            return
        shared.known.add(item.id)
        shared.owed.discard(item.id)
        own = next((own for own in self._items if own.id == item.id), item.model_copy())
        _place(self._items, own, session.chat_ctx.items)


def _ids(items: Items) -> set[str]:
    return {item.id for item in items}


def _place(items: list[llm.ChatItem], item: llm.ChatItem, order: Items) -> None:
    """Puts `item` in front of the first that `order` has later, or else at the end."""
    rank = {other.id: n for n, other in enumerate(order)}
    own = rank.get(item.id, len(rank))
    others = [other for other in items if other.id != item.id]
    at = next((n for n, o in enumerate(others) if rank.get(o.id, own) > own), len(others))
    items[:] = [*others[:at], item, *others[at:]]
