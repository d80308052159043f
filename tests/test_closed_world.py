"""Edits anywhere in what a scope changes: refused by line, or in the output as they are.

They are made in the methods of real releases, cut out of the published files when the tests run.
`CTXLOCK_FUZZ` says how many.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random

import pytest
from activity import NAME, fetch
from crude_finder import naked
from line_by_line import unexplained
from real_methods import CASES, PARTS, RELEASES, cut, say
from whole_edits import KINDS, MARK, Edited, edited, insert_line, rename, renamed

from ctxlock.analysis.sites import find_sites
from ctxlock.errors import NothingToGuard, NotUnderstood
from ctxlock.patching.patch import patch_source
from ctxlock.release import Scope
from ctxlock.verified import NEWEST

pytestmark = pytest.mark.network

SCOPES: tuple[Scope, ...] = ("lock", "full")

IMPORTS = "import asyncio\n\n\nclass AgentActivity:\n"
LOCKS = ("self._rt_chat_ctx_lock", "self._lock")

HANDLERS = ("_on_remote_item_added", "_on_input_audio_transcription_completed")
ONLY_FULL = (*HANDLERS, "_close_session", "aclose")
"""What the scope `full` changes besides the methods with sites and the constructor."""


@dataclass(frozen=True)
class Release:
    """What the tests use of a release: its file, its methods, and those that hold sites."""

    version: str
    stock: bytes
    methods: dict[str, str]
    sites: frozenset[str]

    def touched(self, scope: Scope) -> list[str]:
        """The methods that the scope changes, or would if the lock were not there already."""
        more = ONLY_FULL if scope == "full" else ()
        return [name for name in self.methods if name in {"__init__", *self.sites, *more}]

    def module(self, *names: str, scope: Scope = "lock") -> str:
        """An activity with the constructor, the replacement, and others; `full` needs some more."""
        wanted = {"__init__", "update_chat_ctx", *names}
        if scope == "full":  # what handles the session's events, and where that is said
            wanted |= {
                *HANDLERS,
                "start" if "_start_session" not in self.methods else "_start_session",
            }
        return IMPORTS + "\n".join(t for name, t in self.methods.items() if name in wanted)


def read(version: str, stock: bytes) -> Release:
    sites = frozenset(site.function for site in find_sites(stock, NAME))
    return Release(version, stock, cut(stock.decode()), sites)


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Release]:
    return {v: read(v, fetch(v, tmp_path_factory.mktemp("stock")).read_bytes()) for v in RELEASES}


@pytest.fixture(scope="module")
def counts(request: pytest.FixtureRequest) -> Iterator[Counter[tuple[str, str, str]]]:
    """Counts what became of the edits, and says so in the end."""
    found: Counter[tuple[str, str, str]] = Counter()
    yield found
    lines = []
    for scope, kind in sorted({(scope, kind) for scope, kind, _ in found}):
        of = {what: found[scope, kind, what] for what in ("kept", "refused", "neither")}
        said = ", ".join(f"{n} {what}" for what, n in of.items() if n or what != "neither")
        lines.append(f"{scope}: {kind}: {sum(of.values())} tried, {said}")
    say(request, "\n".join(lines))


class Neither(AssertionError):
    """An edit is neither refused nor kept."""


def patched(source: str, scope: Scope) -> str | None:
    """What is made of `source`; `None` if it is refused, by file, line and reason."""
    try:
        return patch_source(source.encode(), NAME, scope).source.decode()
    except NothingToGuard:
        return source
    except NotUnderstood as e:
        assert e.filename == NAME
        assert 1 <= e.line <= len(source.splitlines()), e
        assert e.reason.endswith("."), e
        return None


unedited = cache(patched)


def judge(module: str, edit: Edited, scope: Scope) -> bool:
    """Whether the edit was refused, or kept; `Neither` if it was neither."""
    text = patched(edit.text, scope)
    if text is None:
        return True
    before = unedited(module, scope)
    assert before is not None
    if any(site.state == "bare" or site.rechecked is False for site in find_sites(text, NAME)):
        raise Neither(f"a site is bare: {edit.what}")
    if edit.unchanged is not None and not edit.unchanged(before, text):
        raise Neither(f"it is patched otherwise: {edit.what}")
    if (line := unexplained(edit.text, text)) is not None:
        raise Neither(f"{line}\n{edit.what}")
    if bare := naked(text):
        raise Neither(f"{bare}\n{edit.what}")
    if other := other_lock(text):
        raise Neither(f"{other} is held around a push: {edit.what}")
    return False


def other_lock(text: str) -> str | None:
    """What an `async with` around a push holds besides the two locks that are known."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.AsyncWith) and ".update_chat_ctx(" in ast.unparse(node):
            for item in node.items:
                if (held := ast.unparse(item)) not in LOCKS:
                    return held
    return None


def case(number: int, scope: Scope, releases: dict[str, Release]) -> tuple[str, str, Edited]:
    """A kind of edit, a module, and the edit; all of them follow from the number."""
    random = Random(f"world {number}")
    release = releases[random.choice(RELEASES)]
    method = random.choice(release.touched(scope))
    module = release.module(method, scope=scope)
    kind = [*KINDS][number % len(KINDS)]
    return kind, module, edited(kind, random, module, method)


def run(
    scope: Scope, part: int, releases: dict[str, Release], counts: Counter[tuple[str, str, str]]
) -> list[str]:
    neither = []
    for number in range(part, CASES if scope == "lock" else CASES // 2, PARTS):
        kind, module, edit = case(number, scope, releases)
        try:
            refused = judge(module, edit, scope)
            counts[scope, kind, "refused" if refused else "kept"] += 1
        except Neither as e:
            counts[scope, kind, "neither"] += 1
            neither.append(f"case {number}: {e}")
    return neither


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_touches_no_other_method(releases: dict[str, Release], scope: Scope) -> None:
    release = releases[NEWEST]
    after = cut(patch_source(release.stock, NAME, scope).source.decode())
    assert after.keys() == release.methods.keys()
    changed = {name for name, text in release.methods.items() if after[name] != text}
    assert changed <= {*release.touched(scope)}
    if scope == "full":
        assert {*ONLY_FULL} - {"aclose"} <= changed


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("scope", SCOPES)
def test_an_edit_is_refused_or_kept(
    releases: dict[str, Release], counts: Counter[tuple[str, str, str]], scope: Scope, part: int
) -> None:
    neither = run(scope, part, releases, counts)
    assert not neither, "\n".join(neither)


# What was once patched without a word.


def insert(module: str, method: str) -> Edited:
    """Inserts a statement in front of a method's last one."""
    (found,) = (
        node
        for node in ast.walk(ast.parse(module))
        if isinstance(node, ast.FunctionDef) and node.name == method
    )
    return insert_line(module, found.body[-1].lineno - 1, " " * 8, f"{MARK}()")


def test_upstreams_own_lock_by_another_name_is_refused(releases: dict[str, Release]) -> None:
    source = renamed(
        releases["1.8.9"].stock.decode(), "_rt_chat_ctx_lock", "_rt_ctx_mutex", attribute=True
    )
    assert source.count("_rt_ctx_mutex") == 6
    lines = source.splitlines()
    taken = [n for n, line in enumerate(lines, 1) if "async with self._rt_ctx_mutex:" in line]
    with pytest.raises(NotUnderstood, match="_rt_ctx_mutex` is held here") as refused:
        patch_source(source.encode(), NAME, "lock")
    assert refused.value.line in taken


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    ("method", "edit"),
    [
        pytest.param("_on_remote_item_added", insert, id="statement in the recorder"),
        pytest.param("_on_remote_item_added", rename, id="recorder renamed"),
        pytest.param(
            "_realtime_reply_task",
            lambda module, method: rename(module, "msg", method),
            id="message of a turn renamed",
        ),
        pytest.param("_close_session", rename, id="closing renamed"),
        pytest.param("_realtime_reply_task", rename, id="reply task renamed"),
    ],
)
def test_what_was_patched_without_a_word(
    releases: dict[str, Release],
    scope: Scope,
    method: str,
    edit: Callable[[str, str], Edited],
) -> None:
    module = releases[NEWEST].module(method, scope=scope)
    judge(module, edit(module, method), scope)
