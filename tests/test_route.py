"""The scope `full`: spans under the lock, routed through the added module, and read back."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from activity import NAME, fetch, locked

from ctxlock.errors import NotUnderstood
from ctxlock.inverse import check_inverse
from ctxlock.patch import patch_source
from ctxlock.route import route
from ctxlock.sites import find_sites
from ctxlock.syntax import ADDED, CONTEXT, LOCK
from ctxlock.unroute import is_routed, parts_of, unrouted

IMPORT = "from .zebra import Zebra\n\n\n"

REPLACEMENT = """\
async def update_chat_ctx(self, chat_ctx):
    chat_ctx = chat_ctx.copy()
    self._agent._chat_ctx = chat_ctx
    if self._rt_session is not None:
        async with self._rt_chat_ctx_lock:
            if self._rt_session is not None:
                await self._rt_session.update_chat_ctx(chat_ctx)
"""
"""What every release has, and the scope cannot do without."""

RECORDER = """\
def _on_remote_item_added(self, ev):
    known = self._agent._chat_ctx
    known.items.append(ev.item)
"""
"""What releases have from 1.5.0 on."""

CASES = [
    pytest.param(
        """\
        async def _realtime_reply_task(self, said):
            async with self._rt_chat_ctx_lock:
                ctx = self._rt_session.chat_ctx.copy()
                msg = ctx.add_message(said)
                await self._rt_session.update_chat_ctx(ctx)
            self._agent._chat_ctx._upsert_item(msg)
        """,
        """\
        async def _realtime_reply_task(self, said):
            ctx = llm.ChatContext.empty()
            msg = ctx.add_message(said)
            await self._rt_context.append(ctx, "text turn")
            self._rt_context.keep(msg)
        """,
        id="text turn",
    ),
    pytest.param(
        """\
        async def _realtime_generation_task_impl(self, outputs):
            # above
            try:
                async with self._rt_chat_ctx_lock:
                    ctx = self._rt_session.chat_ctx.copy()
                    ctx.items.extend(outputs)
                    await self._rt_session.update_chat_ctx(ctx)
            except Refused:
                pass
        """,
        """\
        async def _realtime_generation_task_impl(self, outputs):
            # above
            try:
                ctx = llm.ChatContext.empty()
                ctx.items.extend(outputs)
                await self._rt_context.append(ctx, "tool outputs")
            except Refused:
                pass
        """,
        id="tool outputs",
    ),
    pytest.param(
        """\
        async def _tts_task_impl(self, spoken):
            if spoken and self._rt_session is not None:
                async with self._rt_chat_ctx_lock:
                    if self._rt_session is not None:
                        ctx = self._rt_session.chat_ctx.copy()
                        ctx.insert(spoken)
                        await self._rt_session.update_chat_ctx(ctx)
        """,
        """\
        async def _tts_task_impl(self, spoken):
            if spoken and self._rt_session is not None:
                ctx = llm.ChatContext.empty()
                ctx.insert(spoken)
                await self._rt_context.append(ctx, "spoken message")
        """,
        id="spoken message",
    ),
    pytest.param(
        """\
        async def _realtime_generation_task_impl(self, heard):
            for one in heard:
                if one.skipped:
                    any_skipped = True
                    continue
            if any_skipped:
                async with self._rt_chat_ctx_lock:
                    await self._rt_session.update_chat_ctx(self._agent._chat_ctx)
        """,
        """\
        async def _realtime_generation_task_impl(self, heard):
            for one in heard:
                if one.skipped:
                    any_skipped = True
                    continue
            if any_skipped:
                for one in heard:
                    if one.skipped:
                        self._rt_context.forget(one.msg.message_id)
                await self._rt_context.replace("never-played cleanup")
        """,
        id="never-played cleanup",
    ),
    pytest.param(
        """\
        async def _start_session(self):
            async with self._rt_chat_ctx_lock:
                await self._rt_session._update_session(
                    tools=[],
                    chat_ctx=self._agent.chat_ctx if fresh else NOT_GIVEN,
                )
        """,
        """\
        async def _start_session(self):
            await self._rt_context.start(
                self._rt_session._update_session,
                tools=[],
                chat_ctx=self._agent.chat_ctx if fresh else NOT_GIVEN,
            )
        """,
        id="session start",
    ),
    pytest.param(
        """\
        async def start(self):
            async with self._rt_chat_ctx_lock:
                await self._rt_session.update_chat_ctx(self._agent.chat_ctx)
        """,
        """\
        async def start(self):
            await self._rt_context.replace("session start")
        """,
        id="session start until 1.5.2",
    ),
    pytest.param(
        """\
        async def _close_session(self):
            if self._rt_session is not None:
                await self._rt_session.aclose()
        """,
        """\
        async def _close_session(self):
            if self._rt_session is not None:
                await self._rt_context.aclose()
        """,
        id="close",
    ),
]


def activity(*methods: str) -> str:
    """An activity of 1.5.0 or later."""
    return without_recorder(RECORDER, *methods)


def without_recorder(*methods: str) -> str:
    """An activity of an earlier release."""
    return "import asyncio\n" + IMPORT + locked(*methods).removeprefix("import asyncio\n\n\n")


@pytest.mark.parametrize(("guarded", "routed"), CASES)
def test_routes(guarded: str, routed: str) -> None:
    before = activity(REPLACEMENT, guarded)
    after = route(before, NAME)
    assert method(after) == dedent(routed).rstrip()
    assert LOCK not in after
    assert "from ._realtime_context import RealtimeContext\nfrom .zebra" in after


def method(source: str) -> str:
    """The last method of the class, at column 0."""
    node = ast.parse(source).body[-1]
    assert isinstance(node, ast.ClassDef)
    lines = source.splitlines()[node.body[-1].lineno - 1 :]
    return dedent("\n".join(lines)).rstrip()


@pytest.mark.parametrize(("guarded", "routed"), CASES)
def test_is_read_back_as_what_it_stands_for(guarded: str, routed: str) -> None:
    before = activity(REPLACEMENT, guarded)
    after = route(before, NAME)
    check_inverse(before.encode(), after.encode(), NAME)
    judged = [(site.role, site.state, site.rechecked) for site in find_sites(after, NAME)]
    assert judged == [(s.role, s.state, s.rechecked) for s in find_sites(before, NAME)]


def test_the_added_module_is_told_of_the_providers_items() -> None:
    before = activity(REPLACEMENT)
    after = route(before, NAME)
    left = 'def _on_remote_item_added(self, ev):\n        """Nothing is left to do here: '
    assert left in after
    with pytest.raises(NotUnderstood, match="changed more than the lock"):
        check_inverse(
            before.encode(), after.replace(left, left + '"""; self.x = 1; """').encode(), NAME
        )


def test_an_earlier_release_is_told_of_no_item() -> None:
    guarded = str(CASES[0].values[0])
    earlier = without_recorder(REPLACEMENT, guarded.replace("_upsert_item", "items.append"))
    after = route(earlier, NAME)
    check_inverse(earlier.encode(), after.encode(), NAME)
    assert method(after) == dedent(str(CASES[0].values[1])).rstrip()
    assert parts_of(after) == ("updates in turn", "replacements", "typed messages")
    assert "server items" in parts_of(route(activity(REPLACEMENT), NAME))


def test_a_replacement_is_noted_before_it_is_made() -> None:
    assert method(route(activity(REPLACEMENT), NAME)) == dedent(
        """\
        async def update_chat_ctx(self, chat_ctx):
            chat_ctx = chat_ctx.copy()
            self._rt_context.replacing(chat_ctx)
            self._agent._chat_ctx = chat_ctx
            if self._rt_session is not None:
                await self._rt_context.replace("replacement")"""
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('append(ctx, "text turn")', "append(ctx)", id="no site"),
        pytest.param('append(ctx, "text turn")', 'append(ctx, "text turn", by=1)', id="option"),
        pytest.param('append(ctx, "text turn")', 'prepend(ctx, "text turn")', id="method"),
        pytest.param("await self._rt_context.append", "self._rt_context.append", id="no await"),
        pytest.param("llm.ChatContext.empty()", "self._kept", id="not empty"),
        pytest.param("self._rt_context.keep(msg)", "other(self._rt_context)", id="passed on"),
        pytest.param("RealtimeContext(self)", "RealtimeContext(other)", id="another's"),
    ],
)
def test_what_is_routed_in_another_way_is_not_taken_for_guarded(old: str, new: str) -> None:
    guarded, _ = CASES[0].values
    before = activity(REPLACEMENT, str(guarded))
    after = route(before, NAME)
    assert old in after
    wrong = after.replace(old, new)
    with pytest.raises(NotUnderstood):
        find_sites(wrong, NAME)
    with pytest.raises(NotUnderstood):
        check_inverse(before.encode(), wrong.encode(), NAME)


@pytest.mark.parametrize(
    ("methods", "reason"),
    [
        pytest.param(
            [REPLACEMENT.replace("self._agent._chat_ctx = ", "self._chat_ctx = ")],
            "not replaced in the way",
            id="another owner",
        ),
        pytest.param(
            [
                REPLACEMENT,
                "async def _other(self, ctx):\n"
                "    async with self._rt_chat_ctx_lock:\n"
                "        await self._rt_session.update_chat_ctx(ctx)\n",
            ],
            "It is unclear how the scope full routes the other here; build with the scope lock: ",
            id="unknown role",
        ),
        pytest.param(
            [
                REPLACEMENT,
                "async def _realtime_generation_task(self):\n"
                "    async with self._rt_chat_ctx_lock:\n"
                "        await self._rt_session.update_chat_ctx(self._agent._chat_ctx)\n",
            ],
            "Which messages were never played",
            id="unknown cleanup",
        ),
    ],
)
def test_refuses(methods: list[str], reason: str) -> None:
    with pytest.raises(NotUnderstood, match=reason):
        route(activity(*methods), NAME)


def test_a_push_past_it_is_bare() -> None:
    past = """\
    async def _other(self):
        await self._rt_session.update_chat_ctx(self._agent._chat_ctx)
    """
    sites = find_sites(route(activity(REPLACEMENT, past), NAME), NAME)
    assert [site.state for site in sites] == ["guarded", "bare"]


def test_what_is_not_routed_is_read_as_it_is() -> None:
    module = ast.parse(activity(REPLACEMENT))
    text = ast.dump(module)
    assert not is_routed(module)
    assert ast.dump(unrouted(module)) == text


@pytest.mark.network
@pytest.mark.parametrize("version", ["1.0.23", "1.4.6", "1.5.0", "1.5.17", "1.8.8", "1.8.9"])
def test_a_release(version: str, tmp_path: Path) -> None:
    stock = fetch(version, tmp_path).read_bytes()
    patched = patch_source(stock, NAME, "full")
    assert [*patched.added] == [ADDED]
    assert LOCK.encode() not in patched.source
    lock = patch_source(stock, NAME, "lock")
    assert [(s.role, s.state) for s in patched.sites] == [(s.role, s.state) for s in lock.sites]
    file = tmp_path / NAME
    file.write_bytes(patched.source)
    ruff = [sys.executable, "-m", "ruff", "format", "--check", "--isolated", "--line-length=100"]
    subprocess.run([*ruff, str(file)], check=True)


@pytest.mark.network
def test_a_release_of_another_kind(tmp_path: Path) -> None:
    stock = fetch("2.0.0b1", tmp_path).read_bytes()
    with pytest.raises(NotUnderstood, match="build with the scope lock: leave out `-C scope=full`"):
        patch_source(stock, NAME, "full")


def test_the_name_of_the_attribute_is_free() -> None:
    assert CONTEXT not in activity(REPLACEMENT)
