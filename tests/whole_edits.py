"""Edits as an upstream makes them: anywhere in a method, whatever is patched there.

An edit takes a module and the name of a method in it. It knows, where that can be known, how the
patched text of the edited module differs from that of the module as it was.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from textwrap import indent

from edits import pick, span, wrap

__all__ = ["KINDS", "MARK", "Edited", "edited", "insert_line", "rename", "renamed"]

MARK = "marked_7f"
"""A name that nothing else has."""

HOT = ("update_chat_ctx(", "_update_session(", "_rt_session.chat_ctx", "_lock")
"""What the statements contain that matter most."""

LINES = (
    *(f"{MARK}()", f"await {MARK}()", f"logger.debug('{MARK}')", f"{MARK} = 1"),
    *(f"self.{MARK} = self", f"self._session.{MARK}(self._agent)", f"assert {MARK}"),
    *(f"if {MARK}: pass", f"await self.{MARK}", f"del self.{MARK}"),
)

BLOCKS = (
    *((f"if {MARK}:", ""), (f"for _ in {MARK}:", ""), (f"while {MARK}():", "")),
    *(("try:", f"finally:\n    {MARK}()"), ("try:", f"except ValueError:\n    {MARK}()")),
    *((f"with {MARK}():", ""), (f"async with {MARK}():", ""), (f"async with self.{MARK}:", "")),
    ("if True:", f"else:\n    {MARK}()"),
)

METHODS = (
    f"def {MARK}(self):\n    return self._agent\n",
    f"async def {MARK}(self, chat_ctx):\n    await self.{MARK}_2(chat_ctx)\n",
    f"@property\ndef {MARK}(self):\n    return self._session\n",
)


@dataclass(frozen=True)
class Edited:
    """An edited module.

    Attributes:
        text: The module.
        what: What was done, for messages.
        unchanged: Whether the patched text of the module as it was, and that of this one, differ by
            the edit alone; `None` where lines tell nothing.
    """

    text: str
    what: str
    unchanged: Callable[[str, str], bool] | None = None


def edited(kind: str, random: Random, module: str, method: str) -> Edited:
    """An edit of that kind, after which the module is Python still."""
    while True:
        made = KINDS[kind](random, module, method)
        try:
            ast.parse(made.text)
        except SyntaxError:
            continue
        if made.text != module:
            return made


# Names.


def renamed(module: str, old: str, new: str, attribute: bool, method: str | None = None) -> str:
    """`module` with a name changed everywhere, or in one method: attributes, or all but those."""
    first, last = (1, module.count("\n") + 1) if method is None else _lines(module, method)
    tokens = [*tokenize.generate_tokens(io.StringIO(module).readline)]
    lines = [line.encode("utf-32-le") for line in module.split("\n")]  # columns count characters
    for at in reversed(range(len(tokens))):
        token = tokens[at]
        row, column = token.start
        if token.string != old or not first <= row <= last:
            continue
        if _is_attribute(tokens, at) == attribute:
            line = lines[row - 1]
            end = 4 * (column + len(old))
            lines[row - 1] = line[: 4 * column] + new.encode("utf-32-le") + line[end:]
    return "\n".join(line.decode("utf-32-le") for line in lines)


def _is_attribute(tokens: list[tokenize.TokenInfo], at: int) -> bool:
    """Whether it follows a dot, is a method's own name, or names an argument in a call."""
    before, after = tokens[at - 1].string, tokens[at + 1].string
    return before in (".", "def") or (before in ("(", ",") and after == "=")


def _names(module: str, method: str, attribute: bool) -> list[str]:
    tokens = [*tokenize.generate_tokens(io.StringIO(module).readline)]
    first, last = _lines(module, method)
    return sorted(
        {
            token.string
            for at, token in enumerate(tokens)
            if token.type == tokenize.NAME and first <= token.start[0] <= last
            if token.string.isidentifier() and not _is_word(token.string)
            if _is_attribute(tokens, at) == attribute
        }
    )


def _is_word(name: str) -> bool:
    try:
        return not isinstance(ast.parse(name, mode="eval").body, ast.Name)
    except SyntaxError:
        return True


def rename(module: str, old: str, method: str | None = None) -> Edited:
    """Renames an attribute everywhere, or a variable of a method."""

    def again(text: str) -> str:
        return renamed(text, old, f"{old}_7f", method is None, method)

    where = f" in {method}" if method else ""
    return Edited(again(module), f"{old} renamed{where}", lambda was, now: again(was) == now)


def _rename_attribute(random: Random, module: str, method: str) -> Edited:
    return rename(module, random.choice(_names(module, method, True)))


def _rename_local(random: Random, module: str, method: str) -> Edited:
    return rename(module, random.choice(_names(module, method, False)), method)


def _rename_method(random: Random, module: str, method: str) -> Edited:
    return rename(module, method)


# Statements.


def _method(module: str, method: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    (found,) = (
        node
        for node in ast.walk(ast.parse(module))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == method
    )
    return found


def _lines(module: str, method: str) -> tuple[int, int]:
    """The first and the last line of a method, 1-based, with its decorators."""
    first, last = span(_method(module, method))
    return first + 1, last


def _pick(random: Random, module: str, method: str, longest: int = 1) -> tuple[int, int, str]:
    return pick(random, module, _method(module, method), HOT, longest)


def insert_line(module: str, at: int, margin: str, new: str) -> Edited:
    """Inserts a marked line, `at` counted from 0; patched, it is there once."""
    lines = module.split("\n")
    lines.insert(at, margin + new)

    def unchanged(was: str, now: str) -> bool:
        marked = [line.strip() for line in now.split("\n") if MARK in line]
        return marked == [new] and _without_mark(now) == was

    return Edited("\n".join(lines), f"line {at + 1} inserted: {new}", unchanged)


def _without_mark(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if MARK not in line)


def _insert(random: Random, module: str, method: str) -> Edited:
    first, last, margin = _pick(random, module, method)
    new = random.choice([*LINES, f"# {MARK}"])
    return insert_line(module, random.choice([first, last]), margin, new)


def _insert_method(random: Random, module: str, method: str) -> Edited:
    at = random.choice(_lines(module, method)) - 1
    lines = module.split("\n")
    if lines[at].strip() and at + 1 != _lines(module, method)[0]:
        at += 1  # behind its last line
    new = indent(random.choice(METHODS), "    ").rstrip("\n").split("\n")
    lines[at:at] = new

    def unchanged(was: str, now: str) -> bool:
        text = "\n".join(new) + "\n"
        return now.count(text) == 1 and now.replace(text, "") == was

    return Edited("\n".join(lines), f"method inserted at line {at + 1}", unchanged)


def _delete(random: Random, module: str, method: str) -> Edited:
    first, last, margin = _pick(random, module, method)
    lines = module.split("\n")
    gone = lines[first].strip()
    lines[first:last] = [f"{margin}pass"] if random.randrange(2) else []
    return Edited("\n".join(lines), f"line {first + 1} deleted: {gone}")


def _wrap(random: Random, module: str, method: str) -> Edited:
    first, last, margin = _pick(random, module, method, longest=4)
    head, tail = random.choice(BLOCKS)
    text = wrap(module, first, last, margin, head, tail)
    return Edited(text, f"lines {first + 1} to {last} wrapped: {head} {tail}")


KINDS: dict[str, Callable[[Random, str, str], Edited]] = {
    "statement inserted": _insert,
    "method inserted": _insert_method,
    "statement deleted": _delete,
    "statements wrapped": _wrap,
    "method renamed": _rename_method,
    "attribute renamed": _rename_attribute,
    "variable renamed": _rename_local,
}
