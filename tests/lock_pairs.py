"""Methods as they were and as they are patched with the lock."""

from __future__ import annotations

BARE = """\
async def sync(self, said):
    before(said)
    ctx = self._rt_session.chat_ctx.copy()
    ctx.insert(said)
    try:
        await self._rt_session.update_chat_ctx(ctx)
    except RealtimeError:
        log()
    after(said)
"""


GUARDED = """\
async def sync(self, said):
    before(said)
    try:
        async with self._rt_chat_ctx_lock:
            ctx = self._rt_session.chat_ctx.copy()
            ctx.insert(said)
            await self._rt_session.update_chat_ctx(ctx)
    except RealtimeError:
        log()
    after(said)
"""


CHECKED = """\
async def sync(self, ctx):
    if self._rt_session is not None:
        async with self._rt_chat_ctx_lock:
            if self._rt_session is not None:
                await self._rt_session.update_chat_ctx(ctx)
    else:
        other(ctx)
"""


UNCHECKED = """\
async def sync(self, ctx):
    if self._rt_session is not None:
        await self._rt_session.update_chat_ctx(ctx)
    else:
        other(ctx)
"""


HOISTED = """\
async def sync(self, said):
    before(said)
    try:
        ctx = self._rt_session.chat_ctx.copy()
        ctx.insert(said)
        await self._rt_session.update_chat_ctx(ctx)
    except RealtimeError:
        log()
    after(said)
"""


UPSTREAMS = """\
async def sync(self, ctx):
    async with self._rt_chat_ctx_lock:
        await self._rt_session.update_chat_ctx(ctx)
"""


ALONE = """\
async def sync(self, ctx):
    await self._rt_session.update_chat_ctx(ctx)
"""


TAKEN_LATE = """\
async def sync(self, said):
    before(said)
    ctx = self._rt_session.chat_ctx.copy()
    ctx.insert(said)
    try:
        async with self._rt_chat_ctx_lock:
            await self._rt_session.update_chat_ctx(ctx)
    except RealtimeError:
        log()
    after(said)
"""
