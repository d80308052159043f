"""Routes what the lock guards through :mod:`ctxlock.added._realtime_context`: text in, text out.

It takes what :mod:`ctxlock.rewrite` gives out, in which every span has one of a few shapes, and
leaves no span and no lock. :mod:`ctxlock.unroute` reads the result with other means, to be judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import libcst as cst
import libcst.matchers as m
from libcst.helpers import parse_template_expression, parse_template_statement
from libcst.metadata import MetadataWrapper, PositionProvider

from .errors import NotUnderstood
from .release import HOW_TO_LOCK
from .sites import find_sites
from .syntax import CLASS, CONTEXT, LOCK, MODULE, SESSION

__all__ = ["route"]

_ME = m.Name("self")
_SESSION = m.Attribute(_ME, m.Name(SESSION))
_AGENT_CONTEXT = m.Attribute(m.Attribute(_ME, m.Name("_agent")), m.Name("_chat_ctx"))
_LOCKED = m.With(items=[m.WithItem(m.Attribute(_ME, m.Name(LOCK)))], asynchronous=m.Asynchronous())
_LOCK_MADE = m.SimpleStatementLine([m.Assign([m.AssignTarget(m.Attribute(_ME, m.Name(LOCK)))])])
_REPLACED = m.SimpleStatementLine([m.Assign([m.AssignTarget(_AGENT_CONTEXT)])])
_CLOSE = m.Call(m.Attribute(_SESSION, m.Name("aclose")))
_KEPT = m.Call(
    m.Attribute(_AGENT_CONTEXT, m.Name("_upsert_item"))
    | m.Attribute(m.Attribute(_AGENT_CONTEXT, m.Name("items")), m.Name("append")),
    args=[m.Arg(m.OneOf(m.Name("msg"), m.Name("chat_msg")))],
)
_SKIPPED = m.For(
    body=m.IndentedBlock(
        [
            m.ZeroOrMore(),
            m.If(
                body=m.IndentedBlock(
                    [
                        m.SimpleStatementLine(
                            [m.Assign([m.AssignTarget(m.Name("any_skipped"))], m.Name("True"))]
                        ),
                        m.ZeroOrMore(),
                    ]
                )
            ),
            m.ZeroOrMore(),
        ]
    )
)
_KEEPERS = ("_on_input_audio_transcription_completed", "_realtime_")
"""The methods, by the beginnings of their names, that record what a replacement may remove."""

_CLOSERS = ("_close_session", "aclose")

_LISTENS = f'"""Nothing is left to do here: {MODULE}.py listens to the session itself."""'

_REMEDY = f"build with the scope lock: {HOW_TO_LOCK}."

_COMMENT = "# this activity's way to the realtime context; those that share a session take turns"


def route(guarded: str, filename: str) -> str:
    """Returns `guarded` with each span, and what records items, routed through the added module.

    Args:
        guarded: The text of an `agent_activity.py` in which every site is guarded.
        filename: How errors name it.

    Raises:
        NotUnderstood: A span has a shape that cannot be routed.
    """
    roles = {site.first_line: site.role for site in find_sites(guarded, filename)}
    wrapper = MetadataWrapper(cst.parse_module(guarded), unsafe_skip_copy=True)
    visitor = _Route(roles, filename)
    routed = wrapper.visit(visitor)
    if not visitor.notes_replacements:
        line = next((line for line, role in roles.items() if role == "replacement"), 1)
        raise NotUnderstood(
            filename,
            line,
            "The agent's context is not replaced in the way that the scope full can follow; "
            f"{_REMEDY}",
        )
    return routed.code


class _Route(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, roles: Mapping[int, str], filename: str) -> None:
        super().__init__()
        self.roles = roles
        self.filename = filename
        self.functions: list[str] = []
        self.skipped: cst.For | None = None
        self.notes_replacements = False

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        body = list(updated_node.body)
        body.insert(_place_of_import(body), _statement(f"from .{MODULE} import RealtimeContext"))
        header = [_named(line) for line in updated_node.header]
        return updated_node.with_changes(header=header, body=body)

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return node.name.value == CLASS

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self.functions.append(node.name.value)
        return True

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        if self.functions.pop() != "_on_remote_item_added":
            return updated_node
        return updated_node.with_changes(body=cst.IndentedBlock([_statement(_LISTENS)]))

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:
        if m.matches(updated_node, _SKIPPED):
            self.skipped = updated_node
        return updated_node

    def leave_With(
        self, original_node: cst.With, updated_node: cst.With
    ) -> cst.With | cst.FlattenSentinel[cst.BaseStatement]:
        if not m.matches(updated_node, _LOCKED):
            return updated_node
        line = self.get_metadata(PositionProvider, original_node).start.line
        body: Sequence[cst.CSTNode] = updated_node.body.body
        if len(body) == 1 and isinstance(body[0], cst.If):
            body = body[0].body.body  # the added module checks the session itself
        routed = self._span(body, line)
        first = routed[0].with_changes(leading_lines=updated_node.leading_lines)
        return cst.FlattenSentinel([first, *routed[1:]])

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement]:
        function = self.functions[-1] if self.functions else ""
        if m.matches(updated_node, _LOCK_MADE):
            made = _statement(f"self.{CONTEXT} = RealtimeContext(self)")
            comment = cst.EmptyLine(comment=cst.Comment(_COMMENT))
            return made.with_changes(leading_lines=[comment])
        if function == "update_chat_ctx" and m.matches(updated_node, _REPLACED):
            assigned = cst.ensure_type(updated_node.body[0], cst.Assign)
            noted = _statement(f"self.{CONTEXT}.replacing({{given}})", given=assigned.value)
            noted = noted.with_changes(leading_lines=updated_node.leading_lines)
            self.notes_replacements = True
            return cst.FlattenSentinel([noted, updated_node.with_changes(leading_lines=[])])
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        function = self.functions[-1] if self.functions else ""
        if function in _CLOSERS and m.matches(updated_node, _CLOSE):
            return _call("aclose")
        if function.startswith(_KEEPERS) and m.matches(updated_node, _KEPT):
            return _call("keep").with_changes(args=updated_node.args)
        return updated_node

    def _span(self, body: Sequence[cst.CSTNode], line: int) -> list[cst.BaseStatement]:
        role = self.roles.get(line, "")
        *before, last = (cst.ensure_type(one, cst.SimpleStatementLine) for one in body)
        push = cst.ensure_type(cst.ensure_type(last.body[0], cst.Expr).value, cst.Await)
        call = cst.ensure_type(push.expression, cst.Call)
        site = cst.SimpleString(f'"{role}"')
        above: list[cst.BaseStatement] = [*before]
        if before:
            snapshot = cst.ensure_type(before[0].body[0], cst.Assign)
            empty = cst.parse_expression("llm.ChatContext.empty()")
            above[0] = before[0].with_changes(body=[snapshot.with_changes(value=empty)])
            pushed = _call("append", "{items}, {site}", items=call.args[0].value, site=site)
        elif role == "session start" and len(call.args) > 1:
            comma = cst.Comma(whitespace_after=call.whitespace_before_args)
            method = cst.Arg(call.func, comma=comma)
            pushed = call.with_changes(func=_call("start").func, args=[method, *call.args])
        elif role in ("replacement", "session start", "never-played cleanup"):
            pushed = _call("replace", "{site}", site=site)
            if role == "never-played cleanup":
                above = [self._forget(line)]
        else:
            reason = f"It is unclear how the scope full routes the {role} here; {_REMEDY}"
            raise NotUnderstood(self.filename, line, reason)
        return [*above, last.with_changes(body=[cst.Expr(cst.Await(pushed))])]

    def _forget(self, line: int) -> cst.For:
        if self.skipped is None:
            reason = f"Which messages were never played cannot be told here; {_REMEDY}"
            raise NotUnderstood(self.filename, line, reason)
        tests = [s for s in self.skipped.body.body if m.matches(s, m.If())]
        return cst.ensure_type(
            parse_template_statement(
                "for {one} in {outputs}:\n    if {skipped}:\n"
                f"        self.{CONTEXT}.forget({{one}}.msg.message_id)",
                one=self.skipped.target,
                outputs=self.skipped.iter,
                skipped=cst.ensure_type(tests[0], cst.If).test,
            ),
            cst.For,
        )


def _statement(template: str, **parts: Any) -> cst.SimpleStatementLine:
    return cst.ensure_type(parse_template_statement(template, **parts), cst.SimpleStatementLine)


def _call(method: str, arguments: str = "", **parts: Any) -> cst.Call:
    template = f"self.{CONTEXT}.{method}({arguments})"
    return cst.ensure_type(parse_template_expression(template, **parts), cst.Call)


def _named(line: cst.EmptyLine) -> cst.EmptyLine:
    """A line of the notice, naming the added module instead of the lock."""
    if line.comment is None:
        return line
    text = line.comment.value.replace(f"under {CLASS}.{LOCK}", f"through {MODULE}.py")
    return line.with_changes(comment=cst.Comment(text))


def _place_of_import(body: Sequence[cst.CSTNode]) -> int:
    """Before the first sibling that is imported and comes later in the alphabet, or at the end."""
    sibling = m.ImportFrom(relative=[m.Dot()], module=m.Name(m.MatchIfTrue(lambda n: n > MODULE)))
    later = m.SimpleStatementLine([sibling])
    imported = m.SimpleStatementLine([m.Import() | m.ImportFrom()])
    places = [n for n, statement in enumerate(body) if m.matches(statement, later)]
    after = [n + 1 for n, statement in enumerate(body) if m.matches(statement, imported)]
    return (places or after[-1:] or [0])[0]
