"""Finds and judges the sites of the realtime context, with the standard library alone.

This is the auditor of :mod:`ctxlock.patching.rewrite` and shares no code with it, so that a blind
spot of the one is seen by the other. It accepts a closed list of shapes and refuses all others:
"guarded" never rests on a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..roles import ROLES, Role
from ..target import CLASS
from .dataflow import check_flow
from .lock_uses import check_uses
from .spans import Span, is_snapshot, read_spans
from .tree import AnyFunction, Tree, is_session_check, tree_of
from .without_calls import without_calls

__all__ = ["Site", "State", "find_sites"]

State = Literal["guarded", "bare", "read-only"]


@dataclass(frozen=True)
class Site:
    """A place that snapshots or pushes the realtime context.

    Attributes:
        role: What the site is for.
        function: The method that holds it.
        first_line: 1-based line of the lock or, where there is none, of the span's first statement.
        last_line: 1-based line on which the push ends.
        state: ``guarded`` if the lock holds the whole span, ``bare`` if it does not,
            ``read-only`` for a snapshot that feeds no push.
        rechecked: For a guarded site whose session was checked before the wait: whether it is
            checked again after it. ``None`` for all others.
    """

    role: Role
    function: str
    first_line: int
    last_line: int
    state: State
    rechecked: bool | None = None

    def as_json(self) -> dict[str, object]:
        """The site as a JSON object; `lines` are the first and the last, 1-based, inclusive."""
        return {
            "role": self.role,
            "function": self.function,
            "lines": [self.first_line, self.last_line],
            "state": self.state,
            "rechecked": self.rechecked,
        }


def find_sites(source: str | bytes, filename: str) -> tuple[Site, ...]:
    """Lists the sites of an `agent_activity.py` in the order in which they stand.

    Args:
        source: Its text.
        filename: How errors name it.

    Raises:
        NotUnderstood: The text is no Python, holds no single `AgentActivity` that pushes, or uses
            the realtime session or the lock in a way that cannot be followed.
    """
    tree = tree_of(source, filename, without_calls)
    activity = _only_class(tree)
    check_uses(tree, activity)
    sites = [
        site
        for function in ast.walk(activity)
        if isinstance(function, AnyFunction)
        for site in _sites_of(tree, function)
    ]
    if all(site.state == "read-only" for site in sites):
        raise tree.refuse(
            activity, f"{CLASS} pushes no realtime context, as every release from 1.0.0 on does."
        )
    return tuple(sorted(sites, key=lambda site: site.first_line))


def _only_class(tree: Tree) -> ast.ClassDef:
    found = [n for n in tree.nodes if isinstance(n, ast.ClassDef) and n.name == CLASS]
    if not found:
        raise tree.refuse(tree.module, f"There is no class {CLASS} in this file.")
    if len(found) > 1:
        raise tree.refuse(found[1], f"There are {len(found)} classes {CLASS}; one is expected.")
    if found[0] not in tree.module.body:
        raise tree.refuse(found[0], f"{CLASS} does not stand at the top level of the module.")
    return found[0]


def _sites_of(tree: Tree, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Site]:
    nodes = [n for n in ast.walk(function) if tree.function(n) is function]
    spans = read_spans(tree, nodes)
    check_flow(tree, nodes, spans)
    fed = {span.snapshot for span in spans}
    for node in nodes:
        if is_snapshot(node) and tree.statement(node) not in fed:
            yield _read_only(tree, node, function.name)
    for span in spans:
        yield _judge(tree, span, function.name)


def _read_only(tree: Tree, snapshot: ast.AST, function: str) -> Site:
    """A snapshot that is only compared, and so cannot reach a push."""
    parent = tree.parent[snapshot]
    copied = tree.parent[parent]
    if isinstance(parent, ast.Attribute) and isinstance(copied, ast.Call) and copied.func is parent:
        parent = tree.parent[copied] if parent.attr == "copy" else parent
    method = getattr(parent, "func", parent)
    call = tree.parent[method]
    if (
        isinstance(method, ast.Attribute)
        and method.attr == "is_equivalent"
        and isinstance(call, ast.Call)
        and call.func is method
    ):
        role = ROLES.get(function, Role.COMPARISON)
        return Site(role, function, call.lineno, call.end_lineno or call.lineno, "read-only")
    raise tree.refuse(snapshot, "It is unclear what becomes of this snapshot.")


def _judge(tree: Tree, span: Span, function: str) -> Site:
    rechecked = None
    if span.lock is not None:
        inner = span.lock.body[0]
        if isinstance(inner, ast.If):
            rechecked = True
        elif any(is_session_check(test) for test in tree.conditions(span.lock)):
            rechecked = False
    first = span.lock or span.statements[0]
    return Site(
        role=_role(tree, span, function),
        function=function,
        first_line=first.lineno,
        last_line=span.push.end_lineno or span.push.lineno,
        state="bare" if span.lock is None else "guarded",
        rechecked=rechecked,
    )


def _role(tree: Tree, span: Span, function: str) -> Role:
    if not function.startswith("_realtime_generation_task"):
        return ROLES.get(function, Role.OTHER)
    if span.snapshot is None:
        return Role.NEVER_PLAYED_CLEANUP
    if any(ast.unparse(test).endswith(".interrupted") for test in tree.conditions(span.push)):
        return Role.INTERRUPTED_TOOL_OUTPUTS
    return Role.TOOL_OUTPUTS
