from __future__ import annotations

import pytest
from activity import HEAD, LOCK, NAME, PUSH, assert_names, guarded, locked, module
from lock_pairs import ALONE, BARE, CHECKED, GUARDED, HOISTED, TAKEN_LATE, UNCHECKED, UPSTREAMS

from ctxlock.analysis.inverse import check_inverse
from ctxlock.errors import NotUnderstood


def compare(original: str, patched: str) -> None:
    check_inverse(original.encode(), patched.encode(), NAME)


@pytest.mark.parametrize(
    ("original", "patched"),
    [
        pytest.param(module(BARE), guarded(GUARDED), id="snapshot drawn into a try"),
        pytest.param(module(UNCHECKED), guarded(CHECKED), id="check repeated"),
        pytest.param(locked(GUARDED), guarded(GUARDED), id="nothing but the notice"),
        pytest.param(locked(BARE), guarded(GUARDED), id="lock that was made and not taken"),
        pytest.param(
            module(GUARDED.replace("async with self._rt_chat_ctx_lock:", "if True:")),
            guarded(GUARDED.replace("async with self._rt_chat_ctx_lock:", "if True:")),
            id="other block around the span",
        ),
        pytest.param(
            module(
                """\
                async def sync(self):
                    try:
                        ctx = self._rt_session.chat_ctx.copy()
                        await self._rt_session.update_chat_ctx(ctx)
                    finally:
                        done()
                """
            ),
            guarded(
                """\
                async def sync(self):
                    try:
                        async with self._rt_chat_ctx_lock:
                            ctx = self._rt_session.chat_ctx.copy()
                            await self._rt_session.update_chat_ctx(ctx)
                    finally:
                        done()
                """
            ),
            id="snapshot that was in the try",
        ),
    ],
)
def test_accepts_the_lock(original: str, patched: str) -> None:
    compare(original, patched)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("before(said)", "after(said)", id="another call"),
        pytest.param("    before(said)\n", "", id="a statement less"),
        pytest.param("after(said)", "after(said); more()", id="a statement more"),
        pytest.param("ctx.insert(said)", "ctx.insert(other)", id="another addition"),
        pytest.param("            ctx.insert(said)\n", "", id="a lost addition"),
        pytest.param("RealtimeError", "Exception", id="another handler"),
        pytest.param("except RealtimeError:", "finally:", id="a finally"),
        pytest.param("update_chat_ctx", "update_tools", id="another push"),
        pytest.param("self._rt_chat_ctx_lock", "self._lock", id="another lock"),
        pytest.param("async def sync", "async def synced", id="another name"),
        pytest.param("    async with", "    with", id="a plain with"),
    ],
)
def test_refuses_more_than_the_lock(old: str, new: str) -> None:
    assert old in GUARDED
    with pytest.raises(NotUnderstood, match="changed more than the lock"):
        compare(module(BARE), guarded(GUARDED.replace(old, new)))


@pytest.mark.parametrize("check", ["other is not None", "self._rt_session is None"])
def test_refuses_another_check(check: str) -> None:
    head, repeated = "lock:\n            if ", "self._rt_session is not None"
    assert head + repeated in CHECKED
    with pytest.raises(NotUnderstood, match="changed more than the lock"):
        compare(module(UNCHECKED), guarded(CHECKED.replace(head + repeated, head + check)))


def test_refuses_a_statement_drawn_into_a_try() -> None:
    original = """\
        async def sync(self, ctx):
            before()
            try:
                await self._rt_session.update_chat_ctx(ctx)
            finally:
                done()
    """
    patched = """\
        async def sync(self, ctx):
            try:
                before()
                async with self._rt_chat_ctx_lock:
                    await self._rt_session.update_chat_ctx(ctx)
            finally:
                done()
    """
    with pytest.raises(NotUnderstood, match="changed more than the lock"):
        compare(module(original), guarded(patched))


def test_names_the_first_line_that_changed() -> None:
    original = module(BARE.replace("before(said)", "before(said)  # <- here"), PUSH)
    with pytest.raises(NotUnderstood) as refused:
        compare(
            original, guarded(GUARDED.replace("before", "ahead").replace("after", "behind"), PUSH)
        )
    assert_names(refused, original, "changed more than the lock")


def test_refuses_a_lock_made_otherwise() -> None:
    made = HEAD + LOCK.replace("asyncio.Lock()", "asyncio.Semaphore(2)")
    with pytest.raises(NotUnderstood, match="changed more than the lock"):
        compare(module(BARE), module(GUARDED, head=made))


def test_refuses_a_statement_lost_in_a_method_that_is_not_touched() -> None:
    other = "def other(self):\n    first()\n    second()\n"
    compare(module(BARE, other), guarded(GUARDED, other))
    for gone in ("    first()\n", "    second()\n"):
        with pytest.raises(NotUnderstood, match="changed more than the lock"):
            compare(module(BARE, other), guarded(GUARDED, other.replace(gone, "")))


# What upstream has itself is not what the patch adds.

LOCKS = "        self._rt_chat_ctx_lock = asyncio.Lock()\n"


def test_accepts_a_lock_of_upstreams_that_takes_more_in() -> None:
    compare(locked(TAKEN_LATE), guarded(GUARDED))


@pytest.mark.parametrize(
    ("original", "patched"),
    [
        pytest.param(locked(CHECKED), guarded(UNCHECKED), id="its lock and its check are lost"),
        pytest.param(
            locked(CHECKED),
            guarded(CHECKED.replace("            if self._rt_session is not None:\n    ", "")),
            id="its check is lost",
        ),
        pytest.param(locked(UPSTREAMS), guarded(ALONE), id="its lock is lost"),
        pytest.param(
            module(UPSTREAMS, head=HEAD + LOCK.replace("        #", "        # mine\n        #")),
            guarded(UPSTREAMS),
            id="its comment is lost",
        ),
        pytest.param(locked(UPSTREAMS), module(UPSTREAMS), id="the making of its lock is lost"),
        pytest.param(
            locked(UPSTREAMS),
            locked(UPSTREAMS).replace(LOCKS, LOCKS + LOCKS),
            id="its lock is made twice",
        ),
        pytest.param(
            module(ALONE),
            module("def __del__(self):\n    self._rt_chat_ctx_lock = asyncio.Lock()\n", ALONE),
            id="a lock made elsewhere",
        ),
        pytest.param(
            module(HOISTED),
            guarded(BARE),
            id="what was in the try is before it",
        ),
        pytest.param(
            module(BARE),
            guarded(HOISTED),
            id="drawn into the try without the lock",
        ),
        pytest.param(
            module(UNCHECKED),
            guarded(
                CHECKED.replace(
                    "    else:",
                    "            else:\n                more()\n    else:",
                )
            ),
            id="a check with an else",
        ),
        pytest.param(
            module(ALONE),
            guarded(
                """\
                async def sync(self, ctx):
                    async with self._rt_chat_ctx_lock:
                        if self._rt_session is not None:
                            await self._rt_session.update_chat_ctx(ctx)
                """
            ),
            id="a check where upstream had none",
        ),
        pytest.param(
            module(BARE), guarded(GUARDED.replace("log()", "log()  # why")), id="a comment more"
        ),
        pytest.param(
            module(BARE.replace("log()", "log(0x10)")),
            guarded(GUARDED.replace("log()", "log(16)")),
            id="a number by another spelling",
        ),
    ],
)
def test_refuses_what_upstream_has_itself_to_vanish(original: str, patched: str) -> None:
    with pytest.raises(NotUnderstood, match="changed more than the lock"):
        compare(original, patched)
