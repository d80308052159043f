"""Patches one `agent_activity.py`, or refuses to."""

from __future__ import annotations

import difflib
import io
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from itertools import zip_longest

from .errors import NothingToGuard, NotUnderstood
from .inverse import check_inverse
from .release import DEFAULT_SCOPE, Scope
from .rewrite import guard
from .route import route
from .sites import Site, find_sites
from .syntax import ADDED, MODULE
from .unroute import parts_of

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
        NothingToGuard: It is routed already; or, with the scope lock, every site is guarded
            already, and checks its session after the wait.
        NotUnderstood: Something in `source` has an unknown shape, or the result fails a check:
            a site is bare, or more than the lock has changed.
    """
    text = _decoded(source, filename)
    before = find_sites(source, filename)
    if parts_of(source):
        raise NothingToGuard(f"{filename}: this is patched already; start from the stock release.")
    guarded = guard(text, filename)
    patched = guarded.encode()
    sites = _guarded(source, patched, before, filename)
    if guarded == text and scope == "lock":
        raise NothingToGuard(
            f"{filename}: every site is guarded already; the stock release suffices for the scope "
            "lock, install that."
        )
    check_inverse(source, patched, filename)
    if scope == "lock":
        return Patched(patched, sites)
    patched = route(guarded, filename).encode()
    check_inverse(source, patched, filename)
    added = resources.files("ctxlock").joinpath("added", f"{MODULE}.py").read_bytes()
    return Patched(patched, _guarded(source, patched, before, filename), {ADDED: added})


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
    try:
        sites = find_sites(patched, filename)
    except NotUnderstood as e:
        raise NotUnderstood(filename, _line_before(source, patched, e.line), e.reason) from None
    for was, site in zip_longest(before, sites):
        if was is None or site is None or site.state == "bare" or site.rechecked is False:
            named = was or site
            raise NotUnderstood(
                filename,
                named.first_line,
                f"The {named.role} in {named.function} could not be guarded; nothing was written.",
            )
    return sites


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
