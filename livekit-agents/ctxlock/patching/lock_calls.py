"""Has the file of the scope `lock` tell its lock what goes on around the spans: text in, text out.

Each call is a statement of its own, in front of or behind what it is about. Nothing else is changed
but which lock is made. :mod:`ctxlock.analysis.without_calls` takes the calls out again, with other
means, so that both scopes are judged in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
import libcst.matchers as m

from ..target import CLASS, LOCK, LOCK_CLASS, MODULE, SESSION

__all__ = ["add_calls"]

_ME = m.Name("self")
_LOCK = m.Attribute(_ME, m.Name(LOCK))
_SESSION = m.Attribute(_ME, m.Name(SESSION))
_AGENT_CONTEXT = m.Attribute(m.Attribute(_ME, m.Name("_agent")), m.Name("_chat_ctx"))
_RECORDS = (
    m.Attribute(_AGENT_CONTEXT, m.Name("_upsert_item"))
    | m.Attribute(_AGENT_CONTEXT, m.Name("insert"))
    | m.Attribute(m.Attribute(_AGENT_CONTEXT, m.Name("items")), m.Name("append"))
)
_LOCK_MADE = m.SimpleStatementLine(
    [
        m.Assign(
            [m.AssignTarget(_LOCK)],
            m.Call(m.Attribute(m.Name("asyncio"), m.Name("Lock")), args=[]),
        )
    ]
)


def _assigns(target: Any, value: Any) -> m.Assign:
    return m.Assign([m.AssignTarget(target)], value)


def _records(item: Any) -> m.Expr:
    return m.Expr(m.Call(_RECORDS, args=[_argument(item)]))


def _adds(target: Any, method: str, item: Any) -> m.Expr:
    return m.Expr(m.Call(m.Attribute(target, m.Name(method)), args=[_argument(item)]))


def _argument(item: Any) -> m.Arg:
    return m.Arg(_it(item), keyword=None, star="")


def _it(item: Any) -> Any:
    """What the call is about."""
    return m.SaveMatchedNode(item, "it")


def _to(target: Any) -> Any:
    """What that is added to."""
    return m.SaveMatchedNode(target, "to")


@dataclass(frozen=True)
class _Call:
    """A statement that is added.

    Attributes:
        methods: The methods that it is added to, straight and not in what they define.
        beside: The statement that it stands beside; its part `it` is what the call is about, and
            `to` what that is added to.
        text: The statement; `it`, `to`, `first` (the method's first parameter) and `loop` (the
            variable of the innermost loop) stand in braces.
        before: Whether it stands before `beside`.
        needs: A name that the method must know.
    """

    methods: tuple[str, ...]
    beside: m.BaseMatcherNode
    text: str
    before: bool = False
    needs: str = ""


_SPOKEN = "spoken_msg"
_GENERATION = ("_realtime_generation_task", "_realtime_generation_task_impl")
_TRANSCRIBED = "_on_input_audio_transcription_completed"
_CALLS = (
    _Call(
        ("update_chat_ctx",),
        _assigns(_AGENT_CONTEXT, _it(m.Name())),
        f"self.{LOCK}.replacing(self, {{it}})",
        before=True,
    ),
    _Call(
        ("update_chat_ctx",),
        m.Expr(
            m.Await(m.Call(m.Attribute(_SESSION, m.Name("update_chat_ctx")), [_argument(m.Name())]))
        ),
        "{it} = self._agent._chat_ctx",
        before=True,
    ),
    _Call(
        ("_realtime_reply_task",),
        _assigns(_it(m.Name()), m.Call(m.Attribute(_to(m.Name()), m.Name("add_message")))),
        f"self.{LOCK}.typing({{to}}, {{it}})",
    ),
    _Call(
        _GENERATION,
        _records(m.Attribute(m.Name(), m.Name("fnc_call_out"))),
        f"self.{LOCK}.pending({{it}})",
    ),
    _Call(
        _GENERATION,
        _records(m.Name("interrupted_fnc_outputs")),
        f"self.{LOCK}.pending(*{{it}})",
    ),
    _Call(
        _GENERATION,
        _adds(m.Attribute(_to(m.Name()), m.Name("items")), "extend", m.Name()),
        f"self.{LOCK}.place({{to}}, *{{it}})",
    ),
    _Call(
        ("_tts_task_impl",),
        _adds(_to(m.Name()), "insert", m.Name(_SPOKEN)),
        f"self.{LOCK}.place({{to}}, {{it}})",
    ),
    _Call(
        ("_tts_task_impl",),
        m.Expr(m.Call(m.Attribute(m.Name(), m.Name("_mark_generation_done")), args=[])),
        f"self.{LOCK}.pending({_SPOKEN})",
        needs=_SPOKEN,
    ),
    _Call(
        (*_GENERATION, _TRANSCRIBED),
        _records(m.Name("msg") | m.Name("chat_msg")),
        f"self.{LOCK}.said({{it}})",
    ),
    _Call(
        _GENERATION,
        _assigns(m.Name("any_skipped"), m.Name("True")),
        f"self.{LOCK}.unheard({{loop}}.msg.message_id)",
    ),
    _Call(
        ("_detach_reusable_resources",),
        m.Return(_it(m.Name())),
        f"self.{LOCK}.hand_over({{first}}, {{it}}.rt_session)",
        before=True,
    ),
    _Call(
        ("_start_session",),
        _assigns(_SESSION, m.Attribute(m.Name(), m.Name("rt_session"))),
        f"self.{LOCK}.attach(self, self.{SESSION})",
    ),
    _Call(
        ("start", "_start_session"),
        _assigns(_SESSION, m.Call(m.Attribute(attr=m.Name("session")))),
        f"self.{LOCK} = {LOCK_CLASS}(self)",
    ),
    _Call(
        ("aclose", "_close_session"),
        m.Expr(m.Await(m.Call(m.Attribute(_SESSION, m.Name("aclose"))))),
        f"self.{LOCK}.close()",
    ),
)
_TOLD = "_on_remote_item_added"
_METHODS = {name for call in _CALLS for name in call.methods} | {"__init__", _TOLD}


def add_calls(guarded: str) -> str:
    """Returns `guarded` with the lock of the added module, and the calls that inform it.

    What has another shape is passed over; :mod:`ctxlock.analysis.missing_calls` sees whether a call
    is missing.

    Args:
        guarded: The text of an `agent_activity.py` in which every site is guarded.
    """
    module = cst.parse_module(guarded)
    return module.visit(_AddCalls(module)).code


class _AddCalls(cst.CSTTransformer):
    """Adds them to the methods of the one class."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__()
        self.module = module
        self.activity: cst.ClassDef | None = None
        self.method: cst.FunctionDef | None = None
        self.calls: Sequence[_Call] = ()
        self.loops: list[cst.For] = []

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        body = list(updated_node.body)
        body.insert(
            _place_of_import(body), cst.parse_statement(f"from .{MODULE} import {LOCK_CLASS}")
        )
        return updated_node.with_changes(body=body)

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        if node.name.value == CLASS:
            self.activity = node
        return node is self.activity

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        if original_node is self.activity:
            self.activity = None
        return updated_node

    def visit_For(self, node: cst.For) -> None:
        self.loops.append(node)

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:
        self.loops.pop()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        if self.activity is None or self.method is not None or node.name.value not in _METHODS:
            return False
        self.method = node
        self.calls = [call for call in _CALLS if node.name.value in call.methods]
        return True

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        if original_node is not self.method:
            return updated_node
        self.method = None
        body = updated_node.body
        if updated_node.name.value != _TOLD or not isinstance(body, cst.IndentedBlock):
            return updated_node
        event = _first_parameter(updated_node)
        told = self._statement(f"if self.{LOCK}.tell({event}):\n    return")
        docstring = 1 if updated_node.get_docstring() is not None else 0
        statements = [*body.body[:docstring], told, *body.body[docstring:]]
        return updated_node.with_changes(body=body.with_changes(body=statements))

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        return False  # no other statement stands in it

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement]:
        if self.method is None or len(updated_node.body) != 1:
            return updated_node
        if self.method.name.value == "__init__" and m.matches(updated_node, _LOCK_MADE):
            made = self._statement(f"self.{LOCK} = {LOCK_CLASS}(self)")
            return cst.ensure_type(made, cst.SimpleStatementLine).with_changes(
                leading_lines=updated_node.leading_lines,
                trailing_whitespace=updated_node.trailing_whitespace,
            )
        for call in self.calls:
            found = m.extract(updated_node.body[0], call.beside)
            if found is None or (call.needs and not m.findall(self.method, m.Name(call.needs))):
                continue
            parts: dict[str, Any] = {"first": cst.Name(_first_parameter(self.method)), **found}
            parts["loop"] = self.loops[-1].target if self.loops else cst.Name("self")
            text = {name: self.module.code_for_node(node) for name, node in parts.items()}
            added = self._statement(call.text.format_map(text))
            if not call.before:
                return cst.FlattenSentinel([updated_node, added])
            added = added.with_changes(leading_lines=updated_node.leading_lines)
            return cst.FlattenSentinel([added, updated_node.with_changes(leading_lines=[])])
        return updated_node

    def _statement(self, text: str) -> cst.BaseCompoundStatement | cst.SimpleStatementLine:
        return cst.parse_statement(text, config=self.module.config_for_parsing)


def _first_parameter(method: cst.FunctionDef) -> str:
    """The name of the one behind `self`; `self` if there is none, which nobody takes for known."""
    return (*(parameter.name.value for parameter in method.params.params[:2]), "self")[1]


def _place_of_import(body: Sequence[cst.CSTNode]) -> int:
    """Before the first sibling that is imported and comes later in the alphabet, or at the end."""
    sibling = m.ImportFrom(relative=[m.Dot()], module=m.Name(m.MatchIfTrue(lambda n: n > MODULE)))
    later = m.SimpleStatementLine([sibling])
    imported = m.SimpleStatementLine([m.Import() | m.ImportFrom()])
    places = [n for n, statement in enumerate(body) if m.matches(statement, later)]
    after = [n + 1 for n, statement in enumerate(body) if m.matches(statement, imported)]
    return (places or after[-1:] or [0])[0]
