"""Refuses a file of the scope `full` where something goes on that its lock is not told.

:mod:`ctxlock.patching.lock_calls` adds a call to each shape that it knows. Here stands, in wider
terms, what must have one: a release with another shape is refused, and never patched in part.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from ..release import HOW_TO_LOCK
from ..roles import Role
from ..target import SESSION
from .sites import Site
from .spans import is_push
from .tree import AnyFunction, Tree, is_lock_block, is_own
from .without_calls import AGENT_CONTEXT, calls_of, said_by

__all__ = ["check_told"]

_IN_SPAN = {
    Role.REPLACEMENT: ["latest"],
    Role.SESSION_START: [],
    Role.TEXT_TURN: ["typing"],
    Role.NEVER_PLAYED_CLEANUP: [],
    Role.TOOL_OUTPUTS: ["place"],
    Role.INTERRUPTED_TOOL_OUTPUTS: ["place"],
    Role.SPOKEN_MESSAGE: ["place"],
    Role.REUSE_CHECK: [],
}
"""The roles of sites, and what is said inside their spans."""

_IN_METHOD = {
    Role.REPLACEMENT: "replacing",
    Role.NEVER_PLAYED_CLEANUP: "unheard",
    Role.SPOKEN_MESSAGE: "pending",
}
"""What is said in the same method as well."""

_SAID_BEFORE = {"replacing", "hand_over"}
"""What is said before it is done."""

_HANDLERS = {"remote_item_added": "tell", "input_audio_transcription_completed": "said"}
"""Events of the session, and what the method says that handles one."""

_RECORDING = (
    *("_realtime_generation_task", "_realtime_generation_task_impl"),
    "_on_input_audio_transcription_completed",
)
"""The methods that say what they record with the agent, but for calls."""

_USED = "self._session._conversation_item_added"
"""What the added module calls, as the methods do that say `typing` or `said`."""


def check_told(source: bytes, sites: Sequence[Site], filename: str) -> None:
    """Checks that a file of the scope full tells its lock all that it is to know.

    Args:
        source: The file.
        sites: Its sites.
        filename: How errors name it.

    Raises:
        NotUnderstood: It does not.
    """
    tree = Tree(source, filename)
    told = _Told(tree)
    for node in (*told.spans(sites), *told.statements(), *told.handlers(), *told.names()):
        raise tree.refuse(
            node,
            "The scope full cannot follow what goes on here; build with the scope lock: "
            f"{HOW_TO_LOCK}.",
        )


class _Told:
    """What a file tells its lock; the methods find what it should tell and does not."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.calls = {call: said_by(call) for _, call in calls_of(tree.module)}
        self.flags: set[str] = set()  # which say that a message was never played

    def spans(self, sites: Sequence[Site]) -> Iterator[ast.AST]:
        """Pushes of an unknown role, or with which something else is said than is due."""
        locks = {node.lineno: node for node in self.tree.nodes if is_lock_block(node)}
        for site in sites:
            span = locks.get(site.first_line, ast.Pass(lineno=site.first_line))
            told = self._said_in(span) == _IN_SPAN.get(site.role)
            if (due := _IN_METHOD.get(site.role)) is not None:
                told = told and due in self._said_in(self._method(span))
            if site.role is Role.SPOKEN_MESSAGE:
                told = told and self._is_pending(span)
            elif site.role is Role.NEVER_PLAYED_CLEANUP:
                tests = self.tree.conditions(span)
                self.flags.update(test.id for test in tests if isinstance(test, ast.Name))
            if not told:
                yield next(filter(is_push, ast.walk(span)), span)

    def statements(self) -> Iterator[ast.AST]:
        """What must have a call beside it, and has none."""
        for node in self.tree.nodes:
            if due := self._due(node):
                statement = node if isinstance(node, ast.stmt) else self.tree.statement(node)
                block = self.tree.block(statement)
                at = block.index(statement)
                beside = block[:at][-1:] if due & _SAID_BEFORE else block[at + 1 : at + 2]
                if not any(self.calls.get(one, "") in due for one in beside):
                    yield node

    def handlers(self) -> Iterator[ast.AST]:
        """What handles an event of the session and does not say so."""
        due: dict[str, str] = {}
        for node in self.tree.nodes:
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="on"), args=[ast.Constant(value=str(event)), handler]
                ) if event in _HANDLERS:
                    if isinstance(handler, ast.Attribute) and is_own(handler, handler.attr):
                        due[handler.attr] = _HANDLERS[event]
                    else:
                        yield node
        for node in self.tree.nodes:
            said = due.get(node.name) if isinstance(node, AnyFunction) else None
            if said is not None and said not in self._said_in(node):
                yield node

    def names(self) -> Iterator[ast.AST]:
        """Calls that name, or lead to, what is named nowhere else in the method."""
        for method in dict.fromkeys(map(self._method, self.calls)):
            calls = [call for call in self.calls if self._method(call) is method]
            inside = Counter(name for call in calls for name in _names(call))
            elsewhere = Counter(_names(method)) - inside
            for call in calls:
                used = [_USED] if self.calls[call] in ("typing", "said") else []
                if any(name not in elsewhere for name in ("self", *_given(call), *used)):
                    yield call

    def _said_in(self, node: ast.AST) -> list[str]:
        return [self.calls[one] for one in ast.walk(node) if one in self.calls]

    def _method(self, node: ast.AST) -> ast.AST:
        """The method that `node` stands in, not what that defines."""
        return [one for one in self.tree.above(node) if isinstance(one, AnyFunction)][-1]

    def _is_pending(self, span: ast.AST) -> bool:
        """Whether it is said, once, in a block that goes on with `span`."""
        method = self._method(span)
        said = [one for one, what in self.calls.items() if what == "pending"]
        blocks = [self.tree.block(one) for one in said if self._method(one) is method]
        around = {span, *self.tree.above(span)}
        return [not around.isdisjoint(block) for block in blocks] == [True]

    def _due(self, node: ast.AST) -> set[str]:
        """What must be said beside `node`, one of it at least."""
        match node:
            case ast.Return(value=ast.expr()):
                function = self.tree.function(node)
                hands_over = function and function.name == "_detach_reusable_resources"
                return {"hand_over"} if hands_over else set()
            case ast.Name(id=name, ctx=ast.Store()) if name in self.flags:
                return set() if self._is_given(node, False) else {"unheard"}
            case ast.Attribute(attr="aclose", value=session) if is_own(session, SESSION):
                return {"close"}
            case ast.Attribute(ctx=ast.Store()) if is_own(node, SESSION):
                return set() if self._is_given(node, None) else {"attach", "new"}
            case ast.Attribute(ctx=ast.Store()) if ast.unparse(node) == AGENT_CONTEXT:
                return {"replacing"}
            case ast.Attribute(attr="_chat_ctx") if ast.unparse(node) == AGENT_CONTEXT:
                return {"pending", "said"} if self._is_recorded_in(node) else set()
        return set()

    def _is_given(self, target: ast.AST, value: object) -> bool:
        """Whether the statement that binds `target` gives it that constant, or nothing."""
        given = getattr(self.tree.statement(target), "value", self)
        return given is None or (isinstance(given, ast.Constant) and given.value is value)

    def _is_recorded_in(self, context: ast.AST) -> bool:
        """Whether something other than a call may be recorded in the agent's context here."""
        parent = self.tree.parent[context]
        if isinstance(parent, ast.Call) and is_push(parent.func):
            return False
        match self.tree.statement(context):
            case ast.Expr(value=ast.Call(args=[item])) if ast.unparse(item).endswith("fnc_call"):
                return False
        return getattr(self._method(context), "name", "") in _RECORDING


def _names(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.arg):
            yield one.arg
        elif isinstance(one, (ast.Name, ast.Attribute)):
            yield ast.unparse(one)


def _given(call: ast.stmt) -> Iterator[str]:
    """The arguments of a call of the lock."""
    value = getattr(call, "value", getattr(call, "test", None))
    for argument in value.args if isinstance(value, ast.Call) else ():
        yield ast.unparse(argument).removeprefix("*")
