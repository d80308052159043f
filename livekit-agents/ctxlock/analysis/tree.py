"""How to move about the tree of a parsed `agent_activity.py`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeGuard

from ..errors import NotUnderstood
from ..target import LOCK, SESSION

__all__ = [
    "AnyFunction",
    "Tree",
    "is_lock_block",
    "is_lock_declaration",
    "is_own",
    "is_session_check",
    "root",
    "tree_of",
]

_DEPTH: Final = 100
"""Releases reach 19. Python's visitors fail beyond some hundreds, and LibCST's parser crashes."""

AnyFunction = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_own(node: ast.AST | None, *names: str) -> TypeGuard[ast.Attribute]:
    """Whether `node` is `self.<name>` for one of `names`."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr in names
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def is_lock_declaration(node: object) -> TypeGuard[ast.Assign]:
    """Whether `node` is `self._rt_chat_ctx_lock = asyncio.Lock()`."""
    return (
        isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and is_own(node.targets[0], LOCK)
        and ast.unparse(node.value) == "asyncio.Lock()"
    )


def is_lock_block(node: object) -> TypeGuard[ast.AsyncWith]:
    """Whether `node` is `async with self._rt_chat_ctx_lock:`."""
    return (
        isinstance(node, ast.AsyncWith)
        and len(node.items) == 1
        and node.items[0].optional_vars is None
        and is_own(node.items[0].context_expr, LOCK)
    )


def is_session_check(node: ast.AST | None) -> bool:
    """Whether `node` is the expression `self._rt_session is not None`."""
    return (
        isinstance(node, ast.Compare)
        and is_own(node.left, SESSION)
        and len(node.ops) == 1
        and isinstance(node.ops[0], ast.IsNot)
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
    )


def root(node: ast.expr) -> ast.expr:
    """The expression that a chain of attributes starts from."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


class Tree:
    """A parsed module that knows the parent of each of its nodes.

    Args:
        source: The text of the module.
        filename: How errors name it.
        read_as: Changes the parsed module before it is looked at.

    Attributes:
        module: The module.
        nodes: All its nodes, outer ones first.
        parent: What each node but the module stands in.

    Raises:
        NotUnderstood: `source` is no Python, or too deeply nested.
    """

    def __init__(
        self,
        source: str | bytes,
        filename: str,
        read_as: Callable[[ast.Module], ast.Module] = lambda module: module,
    ) -> None:
        self.filename = filename
        try:
            self.module = read_as(ast.parse(source, filename))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
            reason = e.msg if isinstance(e, SyntaxError) else str(e) or "it is too complex"
            line = getattr(e, "lineno", None) or 1
            raise NotUnderstood(filename, line, f"This is not Python source: {reason}.") from None
        self.nodes: list[ast.AST] = [self.module]
        self.parent: dict[ast.AST, ast.AST] = {}
        self._function: dict[ast.AST, ast.FunctionDef | ast.AsyncFunctionDef | None] = {}
        depth: dict[ast.AST, int] = {self.module: 0}
        for node in self.nodes:
            function = node if isinstance(node, AnyFunction) else self._function.get(node)
            for child in ast.iter_child_nodes(node):
                self.nodes.append(child)
                self.parent[child] = node
                self._function[child] = function
                depth[child] = depth[node] + 1
            if depth[node] > _DEPTH and hasattr(node, "lineno"):
                raise self.refuse(node, "This is nested too deeply to be followed.")

    def refuse(self, node: ast.AST, reason: str) -> NotUnderstood:
        """The error that says what is wrong with `node`; for the caller to raise."""
        return NotUnderstood(self.filename, getattr(node, "lineno", 1), reason)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around `node`, from its parent outwards."""
        while (parent := self.parent.get(node)) is not None:
            yield parent
            node = parent

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function or method that `node` stands in."""
        return self._function.get(node)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds the expression `node`."""
        return next(n for n in self.above(node) if isinstance(n, ast.stmt))

    def block(self, statement: ast.stmt) -> Sequence[ast.stmt]:
        """The list of statements that `statement` stands in."""
        for _, value in ast.iter_fields(self.parent[statement]):
            if isinstance(value, list) and statement in value:
                return value
        raise AssertionError("every statement stands in a block")

    def enclosing(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Pairs of a node around `node` and its child on the way there, in the same function."""
        for outer in self.above(node):
            if isinstance(outer, (*AnyFunction, ast.Lambda)):
                return
            yield outer, node
            node = outer

    def lock_around(self, node: ast.AST) -> ast.AsyncWith | None:
        """The innermost `async with self._rt_chat_ctx_lock:` around `node`, in its function."""
        return next((outer for outer, _ in self.enclosing(node) if is_lock_block(outer)), None)

    def conditions(self, node: ast.AST) -> Iterator[ast.expr]:
        """The tests that were true on the way to `node`: of each `if`, every part of an `and`."""
        for outer, child in self.enclosing(node):
            if isinstance(outer, ast.If) and child in outer.body:
                test = outer.test
                both = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
                yield from test.values if both and isinstance(test, ast.BoolOp) else [test]


@lru_cache(maxsize=4)
def tree_of(
    source: str | bytes, filename: str, read_as: Callable[[ast.Module], ast.Module]
) -> Tree:
    """The tree of a source, which nobody may change: several checks read the same text.

    Args:
        source: The text of the module.
        filename: How errors name it.
        read_as: As for `Tree`.

    Raises:
        NotUnderstood: As `Tree` does.
    """
    return Tree(source, filename, read_as)
