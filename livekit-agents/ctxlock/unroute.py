"""Reads routed source as what it stands for: spans under the lock.

So the finder judges both scopes by the same rules, and what :mod:`ctxlock.route` did is shown to be
no more. It shares no code with that.
"""

from __future__ import annotations

import ast
from typing import TypeVar

from .syntax import CONTEXT, LOCK, MODULE, SESSION, is_own, is_session_check

__all__ = ["RECORDER", "is_routed", "parts_of", "unrouted"]

RECORDER = "_on_remote_item_added"
"""The method that has nothing left to do, as the added module listens itself."""

_PARTS = {
    "append": "updates in turn",
    "replacing": "replacements",
    "keep": "typed messages",
    "aclose": "closing",
    RECORDER: "server items",
    "start": "handoffs",
    "forget": "unheard messages",
}
"""The methods of the added module, and what a file that uses them has of it."""

_SITES = ("append", "replace", "start")
_NOTES = ("forget", "replacing")

_REPLACED_BY = {"replacement": "chat_ctx", "session start": "self._agent.chat_ctx"}
"""How the spans of these sites name what is the agent's context by then."""

Function = TypeVar("Function", ast.FunctionDef, ast.AsyncFunctionDef)


def is_routed(module: ast.Module) -> bool:
    """Whether updates go through the added module."""
    return any(map(_is_import, module.body))


def unrouted(module: ast.Module) -> ast.Module:
    """Returns `module`, changed in place, with each routed update as a span under the lock.

    An item that is kept becomes one that is upserted into the agent's context; notes to the added
    module are left out. Anything of another shape stays, for the finder to refuse.
    """
    return ast.fix_missing_locations(_Unroute().visit(module)) if is_routed(module) else module


def parts_of(source: str | bytes) -> tuple[str, ...]:
    """What the added module does in a routed file; nothing if it is not routed.

    Older releases lack what some of it needs.
    """
    nodes = [*ast.walk(ast.parse(source))]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    used = {node.attr for node in attributes if is_own(node.value, CONTEXT)}
    used |= {RECORDER for node in nodes if _is_left_out(node)}
    return tuple(part for method, part in _PARTS.items() if method in used)


class _Unroute(ast.NodeTransformer):
    def __init__(self) -> None:
        self.checked = False
        self.appended: dict[ast.AST, str] = {}
        """The locks whose push is of a context of additions, and its name."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if not isinstance(block, list):
                continue
            for statement in [*block]:
                if (name := self.appended.pop(statement, None)) is not None:
                    _draw_in_snapshot(block, statement, name)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        return None if _is_import(node) else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return self._visit_function(node)

    def _visit_function(self, node: Function) -> Function:
        around, self.checked = self.checked, False
        self.generic_visit(node)
        self.checked = around
        if _is_left_out(node):
            node.body = [ast.Pass()]
        return node

    def visit_For(self, node: ast.For) -> ast.For | None:
        self.generic_visit(node)
        return node if node.body else None  # nothing but notes stood in it

    def visit_If(self, node: ast.If) -> ast.If | None:
        around = self.checked
        tests = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
        self.checked = around or any(map(is_session_check, tests))
        self.generic_visit(node)
        self.checked = around
        return node if node.body else None

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        self.generic_visit(node)
        if ast.unparse(node) == f"self.{CONTEXT} = RealtimeContext(self)":
            node.targets = [_expression(f"self.{LOCK}", node)]
            node.value = _expression("asyncio.Lock()", node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if is_own(node.func, CONTEXT) or not is_own(getattr(node.func, "value", None), CONTEXT):
            return node
        assert isinstance(node.func, ast.Attribute)
        if node.func.attr == "aclose" and not node.args:
            node.func.value.attr = SESSION  # type: ignore[attr-defined]
        elif node.func.attr == "keep":
            node.func = _expression("self._agent._chat_ctx._upsert_item", node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | None:
        self.generic_visit(node)
        awaited = isinstance(node.value, ast.Await)
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            return node
        if not is_own(call.func.value, CONTEXT):
            return node
        if call.func.attr in _NOTES and not awaited:
            return None
        if call.func.attr in _SITES and awaited and (push := self._push(call)) is not None:
            lock = self._locked(node, push)
            if call.func.attr == "append":
                self.appended[lock] = ast.unparse(push.args[0])
            return lock
        return node

    def _push(self, call: ast.Call) -> ast.Call | None:
        """What the call of the added module stands for; `None` if it has an unknown shape."""
        method = call.func.attr  # type: ignore[attr-defined]
        push = _expression(f"self.{SESSION}.update_chat_ctx", call)
        if method == "start":
            known = call.args and is_own(getattr(call.args[0], "value", None), SESSION)
            return _call(call.args[0], call.args[1:], call) if known else None
        site = call.args[-1:]
        if not (site and isinstance(site[0], ast.Constant)) or call.keywords:
            return None
        if method == "append" and len(call.args) == 2:
            return _call(push, call.args[:1], call)
        if method == "replace" and len(call.args) == 1:
            pushed = _REPLACED_BY.get(ast.literal_eval(site[0]), "self._agent._chat_ctx")
            return _call(push, [_expression(pushed, call)], call)
        return None

    def _locked(self, statement: ast.Expr, push: ast.Call) -> ast.AsyncWith:
        assert isinstance(statement.value, ast.Await)
        statement.value.value = push
        body: list[ast.stmt] = [statement]
        if self.checked:  # the added module checks again that the session is there
            test = _expression(f"self.{SESSION} is not None", statement)
            body = [ast.copy_location(ast.If(test, body, []), statement)]
        lock = ast.withitem(_expression(f"self.{LOCK}", statement))
        return ast.copy_location(ast.AsyncWith([lock], body), statement)


def _is_left_out(node: ast.AST) -> bool:
    """Whether it is the recorder, and has a docstring alone."""
    if not isinstance(node, ast.FunctionDef) or node.name != RECORDER:
        return False
    return len(node.body) == 1 and ast.get_docstring(node) is not None


def _is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.level == 1 and node.module == MODULE


def _draw_in_snapshot(block: list[ast.stmt], lock: ast.stmt, name: str) -> None:
    """Has `lock` take the snapshot to which what the context `name` holds is added."""
    assert isinstance(lock, ast.AsyncWith)
    end = block.index(lock)
    empty = f"{name} = llm.ChatContext.empty()"
    start = next((n for n in reversed(range(end)) if ast.unparse(block[n]) == empty), None)
    if start is None:
        return
    first, *additions = block[start:end]
    assert isinstance(first, ast.Assign)
    first.value = _expression(f"self.{SESSION}.chat_ctx.copy()", first.value)
    inner = lock.body[0].body if isinstance(lock.body[0], ast.If) else lock.body
    inner[:0] = [first, *additions]
    ast.copy_location(lock, first)
    block[start : end + 1] = [lock]


def _call(function: ast.expr, arguments: list[ast.expr], like: ast.Call) -> ast.Call:
    return ast.copy_location(ast.Call(function, arguments, like.keywords), like)


def _expression(text: str, like: ast.AST) -> ast.expr:
    """Parses `text` as something that stands where `like` does."""
    parsed = ast.parse(text, mode="eval").body
    for node in ast.walk(parsed):
        ast.copy_location(node, like)
    return parsed
