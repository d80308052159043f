"""Finds and judges the sites of the realtime context, with the standard library alone.

This is the auditor of :mod:`ctxlock.rewrite` and shares no code with it, so that a blind spot of
the one is seen by the other. It accepts a closed list of shapes and refuses all others: "guarded"
never rests on a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .spans import Span, is_snapshot, read_spans
from .syntax import (
    CLASS,
    LOCK,
    PUSHES,
    SESSION,
    SNAPSHOT,
    AnyFunction,
    Tree,
    is_lock_block,
    is_lock_declaration,
    is_own,
    is_session_check,
)

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

    role: str
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
    tree = Tree(source, filename)
    activity = _only_class(tree)
    _check_lock(tree, activity)
    _check_session(tree, activity)
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
    found = [n for n in ast.walk(tree.module) if isinstance(n, ast.ClassDef) and n.name == CLASS]
    if not found:
        raise tree.refuse(tree.module, f"There is no class {CLASS} in this file.")
    if len(found) > 1:
        raise tree.refuse(found[1], f"There are {len(found)} classes {CLASS}; one is expected.")
    if found[0] not in tree.module.body:
        raise tree.refuse(found[0], f"{CLASS} does not stand at the top level of the module.")
    return found[0]


def _check_lock(tree: Tree, activity: ast.ClassDef) -> None:
    """The lock is made once, in `__init__`, and taken by `async with` alone."""
    made: list[ast.Assign] = []
    taken: list[ast.AsyncWith] = []
    for node in ast.walk(tree.module):
        if not (isinstance(node, ast.Attribute) and node.attr == LOCK):
            continue
        statement = tree.statement(node)
        if is_lock_declaration(statement):
            made.append(statement)
        elif is_lock_block(statement):
            taken.append(statement)
        else:
            raise tree.refuse(node, f"{LOCK} is used otherwise than by `async with`.")
    for statement in made:
        init = tree.parent[statement]
        method = isinstance(init, AnyFunction) and init.name == "__init__"
        if not method or tree.parent[init] is not activity:
            raise tree.refuse(statement, f"{LOCK} is not made straight in {CLASS}.__init__.")
    if len(made) > 1:
        raise tree.refuse(made[1], f"{LOCK} is made {len(made)} times.")
    if taken and not made:
        raise tree.refuse(taken[0], f"{LOCK} is taken and never made.")


def _check_session(tree: Tree, activity: ast.ClassDef) -> None:
    """The session has one name, and nobody pushes or snapshots past that name."""
    aliases = {
        function.name
        for function in ast.walk(activity)
        if isinstance(function, AnyFunction)
        and any(isinstance(n, ast.Return) and is_own(n.value, SESSION) for n in ast.walk(function))
    }
    for node in ast.walk(tree.module):
        if isinstance(node, ast.Constant) and node.value in (SESSION, LOCK, *PUSHES):
            raise tree.refuse(node, f"{node.value} is reached by its name as a string.")
        if not isinstance(node, ast.Attribute):
            continue
        if node.attr == SESSION and not (is_own(node, SESSION) and activity in tree.above(node)):
            raise tree.refuse(node, f"This is not the session of {CLASS} itself.")
        if is_own(node, *aliases) and tree.function(node) is not None:
            raise tree.refuse(node, f"`{ast.unparse(node)}` is a second name of the session.")
        if node.attr == SESSION and isinstance(node.ctx, ast.Load):
            _check_use(tree, node)
        if node.attr in PUSHES and not (
            is_own(node.value, SESSION) or is_own(node, "update_chat_ctx")
        ):
            raise tree.refuse(node, f"`{ast.unparse(node)}` may be a push through an alias.")


def _check_use(tree: Tree, session: ast.Attribute) -> None:
    """A use of the session neither renames it nor passes it on to where pushes are not seen."""
    parent = tree.parent[session]
    known = isinstance(
        parent, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.If, ast.Assert, ast.Return)
    )
    if isinstance(parent, ast.Attribute):
        known = SNAPSHOT not in parent.attr or parent.attr in (SNAPSHOT, *PUSHES)
    elif isinstance(parent, ast.Assign):  # given to another object, as at a handoff
        known = all(isinstance(target, ast.Attribute) for target in parent.targets)
    elif isinstance(parent, ast.Call):
        called = ast.unparse(parent.func)
        known = called == "isinstance" or called.startswith("logger.")
    if not known:
        raise tree.refuse(session, f"Here {SESSION} gets a second name or goes out of sight.")


def _sites_of(tree: Tree, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Site]:
    nodes = [n for n in ast.walk(function) if tree.function(n) is function]
    spans = read_spans(tree, nodes)
    fed = {span.snapshot for span in spans}
    for node in nodes:
        if is_snapshot(node) and tree.statement(node) not in fed:
            yield _read_only(tree, node, function.name)
    for span in spans:
        yield _judge(tree, span, function.name)


def _read_only(tree: Tree, snapshot: ast.AST, function: str) -> Site:
    """A snapshot that is only compared, and so cannot reach a push."""
    for node in tree.above(snapshot):
        if isinstance(node, ast.stmt):
            break
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".is_equivalent"):
            role = _ROLES.get(function, "comparison")
            return Site(role, function, node.lineno, node.end_lineno or node.lineno, "read-only")
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


_ROLES = {
    "update_chat_ctx": "replacement",
    "start": "session start",
    "_start_session": "session start",
    "_realtime_reply_task": "text turn",
    "_tts_task_impl": "spoken message",
    "_detach_reusable_resources": "reuse check",
}


def _role(tree: Tree, span: Span, function: str) -> str:
    if not function.startswith("_realtime_generation_task"):
        return _ROLES.get(function, "other")
    if span.snapshot is None:
        return "never-played cleanup"
    if any(ast.unparse(test).endswith(".interrupted") for test in tree.conditions(span.push)):
        return "interrupted tool outputs"
    return "tool outputs"
