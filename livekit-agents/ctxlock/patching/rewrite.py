"""Puts every span of the realtime context under one lock: text in, text out, no I/O.

LibCST keeps what is not touched to the letter. Which shapes may be rewritten is not decided here:
:mod:`ctxlock.patching.patch` has :mod:`ctxlock.analysis.sites` refuse unknown ones before, and
judge the result after.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper, PositionProvider

from ..errors import NotUnderstood
from ..target import CLASS, LOCK, NOTICE, PUSHES, SESSION, SNAPSHOT

__all__ = ["guard"]

_NOTICE = (
    NOTICE,
    f"# is updated under {CLASS}.{LOCK}, from reading it to the end of the push.",
)

_BOM = "\ufeff"
_CODING = re.compile(r"#.*?coding[:=]")

_LOCK_COMMENT = "# this activity holds it from reading the realtime context to the end of the push"

_SESSION = m.Attribute(m.Name("self"), m.Name(SESSION))
_LOCK = m.Attribute(m.Name("self"), m.Name(LOCK))
_METHOD = m.Attribute(_SESSION, m.OneOf(*(m.Name(name) for name in PUSHES)))
_PUSH = m.SimpleStatementLine([m.Expr(m.Await(m.Call(_METHOD)))])
_COPY = m.Call(m.Attribute(m.Attribute(_SESSION, m.Name(SNAPSHOT)), m.Name("copy")))
_CHECK = m.Comparison(_SESSION, [m.ComparisonTarget(m.IsNot(), m.Name("None"))])
_LOCKED = m.With(items=[m.WithItem(_LOCK)], asynchronous=m.Asynchronous())
_TRY_LOCKED = m.Try(body=m.IndentedBlock([_LOCKED]))


def _makes(lock: m.Attribute) -> m.SimpleStatementLine:
    made = m.Call(m.Attribute(m.Name("asyncio"), m.Name("Lock")), args=[])
    return m.SimpleStatementLine([m.Assign([m.AssignTarget(lock)], made)])


_LOCK_MADE = _makes(_LOCK)
_ACTIVITY_LOCK_MADE = _makes(m.Attribute(m.Name("self"), m.Name("_lock")))


def guard(source: str, filename: str) -> str:
    """Returns `source` with each push, and the snapshot that feeds it, inside the lock.

    What is guarded already stays as it is; if everything is, so does the whole text.

    Args:
        source: The text of an `agent_activity.py`, with any line endings.
        filename: How errors name it.

    Raises:
        NotUnderstood: LibCST cannot read `source`, or there is no place to make the lock.
    """
    text = source.removeprefix(_BOM)  # which LibCST would drop
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as e:
        raise NotUnderstood(filename, e.raw_line, "LibCST cannot read this file.") from None
    if (code := module.code) != text:
        lost = next(i for i in range(len(text)) if code[i : i + 1] != text[i])
        line = text.count("\n", 0, lost) + 1
        raise NotUnderstood(filename, line, "LibCST does not give this line back as it is.")
    guarded = module.visit(_Guard(module, filename))
    if guarded.code == text:
        return source
    guarded = guarded.with_changes(header=_with_notice(module.header))
    return source[: len(source) - len(text)] + guarded.code


def _with_notice(header: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """The notice stands first, but for a `#!` line and an encoding declaration."""
    special = (
        line.comment and (line.comment.value.startswith("#!") or _CODING.match(line.comment.value))
        for line in header[:2]
    )
    first = max((number for number, found in enumerate(special, 1) if found), default=0)
    notice = [cst.EmptyLine(indent=False, comment=cst.Comment(text)) for text in _NOTICE]
    return [*header[:first], *notice, cst.EmptyLine(indent=False), *header[first:]]


class _Guard(cst.CSTTransformer):
    """Rewrites the one class and leaves the rest of the module alone."""

    def __init__(self, module: cst.Module, filename: str) -> None:
        super().__init__()
        self.module = module
        self.filename = filename

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        if updated_node.name.value != CLASS:
            return updated_node
        taken, made = _Lock(), _MakeLock()
        activity = cst.ensure_type(updated_node.visit(taken), cst.ClassDef)
        if not taken.made:
            activity = cst.ensure_type(activity.visit(made), cst.ClassDef)
        if not (taken.made or made.made):
            wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
            line = wrapper.resolve(PositionProvider)[original_node].start.line
            reason = f"{CLASS}.__init__ makes no `_lock`; {LOCK} would be made after it."
            raise NotUnderstood(self.filename, line, reason)
        return activity


class _Statements(cst.CSTTransformer):
    """Passes over what stands in a simple statement, where no other statement can be."""

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        return False


class _Lock(_Statements):
    """Locks pushes, draws their snapshots into the lock, and repeats checks of the session.

    Attributes:
        made: Whether the lock is made already.
    """

    made = False

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        self.made = self.made or m.matches(updated_node, _LOCK_MADE)
        return updated_node

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        body: list[cst.BaseStatement] = []
        for statement in updated_node.body:
            body.append(_locked(statement) if m.matches(statement, _PUSH) else statement)
            _draw_in_snapshot(body)
        return updated_node.with_changes(body=body)

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> cst.With:
        return original_node if m.matches(original_node, _LOCKED) else updated_node

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:
        if not _checks_session(updated_node.test):
            return updated_node
        return updated_node.with_changes(body=updated_node.body.visit(_CheckAgain()))


class _CheckAgain(_Statements):
    """Has the lock's holder check that a handoff did not take the session during the wait."""

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> cst.With:
        if not m.matches(updated_node, _LOCKED):
            return updated_node
        if m.matches(updated_node.body.body[0], m.If(test=_CHECK)):
            return updated_node
        test = cst.parse_expression(f"self.{SESSION} is not None")
        body = cst.ensure_type(updated_node.body, cst.IndentedBlock)
        check = cst.If(test=test, body=body.with_changes(header=cst.TrailingWhitespace()))
        return updated_node.with_changes(body=cst.IndentedBlock([check], header=body.header))


class _MakeLock(_Statements):
    """Makes the lock right behind the activity's own, which is always taken before it."""

    made = False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return node.name.value == "__init__"

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement]:
        if not m.matches(updated_node, _ACTIVITY_LOCK_MADE):
            return updated_node
        self.made = True
        comment = cst.EmptyLine(comment=cst.Comment(_LOCK_COMMENT))
        made = cst.parse_statement(f"self.{LOCK} = asyncio.Lock()")
        return cst.FlattenSentinel([updated_node, made.with_changes(leading_lines=[comment])])


def _checks_session(test: cst.BaseExpression) -> bool:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return _checks_session(test.left) or _checks_session(test.right)
    return m.matches(test, _CHECK)


def _locked(push: cst.BaseStatement) -> cst.With:
    statement = cst.ensure_type(push, cst.SimpleStatementLine)
    return cst.With(
        items=[cst.WithItem(cst.parse_expression(f"self.{LOCK}"))],
        body=cst.IndentedBlock([statement.with_changes(leading_lines=[])]),
        asynchronous=cst.Asynchronous(),
        leading_lines=statement.leading_lines,
    )


def _draw_in_snapshot(body: list[cst.BaseStatement]) -> None:
    """Moves the snapshot that feeds the lock at the end of `body`, with its additions, into it."""
    last = body[-1]
    if isinstance(last, cst.Try) and m.matches(last, _TRY_LOCKED):
        lock = cst.ensure_type(last.body.body[0], cst.With)
    elif isinstance(last, cst.With) and m.matches(last, _LOCKED):
        lock = last
    else:
        return
    start = _snapshot_before(body, lock)
    if start is None:
        return
    snapshot, *additions = body[start:-1]
    snapshot = cst.ensure_type(snapshot, cst.SimpleStatementLine)
    above = (*snapshot.leading_lines, *last.leading_lines)
    moved = [snapshot.with_changes(leading_lines=[]), *additions, *lock.body.body]
    lock = lock.with_changes(body=lock.body.with_changes(body=moved))
    if isinstance(last, cst.Try):
        last = last.with_changes(body=last.body.with_changes(body=[lock]))
    else:
        last = lock
    body[start:] = [last.with_changes(leading_lines=above)]


def _snapshot_before(body: Sequence[cst.BaseStatement], lock: cst.With) -> int | None:
    """Where in `body` the context was copied that `lock` pushes; `None` if nowhere."""
    pushed = m.extract(
        lock.body.body[-1],
        m.SimpleStatementLine(
            [m.Expr(m.Await(m.Call(_METHOD, args=[m.Arg(m.SaveMatchedNode(m.Name(), "name"))])))]
        ),
    )
    if pushed is None:
        return None
    name = cst.ensure_type(pushed["name"], cst.Name)
    copied = m.SimpleStatementLine([m.Assign([m.AssignTarget(m.Name(name.value))], _COPY)])
    return next((i for i in reversed(range(len(body) - 1)) if m.matches(body[i], copied)), None)
