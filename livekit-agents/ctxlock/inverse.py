"""Takes the lock away again, to show that a patched file differs from its original by it alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .spans import is_push, is_snapshot
from .syntax import Tree, is_lock_block, is_lock_declaration, is_session_check
from .unroute import RECORDER, is_routed, unrouted

__all__ = ["check_inverse"]


def check_inverse(original: bytes, patched: bytes, filename: str) -> None:
    """Checks that both texts are the same program but for the lock.

    Args:
        original: The file before the rewrite; it may take the lock at some sites already.
        patched: The file after it.
        filename: How errors name it.

    Raises:
        NotUnderstood: They differ by more; it names the first line of `original` that changed.
    """
    before = Tree(original, filename)
    after = Tree(patched, filename)
    old, new = before.module, after.module
    if is_routed(new):
        old, new = (
            _Recording().visit(_WithoutRecorder().visit(old)),
            _Recording().visit(unrouted(new)),
        )
    old, new = _WithoutLock().visit(old), _WithoutLock().visit(new)
    if ast.dump(old) == ast.dump(new):
        return
    first = next(_differences(old, new), old)
    raise before.refuse(first, "The rewrite changed more than the lock here; nothing was written.")


class _WithoutRecorder(ast.NodeTransformer):
    """Empties the method that the added module stands for."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        if node.name == RECORDER:
            node.body = [ast.Pass()]
        return node


class _Recording(ast.NodeTransformer):
    """Makes alike how an item is recorded with the agent; before 1.5.0 it is appended."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        self.generic_visit(node)
        if ast.unparse(node) == "self._agent._chat_ctx.items.append":
            assert isinstance(node.value, ast.Attribute)
            return ast.Attribute(node.value.value, "_upsert_item", node.ctx)
        return node


class _WithoutLock(ast.NodeTransformer):
    """Removes the lock and the checks after it; hoists what stands before the push in a `try`."""

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        return None if is_lock_declaration(node) else node

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not is_lock_block(node):
            return node
        first = node.body[0]
        if len(node.body) == 1 and isinstance(first, ast.If) and is_session_check(first.test):
            return first.body
        return node.body

    def visit_Try(self, node: ast.Try) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if len(node.body) < 2 or not _is_span(node.body):
            return node
        *hoisted, push = node.body
        node.body = [push]
        return [*hoisted, node]


def _is_span(body: Sequence[ast.stmt]) -> bool:
    """Whether `body` begins with a snapshot and ends with a push."""
    first, last = ast.walk(body[0]), ast.walk(body[-1])
    return any(map(is_snapshot, first)) and any(map(is_push, last))


def _differences(old: ast.AST, new: ast.AST) -> Iterator[ast.AST]:
    """The innermost nodes of `old` that have a line and no equal in `new`."""
    if ast.dump(old) == ast.dump(new):
        return
    for child, peer in zip(ast.iter_child_nodes(old), ast.iter_child_nodes(new), strict=False):
        yield from _differences(child, peer)
    if hasattr(old, "lineno"):
        yield old
