"""Refuses uses of the lock and of the realtime session past the places where sites are sought."""

from __future__ import annotations

import ast
from collections.abc import Collection

from ..target import ACTIVITY_LOCK, CLASS, LOCK, PUSHES, SESSION, SNAPSHOT
from .spans import is_push
from .tree import AnyFunction, Tree, is_lock_block, is_lock_declaration, is_own

__all__ = ["check_uses"]


def check_uses(tree: Tree, activity: ast.ClassDef) -> None:
    """Checks that no use of the lock or of the session leads out of sight.

    Args:
        tree: The module.
        activity: The one class that owns both.

    Raises:
        NotUnderstood: The lock is not made once in `__init__` and taken by `async with` alone; a
            push may wait for another lock; or the session has a second name, through which
            something may be pushed or read.
    """
    _check_lock(tree, activity)
    _check_other_locks(tree, activity)
    _check_session(tree, activity)


def _check_lock(tree: Tree, activity: ast.ClassDef) -> None:
    """The lock is made once, in `__init__`, and taken by `async with` alone."""
    made: list[ast.Assign] = []
    taken: list[ast.AsyncWith] = []
    for node in tree.nodes:
        if not (isinstance(node, ast.Attribute) and node.attr == LOCK):
            continue
        statement = tree.statement(node)
        if is_lock_declaration(statement):
            made.append(statement)
        elif is_lock_block(statement):
            taken.append(statement)
        else:
            raise tree.refuse(node, f"{LOCK} is used in another way than by `async with`.")
    for statement in made:
        init = tree.parent[statement]
        method = isinstance(init, AnyFunction) and init.name == "__init__"
        if not method or tree.parent[init] is not activity:
            raise tree.refuse(statement, f"{LOCK} is not made directly in {CLASS}.__init__.")
    if len(made) > 1:
        raise tree.refuse(made[1], f"{LOCK} is made {len(made)} times.")
    if taken and not made:
        raise tree.refuse(taken[0], f"{LOCK} is taken and never made.")


def _check_other_locks(tree: Tree, activity: ast.ClassDef) -> None:
    """A push waits for no lock but the two that are known.

    Any `async with` may be one, as may a call of `acquire`: upstream's own, by another name. Ours
    would stand inside it or around it, and nobody has thought about the two together.
    """
    known = (LOCK, ACTIVITY_LOCK)
    pushing = _pushing_methods(activity)
    for node in ast.walk(activity):
        if isinstance(node, ast.AsyncWith):
            held = [item.context_expr for item in node.items]
            other = next((one for one in held if not is_own(one, *known)), None)
            pushes = any(_pushes(inner, pushing) for one in node.body for inner in ast.walk(one))
            if other is not None and pushes:
                raise tree.refuse(
                    node,
                    f"`{ast.unparse(other)}` is held here while a realtime context is pushed; only "
                    f"the locks {LOCK} and {ACTIVITY_LOCK} are known.",
                )
        elif isinstance(node, ast.Attribute) and node.attr == "acquire":
            function = tree.function(node)
            if function and any(_pushes(inner, pushing) for inner in ast.walk(function)):
                raise tree.refuse(
                    node,
                    f"`{ast.unparse(node)}` takes a lock in a method that pushes; only `async "
                    "with` shows how long it is held.",
                )


def _pushing_methods(activity: ast.ClassDef) -> set[str]:
    """The methods that push, straight or through other methods of the class."""
    uses = [
        (method.name, [node for node in ast.walk(method) if isinstance(node, ast.Attribute)])
        for method in activity.body
        if isinstance(method, AnyFunction)
    ]
    found: set[str] = set()
    while more := {
        name
        for name, nodes in uses
        if name not in found and any(_pushes(node, found) for node in nodes)
    }:
        found |= more
    return found


def _pushes(node: ast.AST, methods: Collection[str]) -> bool:
    """Whether `node` is a push, or one of the activity's own `methods`."""
    return is_push(node) or is_own(node, *methods)


def _check_session(tree: Tree, activity: ast.ClassDef) -> None:
    """The session has one name, and nobody pushes or snapshots past that name."""
    aliases = {
        function.name
        for function in ast.walk(activity)
        if isinstance(function, AnyFunction)
        and any(isinstance(n, ast.Return) and is_own(n.value, SESSION) for n in ast.walk(function))
    }
    given_to = {
        target.attr
        for node in ast.walk(activity)
        if isinstance(node, ast.Assign) and is_own(node.value, SESSION)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    }
    methods = [method for method in activity.body if _is_method(method)]
    for node in tree.nodes:
        if isinstance(node, ast.Constant) and _spells(node.value):
            raise tree.refuse(node, "A string names the session, the lock or a push here.")
        if not isinstance(node, ast.Attribute):
            continue
        if node.attr in (SESSION, LOCK) and not _is_of(tree, node, methods):
            raise tree.refuse(node, f"This is not the {node.attr} of {CLASS} itself.")
        if is_own(node, *aliases) and tree.function(node) is not None:
            raise tree.refuse(node, f"`{ast.unparse(node)}` is a second name of the session.")
        if node.attr == SESSION and isinstance(node.ctx, ast.Load):
            _check_use(tree, node, activity)
        if node.attr in PUSHES and not (
            is_own(node.value, SESSION) or is_own(node, "update_chat_ctx")
        ):
            raise tree.refuse(node, f"`{ast.unparse(node)}` may be a push through an alias.")
        if node.attr == SNAPSHOT and getattr(node.value, "attr", None) in {*aliases, *given_to}:
            raise tree.refuse(node, f"`{ast.unparse(node)}` may be a snapshot through an alias.")


def _spells(value: object) -> bool:
    """Whether `getattr` or `attrgetter` would take `value` for one of the names."""
    return isinstance(value, str) and not {SESSION, LOCK, *PUSHES}.isdisjoint(value.split("."))


def _is_method(statement: ast.stmt) -> bool:
    """Whether `statement` is a method in which `self` is the activity, all through it."""
    if not isinstance(statement, AnyFunction):
        return False
    bindings = [
        n
        for n in ast.walk(statement)
        if (isinstance(n, ast.arg) and n.arg == "self")
        or (isinstance(n, ast.Name) and n.id == "self" and not isinstance(n.ctx, ast.Load))
    ]
    return bindings == [*statement.args.posonlyargs, *statement.args.args][:1] != []


def _is_of(tree: Tree, node: ast.Attribute, methods: Collection[ast.AST]) -> bool:
    """Whether `node` is of `self`, and stands in one of the activity's `methods`."""
    around = (n for n in tree.above(node) if isinstance(n, (*AnyFunction, ast.Lambda)))
    *_, method = None, *around
    return is_own(node, node.attr) and method in methods


def _check_use(tree: Tree, session: ast.Attribute, activity: ast.ClassDef) -> None:
    """A use of the session neither renames it nor passes it on to where pushes are not seen."""
    inner: ast.AST = session
    parent = tree.parent[inner]
    while isinstance(parent, ast.BoolOp):
        inner, parent = parent, tree.parent[parent]
    known = isinstance(parent, (ast.Compare, ast.UnaryOp)) or inner is getattr(parent, "test", None)
    if isinstance(parent, ast.Attribute):
        known = SNAPSHOT not in parent.attr or parent.attr in (SNAPSHOT, *PUSHES)
        call = tree.parent[parent]
        if isinstance(call, ast.Call) and parent.attr not in PUSHES:
            known = known and all(keyword.arg != SNAPSHOT for keyword in call.keywords)
    elif isinstance(parent, ast.Return):  # uses of such a method are refused
        known = inner is session and tree.function(parent) in activity.body
    elif isinstance(parent, ast.Assign):  # given to another object, as at a handoff
        known = all(
            isinstance(target, ast.Attribute) and not is_own(target, target.attr)
            for target in parent.targets
        )
    elif isinstance(parent, ast.Call):
        called = ast.unparse(parent.func)
        known = called == "isinstance" or called.startswith("logger.")
    if not known:
        raise tree.refuse(session, f"Here {SESSION} gets a second name, or is passed out of sight.")
