"""Edited activities are patched soundly or refused with a line; the patched ones are then run.

What runs them knows nothing of syntax: it watches the lock, and what is pushed while it is held.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from itertools import chain
from random import Random
from textwrap import indent
from typing import Any

import pytest
from activity import HEAD, LOCK, NAME, locked, module, patched_or_refused
from edits import breaking, edited
from hypothesis import given, settings, strategies as st
from line_by_line import unexplained
from methods import CHECK, HOLD, READ, SEND, block, given as with_context

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


SAID = "said = ctx.add_message(text=1)"

SPANS = st.sampled_from(
    [
        [READ, "ctx.items.append(1)", SEND],
        [READ, SAID, SEND, "log(said)"],
        [READ, block("try:", SEND), block("except ValueError:", "log()")],
        [block(HOLD, READ, SEND)],
        [READ, block(HOLD, SEND)],
        [SEND],
        ["await self._rt_session.update_chat_ctx(self._agent.chat_ctx)"],
        [f"{READ}; {SEND}"],
    ]
)


@given(
    st.lists(SPANS, min_size=1, max_size=2),
    st.randoms(use_true_random=False),
    st.integers(0, 4),
    st.booleans(),
)
@quick
def test_edited_activities_are_sound_or_refused(
    spans: list[list[str]], random: Random, edits: int, made: bool
) -> None:
    method = re.sub(r"\bctx\b", "chat_ctx", with_context(*chain(*spans)))
    judge((locked if made else module)(edited(breaking, random, method, edits, edits)))


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
    method = with_context(block(CHECK, READ, SEND))
    lines = (head + module(method, method, head=HEAD + LOCK)).split("\n")
    for start, end, kind in moves:
        line = lines.pop(start % len(lines)) if kind != "d" else lines[start % len(lines)]
        if kind != "x":
            lines.insert(end % (len(lines) + 1), line)
    with contextlib.suppress(NothingToGuard, NotUnderstood):
        patch_source("\n".join(lines).encode(), NAME, "lock")


@pytest.mark.parametrize(
    ("statements", "handoff", "said"),
    [
        pytest.param([SEND], False, "without the lock", id="bare"),
        pytest.param([READ, block(HOLD, SEND)], False, "before the lock was taken", id="stale"),
        pytest.param([block(HOLD, SEND)], True, "after a handoff", id="unchecked"),
        pytest.param([block(HOLD, block(HOLD, "pass"))], False, "inside itself", id="nested"),
    ],
)
def test_what_runs_the_code_sees_what_is_unsound(
    statements: list[str], handoff: bool, said: str
) -> None:
    with pytest.raises(Unsound, match=said):
        asyncio.run(run(locked(with_context(*statements)), handoff))
