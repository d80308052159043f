"""Reads a file of the scope `full` as the file of the scope `lock` that it was made of.

So the finder and the inverse judge both scopes by the same rules. A call is known by what it says
and by what stands in front of it and behind it; any other stays, for the finder to refuse. It
shares no code with :mod:`ctxlock.patching.lock_calls`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeAlias

from ..target import CLASS, LOCK, LOCK_CLASS, MODULE, SESSION
from .tree import AnyFunction, is_own

__all__ = ["AGENT_CONTEXT", "blocks", "calls_of", "parts_of", "plain_source", "said_by"]
__all__ += ["without_calls"]

AGENT_CONTEXT = "self._agent._chat_ctx"

Block: TypeAlias = "list[ast.stmt]"

_IMPORT = f"from .{MODULE} import {LOCK_CLASS}"
_NEW_LOCK = f"{LOCK_CLASS}(self)"

_NEW = ("SESSION = ....session(...)", f"LOCK = {_NEW_LOCK}", "...")
_CLOSED = ("await SESSION.aclose()", "LOCK.close()", "...")
_SAID = ("RECORD(A)", "LOCK.said(A)", "...")
_REPLY = (
    ("RECORD(A.fnc_call_out)", "LOCK.pending(A.fnc_call_out)", "..."),
    ("RECORD(A)", "LOCK.pending(*A)", "..."),
    ("A.items.extend(B)", "LOCK.place(A, *B)", "..."),
    ("any_skipped = True", "LOCK.unheard(A.msg.message_id)", "..."),
    _SAID,
)
_SHAPES = {
    "update_chat_ctx": (
        ("...", "LOCK.replacing(self, A)", "CONTEXT = A"),
        ("...", "A = CONTEXT", "await SESSION.update_chat_ctx(A)"),
    ),
    "_realtime_reply_task": (("A = B.add_message(...)", "LOCK.typing(B, A)", "..."),),
    "_realtime_generation_task": _REPLY,
    "_realtime_generation_task_impl": _REPLY,
    "_tts_task_impl": (
        ("A._mark_generation_done()", "LOCK.pending(spoken_msg)", "..."),
        ("A.insert(spoken_msg)", "LOCK.place(A, spoken_msg)", "..."),
    ),
    "_on_input_audio_transcription_completed": (_SAID,),
    "_on_remote_item_added": (("", "if LOCK.tell(A):\n    return", "..."),),
    "_detach_reusable_resources": (("...", "LOCK.hand_over(A, B.rt_session)", "return B"),),
    "start": (_NEW,),
    "_start_session": (_NEW, ("SESSION = A.rt_session", "LOCK.attach(self, SESSION)", "...")),
    "aclose": (_CLOSED,),
    "_close_session": (_CLOSED,),
}
"""For each method what stands in front of a call, the call, and what stands behind it.

`A` and `B` are names, the same wherever they stand in a shape, and `...` is anything. In front of
what has nothing there, a docstring may stand.
"""

_WORDS = {
    "RECORD": "CONTEXT\\.(?:_upsert_item|insert|items\\.append)",
    "CONTEXT": re.escape(AGENT_CONTEXT),
    "LOCK": rf"self\.{LOCK}",
    "SESSION": rf"self\.{SESSION}",
    re.escape("..."): "[^\0]*",
}

_PARTS = {
    "replacing": "replacements",
    "typing": "typed messages",
    "pending": "tool outputs",
    "tell": "server items",
    "attach": "handoffs",
    "unheard": "unheard messages",
    "close": "closing",
}
"""The methods of the lock, and what a file that calls them has of the scope full."""


def calls_of(module: ast.Module) -> list[tuple[Block, ast.stmt]]:
    """The statements that tell the lock what goes on, each with the block it stands in."""
    return [
        (block, statement)
        for method in _methods(module)
        for block in blocks(method)
        for at, statement in enumerate(block)
        if said_by(statement) and _has_shape(method.name, block, at)
    ]


def said_by(statement: ast.stmt) -> str:
    """What a statement tells the lock: the method it calls, `latest`, or `new`; or nothing."""
    value = getattr(statement, "value", getattr(statement, "test", None))
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute) and is_own(value.func.value, LOCK):
            return value.func.attr
        return "new" if ast.unparse(value) == _NEW_LOCK else ""
    latest = isinstance(value, ast.Attribute) and ast.unparse(value) == AGENT_CONTEXT
    return "latest" if latest and isinstance(statement, ast.Assign) else ""


def blocks(node: ast.AST) -> Iterator[Block]:
    """The blocks of a method, without those of what it defines."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], (ast.stmt, *_CLAUSES)):
            if isinstance(value[0], ast.stmt):
                yield value
            for one in value:
                if not isinstance(one, (*AnyFunction, ast.ClassDef)):
                    yield from blocks(one)


def without_calls(module: ast.Module) -> ast.Module:
    """Returns `module`, changed in place, without what the scope full adds to the scope lock."""
    if not _imports(module):
        return module
    for block, call in calls_of(module):
        block.remove(call)
    for made in _locks_made(module):
        made.func = ast.Attribute(ast.Name("asyncio", ast.Load()), "Lock", ast.Load())
        made.args = []
    for statement in _imports(module):
        module.body.remove(statement)
    return ast.fix_missing_locations(module)


def plain_source(source: bytes) -> bytes:
    """Returns the text of a file of the scope full as the scope lock has it.

    A file of another kind is returned as it is, and a line that has more than a call stays.
    """
    module = ast.parse(source)
    if not _imports(module):
        return source
    lines = source.splitlines(keepends=True)
    for made in _locks_made(module):
        line = made.lineno - 1
        lines[line] = lines[line].replace(_NEW_LOCK.encode(), b"asyncio.Lock()")
    for node in [*_imports(module), *(call for _, call in calls_of(module))]:
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        if b"".join(lines[first:last]).split() == ast.unparse(node).encode().split():
            lines[first:last] = [b""] * (last - first)
    return b"".join(lines)


def parts_of(source: str | bytes) -> tuple[str, ...]:
    """What a file has of the scope full; nothing if it is of another kind.

    Older releases lack what some of it is about.
    """
    module = ast.parse(source)
    said = {said_by(call) for _, call in calls_of(module)} if _imports(module) else set()
    return tuple(part for method, part in _PARTS.items() if method in said)


def _imports(module: ast.Module) -> list[ast.stmt]:
    """The import of the lock; a file without it is of another kind."""
    found = (node for node in module.body if isinstance(node, ast.ImportFrom))
    return [node for node in found if ast.unparse(node) == _IMPORT]


def _methods(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for activity in module.body:
        if isinstance(activity, ast.ClassDef) and activity.name == CLASS:
            yield from (node for node in activity.body if isinstance(node, AnyFunction))


def _locks_made(module: ast.Module) -> list[ast.Call]:
    """What makes the lock in the constructor, in place of an `asyncio.Lock`."""
    return [
        statement.value
        for method in _methods(module)
        if method.name == "__init__"
        for block in blocks(method)
        for statement in block
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement) == f"self.{LOCK} = {_NEW_LOCK}"
    ]


def _has_shape(method: str, block: Block, at: int) -> bool:
    """Whether a statement is a call that the scope full adds to a method, in its place there."""
    around = [*block[:at][-1:], None][0], block[at], [*block[at + 1 :], None][0]
    text = "\0".join(map(_text, around))
    return any(pattern.fullmatch(text) for pattern in _PATTERNS.get(method, ()))


def _text(statement: ast.stmt | None) -> str:
    docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return "" if statement is None or docstring else ast.unparse(statement)


def _pattern(shape: tuple[str, str, str]) -> re.Pattern[str]:
    text = re.escape("\0".join(shape))
    for word, meaning in _WORDS.items():
        text = text.replace(word, meaning)
    for name in "AB":
        first, *others = re.split(rf"\b{name}\b", text)
        if others:
            named = rf"(?P<{name}>(?!(?:self|None|True|False)\b)\w+)"
            text = first + named + f"(?P={name})".join(others)
    return re.compile(text)


_CLAUSES = (ast.excepthandler, ast.match_case)
_PATTERNS = {method: [*map(_pattern, shapes)] for method, shapes in _SHAPES.items()}
