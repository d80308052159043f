from __future__ import annotations

import ast
import codecs
import difflib
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from activity import (
    HEAD,
    HERE,
    LOCK,
    NAME,
    NOTICE,
    PUSH,
    REPLACING,
    fetch,
    guarded,
    locked,
    module,
    refuses,
)
from lock_pairs import UNCHECKED, UPSTREAMS, checked
from methods import CHECK, HOLD, READ, SEND, block, given, taking

from ctxlock.analysis.sites import Site, find_sites
from ctxlock.errors import NothingToGuard, NotUnderstood
from ctxlock.patching import patch
from ctxlock.patching.lock_calls import add_calls
from ctxlock.patching.patch import patch_source
from ctxlock.release import Scope

SCOPES: tuple[Scope, ...] = ("lock", "full")
FINALLY = block("finally:", "done()")


def test_hands_out_what_it_has_judged() -> None:
    patched = patch_source(module(PUSH).encode(), NAME, "lock")
    assert patched.source.decode() == guarded(UPSTREAMS)
    assert patched.sites == find_sites(patched.source, NAME)
    assert [site.state for site in patched.sites] == ["guarded"]


@pytest.mark.parametrize("source", [locked(UPSTREAMS), guarded(UPSTREAMS)], ids=["theirs", "ours"])
def test_nothing_to_guard(source: str) -> None:
    with pytest.raises(NothingToGuard, match="for the scope lock the stock release is enough"):
        patch_source(source.encode(), NAME, "lock")


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(f"{SEND}; done()", id="semicolon"),
        pytest.param(f"if ctx: {SEND}", id="on the if's line"),
        pytest.param(f"{READ}; {SEND}", id="span on one line"),
    ],
)
@pytest.mark.parametrize(
    "make",
    [module, lambda method: locked(UPSTREAMS, method)],
    ids=["alone", "beside a guarded one"],
)
def test_refuses_what_the_rewriter_passes_over(make: Callable[[str], str], statement: str) -> None:
    source = make(given(f"{statement}  # <- here"))
    with refuses(source, "could not be guarded"):
        patch_source(source.encode(), NAME, "lock")


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(
            taking(block("try:", SEND, "done()"), block("except RealtimeError:", "log()")),
            id="more in the try",
        ),
        pytest.param(
            taking("await self._rt_session._update_session(tools=[], chat_ctx=ctx)"),
            id="snapshot in the push of more",
        ),
        pytest.param(
            taking(block("try:", block("try:", SEND), FINALLY), FINALLY), id="try in a try"
        ),
    ],
)
def test_refuses_to_lock_the_push_alone(method: str) -> None:
    with pytest.raises(NotUnderstood, match="could not be guarded"):
        patch_source(module(method).encode(), NAME, "lock")


# What the scope full adds, and an upstream may have.

REPLACE = "await self._rt_session.update_chat_ctx(chat_ctx)"
WITH_LOCK = locked(
    block(
        "async def update_chat_ctx(self, chat_ctx):",
        "self._agent._chat_ctx = chat_ctx",
        block(CHECK, block(HOLD, block(CHECK, REPLACE))),
    ),
    block("async def _close_session(self):", "await self._rt_session.aclose()"),
    block("def _on_remote_item_added(self, ev):", "record(ev)\n"),
)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    ("before", "more"),
    [
        pytest.param("await self._rt_session.u", "chat_ctx = self._agent._chat_ctx", id="context"),
        pytest.param("record(", "if self._rt_chat_ctx_lock.tell(ev): return", id="told"),
        pytest.param(
            "self._agent._c", "self._rt_chat_ctx_lock.replacing(self, chat_ctx)", id="new"
        ),
        pytest.param("record(", "self._rt_chat_ctx_lock.close()", id="closed"),
    ],
)
def test_refuses_a_call_of_upstreams(scope: Scope, before: str, more: str) -> None:
    assert WITH_LOCK.count(before) == 1
    margin = WITH_LOCK.partition(before)[0].rpartition("\n")[2]
    source = WITH_LOCK.replace(before, f"{more}\n{margin}{before}")
    with pytest.raises(NotUnderstood):
        patch_source(source.encode(), NAME, scope)


@pytest.mark.parametrize("scope", SCOPES)
def test_refuses_a_push_of_what_was_not_given(scope: Scope) -> None:
    source = module(
        REPLACING.replace(REPLACE, f"chat_ctx = self._agent._chat_ctx\n        {REPLACE}  {HERE}")
    )
    with refuses(source, "unclear where the context of this push comes from"):
        patch_source(source.encode(), NAME, scope)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("old", ["asyncio.Lock()", "import asyncio"])
def test_what_names_the_lock_of_the_scope_full_is_patched(scope: Scope, old: str) -> None:
    source = module(REPLACING).replace(old, f"{old}  # RealtimeContextLock")
    with pytest.raises(NothingToGuard, match="patched already; start from the stock release"):
        patch_source(source.encode(), NAME, scope)


UNTOLD = {
    "event by keyword": ("def _on_remote_item_added(self, *, ev):", "record(ev)"),
    "handoff of nothing": ("async def _detach_reusable_resources(self, successor):", "return None"),
    "handoff to nobody": ("async def _detach_reusable_resources(self):", "return kept"),
    "message of two": (
        "async def _realtime_generation_task_impl(self, heard):",
        block("for at, part in heard:", "any_skipped = True", "log(part.msg.message_id)"),
    ),
}


@pytest.mark.parametrize(("head", "body"), UNTOLD.values(), ids=UNTOLD)
def test_refuses_a_call_that_cannot_be_told(head: str, body: str) -> None:
    source = module(REPLACING, block(head, f"{body}  {HERE}\n"))
    reason = "A call that the scope full adds cannot be told from the code here; build with the"
    with refuses(source, reason):
        patch_source(source.encode(), NAME, "full")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.replace("chat_ctx = chat_ctx.copy()", ""), id="line lost"),
        pytest.param(lambda text: text + "x = 1\n", id="line more"),
        pytest.param(lambda text: module(REPLACING), id="lock lost"),
        pytest.param(lambda text: text.replace("(self, chat_ctx)", "(chat_ctx)"), id="no call"),
    ],
)
def test_refuses_calls_that_do_more(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]
) -> None:
    monkeypatch.setattr(patch, "add_calls", lambda text: change(add_calls(text)))
    with pytest.raises(NotUnderstood, match="cannot be told from the code here"):
        patch_source(module(REPLACING).encode(), NAME, "full")


def test_refuses_bytes_that_are_not_utf8() -> None:
    source = module(PUSH).encode() + b"# \xff  # <- here\n"
    with pytest.raises(NotUnderstood, match="not encoded in UTF-8") as refused:
        patch_source(source, NAME, "lock")
    assert refused.value.line == source.count(b"\n")


@pytest.mark.parametrize("declared", ["latin-1", "utf-7", "nonsense"])
def test_refuses_another_encoding(declared: str) -> None:
    source = f"# coding: {declared}  # <- here\n" + module(PUSH)
    with refuses(source, "another encoding"):
        patch_source(source.encode(), NAME, "lock")


def test_accepts_utf8_with_a_mark_and_a_declaration() -> None:
    source = codecs.BOM_UTF8 + b"# coding: utf-8\n" + module(PUSH).encode()
    patched = patch_source(source, NAME, "lock").source
    assert patched.startswith(codecs.BOM_UTF8 + b"# coding: utf-8\n" + NOTICE.encode())


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param("x = a" + ".b()" * 600 + "\n", id="attributes"),
        pytest.param("x = " + "+".join(["1"] * 50_000) + "\n", id="sum"),
        pytest.param("if a: pass\n" + "elif a: pass\n" * 3_000, id="branches"),
    ],
)
def test_refuses_what_is_nested_too_deeply(tail: str) -> None:
    with pytest.raises(NotUnderstood):
        patch_source((module(PUSH) + tail).encode(), NAME, "lock")


def test_names_the_line_of_what_is_nested_too_deeply() -> None:
    source = module(PUSH) + "x = " + "+".join(["1"] * 200) + "  # <- here\n"
    with refuses(source, "nested too deeply"):
        patch_source(source.encode(), NAME, "lock")


def test_refuses_a_class_without_a_lock_to_follow() -> None:
    source = module(PUSH, head=HEAD.replace("Lock()", "Condition()"))
    source = source.replace("AgentActivity:", "AgentActivity:  # <- here")
    with refuses(source, "makes no `_lock`"):
        patch_source(source.encode(), NAME, "lock")


MADE = "        self._lock = asyncio.Lock()\n"
MARKED = MADE.replace("\n", f"  {HERE}\n")


@pytest.mark.parametrize(
    "made", [MADE + MARKED, f"        if other:\n    {MARKED}"], ids=["again", "under an if"]
)
def test_names_the_line_of_a_lock_that_cannot_be_made_there(made: str) -> None:
    source = module(PUSH, head=HEAD.replace(MADE, made))
    with refuses(source, "_rt_chat_ctx_lock is "):
        patch_source(source.encode(), NAME, "lock")


@pytest.mark.parametrize(
    ("stock", "rewritten", "reason"),
    [
        pytest.param(PUSH, guarded(UPSTREAMS) + "x = 1\n", "changed more", id="does more"),
        pytest.param(PUSH, guarded(PUSH), "could not be guarded", id="does less"),
        pytest.param(
            UNCHECKED,
            guarded(checked(block(HOLD, SEND))),
            "could not be guarded",
            id="forgets the check",
        ),
    ],
)
def test_refuses_a_rewriter_that(
    stock: str, rewritten: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patch, "guard", lambda text, filename: rewritten)
    with pytest.raises(NotUnderstood, match=reason):
        patch_source(module(stock).encode(), NAME, "lock")


# The real files, fetched when the tests run.

RELEASES = {"1.0.23": 4, "1.3.12": 4, "1.6.10": 5, "1.8.8": 6, "1.8.9": 7, "2.0.0b1": 6}
"""How many sites of each push."""

UPSTREAM_RULES = """\
line-length = 100
target-version = "py310"
lint.select = ["E", "W", "F", "I", "B", "C4", "UP"]
lint.ignore = ["E501"]
lint.isort.combine-as-imports = true
lint.isort.known-first-party = ["livekit"]
"""


class Release:
    def __init__(self, version: str, folder: Path) -> None:
        self.version = version
        self.stock = fetch(version, folder).read_bytes()
        self.patched = patch_source(self.stock, NAME, "lock")


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Release]:
    return {v: Release(v, tmp_path_factory.mktemp("stock")) for v in RELEASES}


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest, releases: dict[str, Release]) -> Release:
    return releases[request.param]


def locks(source: bytes) -> list[str]:
    """The lock's blocks, as upstream would write them: without the check after the wait."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not (
            isinstance(node, ast.AsyncWith) and "_rt_chat_ctx_lock" in ast.unparse(node.items[0])
        ):
            continue
        if isinstance(node.body[0], ast.If):
            assert ast.unparse(node.body[0].test) == "self._rt_session is not None"
            node.body = node.body[0].body
        found.append(ast.dump(node))
    return found


def changed(release: Release) -> list[Site]:
    """The patched sites that stock has not in the same words."""
    before = {ast.unparse(n) for n in ast.walk(ast.parse(release.stock)) if isinstance(n, ast.stmt)}
    after = ast.parse(release.patched.source)
    blocks = {n.lineno: n for n in ast.walk(after) if isinstance(n, ast.AsyncWith)}
    sites = [site for site in release.patched.sites if site.state == "guarded"]
    return [site for site in sites if ast.unparse(blocks[site.first_line]) not in before]


@pytest.mark.network
def test_every_site_of_a_release_is_guarded(release: Release) -> None:
    pushing = [site for site in release.patched.sites if site.state != "read-only"]
    assert len(pushing) == RELEASES[release.version]
    assert {site.state for site in pushing} == {"guarded"}
    assert "other" not in {site.role for site in pushing}


@pytest.mark.network
def test_1_8_8_comes_out_as_upstream_wrote_1_8_9(releases: dict[str, Release]) -> None:
    upstreams, ours = locks(releases["1.8.9"].stock), locks(releases["1.8.8"].patched.source)
    assert len(upstreams) == 5
    assert len(ours) == 6
    assert set(upstreams) < set(ours)
    (more,) = set(ours) - set(upstreams)
    assert "_update_session" in more


@pytest.mark.network
def test_that_comparison_can_fail(releases: dict[str, Release]) -> None:
    upstreams, ours = locks(releases["1.8.9"].stock), releases["1.8.8"].patched.source
    assert not set(upstreams) <= set(locks(ours.replace(b".items.extend(", b".items.append(")))
    assert not set(upstreams) <= set(locks(ours.replace(b"role=", b"rule=")))
    assert locks(releases["1.8.8"].stock) == []


@pytest.mark.network
def test_1_8_9_changes_at_three_sites(releases: dict[str, Release]) -> None:
    sites = changed(releases["1.8.9"])
    assert sorted(site.role for site in sites) == [
        "replacement",
        "session start",
        "spoken message",
    ]
    rechecked = {s.role for s in releases["1.8.9"].patched.sites if s.rechecked}
    assert rechecked == {"replacement", "spoken message"}
    assert len(changed(releases["1.8.8"])) == 6


@pytest.mark.network
def test_untouched_lines_are_untouched(release: Release) -> None:
    before = release.stock.decode().splitlines(keepends=True)
    after = release.patched.source.decode().splitlines(keepends=True)
    removed: Counter[str] = Counter()
    added: Counter[str] = Counter()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind != "equal":
            removed.update(line.strip() for line in before[i1:i2])
            added.update(line.strip() for line in after[j1:j2])
    assert removed <= added  # indented anew, and nothing else
    notice = Counter(NOTICE.splitlines())
    made, taken = LOCK.splitlines(), "async with self._rt_chat_ctx_lock:"
    locks_before = len(locks(release.stock))
    assert added - removed == notice + Counter(
        {
            **dict.fromkeys(map(str.strip, made), 0 if locks_before else 1),
            taken: RELEASES[release.version] - locks_before,
            "if self._rt_session is not None:": 2 if release.version == "1.8.9" else 1,
        }
    )


@pytest.mark.network
def test_upstreams_own_rules_accept_the_result(release: Release, tmp_path: Path) -> None:
    rules = tmp_path / "ruff.toml"
    rules.write_text(UPSTREAM_RULES)

    def accepted(content: bytes, *command: str) -> bool:
        file = tmp_path / NAME
        file.write_bytes(content)
        ruff = [sys.executable, "-m", "ruff", *command, "--config", str(rules), "--no-cache"]
        done = subprocess.run([*ruff, str(file)], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode == 0

    assert accepted(release.stock, "format", "--check")
    assert accepted(release.patched.source, "format", "--check")
    assert not accepted(release.patched.source + b"x=1", "format", "--check")
    linted = accepted(release.stock, "check")
    assert accepted(release.patched.source, "check") == linted
    assert not accepted(release.patched.source + b"import os\n", "check")


@pytest.mark.network
def test_patching_a_release_twice(release: Release) -> None:
    with pytest.raises(NothingToGuard):
        patch_source(release.patched.source, NAME, "lock")
