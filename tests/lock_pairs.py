"""Files as they were and with the lock: what is the lock's alone, and what is not.

`check_inverse` judges each, and so does `line_by_line`, which shares nothing with it.
"""

from __future__ import annotations

from activity import HEAD, LOCK, PUSH, guarded, locked, module
from methods import CHECK, HOLD, READ, SEND, block, given

UPSTREAMS = given(block(HOLD, SEND))


def checked(*body: str) -> str:
    """A method with `body` where there is a session."""
    return given(block(CHECK, *body), block("else:", "other(ctx)"))


UNCHECKED = checked(SEND)
CHECKED = checked(block(HOLD, block(CHECK, SEND)))

SPAN = (READ, "ctx.insert(said)", SEND)


def tried(*body: str, before: tuple[str, ...] = ("before(said)",)) -> str:
    """A method with `body` in a `try`."""
    handled = (block("try:", *body), block("except RealtimeError:", "log()"), "after(said)")
    return block("async def sync(self, said):", *before, *handled) + "\n"


GUARDED = tried(block(HOLD, *SPAN))
HOISTED = tried(*SPAN)
BARE = tried(SEND, before=("before(said)", *SPAN[:2]))
TAKEN_LATE = tried(block(HOLD, SEND), before=("before(said)", *SPAN[:2]))
OTHER_BLOCK = tried(block("if True:", *SPAN))

OTHER = """\
def other(self):
    first(self)
    if self.there:
        # a word
        second(self)
    third(self)
"""
"""A method that the lock is not about."""

ACCEPTED = {
    "snapshot drawn into a try": (module(BARE, OTHER), guarded(GUARDED, OTHER)),
    "snapshot that was in the try": (module(HOISTED), guarded(GUARDED)),
    "snapshot drawn into a lock": (locked(TAKEN_LATE), guarded(GUARDED)),
    "check repeated": (module(UNCHECKED), guarded(CHECKED)),
    "nothing": (locked(UPSTREAMS), locked(UPSTREAMS)),
    "nothing but the notice": (locked(GUARDED), guarded(GUARDED)),
    "lock of upstream's": (locked(BARE, UPSTREAMS), guarded(GUARDED, UPSTREAMS)),
    "lock that was made and not taken": (locked(BARE), guarded(GUARDED)),
    "other block around the span": (module(OTHER_BLOCK), guarded(OTHER_BLOCK)),
}

INSTEAD = {
    "another block": OTHER_BLOCK,
    "another lock": tried(block("async with self._lock:", *SPAN)),
    "a plain with": tried(block("with self._rt_chat_ctx_lock:", *SPAN)),
    "the lock in the lock": tried(block(HOLD, block(HOLD, *SPAN))),
    "a check where there was none": tried(block(HOLD, block(CHECK, *SPAN))),
    "drawn in without the lock": HOISTED,
    **{
        name: GUARDED.replace(old, new)
        for name, old, new in (
            ("another call", "before(said)", "after(said)"),
            ("another call, in its place", "before(said)", "ahead(said)"),
            ("a statement less", "    before(said)\n", ""),
            ("a statement more", "after(said)", "after(said); more()"),
            ("the last statement less", "    after(said)\n", ""),
            ("another addition", "ctx.insert(said)", "ctx.insert(other)"),
            ("an addition less", "            ctx.insert(said)\n", ""),
            ("an addition that is none", "ctx.insert(said)", "pass"),
            ("an addition twice", "ctx.insert(said)", "ctx.insert(said); ctx.insert(said)"),
            ("an addition twice, elsewhere", "log()", "log(); ctx.insert(said)"),
            ("another handler", "RealtimeError", "Exception"),
            ("a finally", "except RealtimeError:", "finally:"),
            ("another push", "update_chat_ctx", "update_tools"),
            ("another name", "async def sync", "async def synced"),
            ("a comment more", "log()", "log()  # why"),
        )
    },
}
"""What stands in the place of `GUARDED`."""

_MISPLACED = {
    "more in the lock": tried(block(HOLD, "before(said)", *SPAN), before=()),
    "the lock around no push": GUARDED.replace("    after", f"    {HOLD}\n        after"),
}

BESIDE = {
    name: OTHER.replace(old, new)
    for name, old, new in (
        ("the first statement less", "    first(self)\n", ""),
        ("the third statement less", "    third(self)\n", ""),
        ("a statement twice", "first(self)", "first(self); first(self)"),
        ("a statement on two lines", "    first(self)\n", "    first(self)\n" * 2),
        ("moved to the end", OTHER, OTHER.replace("    first(self)\n", "") + "    first(self)\n"),
        ("moved in", "    third(self)", "        third(self)"),
        ("moved out", "    # a word\n        second", "    # a word\n        pass\n    second"),
        (
            "swapped",
            OTHER,
            OTHER.replace("first", "3rd").replace("third", "first").replace("3rd", "third"),
        ),
        ("a comment less", "        # a word\n", ""),
        ("another comment", "# a word", "# another"),
    )
}
"""What stands in the place of `OTHER`, which the lock is not about."""

_MADE = "        self._rt_chat_ctx_lock = asyncio.Lock()\n"

MISPLACED = {
    name: (module(BARE, OTHER), guarded(method, OTHER)) for name, method in _MISPLACED.items()
}
"""Where the lock may be is not for the inverse to say, but for the finder."""

REFUSED = {
    **{name: (module(BARE, OTHER), guarded(method, OTHER)) for name, method in INSTEAD.items()},
    **{name: (module(BARE, OTHER), guarded(GUARDED, method)) for name, method in BESIDE.items()},
    "another check": (
        module(UNCHECKED),
        guarded(checked(block(HOLD, block("if other is not None:", SEND)))),
    ),
    "the check the other way": (
        module(UNCHECKED),
        guarded(checked(block(HOLD, block("if self._rt_session is None:", SEND)))),
    ),
    "a check with an else": (
        module(UNCHECKED),
        guarded(checked(block(HOLD, block(CHECK, SEND), block("else:", "more()")))),
    ),
    "a check of its own": (module(PUSH), guarded(given(block(HOLD, block(CHECK, SEND))))),
    "a statement drawn into the try": (
        module(given("before()", block("try:", SEND), block("finally:", "done()"))),
        guarded(given(block("try:", "before()", block(HOLD, SEND)), block("finally:", "done()"))),
    ),
    "a lock made otherwise": (
        module(BARE),
        module(GUARDED, head=HEAD + LOCK.replace("asyncio.Lock()", "asyncio.Semaphore(2)")),
    ),
    "a lock made elsewhere": (
        module(PUSH),
        module("def __del__(self):\n    self._rt_chat_ctx_lock = asyncio.Lock()\n", PUSH),
    ),
    "a number by another spelling": (
        module(BARE.replace("log()", "log(0x10)")),
        guarded(GUARDED.replace("log()", "log(16)")),
    ),
    # what upstream has itself is not what the patch adds
    "its lock is lost": (locked(UPSTREAMS), guarded(PUSH)),
    "its lock and its check are lost": (locked(CHECKED), guarded(UNCHECKED)),
    "its check is lost": (locked(CHECKED), guarded(checked(block(HOLD, SEND)))),
    "its comment is lost": (
        module(UPSTREAMS, head=HEAD + LOCK.replace("        #", "        # mine\n        #")),
        guarded(UPSTREAMS),
    ),
    "the making of its lock is lost": (locked(UPSTREAMS), module(UPSTREAMS)),
    "its lock is made twice": (
        locked(UPSTREAMS),
        locked(UPSTREAMS).replace(_MADE, _MADE + _MADE),
    ),
    "what was in the try is before it": (module(HOISTED), guarded(BARE)),
}
