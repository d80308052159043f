"""Patches one `agent_activity.py`, or refuses to."""

from __future__ import annotations

import difflib
import io
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from itertools import zip_longest

from ..analysis.inverse import check_inverse
from ..analysis.missing_calls import check_told
from ..analysis.sites import Site, find_sites
from ..analysis.without_calls import plain_source
from ..errors import NothingToGuard, NotUnderstood
from ..release import DEFAULT_SCOPE, HOW_TO_LOCK, Scope
from ..target import ADDED, LOCK_CLASS, MODULE
from .lock_calls import add_calls
from .rewrite import guard

__all__ = ["Patched", "patch_source", "unified_diff"]


@dataclass(frozen=True)
class Patched:
    """A patched file and what is known of it.

    Attributes:
        source: The file's new content.
        sites: Its sites, none of them bare.
        added: The files that go beside it, by path.
    """

    source: bytes
    sites: tuple[Site, ...]
    added: Mapping[str, bytes] = field(default_factory=dict)


def patch_source(source: bytes, filename: str, scope: Scope = DEFAULT_SCOPE) -> Patched:
    """Guards every site of `source` and checks the result before handing it out.

    Args:
        source: The content of a stock `agent_activity.py`, UTF-8 encoded.
        filename: How errors name it.
        scope: How much is changed.

    Raises:
        NothingToGuard: It has the scope full already; or, with the scope lock, every site is
            guarded already, and checks its session after the wait.
        NotUnderstood: Something in `source` has an unknown shape, or the result fails a check:
            a site is bare, or more than the lock has changed.
    """
    text = _decoded(source, filename)
    if LOCK_CLASS in text:
        raise NothingToGuard(f"{filename}: this is patched already; start from the stock release.")
    before = find_sites(source, filename)
    guarded = guard(text, filename)
    patched = guarded.encode()
    sites = _guarded(source, patched, before, filename)
    if guarded == text and scope == "lock":
        raise NothingToGuard(
            f"{filename}: every place is guarded already; for the scope lock the stock release is "
            "enough, so install that."
        )
    check_inverse(source, patched, filename)
    if scope == "lock":
        return Patched(patched, sites)
    locked, patched = patched, add_calls(guarded).encode()
    with _naming_lines_of(source, locked):
        _check_plain(plain_source(patched), locked, filename)
    sites = _guarded(source, patched, before, filename)
    with _naming_lines_of(source, patched):
        check_told(patched, sites, filename)
    added = resources.files("ctxlock").joinpath("payload", f"{MODULE}.py").read_bytes()
    return Patched(patched, sites, {ADDED: added})


def unified_diff(before: bytes, after: bytes, path: str) -> Iterator[bytes]:
    """The lines of a diff from `before` to `after`, as `git apply` takes them.

    A file that is empty before is new.
    """
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{path}".encode() if before else b"/dev/null",
        f"b/{path}".encode(),
    )
    for line in lines:
        yield line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"


def _guarded(
    source: bytes, patched: bytes, before: Sequence[Site], filename: str
) -> tuple[Site, ...]:
    """The sites of what was made of `source`, whose sites are `before`; it names its lines."""
    with _naming_lines_of(source, patched):
        sites = find_sites(patched, filename)
    for was, site in zip_longest(before, sites):
        if was is None or site is None or site.state == "bare" or site.rechecked is False:
            named = was or site
            raise NotUnderstood(
                filename,
                named.first_line,
                f"The {named.role} in {named.function} could not be guarded; nothing was written.",
            )
    return sites


def _check_plain(plain: bytes, locked: bytes, filename: str) -> None:
    """Checks that what the scope full adds can be told from all else: both are the same then."""
    if plain != locked:
        lines = zip(plain.splitlines(), locked.splitlines(), strict=False)
        line = next((n for n, (now, was) in enumerate(lines, 1) if now != was), 1)
        reason = "A call that the scope full adds cannot be told from the code here"
        raise NotUnderstood(filename, line, f"{reason}; build with the scope lock: {HOW_TO_LOCK}.")


@contextmanager
def _naming_lines_of(source: bytes, patched: bytes) -> Iterator[None]:
    """Has errors about `patched` name the lines of `source`."""
    try:
        yield
    except NotUnderstood as e:
        line = _line_before(source, patched, e.line)
        raise NotUnderstood(e.filename, line, e.reason) from None


def _line_before(source: bytes, patched: bytes, line: int) -> int:
    """The line of `source` that became `line` of `patched`; for an added one, that before it."""
    was, now = ([one.strip() for one in text.splitlines()] for text in (source, patched))
    blocks = difflib.SequenceMatcher(None, was, now, autojunk=False).get_matching_blocks()
    return max(
        (block.a + min(line - block.b, block.size) for block in blocks if block.b < line),
        default=1,
    )


def _decoded(source: bytes, filename: str) -> str:
    try:
        text = source.decode()
    except UnicodeDecodeError as e:
        line = source.count(b"\n", 0, e.start) + 1
        raise NotUnderstood(filename, line, "This file is not encoded in UTF-8.") from None
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    except SyntaxError as e:
        encoding = str(e)
    if encoding not in ("utf-8", "utf-8-sig"):
        raise NotUnderstood(filename, 1, f"This file declares another encoding: {encoding}.")
    return text
