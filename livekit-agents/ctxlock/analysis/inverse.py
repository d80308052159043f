"""Takes away what the patch adds, to show that a patched file has all else as it was published.

Nothing is taken away from the original: what it has must be there, once, and in its place.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator, Sequence

from ..errors import NotUnderstood
from ..target import ACTIVITY_LOCK, LOCK, SESSION
from .tree import (
    AnyFunction,
    is_lock_block,
    is_lock_declaration,
    is_own,
    is_session_check,
    tree_of,
)
from .without_calls import without_calls

__all__ = ["check_inverse"]

_ADDED = (
    f"self.{LOCK} = asyncio.Lock()",
    f"async with self.{LOCK}:",
    f"if self.{SESSION} is not None:",
)
"""The lines that the scope lock adds, but for comments and empty ones."""


_CHANGED = "The rewrite changed more than the lock here; nothing was written."


def check_inverse(original: bytes, patched: bytes, filename: str) -> None:
    """Checks that both texts are the same program but for what the patch adds.

    That is the making of the lock, its blocks, the check that opens one, and, in front of a push in
    a `try`, its snapshot and the additions, which come from before the `try`.

    Args:
        original: The file before the rewrite; it may take the lock at some sites already.
        patched: The file after it.
        filename: How errors name it.

    Raises:
        NotUnderstood: They differ by more; it names the first line of `original` that changed.
    """
    before = tree_of(original, filename, without_calls)
    after = tree_of(patched, filename, without_calls)
    if (line := _lost_line(original, patched)) is not None:
        raise NotUnderstood(filename, line, _CHANGED)
    changed = _difference(before.module, after.module, checked=False)
    if changed is not None:
        raise before.refuse(changed, _CHANGED)


def _lost_line(original: bytes, patched: bytes) -> int | None:
    """The first line, 1-based, that `patched` lacks, or which has something that it gains.

    Comments are seen here alone, and how a number or a text is spelled.
    """
    before = [line.strip() for line in original.decode().splitlines()]
    after = Counter(line.strip() for line in patched.decode().splitlines())
    left = after - Counter(before)
    gained = [line for line in left if line and not line.startswith("#") and line not in _ADDED]
    for number, line in enumerate(before, 1):
        if not after[line]:
            return number
        after[line] -= 1
    return 1 if gained else None


def _difference(old: ast.AST, new: ast.AST, checked: bool) -> ast.AST | None:
    """The innermost node of `old` that is another in `new`; None if nothing but the lock is.

    Args:
        old: A node of the original.
        new: What stands in its place.
        checked: Whether the session was checked on the way there, in the same function.
    """
    if type(old) is not type(new):
        return old
    if isinstance(old, (*AnyFunction, ast.Lambda)):
        checked = False
    for field in old._fields:
        opens = field == "body" and isinstance(old, ast.If) and _checks_session(old.test)
        was, now = _parts(old, field), _parts(new, field)
        found = _first_difference(old, was, now, checked or opens)
        if found is not None:
            return found if hasattr(found, "lineno") else old
    return None


def _parts(node: ast.AST, field: str) -> list[object]:
    value = getattr(node, field, None)
    return value if isinstance(value, list) else [value]


def _first_difference(
    owner: ast.AST, old: Sequence[object], new: Sequence[object], checked: bool
) -> ast.AST | None:
    """The same for a field of `owner`, a block mostly: its parts in the original, and now."""
    rest = [*old]
    before: object = None
    for part in new:
        made = is_lock_declaration(part) and _makes_activity_lock(before)
        before = part
        if made and not (rest and is_lock_declaration(rest[0])):
            continue
        if (count := _written_as(part, rest, checked)) is not None:
            del rest[:count]
            continue
        if not rest:
            return owner
        was = rest.pop(0)
        if isinstance(was, ast.AST) and isinstance(part, ast.AST):
            if (found := _difference(was, part, checked)) is not None:
                return found
        elif type(was) is not type(part) or was != part:
            return owner
    return next((was for was in rest if isinstance(was, ast.AST)), owner) if rest else None


def _written_as(part: object, rest: Sequence[object], checked: bool) -> int | None:
    """How many statements `part` was made of, if `rest` begins with them."""
    for original in _originals(part, checked):
        here = rest[: len(original)]
        if [_dumped(one) for one in here] == [_dumped(one) for one in original]:
            return len(original)
    return None


def _dumped(part: object) -> str:
    return ast.dump(part) if isinstance(part, ast.AST) else ""


def _originals(node: object, checked: bool) -> Iterator[list[ast.stmt]]:
    """What the rewriter makes `node` of, where it is the lock or a `try` that begins with it."""
    if is_lock_block(node):
        for span in _spans(node, checked):
            yield span
            yield [_with_body(node, span)]
            yield [*span[:-1], _with_body(node, span[-1:])]
    elif isinstance(node, ast.Try) and len(node.body) == 1 and is_lock_block(node.body[0]):
        lock = node.body[0]
        for span in _spans(lock, checked):
            *drawn_in, push = span
            yield [*drawn_in, _with_body(node, [push])]
            yield [*drawn_in, _with_body(node, [_with_body(lock, [push])])]


def _spans(lock: ast.AsyncWith, checked: bool) -> Iterator[list[ast.stmt]]:
    """What `lock` holds, without the check that opens it and with it."""
    first = lock.body[0]
    alone = len(lock.body) == 1 and isinstance(first, ast.If) and not first.orelse
    if checked and alone and isinstance(first, ast.If) and is_session_check(first.test):
        yield first.body
    yield lock.body


def _with_body(node: ast.stmt, body: list[ast.stmt]) -> ast.stmt:
    changed = copy.copy(node)
    changed.body = body  # type: ignore[attr-defined]
    return changed


def _checks_session(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(_checks_session, test.values))
    return is_session_check(test)


def _makes_activity_lock(node: object) -> bool:
    """Whether `node` is `self._lock = asyncio.Lock()`, behind which the rewriter makes its own."""
    return (
        isinstance(node, ast.Assign)
        and is_own(node.targets[0], ACTIVITY_LOCK)
        and ast.unparse(node.value) == "asyncio.Lock()"
    )
