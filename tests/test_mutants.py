from __future__ import annotations

import ast

import pytest
from activity import NAME, locked
from mutants import mutants

from ctxlock.analysis.sites import find_sites

TWO_SITES = locked(
    """\
    async def update_chat_ctx(self, ctx):
        if self._rt_session is not None:
            async with self._rt_chat_ctx_lock:
                if self._rt_session is not None:
                    await self._rt_session.update_chat_ctx(ctx)
    """,
    """\
    async def _realtime_reply_task(self, text):
        async with self._rt_chat_ctx_lock:
            ctx = self._rt_session.chat_ctx.copy()
            ctx.add_message(role="user", content=text)
            await self._rt_session.update_chat_ctx(ctx)
    """,
)

METHODS = {
    "replacement left bare": """\
async def update_chat_ctx(self, ctx):
    if self._rt_session is not None:
        if self._rt_session is not None:
            await self._rt_session.update_chat_ctx(ctx)""",
    "text turn left bare": """\
async def _realtime_reply_task(self, text):
    ctx = self._rt_session.chat_ctx.copy()
    ctx.add_message(role='user', content=text)
    await self._rt_session.update_chat_ctx(ctx)""",
    "a lock around the push alone": """\
async def _realtime_reply_task(self, text):
    ctx = self._rt_session.chat_ctx.copy()
    ctx.add_message(role='user', content=text)
    async with self._rt_chat_ctx_lock:
        await self._rt_session.update_chat_ctx(ctx)""",
    "a lock released before the acknowledgement": """\
async def _realtime_reply_task(self, text):
    async with self._rt_chat_ctx_lock:
        ctx = self._rt_session.chat_ctx.copy()
        ctx.add_message(role='user', content=text)
        _pushed = asyncio.ensure_future(self._rt_session.update_chat_ctx(ctx))
    await _pushed""",
    "one lock per site": """\
async def _realtime_reply_task(self, text):
    async with self._rt_chat_ctx_lock_2:
        ctx = self._rt_session.chat_ctx.copy()
        ctx.add_message(role='user', content=text)
        await self._rt_session.update_chat_ctx(ctx)""",
}


@pytest.mark.parametrize("name", METHODS)
def test_wrong_version(name: str) -> None:
    sources = {mutant.name: mutant.source for mutant in mutants(TWO_SITES, NAME)}
    assert sources.keys() == METHODS.keys()
    methods = [ast.unparse(n) for n in ast.walk(ast.parse(sources[name])) if is_method(n)]
    assert METHODS[name] in methods


def is_method(node: ast.AST) -> bool:
    return isinstance(node, ast.AsyncFunctionDef)


def test_one_site_is_left_bare_and_no_other() -> None:
    states = {
        mutant.role: [site.role for site in find_sites(mutant.source, NAME) if site.state == "bare"]
        for mutant in mutants(TWO_SITES, NAME)
        if mutant.role
    }
    assert states == {"replacement": ["replacement"], "text turn": ["text turn"]}
