"""What a patched text has that its original has not, line by line: the lock's lines, and no other.

It is a judge of its own: it reads tokens, knows no syntax tree, and shares nothing with the code
that rewrites or with what takes the lock away again.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from dataclasses import dataclass

from activity import LOCK as MADE_ABOVE, NOTICE

__all__ = ["unexplained"]

LOCK = "async with self . _rt_chat_ctx_lock :"
CHECK = "if self . _rt_session is not None :"
MADE = "self . _rt_chat_ctx_lock = asyncio . Lock ( )"
BEFORE_IT = "self . _lock = asyncio . Lock ( )"
IMPORT = "from . _realtime_context import RealtimeContextLock"
NEW = MADE.replace("asyncio . Lock ( )", "RealtimeContextLock ( self )")
COMMENTS = [line.strip() for line in (NOTICE + MADE_ABOVE).splitlines() if "#" in line]

_SNAPSHOT = re.compile(r"(\w+) = self \. _rt_session \. chat_ctx \. copy \(")
_PUSH = re.compile(r"await self \. _rt_session \. (update_chat_ctx|_update_session) \(")
_GIVEN = r"(\* )?\w+( \. \w+)* "
_CALL = re.compile(
    r"self \. _rt_chat_ctx_lock \. "
    r"(replacing|typing|pending|place|said|unheard|hand_over|attach|close) "
    rf"\( ({_GIVEN}(, {_GIVEN})*)?\)"
)
_TELL = re.compile(r"if self \. _rt_chat_ctx_lock \. tell \( \w+ \) :")
_LATEST = re.compile(r"(\w+) = self \. _agent \. _chat_ctx")


@dataclass(frozen=True)
class Line:
    """A logical line: how deep it stands, and its tokens.

    What it stands in follows from the lines before it.
    """

    depth: int
    text: str


def _read(source: str) -> tuple[list[Line], Counter[str]]:
    """The logical lines, and the comments that stand alone."""
    lines: list[Line] = []
    comments: Counter[str] = Counter()
    depth, parts = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        match token.type:
            case tokenize.INDENT:
                depth += 1
            case tokenize.DEDENT:
                depth -= 1
            case tokenize.NEWLINE:
                lines.append(Line(depth, " ".join(parts)))
                parts = []
            case tokenize.COMMENT if not parts:
                comments[token.string] += 1
            case tokenize.NL | tokenize.ENDMARKER:
                pass
            case _:
                parts.append(token.string)
    return lines, comments


def unexplained(original: str, patched: str) -> str | None:
    """The first line of `patched` that is neither the original's next one nor the lock's."""
    old, comments = _read(original)
    new, commented = _read(patched)
    if Line(0, IMPORT) in new and Line(0, IMPORT) not in old:
        new = _without_calls(new)
    if lost := comments - commented:
        return f"lost: {next(iter(lost))}"
    for comment, count in (commented - comments).items():
        if comment not in COMMENTS or count > 1:
            return f"added: {comment}"
    made = any(line.text == MADE for line in old)
    added: list[int] = []  # the depths of the lines that were added and hold the next one
    at = 0
    for number, line in enumerate(new):
        while added and line.depth <= added[-1]:
            added.pop()
        here = Line(line.depth - len(added), line.text)
        if line.text == LOCK or (line.text == "try :" and new[number + 1].text == LOCK):
            old = _drawn_in(old, at, here)
        if at < len(old) and old[at] == here:
            at += 1
        elif _is_lock(new, number) or _is_check(new, number):
            added.append(line.depth)
        elif line.text == MADE and new[number - 1].text == BEFORE_IT and not made:
            made = True
        else:
            return f"line {number + 1} of the logical ones: {line.text}"
    return None if at == len(old) else f"lost: {old[at].text}"


def _without_calls(new: list[Line]) -> list[Line]:
    """What the scope full leaves without the calls of its lock."""
    left: list[Line] = []
    made = False
    for at, line in enumerate(new):
        before = new[at - 1]
        latest = _LATEST.fullmatch(line.text)
        if line.text == NEW and not made:
            made = True
            left.append(Line(line.depth, MADE))
        elif not (
            line == Line(0, IMPORT)
            or _CALL.fullmatch(line.text)
            or _TELL.fullmatch(line.text)
            or (_TELL.fullmatch(before.text) and line == Line(before.depth + 1, "return"))
            or (line.text == NEW and before.text.startswith("self . _rt_session = "))
            or (latest and new[at + 1].text.endswith(f". update_chat_ctx ( {latest[1]} )"))
        ):
            left.append(line)
    return left


def _drawn_in(old: list[Line], at: int, here: Line) -> list[Line]:
    """`old`, with what is `here` now moved in front of a snapshot and its additions.

    That is the lock's line, or the `try` around a push: what it holds grows at its beginning.
    """
    snapshot = _SNAPSHOT.match(old[at].text) if at < len(old) else None
    if snapshot is None or old[at].depth != here.depth:
        return old
    end = at
    while end < len(old) and old[end].depth >= here.depth and old[end] != here:
        end += 1
    moved = old[at:end]
    if end == len(old) or old[end] != here or any(_PUSH.match(line.text) for line in moved):
        return old
    if any(line.depth > here.depth or not _names(line, snapshot[1]) for line in moved):
        return old
    head = [here]
    if here.text != LOCK and old[end + 1].text == LOCK:
        head.append(old[end + 1])
    deeper = [Line(line.depth + len(head), line.text) for line in moved]
    return [*old[:at], *head, *deeper, *old[end + len(head) :]]


def _names(line: Line, name: str) -> bool:
    return name in line.text.split()


def _is_lock(new: list[Line], at: int) -> bool:
    """Whether it is the lock, around a snapshot or nothing, additions and a push, or a check."""
    if new[at].text != LOCK or any(line.text == LOCK for line in _around(new, at)):
        return False
    inside = _inside(new, at)
    if inside[0].text == CHECK:
        if len(_inside(new, at + 1)) != len(inside) - 1:
            return False
        inside = inside[1:]
    *before, push = inside
    snapshot = _SNAPSHOT.match(inside[0].text)
    return _PUSH.match(push.text) is not None and (
        not before
        or all(
            snapshot and _names(line, snapshot[1]) and line.depth == push.depth for line in inside
        )
    )


def _is_check(new: list[Line], at: int) -> bool:
    """Whether it opens the lock and checks the session, as was done before the lock, too."""
    head = r"(el)?if (.* and |\( )*self \. _rt_session is not None( and .*| \))* :"
    return (
        new[at].text == CHECK
        and new[at - 1].text == LOCK
        and any(re.fullmatch(head, line.text) for line in _around(new, at - 1))
    )


def _inside(new: list[Line], head: int) -> list[Line]:
    end = head + 1
    while end < len(new) and new[end].depth > new[head].depth:
        end += 1
    return new[head + 1 : end]


def _around(new: list[Line], at: int) -> list[Line]:
    """The lines that a line stands in, innermost first, as far as its function."""
    found: list[Line] = []
    depth = new[at].depth
    for line in reversed(new[:at]):
        if line.depth < depth:
            if line.text.startswith(("def ", "async def ")):
                return found
            found.append(line)
            depth = line.depth
    return found
