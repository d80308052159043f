"""The judge of `test_closed_world` sees what is not the lock's."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest
from activity import NAME, REPLACING, guarded, informed, locked, module
from call_pairs import ADDED
from line_by_line import unexplained
from lock_pairs import ALONE, BARE, CHECKED, GUARDED, HOISTED, TAKEN_LATE, UNCHECKED, UPSTREAMS

from ctxlock.errors import NotUnderstood
from ctxlock.patching import patch
from ctxlock.patching.lock_calls import add_calls
from ctxlock.patching.patch import patch_source
from ctxlock.patching.rewrite import guard

OTHER = """\
def other(self):
    first(self)
    if self.there:
        # a word
        second(self)
    third(self)
"""


@pytest.mark.parametrize(
    ("original", "patched"),
    [
        pytest.param(module(BARE, OTHER), guarded(GUARDED, OTHER), id="snapshot drawn into a try"),
        pytest.param(module(UNCHECKED), guarded(CHECKED), id="check repeated"),
        pytest.param(locked(TAKEN_LATE), guarded(GUARDED), id="snapshot drawn into a lock"),
        pytest.param(locked(UPSTREAMS), locked(UPSTREAMS), id="nothing"),
        pytest.param(locked(BARE, UPSTREAMS), guarded(GUARDED, UPSTREAMS), id="lock of upstream's"),
    ],
)
def test_accepts_the_lock(original: str, patched: str) -> None:
    assert unexplained(original, patched) is None


PATCHED = guarded(GUARDED, OTHER)


def replaced(old: str, new: str) -> str:
    assert old in PATCHED
    return PATCHED.replace(old, new)


LOCK = "            async with self._rt_chat_ctx_lock:\n"


@pytest.mark.parametrize(
    "patched",
    [
        pytest.param(replaced("        first(self)\n", ""), id="a statement less"),
        pytest.param(replaced("first(self)", "first(self); first(self)"), id="a statement twice"),
        pytest.param(
            replaced(
                "            second(self)\n        third", "        second(self)\n        third"
            ).replace("# a word\n", "# a word\n            pass\n"),
            id="a statement moved out of its block",
        ),
        pytest.param(replaced("        third(self)", "            third(self)"), id="moved in"),
        pytest.param(
            replaced("first(self)", "zeroth").replace("third", "first").replace("zeroth", "third"),
            id="two statements swapped",
        ),
        pytest.param(replaced("            # a word\n", ""), id="a comment less"),
        pytest.param(replaced("# a word", "# another"), id="another comment"),
        pytest.param(replaced("ctx.insert(said)", "pass"), id="an addition less"),
        pytest.param(replaced("        after(said)\n", ""), id="the last statement less"),
        pytest.param(replaced("log()", "log(); ctx.insert(said)"), id="an addition twice"),
        pytest.param(replaced(LOCK, "            if True:\n"), id="another block"),
        pytest.param(
            replaced(LOCK, LOCK + "                before(said)\n").replace(
                "        before(said)\n        try", "        try"
            ),
            id="more in the lock",
        ),
        pytest.param(
            replaced(
                "        after(said)",
                "        async with self._rt_chat_ctx_lock:\n            after(said)",
            ),
            id="the lock around no push",
        ),
        pytest.param(
            replaced(LOCK, LOCK + "                async with self._rt_chat_ctx_lock:\n")
            .replace("                ctx", "                    ctx")
            .replace("                await", "                    await"),
            id="the lock in the lock",
        ),
        pytest.param(
            replaced(LOCK, LOCK + "                if self._rt_session is not None:\n")
            .replace("                ctx", "                    ctx")
            .replace("                await", "                    await"),
            id="a check where there was none",
        ),
    ],
)
def test_refuses_more_than_the_lock(patched: str) -> None:
    ast.parse(patched)
    assert unexplained(module(BARE, OTHER), patched) is not None


@pytest.mark.parametrize(
    ("original", "patched"),
    [
        pytest.param(locked(CHECKED), guarded(UNCHECKED), id="lock lost"),
        pytest.param(locked(UPSTREAMS), guarded(ALONE), id="lock lost, without a check"),
        pytest.param(locked(UPSTREAMS), module(UPSTREAMS), id="making lost"),
        pytest.param(module(HOISTED), guarded(BARE), id="hoisted"),
        pytest.param(module(BARE), guarded(HOISTED), id="drawn in without the lock"),
    ],
)
def test_refuses_what_upstream_has_itself_to_vanish(original: str, patched: str) -> None:
    assert unexplained(original, patched) is not None


def without(line: str) -> Callable[[str], str]:
    return lambda text: text.replace(f"{line}\n", "")


def twice(line: str) -> Callable[[str], str]:
    return lambda text: text.replace(f"{line}\n", f"{line}\n{line}\n")


FAULTS = {
    "a statement dropped": without("        third(self)"),
    "a statement doubled": twice("        first(self)"),
    "a statement moved": lambda text: (
        without("        first(self)")(text) + "        first(self)\n"
    ),
    "an addition dropped": without("                ctx.insert(said)"),
    "an addition doubled": twice("                ctx.insert(said)"),
    "a comment dropped": without("            # a word"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_both_judges_see_a_rewriter_that_does_more(
    monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Each by itself: the inverse, and what judges the fuzz."""
    source = module(BARE, OTHER)
    assert FAULTS[fault](PATCHED) != PATCHED
    monkeypatch.setattr(patch, "guard", lambda text, filename: FAULTS[fault](guard(text, filename)))
    with pytest.raises(NotUnderstood, match="changed more than the lock"):
        patch_source(source.encode(), NAME, "lock")
    monkeypatch.setattr(patch, "check_inverse", lambda *_: None)
    assert unexplained(source, patch_source(source.encode(), NAME, "lock").source.decode())


FULL = informed(*(str(case.values[1]) for case in ADDED))


def test_accepts_the_calls_of_the_scope_full() -> None:
    assert unexplained(locked(*(str(case.values[0]) for case in ADDED)), FULL) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("lock.typing(ctx, said)", "lock.type(ctx, said)", id="no call"),
        pytest.param(
            "lock.typing(ctx, said)", "lock.typing(ctx, said or text)", id="more than a name"
        ),
        pytest.param("said = ctx.add_message(", "ctx.add_message(", id="another statement"),
        pytest.param("record(event)", "return", id="a return"),
        pytest.param("listen()", "self._rt_chat_ctx_lock = RealtimeContextLock(self)", id="a lock"),
        pytest.param("listen()", "given = self._agent._chat_ctx", id="the agent's context"),
    ],
)
def test_refuses_more_than_calls(old: str, new: str) -> None:
    assert old in FULL
    guarded = locked(*(str(case.values[0]) for case in ADDED))
    assert unexplained(guarded, FULL.replace(old, new, 1)) is not None


@pytest.mark.parametrize("fault", [*FAULTS][:3] + [*FAULTS][5:])
def test_both_judges_see_calls_that_do_more(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    source = module(REPLACING, OTHER)
    monkeypatch.setattr(patch, "add_calls", lambda text: FAULTS[fault](add_calls(text)))
    with pytest.raises(NotUnderstood, match="cannot be told from the code here"):
        patch_source(source.encode(), NAME, "full")
    monkeypatch.setattr(patch, "_check_plain", lambda *_: None)
    assert unexplained(source, patch_source(source.encode(), NAME, "full").source.decode())
