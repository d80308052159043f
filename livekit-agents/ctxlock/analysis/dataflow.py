"""Refuses what could carry a stale context, or a stale check of the session, into a push."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence

from ..target import SESSION
from .spans import Span
from .tree import Tree, is_own, is_session_check, root

__all__ = ["check_flow"]


def check_flow(tree: Tree, nodes: Sequence[ast.AST], spans: Sequence[Span]) -> None:
    """Follows what goes into the `spans` of one function, and what comes out of them.

    Args:
        tree: The module.
        nodes: The function's own nodes, without those of functions inside it.
        spans: The function's spans.

    Raises:
        NotUnderstood: A push's context comes from elsewhere than its snapshot, the caller or the
            agent; what a snapshot was bound to is used outside its span; or the session is
            checked in a way that cannot be repeated after the wait.
    """
    for span in spans:
        if span.snapshot is None and not _is_known(tree, span.pushed, nodes):
            raise tree.refuse(
                span.pushed, "It is unclear where the context of this push comes from."
            )
        _refuse_other_checks(tree, nodes, span)
    _refuse_escapes(tree, spans)


def _is_known(tree: Tree, context: ast.expr, nodes: Sequence[ast.AST]) -> bool:
    """Whether `context` is what the caller gave, or the agent's own, read as it is pushed."""
    if isinstance(context, ast.IfExp):
        return all(_is_known(tree, part, nodes) for part in (context.body, context.orelse))
    if isinstance(context, ast.Call):
        method = context.func
        if not (isinstance(method, ast.Attribute) and method.attr == "copy"):
            return False
        return _is_known(tree, method.value, nodes)
    if not isinstance(context, ast.Name):
        owner = root(context)
        return isinstance(owner, ast.Name) and owner.id == "self"
    function = tree.function(context)
    arguments = ast.walk(function.args) if function else ()
    given = any(isinstance(n, ast.arg) and n.arg == context.id for n in arguments)
    kept = all(_copies_itself(tree, node, context.id) for node in nodes)
    return context.id == "NOT_GIVEN" or (given and kept)


def _copies_itself(tree: Tree, node: ast.AST, name: str) -> bool:
    """Whether `node` does not bind `name`, except in `<name> = <name>.copy()`."""
    if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)):
        return True
    value = getattr(tree.parent[node], "value", None)
    return isinstance(value, ast.Call) and ast.unparse(value.func) == f"{name}.copy"


def _refuse_other_checks(tree: Tree, nodes: Sequence[ast.AST], span: Span) -> None:
    """Refuses a check of the session that leads to a push and cannot be repeated."""
    around = set(tree.above(span.push))
    repeatable = {test for test in tree.conditions(span.push) if is_session_check(test)}
    leaving = (ast.Return, ast.Raise, ast.Continue, ast.Break)
    for node in nodes:
        if not (is_own(node, SESSION) and isinstance(node.ctx, ast.Load)):
            continue
        check, statement = tree.parent[node], tree.statement(node)
        if isinstance(check, ast.Attribute) or statement.lineno > span.push.lineno:
            continue
        if statement in around:
            known = check in repeatable
        elif isinstance(statement, (ast.If, ast.While)):
            leaves = any(isinstance(n, leaving) for n in ast.walk(statement))
            known = is_session_check(check) or not leaves
        else:
            known = not isinstance(statement, (ast.Assign, ast.AnnAssign))
        if not known:
            raise tree.refuse(node, "It is unclear how to repeat this check after the wait.")


def _refuse_escapes(tree: Tree, spans: Sequence[Span]) -> None:
    """Refuses uses outside a span of its snapshot, and of an item that it may not have added."""
    inside: defaultdict[str, set[ast.AST]] = defaultdict(set)
    for span in spans:
        names = [] if span.snapshot is None else [ast.unparse(span.pushed)]
        if any(is_session_check(test) for test in tree.conditions(span.push)):
            kept = [a.targets[0] for a in span.additions if isinstance(a, ast.Assign)]
            names += map(ast.unparse, kept)
        for name in names:
            inside[name].update(n for statement in span.statements for n in ast.walk(statement))
    function = tree.function(spans[0].push) if spans else None
    for node in ast.walk(function) if function else ():
        used = node.names if isinstance(node, (ast.Global, ast.Nonlocal)) else []
        if isinstance(node, ast.Name) and node.id in inside and node not in inside[node.id]:
            inner = tree.function(node)
            used = [] if inner is not function and _binds(inner, node.id) else [node.id]
        for name in inside.keys() & set(used):
            reason = f"`{name}` is made between a snapshot and its push, and is used elsewhere."
            raise tree.refuse(node, reason)


def _binds(function: ast.AST | None, name: str) -> bool:
    """Whether `name` is a parameter or a variable of `function` itself."""
    return any(
        (isinstance(n, ast.arg) and n.arg == name)
        or (isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store))
        for n in (ast.walk(function) if function else ())
    )
