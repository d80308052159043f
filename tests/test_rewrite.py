from __future__ import annotations

import codecs

import pytest
from activity import HEAD, LOCK, NAME, NOTICE, PUSH, guarded, locked, module
from lock_pairs import UPSTREAMS
from methods import CHECK, HOLD, READ, SEND, block, given, pair

from ctxlock.errors import NotUnderstood
from ctxlock.patching.rewrite import guard

FIXES = {
    "replacement": """\
        async def update_chat_ctx(self, ctx):
            ctx = ctx.copy()
            if self._rt_session is not None:
                strip(ctx)
        +       async with self._rt_chat_ctx_lock:
        +           if self._rt_session is not None:
                        await self._rt_session.update_chat_ctx(ctx)
            else:
                fill(ctx)
    """,
    "check that is one of two": """\
        async def update_chat_ctx(self, ctx):
            if self._rt_session is not None and other:
        +       async with self._rt_chat_ctx_lock:
        +           if self._rt_session is not None:
                        await self._rt_session.update_chat_ctx(ctx)
    """,
    "check further out": """\
        async def update_chat_ctx(self, ctx):
            if first and second and self._rt_session is not None:
                if third:
        +           async with self._rt_chat_ctx_lock:
        +               if self._rt_session is not None:
                            await self._rt_session.update_chat_ctx(ctx)
    """,
    "check in an elif": """\
        async def update_chat_ctx(self, ctx):
            if done:
                pass
            elif self._rt_session is not None:
        +       async with self._rt_chat_ctx_lock:
        +           if self._rt_session is not None:
                        await self._rt_session.update_chat_ctx(ctx)
    """,
    "session start": """\
        async def start(self):
            try:
        +       async with self._rt_chat_ctx_lock:
                    await self._rt_session.update_chat_ctx(self._agent.chat_ctx)
            except RealtimeError:
                log()
    """,
    "session start in one push": """\
        async def _start_session(self):
        +   async with self._rt_chat_ctx_lock:
                await self._rt_session._update_session(
                    instructions=render() if new else NOT_GIVEN,
                    chat_ctx=self._agent.chat_ctx if new else NOT_GIVEN,
                )
    """,
    "text turn": """\
        async def _realtime_reply_task(self, text):
            if text is not None:
        +       async with self._rt_chat_ctx_lock:
                    ctx = self._rt_session.chat_ctx.copy()
                    said = ctx.add_message(role="user", content=text)
                    await self._rt_session.update_chat_ctx(ctx)
                remember(said)
    """,
    "text turn with a try": """\
        async def _realtime_reply_task(self, text):
        -   ctx = self._rt_session.chat_ctx.copy()
        -   said = ctx.add_message(role="user", content=text)
            try:
        +       async with self._rt_chat_ctx_lock:
        +           ctx = self._rt_session.chat_ctx.copy()
        +           said = ctx.add_message(role="user", content=text)
                    await self._rt_session.update_chat_ctx(ctx)
            except RealtimeError:
                log()
            except Exception:
                return
    """,
    "text turn inside a try": """\
        async def _realtime_reply_task(self, text):
            try:
        +       async with self._rt_chat_ctx_lock:
                    ctx = self._rt_session.chat_ctx.copy()
                    ctx.add_message(role="user", content=text)
                    await self._rt_session.update_chat_ctx(ctx)
            except RealtimeError:
                log()
    """,
    "tool outputs, interrupted and not": """\
        async def _realtime_generation_task(self, handle, found):
            if handle.interrupted:
        +       async with self._rt_chat_ctx_lock:
                    early = self._rt_session.chat_ctx.copy()
                    early.items.extend(found)
                    await self._rt_session.update_chat_ctx(early)
                return
        -   ctx = self._rt_session.chat_ctx.copy()
        -   ctx.items.extend(found)
            try:
        +       async with self._rt_chat_ctx_lock:
        +           ctx = self._rt_session.chat_ctx.copy()
        +           ctx.items.extend(found)
                    await self._rt_session.update_chat_ctx(ctx)
            except RealtimeError:
                log()
    """,
    "never-played cleanup": """\
        async def _realtime_generation_task_impl(self):
            if skipped:
        +       async with self._rt_chat_ctx_lock:
                    await self._rt_session.update_chat_ctx(self._agent._chat_ctx)
    """,
    "spoken message": """\
        async def _tts_task_impl(self, said):
            if said is not None and self._rt_session is not None:
        -       ctx = self._rt_session.chat_ctx.copy()
        -       ctx.insert(said)
                try:
        +           async with self._rt_chat_ctx_lock:
        +               if self._rt_session is not None:
        +                   ctx = self._rt_session.chat_ctx.copy()
        +                   ctx.insert(said)
                            await self._rt_session.update_chat_ctx(ctx)
                except RealtimeError:
                    log()
    """,
    "context given by keyword": """\
        async def sync(self):
        +   async with self._rt_chat_ctx_lock:
                ctx = self._rt_session.chat_ctx.copy()
                await self._rt_session.update_chat_ctx(chat_ctx=ctx)
    """,
    "async for and its else": """\
        async def sync(self, ctx):
            async for _ in ticks():
        +       async with self._rt_chat_ctx_lock:
                    await self._rt_session.update_chat_ctx(ctx)
            else:
        +       async with self._rt_chat_ctx_lock:
                    await self._rt_session.update_chat_ctx(ctx)
    """,
    "except, else and finally": """\
        async def sync(self, ctx):
            try:
                work()
            except ValueError:
        +       async with self._rt_chat_ctx_lock:
                    await self._rt_session.update_chat_ctx(ctx)
            else:
        +       async with self._rt_chat_ctx_lock:
                    await self._rt_session.update_chat_ctx(ctx)
            finally:
        +       async with self._rt_chat_ctx_lock:
                    await self._rt_session.update_chat_ctx(ctx)
    """,
    "match case": """\
        async def sync(self, ctx):
            match ctx:
                case []:
        +           async with self._rt_chat_ctx_lock:
                        await self._rt_session.update_chat_ctx(ctx)
    """,
    "nested function in a decorated one": """\
        @traced(name="sync")
        async def sync(self, ctx):
            async def later(ctx):
        +       async with self._rt_chat_ctx_lock:
                    await self._rt_session.update_chat_ctx(ctx)

            await later(ctx)
    """,
    "comments": """\
        async def sync(self):
            # about the snapshot
        -   ctx = self._rt_session.chat_ctx.copy()  # copied
        -   # about the addition
        -   ctx.items.extend(found)  # extended

            # about the push
        +   async with self._rt_chat_ctx_lock:
        +       ctx = self._rt_session.chat_ctx.copy()  # copied
        +       # about the addition
        +       ctx.items.extend(found)  # extended
                await self._rt_session.update_chat_ctx(ctx)  # pushed
            # about what follows
            done()
    """,
    "comments around a try": """\
        async def sync(self):
            first()

            # about the snapshot
        -   ctx = self._rt_session.chat_ctx.copy()
            # about the try
            try:  # tried
                # about the push
        +       async with self._rt_chat_ctx_lock:
        +           ctx = self._rt_session.chat_ctx.copy()
                    await self._rt_session.update_chat_ctx(ctx)
                # about the end
            except RealtimeError:  # caught
                log()
    """,
    "statements and strings of several lines": """\
        async def sync(self):
        +   async with self._rt_chat_ctx_lock:
                ctx = self._rt_session.chat_ctx.copy()
                ctx.add_message(
                    content=STRING,
                )
                await self._rt_session.update_chat_ctx(
                    ctx,  # the context
                )
    """,
}
"""Each as `pair` reads it; STRING is `LONG`."""

LONG = "'''\nkept\n  as it is\n'''"

REPAIRS = {
    "lock without its check": """\
        async def update_chat_ctx(self, ctx):
            if self._rt_session is not None:
                async with self._rt_chat_ctx_lock:  # ours
        +           if self._rt_session is not None:
                        # about the push
                        await self._rt_session.update_chat_ctx(ctx)
    """,
    "lock around the push alone": """\
        async def sync(self):
        -   ctx = self._rt_session.chat_ctx.copy()
        -   ctx.items.append(item)
            async with self._rt_chat_ctx_lock:
        +       ctx = self._rt_session.chat_ctx.copy()
        +       ctx.items.append(item)
                await self._rt_session.update_chat_ctx(ctx)
    """,
    "lock around all but the snapshot": """\
        async def sync(self):
        -   ctx = self._rt_session.chat_ctx.copy()
            try:
                async with self._rt_chat_ctx_lock:
        +           ctx = self._rt_session.chat_ctx.copy()
                    ctx.items.append(item)
                    await self._rt_session.update_chat_ctx(ctx)
            finally:
                done()
    """,
}

LEFT_ALONE = {
    "guarded span": given(block(HOLD, READ, "ctx.items.append(item)", SEND)),
    "guarded push in a try": given(
        block("try:", block(HOLD, SEND)), block("except RealtimeError:", "log()")
    ),
    "guarded and checked again": given(block(CHECK, block(HOLD, block(CHECK, SEND)))),
    "other methods of the session": given(
        block(
            "if self._rt_session is None or other:",
            'await self._rt_session.update_instructions("new")',
            "await self._rt_session.update_tools([])",
        ),
        "await other.chat_ctx.copy()",
    ),
    "snapshot that is only compared": block(
        "def reusable(self, other):",
        "return self._rt_session.chat_ctx.copy().is_equivalent(other)\n",
    ),
    "own method": "async def sync(self, ctx): await self.update_chat_ctx(ctx)\n",
}


def assert_guards(before: str, after: str) -> None:
    once = guard(before, NAME)
    assert once == after
    assert guard(once, NAME) == once


@pytest.mark.parametrize("method", FIXES.values(), ids=FIXES)
def test_guards(method: str) -> None:
    before, after = (side.replace("STRING", LONG) for side in pair(method))
    assert_guards(module(before), guarded(after))


@pytest.mark.parametrize("method", REPAIRS.values(), ids=REPAIRS)
def test_repairs_half_a_guard(method: str) -> None:
    before, after = pair(method)
    assert_guards(locked(before), guarded(after))


@pytest.mark.parametrize("method", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_leaves_alone(method: str) -> None:
    assert guard(locked(method), NAME) == locked(method)


def test_keeps_line_endings() -> None:
    after = guard(module(PUSH).replace("\n", "\r\n"), NAME)
    assert after == guard(module(PUSH), NAME).replace("\n", "\r\n")


def test_keeps_mixed_line_endings() -> None:
    before = module(PUSH).replace("asyncio\n", "asyncio\r\n") + "A = 1\r\nB = 2\nC = '''\r\n\n'''\n"
    after = guard(before, NAME)
    assert after.endswith("A = 1\r\nB = 2\nC = '''\r\n\n'''\n")
    assert "import asyncio\r\n" in after
    assert "def __init__(self):\n" in after


@pytest.mark.parametrize("unit", ["\t", "  ", "   "], ids=["tabs", "two", "three"])
def test_follows_the_indentation(unit: str) -> None:
    before, after = (text.replace("    ", unit) for text in (module(PUSH), guarded(UPSTREAMS)))
    assert guard(before, NAME) == after


@pytest.mark.parametrize(
    ("above", "below"),
    [
        pytest.param("", "# Copyright\n\n", id="licence"),
        pytest.param("", '"""What this is."""\n\n', id="docstring"),
        pytest.param("#!/usr/bin/env python\n", "", id="interpreter"),
        pytest.param("# -*- coding: utf-8 -*-\n", "# Copyright\n", id="encoding"),
        pytest.param("#!/usr/bin/env python\n# coding=utf-8\n", "\n", id="both"),
        pytest.param("# Copyright\n# coding: utf-8\n", "# more\n", id="encoding in line 2"),
        pytest.param("\n# coding: utf-8\n", "", id="encoding under a blank line"),
        pytest.param("", "# one\n# two\n# coding: utf-8\n", id="no encoding in line 3"),
        pytest.param("", "# on coding and encodings\n", id="a comment about coding"),
    ],
)
def test_the_notice_stands_first_but_for_what_must_precede_it(above: str, below: str) -> None:
    plain = guard(module(PUSH), NAME).removeprefix(NOTICE)
    assert guard(above + below + module(PUSH), NAME) == above + NOTICE + below + plain


def test_keeps_a_byte_order_mark() -> None:
    mark = codecs.BOM_UTF8.decode()
    once = guard(mark + module(PUSH), NAME)
    assert once == mark + guard(module(PUSH), NAME)
    assert guard(once, NAME) == once


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param("\f\ndef f():\n    a()\n\f\n    b()\n", id="form feed"),
        pytest.param("x = 1", id="no line end"),
        pytest.param("x = 1  ;  y = 2 ;\n\n\n\n", id="spaces and blank lines"),
        pytest.param("if x :  y = [1,\n   2]\nz = 1 + \\\n  2\n", id="odd layout"),
        pytest.param("# last\n  # words", id="comments at the end"),
    ],
)
def test_keeps_what_follows(tail: str) -> None:
    assert guard(module(PUSH) + tail, NAME) == guard(module(PUSH), NAME) + tail


def test_a_push_may_end_the_file_without_a_line_end() -> None:
    assert guard(module(PUSH).rstrip("\n"), NAME) == guard(module(PUSH), NAME).rstrip("\n")


def test_leaves_other_classes_alone() -> None:
    other = module(PUSH).replace("AgentActivity", "Other")
    source = other + "\n\n" + module(PUSH)
    assert guard(source, NAME).startswith(NOTICE + other)


def test_makes_the_lock_right_behind_the_one_it_follows() -> None:
    head = HEAD + "        self._later = asyncio.Lock()\n"
    assert HEAD + LOCK + "        self._later" in guard(module(PUSH, head=head), NAME)


def test_a_lock_that_is_there_is_not_made_again() -> None:
    assert guard(locked(PUSH), NAME).count(" = asyncio.Lock()") == 2


def test_no_lock_to_follow() -> None:
    head = HEAD.replace("asyncio.Lock()", "Lock()")
    with pytest.raises(NotUnderstood, match="makes no `_lock`") as refused:
        guard(module(PUSH, head=head), NAME)
    assert refused.value.line == head.splitlines().index("class AgentActivity:") + 1


def test_not_python() -> None:
    with pytest.raises(NotUnderstood, match="LibCST cannot read this file") as refused:
        guard("x = 1\ny = (\n", NAME)
    assert refused.value.line in (2, 3)


def test_what_libcst_would_lose() -> None:
    source = module(PUSH).replace("\n", "\r")
    with pytest.raises(NotUnderstood, match="does not give this line back"):
        guard(source, NAME)
