"""Finds pushes outside the lock by rules of its own, cruder than the finder's."""

from __future__ import annotations

import ast
from collections.abc import Iterator

PUSHES = ("update_chat_ctx", "_update_session")


def naked(source: str) -> list[str]:
    """Pushes that are not under the lock with their snapshot, by rules cruder than the finder's."""
    tree = ast.parse(source)
    parent = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def around(node: ast.AST) -> Iterator[ast.AST]:
        while node in parent and not isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        ):
            node = parent[node]
            yield node

    found = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and node.attr in PUSHES):
            continue
        if "session" not in ast.unparse(node.value):
            continue  # the agent's own `update_chat_ctx`, say
        outer = list(around(node))
        lock = next(
            (
                n
                for n in outer
                if isinstance(n, ast.AsyncWith) and "_rt_chat_ctx_lock" in ast.unparse(n.items[0])
            ),
            None,
        )
        snapshots = {
            target.id: assign
            for assign in ast.walk(outer[-1])
            if isinstance(assign, ast.Assign) and "_rt_session.chat_ctx" in ast.unparse(assign)
            for target in assign.targets
            if isinstance(target, ast.Name)
        }
        call = parent[node]
        pushed = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)} & {*snapshots}
        inside = {
            n.id
            for n in ast.walk(lock or node)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        if lock is None or not pushed <= inside:
            found.append(f"line {node.lineno}: {ast.unparse(call)}")
    return found
