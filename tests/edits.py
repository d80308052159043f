"""Edits of a method's text, for fuzzing: some keep its structure, some may break it.

An edit takes the method, written from column 0, and returns it edited as chance has it. It works on
lines, so that formatting and comments stay as they were.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from random import Random
from textwrap import indent

__all__ = ["Edit", "breaking", "edited", "keeping", "pick", "span", "wrap"]

Edit = Callable[[Random, str], str]

HOT = ("_rt_session.", "_rt_chat_ctx_lock")
"""What the statements contain that matter most."""

LINES = (
    *("await tool()", "log()", "return", "raise ValueError", "pass", "yield"),
    *("chat_ctx = self._rt_session.chat_ctx.copy()", "chat_ctx = chat_ctx.copy()"),
    *("kept = self._rt_session.chat_ctx", "kept = self._rt_session.chat_ctx.copy()"),
    *("self.kept = self._rt_session.chat_ctx.copy()", "self.kept = chat_ctx", "chat_ctx = kept"),
    *("kept = chat_ctx", "kept = chat_ctx.copy()", "global chat_ctx", "self._rt_session = None"),
    *("chat_ctx.items.append(1)", "chat_ctx.items.append(await tool())"),
    *("chat_ctx.items.extend([x async for x in found])", "[x for x in chat_ctx.items]"),
    *("said = chat_ctx.add_message(text=1)", "log(said)"),
    "await self._rt_session.update_chat_ctx(chat_ctx)",
    "await self._rt_session.update_chat_ctx(chat_ctx.copy())",
    "await self._rt_session.update_chat_ctx(kept)",
    "await self._rt_session.update_chat_ctx(self.kept)",
    "await self._rt_session.update_chat_ctx(self._agent.chat_ctx.copy())",
    *("session = self._rt_session", "await session.update_chat_ctx(chat_ctx)"),
    *("push = self._rt_session.update_chat_ctx", "await push(chat_ctx)"),
    "await asyncio.gather(self._rt_session.update_chat_ctx(chat_ctx))",
    "await getattr(self._rt_session, 'update_chat_ctx')(chat_ctx)",
    "asyncio.create_task(self._rt_session.update_chat_ctx(chat_ctx))",
    "later = lambda: self._rt_session.update_chat_ctx(chat_ctx)",
    "def later():\n    return chat_ctx",
    "chat_ctx.is_equivalent(kept := self._rt_session.chat_ctx)",
    "log(self._rt_session.chat_ctx.is_equivalent(chat_ctx))",
    *("if self._rt_session is None:\n    return", "assert self._rt_session is not None"),
)

BLOCKS = (
    *(("if other:", ""), ("if self._rt_session is not None:", ""), ("for _ in range(2):", "")),
    *(("if other and self._rt_session is not None:", ""), ("if self._rt_session:", "")),
    *(("try:", "except ValueError:\n    log()"), ("try:", "finally:\n    log()")),
    *(("try:\n    pass\nfinally:", ""), ("while other:", "    break"), ("with keep():", "")),
    *(("async with self._lock:", ""), ("async with self._rt_chat_ctx_lock:", "")),
    *(("async def later():", "await later()"), ("async def later(self):", "await later(self)")),
    ("async def later(chat_ctx):", "await later(chat_ctx)"),
    ("async def later(chat_ctx):", "await later(self._agent.chat_ctx)"),
    *(("class Inner:", ""), ("def later():", "later()")),
    ("class Inner:\n    async def later(self):\n        pass", ""),
)

REPLACED = (
    *((".copy()", ""), (".copy()", ".copy"), ("await ", ""), ("async ", "")),
    *(("self._rt_session", "session"), ("self._rt_session", "(s := self._rt_session)")),
    *(("_rt_session", "_other_session"), ("self._rt_session.chat_ctx", "self._agent.chat_ctx")),
    *(("update_chat_ctx(", "update_chat_ctx(*"), ("chat_ctx)", "chat_ctx.copy())")),
    *(("chat_ctx)", "self._rt_session.chat_ctx)"), ("chat_ctx)", "chat_ctx); log()")),
    *(("chat_ctx)", "await tool())"), ("chat_ctx =", "chat_ctx = kept ="), ("self.", "this.")),
    *((" is not None", ""), (" is not None", " is None"), ("_rt_chat_ctx_lock", "_lock")),
)


def keeping(random: Random, method: str) -> str:
    """An edit after which the method's spans are what they were."""
    return random.choice(_KEEPING)(random, method)


def breaking(random: Random, method: str) -> str:
    """An edit after which they may be anything, and the text perhaps no Python."""
    return random.choice(_BREAKING)(random, method)


def edited(edit: Edit, random: Random, method: str, least: int, most: int) -> str:
    """A method after a few edits; an edit that leaves no Python is the last."""
    for _ in range(random.randint(least, most)):
        try:
            method = edit(random, method)
        except SyntaxError:
            break
    return method


# Where.


def _function(method: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    (function,) = ast.parse(method).body
    assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    return function


def span(statement: ast.stmt) -> tuple[int, int]:
    """Its lines, as a slice; decorators are part of a definition."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(d.lineno for d in decorators)])
    assert statement.end_lineno is not None
    return first - 1, statement.end_lineno


def pick(
    random: Random, text: str, within: ast.AST, hot: Collection[str], longest: int = 1
) -> tuple[int, int, str]:
    """One statement below a node of `text`, or a few in a row, and their indentation.

    Mostly it is one that matters: that contains something `hot`, or stands next to it.
    """
    lines = text.split("\n")
    places = [
        (block, at)
        for node in ast.walk(within)
        for _, block in ast.iter_fields(node)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt)
        for at in range(len(block))
    ]

    def matters(place: tuple[list[ast.stmt], int]) -> bool:
        block, at = place
        first, last = span(block[at])
        near = "\n".join(lines[max(first - 1, 0) : last + 1])
        return last - first < 12 and any(name in near for name in hot)

    hot_ones = [place for place in places if matters(place)]
    block, at = random.choice(hot_ones if hot_ones and random.randrange(3) else places)
    many = random.randint(1, min(longest, len(block) - at))
    return span(block[at])[0], span(block[at + many - 1])[1], " " * block[at].col_offset


def wrap(text: str, first: int, last: int, margin: str, head: str, tail: str) -> str:
    """Puts a slice of lines into a block."""
    lines = text.split("\n")
    lines[first:last] = [
        indent(head, margin),
        indent("\n".join(lines[first:last]), "    "),
        *([indent(tail, margin)] if tail else []),
    ]
    return "\n".join(lines)


def _pick(random: Random, method: str, longest: int = 1) -> tuple[int, int, str]:
    return pick(random, method, _function(method), HOT, longest)


def _put(lines: list[str], at: int, text: str, margin: str) -> str:
    lines[at:at] = indent(text, margin).split("\n")
    return "\n".join(lines)


# What may break it.


def _insert(random: Random, method: str) -> str:
    first, last, margin = _pick(random, method)
    at = random.choice([first, last])
    return _put(method.split("\n"), at, random.choice(LINES), margin)


def _wrap(random: Random, method: str) -> str:
    return wrap(method, *_pick(random, method, longest=4), *random.choice(BLOCKS))


def _remove(random: Random, method: str) -> str:
    first, last, margin = _pick(random, method)
    lines = method.split("\n")
    lines[first:last] = [f"{margin}pass"]
    return "\n".join(lines)


def _unwrap(random: Random, method: str) -> str:
    first, _, margin = _pick(random, method)
    lines = method.split("\n")
    lines[first] = f"{margin}if other:" if lines[first].endswith(":") else f"{margin}log()"
    return "\n".join(lines)


def _move(random: Random, method: str) -> str:
    first, last, margin = _pick(random, method, longest=2)
    lines = method.split("\n")
    moved = "\n".join(line.removeprefix(margin) for line in lines[first:last])
    lines[first:last] = [f"{margin}pass", *[""] * (last - first - 1)]
    at, end, margin = _pick(random, "\n".join(lines))
    return _put(lines, random.choice([at, end]), moved, margin)


def _repeat(random: Random, method: str) -> str:
    first, last, margin = _pick(random, method, longest=2)
    lines = method.split("\n")
    copied = "\n".join(line.removeprefix(margin) for line in lines[first:last])
    return _put(lines, last, copied, margin)


def _replace(random: Random, method: str) -> str:
    first, last, _ = _pick(random, method)
    lines = method.split("\n")
    text = "\n".join(lines[first:last])
    found = [pair for pair in REPLACED if pair[0] in text]
    old, new = random.choice(found or [("", "")])
    lines[first:last] = text.replace(old, new).split("\n")
    return "\n".join(lines)


def _alias(random: Random, method: str) -> str:
    first, last, _ = _pick(random, method)
    lines = method.split("\n")
    lines[first:last] = [
        line.replace("self._rt_session.", "session.") for line in lines[first:last]
    ]
    edited = "\n".join(lines)
    return _put(lines, _start(edited), "session = self._rt_session", "    ")


# What keeps it.


def _start(method: str) -> int:
    """The line, from 0, of the first statement behind a docstring."""
    body = _function(method).body
    return span(body[ast.get_docstring(_function(method)) is not None])[0]


def _comment(random: Random, method: str) -> str:
    first, _, margin = _pick(random, method)
    return _put(method.split("\n"), first, random.choice(["# why", "", "# päivä"]), margin)


def _trailing_comment(random: Random, method: str) -> str:
    _, last, _ = _pick(random, method)
    lines = method.split("\n")
    lines[last - 1] += "  # so"
    return "\n".join(lines)


def _first_statement(random: Random, method: str) -> str:
    return _put(method.split("\n"), _start(method), "log()", "    ")


def _decorate(random: Random, method: str) -> str:
    return f"@keep({random.choice(['', 'log', 'a=1'])})\n{method}"


def _rename(random: Random, method: str) -> str:
    function = _function(method)
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    fixed = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            fixed.update(node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            fixed.add(node.name)
        elif isinstance(node, ast.JoinedStr):  # positions inside are wrong before Python 3.12
            fixed.update(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
    bound = {n.id for n in names if isinstance(n.ctx, ast.Store)} - fixed
    old = random.choice(sorted(bound) or ["log"])
    lines = [line.encode() for line in method.split("\n")]
    places = {(n.lineno - 1, n.col_offset) for n in names if n.id == old}
    for row, column in sorted(places, reverse=True):
        line = lines[row]
        end = column + len(old.encode())
        lines[row] = line[:end] + b"_" + line[end:]  # which no other name becomes
    return b"\n".join(lines).decode()


_KEEPING: tuple[Edit, ...] = (_comment, _trailing_comment, _first_statement, _decorate, _rename)
_BREAKING: tuple[Edit, ...] = (
    *(_insert, _insert, _wrap, _wrap, _remove, _unwrap, _move, _repeat, _replace, _replace, _alias),
)
