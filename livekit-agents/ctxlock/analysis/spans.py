"""Reads the spans of one method: the snapshot, the additions to it, the push that ends them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from ..target import LOCK, PUSHES, SESSION, SNAPSHOT
from .tree import Tree, is_lock_block, is_own, is_session_check, root

__all__ = ["Span", "is_push", "is_snapshot", "read_spans"]


@dataclass(frozen=True)
class Span:
    """From the snapshot, where there is one, to the push.

    Attributes:
        push: The statement that awaits the provider's acknowledgement.
        pushed: The context it pushes.
        snapshot: The statement that took the pushed context, if it was taken from the session.
        additions: The statements between the two.
        lock: The lock's block, if it holds the whole span.
    """

    push: ast.stmt
    pushed: ast.expr
    snapshot: ast.stmt | None
    additions: tuple[ast.stmt, ...]
    lock: ast.AsyncWith | None

    @property
    def statements(self) -> tuple[ast.stmt, ...]:
        """The span's statements, as they run."""
        taken = () if self.snapshot is None else (self.snapshot,)
        return (*taken, *self.additions, self.push)


def read_spans(tree: Tree, nodes: Sequence[ast.AST]) -> list[Span]:
    """Reads the spans among the `nodes` of one function.

    Raises:
        NotUnderstood: A push has an unknown shape, or a span or the lock holds more than it may.
    """
    spans = [_read(tree, node, nodes) for node in nodes if is_push(node)]
    _refuse_idle_locks(tree, nodes, spans)
    return spans


def is_push(node: ast.AST) -> bool:
    """Whether `node` is a method of the session that pushes."""
    return isinstance(node, ast.Attribute) and node.attr in PUSHES and is_own(node.value, SESSION)


def is_snapshot(node: ast.AST) -> bool:
    """Whether `node` is the session's context."""
    return isinstance(node, ast.Attribute) and node.attr == SNAPSHOT and is_own(node.value, SESSION)


def _read(tree: Tree, push: ast.AST, nodes: Sequence[ast.AST]) -> Span:
    statement, pushed = _push_statement(tree, push)
    if not (isinstance(pushed, ast.Name) and any(_takes(n, pushed.id) for n in nodes)):
        return Span(statement, pushed, None, (), _lock_of(tree, (statement,)))
    additions: list[ast.stmt] = []
    for candidate in reversed(_leading_up_to(tree, statement)):
        if _takes(candidate, pushed.id):
            if _does_more(candidate):
                raise tree.refuse(
                    candidate, "The arguments of this snapshot await or bind something."
                )
            additions.reverse()
            lock = _lock_of(tree, (candidate, *additions, statement))
            return Span(statement, pushed, candidate, tuple(additions), lock)
        if not _adds_to(candidate, pushed.id):
            raise tree.refuse(
                candidate,
                f"This statement stands between the snapshot `{pushed.id}` and its push, and is "
                "not an addition to it.",
            )
        additions.append(candidate)
    raise tree.refuse(statement, f"The snapshot `{pushed.id}` is not taken in the same block.")


def _push_statement(tree: Tree, push: ast.AST) -> tuple[ast.stmt, ast.expr]:
    statement = tree.statement(push)
    call = tree.parent[push]
    if not (
        isinstance(call, ast.Call)
        and isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Await)
        and statement.value.value is call
        and call.func is push
    ):
        raise tree.refuse(push, "This push is not an awaited statement of its own.")
    given = [k.value for k in call.keywords if k.arg == "chat_ctx"] or call.args
    if len(given) != 1 or isinstance(given[0], ast.Starred):
        raise tree.refuse(call, "This push has other arguments than one context.")
    if _does_more(call) or any(is_snapshot(node) for node in ast.walk(call)):
        raise tree.refuse(call, "The arguments of this push await, bind or snapshot something.")
    return statement, given[0]


def _leading_up_to(tree: Tree, push: ast.stmt) -> list[ast.stmt]:
    """The statements that run straight before the push, in the order in which they run.

    They stand before it in its own block and, if that block is the body of a `try`, of the lock
    or of the check that follows the lock, before that statement too.
    """
    before: list[ast.stmt] = []
    statement = push
    while True:
        block = tree.block(statement)
        before[:0] = block[: block.index(statement)]
        outer = tree.parent[statement]
        tried = isinstance(outer, ast.Try) and block is outer.body
        rechecked = isinstance(outer, ast.If) and is_session_check(outer.test)
        opens = tried or is_lock_block(outer) or (rechecked and tree.lock_around(outer))
        if not opens or not isinstance(outer, ast.stmt):
            return before
        statement = outer


def _takes(node: ast.AST, name: str) -> bool:
    """Whether `node` is `<name> = self._rt_session.chat_ctx.copy()`."""
    return (
        isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == name
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr == "copy"
        and is_snapshot(node.value.func.value)
    )


def _adds_to(node: ast.stmt, name: str) -> bool:
    """Whether `node` calls a method of the context `name`, or of its items, and does no more.

    It may keep the item that an `add_…` method returns, but nothing that can hold the context.
    """
    value = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return False
    if isinstance(node, ast.Assign):
        kept = len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        if not (kept and value.func.attr.startswith("add_")):
            return False
    called = root(value.func)
    named = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name]
    return (
        named == [called]
        and not _does_more(node)
        and not any(is_own(n, SESSION) for n in ast.walk(node))
    )


def _does_more(node: ast.AST) -> bool:
    """Whether something inside `node` suspends, or binds out of sight."""
    more = (ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda, ast.NamedExpr)
    return any(isinstance(n, more) or getattr(n, "is_async", 0) for n in ast.walk(node))


def _lock_of(tree: Tree, span: tuple[ast.stmt, ...]) -> ast.AsyncWith | None:
    """The lock that holds all of `span`; `None` if there is none, or if it holds a part only."""
    lock = tree.lock_around(span[-1])
    if lock is None:
        return None
    if tree.lock_around(lock) is not None:
        raise tree.refuse(lock, f"{LOCK} is taken inside itself.")
    body = lock.body
    if len(body) == 1 and isinstance(body[0], ast.If) and is_session_check(body[0].test):
        if body[0].orelse:
            raise tree.refuse(body[0], f"This check inside {LOCK} has an `else`.")
        body = body[0].body
    if not all(statement in span for statement in body):
        reason = f"{LOCK} holds more than one snapshot, the additions to it, and its push."
        raise tree.refuse(lock, reason)
    return lock if len(body) == len(span) else None


def _refuse_idle_locks(tree: Tree, nodes: Sequence[ast.AST], spans: Sequence[Span]) -> None:
    used = {tree.lock_around(span.push) for span in spans}
    for node in nodes:
        if is_lock_block(node) and node not in used:
            raise tree.refuse(node, f"{LOCK} is held here and nothing is pushed.")
