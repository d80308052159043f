"""Edits of a method's text, for fuzzing: some keep its structure, some may break it.

An edit takes the method, written from column 0, and returns it edited as chance has it. It works on
lines, so that formatting and comments stay as they were.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from random import Random
from textwrap import indent

__all__ = ["Edit", "breaking", "keeping"]

Edit = Callable[[Random, str], str]

HOT = ("_rt_session.", "_rt_chat_ctx_lock")
"""What the statements contain that matter most."""

LINES = (
    *("await tool()", "log()", "return", "raise ValueError", "pass", "yield"),
    *("session = self._rt_session", "push = self._rt_session.update_chat_ctx"),
    *("kept = self._rt_session.chat_ctx", "self.kept = self._rt_session.chat_ctx.copy()"),
    *("chat_ctx = self._rt_session.chat_ctx.copy()", "chat_ctx = chat_ctx.copy()"),
    *("self.kept = chat_ctx", "kept = chat_ctx", "chat_ctx.items.append(await tool())"),
    *("await self._rt_session.update_chat_ctx(chat_ctx)", "chat_ctx.items.append(1)"),
    *("await session.update_chat_ctx(chat_ctx)", "await push(chat_ctx)"),
    "await asyncio.gather(self._rt_session.update_chat_ctx(chat_ctx))",
    "await getattr(self._rt_session, 'update_chat_ctx')(chat_ctx)",
    "asyncio.create_task(self._rt_session.update_chat_ctx(chat_ctx))",
    "later = lambda: self._rt_session.update_chat_ctx(chat_ctx)",
    "if self._rt_session is None:\n    return",
    "self._rt_session = None",
    "global chat_ctx",
)

BLOCKS = (
    *(("if other:", ""), ("if self._rt_session is not None:", ""), ("for _ in range(2):", "")),
    *(("try:", "except ValueError:\n    log()"), ("try:", "finally:\n    log()")),
    *(("try:\n    pass\nfinally:", ""), ("while other:", "    break"), ("with keep():", "")),
    *(("async with self._lock:", ""), ("async with self._rt_chat_ctx_lock:", "")),
    *(("async def later():", "await later()"), ("async def later(self):", "await later(self)")),
    *(("class Inner:", ""), ("def later():", "later()")),
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


# Where.


def _function(method: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    (function,) = ast.parse(method).body
    assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    return function


def _blocks(node: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    """Every list of statements below `node`."""
    for child in ast.walk(node):
        for _, value in ast.iter_fields(child):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value


def _span(statement: ast.stmt) -> tuple[int, int]:
    """Its lines, as a slice; decorators are part of a definition."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(d.lineno for d in decorators)])
    assert statement.end_lineno is not None
    return first - 1, statement.end_lineno


def _pick(random: Random, method: str, longest: int = 1) -> tuple[int, int, str]:
    """One statement, or a few in a row, and their indentation: mostly ones that matter."""
    lines = method.split("\n")
    places = [(block, at) for block in _blocks(_function(method)) for at in range(len(block))]

    def matters(place: tuple[Sequence[ast.stmt], int]) -> bool:
        block, at = place
        first, last = _span(block[at])
        return last - first < 12 and any(hot in "\n".join(lines[first:last]) for hot in HOT)

    hot = [place for place in places if matters(place)]
    block, at = random.choice(hot if hot and random.randrange(4) else places)
    many = random.randint(1, min(longest, len(block) - at))
    first, last = _span(block[at])[0], _span(block[at + many - 1])[1]
    return first, last, " " * block[at].col_offset


def _put(lines: list[str], at: int, text: str, margin: str) -> str:
    lines[at:at] = indent(text, margin).split("\n")
    return "\n".join(lines)


# What may break it.


def _insert(random: Random, method: str) -> str:
    first, last, margin = _pick(random, method)
    at = random.choice([first, last])
    return _put(method.split("\n"), at, random.choice(LINES), margin)


def _wrap(random: Random, method: str) -> str:
    first, last, margin = _pick(random, method, longest=4)
    lines = method.split("\n")
    head, tail = random.choice(BLOCKS)
    wrapped = [indent(head, margin), indent("\n".join(lines[first:last]), "    ")]
    lines[first:last] = [*wrapped, indent(tail, margin)]
    return "\n".join(lines)


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
    edited = _replace_all(random, method, "self._rt_session.", "session.")
    return _put(edited.split("\n"), _start(edited), "session = self._rt_session", "    ")


def _replace_all(random: Random, method: str, old: str, new: str) -> str:
    first, last, _ = _pick(random, method)
    lines = method.split("\n")
    lines[first:last] = [line.replace(old, new) for line in lines[first:last]]
    return "\n".join(lines)


# What keeps it.


def _start(method: str) -> int:
    """The line, from 0, of the first statement behind a docstring."""
    body = _function(method).body
    return _span(body[ast.get_docstring(_function(method)) is not None])[0]


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
