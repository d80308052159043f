"""Edited activities are patched soundly or refused with a line; the patched ones are then run.

What runs them knows nothing of syntax: it watches the lock, and what is pushed while it is held.
"""

from __future__ import annotations

import asyncio
import contextlib
from textwrap import indent
from typing import Any

import pytest
from activity import HEAD, LOCK, NAME, locked, module, patched_or_refused
from hypothesis import given, settings, strategies as st
from line_by_line import unexplained

from ctxlock.errors import NothingToGuard, NotUnderstood
from ctxlock.patching.patch import patch_source

quick = settings(derandomize=True, max_examples=200, deadline=None, database=None)


class Unsound(BaseException):
    """The lock was not held, or not since the snapshot; no handler in the code may swallow it."""


class WatchedLock(asyncio.Lock):
    """Counts its holders, and may have a handoff take the session while they wait."""

    def __init__(self, activity: Any, handoff: bool) -> None:
        super().__init__()
        self.activity, self.handoff, self.holds = activity, handoff, 0

    async def acquire(self) -> Any:
        if self.locked():
            raise Unsound("the lock is taken inside itself")
        self.holds += 1
        if self.handoff:
            self.activity._rt_session = None
        return await super().acquire()


class Context:
    """A context that remembers under which hold of the lock it was read."""

    def __init__(self, read: int | None = None) -> None:
        self.read = read
        self.items: list[object] = []

    def copy(self) -> Context:
        return Context(self.read)

    def add_message(self, **message: object) -> object:
        return message

    def is_equivalent(self, other: object) -> bool:
        return True


class Session:
    def __init__(self, lock: WatchedLock) -> None:
        self.lock = lock

    @property
    def chat_ctx(self) -> Context:
        return Context(self.lock.holds if self.lock.locked() else -1)

    async def update_chat_ctx(self, context: Context) -> None:
        if not self.lock.locked():
            raise Unsound("pushed without the lock")
        if context.read not in (None, self.lock.holds):
            raise Unsound("pushed a context that was read before the lock was taken")
        await asyncio.sleep(0)


class Agent:
    @property
    def chat_ctx(self) -> Context:
        return Context()


async def run(source: str, handoff: bool) -> None:
    """Runs `sync` of the patched `source`; errors other than `Unsound` are the edit's own."""

    async def tool() -> None:
        await asyncio.sleep(0)

    names: dict[str, Any] = {"tool": tool, "log": print, "keep": list, "other": True, "found": [1]}
    names["log"] = names["keep"] = lambda *_: None
    exec(compile(source, NAME, "exec"), names)
    activity = names["AgentActivity"]()
    activity._rt_chat_ctx_lock = lock = WatchedLock(activity, handoff)
    activity._lock = contextlib.nullcontext()
    activity._rt_session = Session(lock)
    activity._agent = Agent()
    try:
        await activity.sync(Context())
    except AttributeError as e:
        if handoff and "'NoneType'" in str(e) and "chat_ctx" in str(e):
            raise Unsound("the session was used after a handoff had taken it") from e
    except Exception:
        return


def judge(source: str, handoff: bool = False) -> bool:
    """Whether `source` was patched; what is patched must be sound, what is refused has a line."""
    text = patched_or_refused(source)
    if text is None:
        return False
    assert unexplained(source, text) is None
    with contextlib.suppress(SyntaxError):  # which `ast.parse` does not see, as a stray `await`
        asyncio.run(asyncio.wait_for(run(text, handoff), 5))
    return True


SNAPSHOT = "ctx = self._rt_session.chat_ctx.copy()"
PUSH = "await self._rt_session.update_chat_ctx(ctx)"

SPANS = st.sampled_from(
    [
        [SNAPSHOT, "ctx.items.append(1)", PUSH],
        [SNAPSHOT, "said = ctx.add_message(text=1)", PUSH, "log(said)"],
        [SNAPSHOT, f"try:\n    {PUSH}\nexcept ValueError:\n    log()"],
        [f"async with self._rt_chat_ctx_lock:\n    {SNAPSHOT}\n    {PUSH}"],
        [SNAPSHOT, f"async with self._rt_chat_ctx_lock:\n    {PUSH}"],
        [PUSH],
        ["await self._rt_session.update_chat_ctx(self._agent.chat_ctx)"],
    ]
)

STATEMENTS = st.sampled_from(
    [
        SNAPSHOT,
        PUSH,
        "kept = self._rt_session.chat_ctx.copy()",
        "self.kept = self._rt_session.chat_ctx.copy()",
        "await self._rt_session.update_chat_ctx(kept)",
        "await self._rt_session.update_chat_ctx(self.kept)",
        "await self._rt_session.update_chat_ctx(ctx.copy())",
        "await self._rt_session.update_chat_ctx(self._agent.chat_ctx.copy())",
        "await tool()",
        "log()",
        "return",
        "raise ValueError",
        "kept = ctx",
        "kept = ctx.copy()",
        "ctx = kept",
        "ctx = ctx.copy()",
        "self.kept = ctx",
        "ctx.items.append(1)",
        "ctx.items.append(await tool())",
        "ctx.items.extend([x async for x in found])",
        "said = ctx.add_message(text=1)",
        "log(said)",
        "global ctx",
        "session = self._rt_session",
        "await session.update_chat_ctx(ctx)",
        "push = self._rt_session.update_chat_ctx",
        "await push(ctx)",
        "await getattr(self._rt_session, 'update_chat_ctx')(ctx)",
        "await asyncio.gather(self._rt_session.update_chat_ctx(ctx))",
        "ctx.is_equivalent(kept := self._rt_session.chat_ctx)",
        "log(self._rt_session.chat_ctx.is_equivalent(ctx))",
        "if self._rt_session is None:\n    return",
        "assert self._rt_session is not None",
        f"{SNAPSHOT}; {PUSH}",
        "def later():\n    return ctx",
        f"later = lambda: {PUSH.removeprefix('await ')}",
        "[x for x in ctx.items]",
    ]
)

BLOCKS = st.sampled_from(
    [
        ("if other:", ""),
        ("if self._rt_session is not None:", ""),
        ("if other and self._rt_session is not None:", ""),
        ("if self._rt_session:", ""),
        ("try:", "except ValueError:\n    log()"),
        ("try:", "finally:\n    log()"),
        ("try:\n    pass\nfinally:", ""),
        ("for _ in range(2):", ""),
        ("while other:", "    break"),
        ("async with self._lock:", ""),
        ("async with self._rt_chat_ctx_lock:", ""),
        ("async def later():", "await later()"),
        ("async def later(ctx):", "await later(ctx)"),
        ("async def later(ctx):", "await later(self._agent.chat_ctx)"),
        ("class Inner:\n    async def later(self):\n        pass", ""),
    ]
)


@st.composite
def edited(draw: st.DrawFn) -> str:
    """A method with a span or two, and up to four edits that may break it or may not."""
    body = [*draw(SPANS), *(draw(SPANS) if draw(st.booleans()) else [])]
    for _ in range(draw(st.integers(0, 4))):
        first = draw(st.integers(0, len(body) - 1))
        match draw(st.sampled_from(["insert", "wrap", "remove", "move"])):
            case "insert":
                body.insert(first, draw(STATEMENTS))
            case "wrap":
                last = draw(st.integers(first + 1, len(body)))
                head, tail = draw(BLOCKS)
                block = "\n".join([head, indent("\n".join(body[first:last]), "    "), tail])
                body[first:last] = [block.rstrip()]
            case "remove" if len(body) > 1:
                del body[first]
            case _:
                body.insert(draw(st.integers(0, len(body))), body.pop(first))
    return "async def sync(self, ctx):\n" + indent("\n".join(body), "    ") + "\n"


@given(edited(), st.booleans())
@quick
def test_edited_activities_are_sound_or_refused(method: str, made: bool) -> None:
    judge((locked if made else module)(method))


names = st.sampled_from(["ctx", "chat_ctx", "c", "_", "self_", "lock", "päivä", "update_chat_ctx"])


@given(
    name=names,
    item=names,
    additions=st.lists(
        st.sampled_from(
            [
                "{c}.items.append(1)",
                "{c}.items.extend(found)  # added",
                "{i} = {c}.add_message(\n    text=1,\n)",
                "{c}.add_message(text='''\nx\n''')",
            ]
        ),
        max_size=3,
    ),
    tried=st.booleans(),
    checked=st.booleans(),
    decorator=st.sampled_from(["", "@staticmethod\ndef f(): pass\n", "# before\n\n"]),
    unit=st.sampled_from(["    ", "  ", "\t"]),
    newline=st.sampled_from(["\n", "\r\n"]),
)
@settings(quick, max_examples=100)
def test_the_known_shapes_are_patched(
    name: str,
    item: str,
    additions: list[str],
    tried: bool,
    checked: bool,
    decorator: str,
    unit: str,
    newline: str,
) -> None:
    if item == name:
        additions = [addition for addition in additions if "{i}" not in addition]
    lines = [f"{name} = self._rt_session.chat_ctx.copy()"]
    lines += [addition.format(c=name, i=item) for addition in additions]
    push = f"await self._rt_session.update_chat_ctx({name})"
    lines.append(f"try:\n    {push}\nexcept ValueError:\n    log()" if tried else push)
    body = "\n".join(lines)
    if checked:
        body = "if self._rt_session is not None and other:\n" + indent(body, "    ")
    method = f"{decorator}async def sync(self, given):\n" + indent(body, "    ") + "\n"
    source = module(method).replace("    ", unit).replace("\n", newline)
    assert judge(source)
    assert judge(source, handoff=checked)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.sampled_from("dmx")), max_size=4),
    st.sampled_from(["", "\ufeff", "#!/bin/python\n# coding: utf-8\n", "\f", "\0", "\r"]),
)
@quick
def test_shuffled_lines_never_crash(moves: list[tuple[int, int, str]], head: str) -> None:
    span = "\n".join(["if self._rt_session is not None:", *("    " + s for s in (SNAPSHOT, PUSH))])
    method = "async def sync(self, ctx):\n" + indent(span, "    ") + "\n"
    lines = (head + module(method, method, head=HEAD + LOCK)).split("\n")
    for start, end, kind in moves:
        line = lines.pop(start % len(lines)) if kind != "d" else lines[start % len(lines)]
        if kind != "x":
            lines.insert(end % (len(lines) + 1), line)
    with contextlib.suppress(NothingToGuard, NotUnderstood):
        patch_source("\n".join(lines).encode(), NAME, "lock")


@pytest.mark.parametrize(
    ("source", "handoff", "said"),
    [
        (f"async def sync(self, ctx):\n    {PUSH}\n", False, "without the lock"),
        (
            f"async def sync(self, ctx):\n    {SNAPSHOT}\n"
            f"    async with self._rt_chat_ctx_lock:\n        {PUSH}\n",
            False,
            "before the lock was taken",
        ),
        (
            f"async def sync(self, ctx):\n    async with self._rt_chat_ctx_lock:\n        {PUSH}\n",
            True,
            "after a handoff",
        ),
        (
            "async def sync(self, ctx):\n    async with self._rt_chat_ctx_lock:\n"
            "        async with self._rt_chat_ctx_lock:\n            pass\n",
            False,
            "inside itself",
        ),
    ],
    ids=["bare", "stale", "unchecked", "nested"],
)
def test_what_runs_the_code_sees_what_is_unsound(source: str, handoff: bool, said: str) -> None:
    with pytest.raises(Unsound, match=said):
        asyncio.run(run(locked(source), handoff))
