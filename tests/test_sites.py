from __future__ import annotations

import pytest
from activity import HEAD, LOCK, NAME, PUSH, locked, module, refuses
from methods import CHECK, HOLD, READ, SEND, block, given, taking

from ctxlock.analysis.sites import Site, find_sites
from ctxlock.errors import NotUnderstood
from ctxlock.roles import Role

ADD = "ctx.items.extend(found)"

REPLACING = "async def update_chat_ctx(self, ctx):"

JUDGED = {
    "bare replacement": (block(REPLACING, block(CHECK, SEND)), [("replacement", "bare", None)]),
    "replacement that checks no second time": (
        block(REPLACING, block("if self._rt_session is not None and other:", block(HOLD, SEND))),
        [("replacement", "guarded", False)],
    ),
    "guarded replacement": (
        block(REPLACING, block(CHECK, block(HOLD, block(CHECK, SEND)))),
        [("replacement", "guarded", True)],
    ),
    "session start": (
        """\
        async def start(self):
            try:
                await self._rt_session.update_chat_ctx(self._agent.chat_ctx.copy())
            except RealtimeError:
                log()

        async def _start_session(self):
            async with self._lock:
                async with self._rt_chat_ctx_lock:
                    await self._rt_session._update_session(tools=[], chat_ctx=self._agent.chat_ctx)
        """,
        [("session start", "bare", None), ("session start", "guarded", None)],
    ),
    "guarded text turn": (
        block(
            "async def _realtime_reply_task(self, text):",
            block("try:", block(HOLD, READ, "said = ctx.add_message(content=text)", SEND)),
            block("except RealtimeError:", "log()"),
            "remember(said)",
        ),
        [("text turn", "guarded", None)],
    ),
    "generation": (
        block(
            "async def _realtime_generation_task_impl(self, handle):",
            block("if skipped:", "await self._rt_session.update_chat_ctx(self._agent._chat_ctx)"),
            block("if handle.interrupted:", READ, ADD, SEND, "return"),
            block(HOLD, READ, ADD, SEND),
        ),
        [
            ("never-played cleanup", "bare", None),
            ("interrupted tool outputs", "bare", None),
            ("tool outputs", "guarded", None),
        ],
    ),
    "spoken message with a try": (
        block(
            "async def _tts_task_impl(self, said):",
            *(READ, "ctx.insert(said)", block("try:", SEND), block("finally:", "done()")),
        ),
        [("spoken message", "bare", None)],
    ),
    "lock around the push alone": (
        taking(block(HOLD, SEND)).replace("copy()", "copy(exclude=True)"),
        [("other", "bare", None)],
    ),
    "lock around all but the snapshot": (taking(block(HOLD, ADD, SEND)), [("other", "bare", None)]),
    "snapshots that are only compared": (
        """\
        def _detach_reusable_resources(self, new):
            same = mutable or (
                self._rt_session.chat_ctx.copy(
                    exclude=True
                ).is_equivalent(new.chat_ctx.copy())
            )

        def same(self, new):
            return new.is_equivalent(self._rt_session.chat_ctx)
        """,
        [("reuse check", "read-only", None), ("comparison", "read-only", None)],
    ),
}


@pytest.mark.parametrize(("methods", "expected"), JUDGED.values(), ids=JUDGED)
def test_judges(methods: str, expected: list[tuple[object, ...]]) -> None:
    *found, last = find_sites(locked(methods, PUSH), NAME)  # a file without a push is refused
    assert [(site.role, site.state, site.rechecked) for site in found] == expected
    assert (last.role, last.state) == ("other", "bare")


def test_a_site_names_its_lines() -> None:
    source = module(
        """\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy()
            await self._rt_session.update_chat_ctx(
                ctx
            )
        """
    )
    first = source.splitlines().index("        ctx = self._rt_session.chat_ctx.copy()") + 1
    (site,) = find_sites(source.encode(), NAME)
    assert site == Site(Role.OTHER, "sync", first, first + 3, "bare")
    assert site.as_json() == {
        "role": "other",
        "function": "sync",
        "lines": [first, first + 3],
        "state": "bare",
        "rechecked": None,
    }


def test_sites_come_in_the_order_of_their_lines() -> None:
    outer = given(block("async def later(ctx):", SEND), SEND)
    assert [s.function for s in find_sites(module(outer, PUSH), NAME)] == ["later", "sync", "sync"]


REFUSED_METHODS = [
    # what a push may look like
    ("return await self._rt_session.update_chat_ctx(ctx)", "not an awaited statement"),
    ("done = await self._rt_session.update_chat_ctx(ctx)", "not an awaited statement"),
    ("await gather(self._rt_session.update_chat_ctx(ctx))", "not an awaited statement"),
    ("await wait_for(self._rt_session.update_chat_ctx(ctx), 5)", "not an awaited statement"),
    ("create_task(self._rt_session.update_chat_ctx(ctx))", "not an awaited statement"),
    ("self._rt_session.update_chat_ctx(ctx)", "not an awaited statement"),
    ("push = self._rt_session.update_chat_ctx", "not an awaited statement"),
    ("later = partial(self._rt_session.update_chat_ctx, ctx)", "not an awaited statement"),
    ("later = lambda: self._rt_session.update_chat_ctx(ctx)", "not an awaited statement"),
    ("[await self._rt_session.update_chat_ctx(c) for c in ctx]", "not an awaited statement"),
    ("await self._rt_session.update_chat_ctx()", "other arguments"),
    ("await self._rt_session.update_chat_ctx(ctx, 1)", "other arguments"),
    ("await self._rt_session.update_chat_ctx(*ctx)", "other arguments"),
    ("await self._rt_session.update_chat_ctx(**ctx)", "other arguments"),
    ("await self._rt_session.update_chat_ctx(await new())", "await, bind or snapshot"),
    ("await self._rt_session.update_chat_ctx(c := ctx)", "await, bind or snapshot"),
    ("await self._rt_session.update_chat_ctx([c async for c in ctx])", "await, bind or"),
    ("await self._rt_session.update_chat_ctx(self._rt_session.chat_ctx)", "await, bind or"),
    ("await self._rt_session.update_chat_ctx(merged(ctx))", "unclear where"),
    ("await self._rt_session.update_chat_ctx(self._rt_session._chat_ctx)", "out of sight"),
    # other names of the session, of its methods and of its context
    ("session = self._rt_session", "second name"),
    ("self.other = self._rt_session", "second name"),
    ("if session := self._rt_session: pass", "second name"),
    ("session = self._rt_session or other", "second name"),
    ("both = (self._rt_session, other)", "second name"),
    ("all = [s for s in (self._rt_session,)]", "second name"),
    ("for s in [self._rt_session]: pass", "second name"),
    ("await helper(self._rt_session)", "is passed out of sight"),
    ("await helper(self._rt_session or other)", "is passed out of sight"),
    ("await helper(lambda: self._rt_session)", "is passed out of sight"),
    ("return self._rt_session or other", "is passed out of sight"),
    ("yield self._rt_session", "is passed out of sight"),
    ("match self._rt_session: # <- here\n        case s: pass", "second name"),
    ("self._rt_session.reset(chat_ctx=ctx)", "is passed out of sight"),
    ("await session.update_chat_ctx(ctx)", "push through an alias"),
    ("await self._agent.update_chat_ctx(ctx)", "push through an alias"),
    ("await super().update_chat_ctx(ctx)", "push through an alias"),
    ("await getattr(self, '_rt_session').send(ctx)", "A string names"),
    ("await getattr(session, 'update_chat_ctx')(ctx)", "A string names"),
    ("get = attrgetter('_rt_session.update_chat_ctx')", "A string names"),
    ("await other._rt_session.update_tools(ctx)", "not the _rt_session of AgentActivity"),
    ("self = other; self._rt_session.interrupt()", "not the _rt_session of AgentActivity"),
    ("later = lambda self: self._rt_session.interrupt()", "not the _rt_session of AgentActivity"),
    ("ctx = self._rt_session.chat_ctx", "unclear what becomes"),
    ("ctx: Context = self._rt_session.chat_ctx.copy()", "unclear what becomes"),
    ("ctx = other = self._rt_session.chat_ctx.copy()", "unclear what becomes"),
    ("self.kept = self._rt_session.chat_ctx.copy()", "unclear what becomes"),
    ("await self.update_chat_ctx(self._rt_session.chat_ctx.copy())", "unclear what becomes"),
    ("ctx.is_equivalent(c := self._rt_session.chat_ctx)", "unclear what becomes"),
    ("keep(self._rt_session.chat_ctx).is_equivalent(ctx)", "unclear what becomes"),
    ("keep(self._rt_session.chat_ctx.copy).is_equivalent(ctx)", "unclear what becomes"),
    ("later(self._rt_session.chat_ctx.is_equivalent)", "unclear what becomes"),
    # the lock
    ("async with self._rt_chat_ctx_lock: pass", "nothing is pushed"),
    ("async with self._rt_chat_ctx_lock as lock: pass", "in another way than by `async with`"),
    ("async with self._lock, self._rt_chat_ctx_lock: pass", "in another way than by `async with`"),
    ("with self._rt_chat_ctx_lock: pass", "in another way than by `async with`"),
    ("await self._rt_chat_ctx_lock.acquire()", "in another way than by `async with`"),
    ("if self._rt_chat_ctx_lock.locked(): pass", "in another way than by `async with`"),
    ("lock = self._rt_chat_ctx_lock", "in another way than by `async with`"),
    ("self._rt_chat_ctx_lock = asyncio.Lock()", "not made directly in AgentActivity.__init__"),
    ("self._rt_chat_ctx_lock = Lock()", "in another way than by `async with`"),
    ("async with other._rt_chat_ctx_lock: pass", "in another way than by `async with`"),
]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [pytest.param(s, r, id=s.split("#")[0].strip()) for s, r in REFUSED_METHODS],
)
def test_refuses_the_statement(statement: str, reason: str) -> None:
    marked = statement if "# <- here" in statement else f"{statement}  # <- here"
    source = locked(PUSH, f"async def other(self, ctx):\n    {marked}\n")
    with refuses(source, reason):
        find_sites(source, NAME)


BETWEEN = [
    "await tool()",
    "log('pushing')",
    "logger.debug('pushing', extra={'ctx': 1})",
    "if other: ctx.items.append(item)",
    "return",
    "items = found",
    "ctx.items.append(await tool())",
    "ctx.items.extend([x async for x in found])",
    "ctx.items.extend(list(map(lambda x: x, found)))",
    "ctx.items.extend(n := found)",
    "ctx.items.extend(self._rt_session.tools)",
    "ctx.items.extend(keep(ctx))",
    "ctx.items.append((yield))",
    "ctx.items = found",
    "ctx.items += found",
    "ctx.items[0].append(1)",
    "ctx.copy().items.append(item)",
    "ctx(item)",
    "kept = ctx.copy()",
    "items = ctx.items.copy()",
    "self.kept = ctx.add_message()",
    "a = b = ctx.add_message()",
    "ctx = ctx.merge(other)",
    "del ctx.items[0]",
    "assert ctx",
    "pass",
    "async with other: pass",
]


@pytest.mark.parametrize("statement", BETWEEN)
def test_refuses_in_a_span(statement: str) -> None:
    source = module(taking(f"{statement}  # <- here", SEND))
    with refuses(source, "is not an addition to it"):
        find_sites(source, NAME)


LATER = block("async def later():", f"{SEND}  # <- here")
CHECKED = f"{CHECK}  # <- here"
HELD = f"{HOLD}  # <- here"

REFUSED_SPANS = {
    "is used elsewhere": {
        "snapshot used later": taking(SEND, "keep(ctx)  # <- here"),
        "snapshot used in a nested function": taking(
            SEND, block("def later():", "return ctx  # <- here")
        ),
        "snapshot pushed by a nested function": taking(SEND, LATER),
        "global snapshot": block("async def sync(self):", "global ctx  # <- here", READ, SEND),
        "added to another snapshot": block(
            "async def sync(self):",
            "first = self._rt_session.chat_ctx.copy()",
            "await self._rt_session.update_chat_ctx(first)",
            *(READ, "ctx.items.extend(first.items)  # <- here", SEND),
        ),
        "item that a repeated check may skip": block(
            "async def sync(self):",
            block(CHECK, READ, "said = ctx.add_message()", SEND, "remember(said)  # <- here"),
        ),
    },
    "is not an addition to it": {
        "pushed twice": taking(SEND, "await tool()  # <- here", SEND),
        "snapshot in a branch": block(
            "async def sync(self):",
            *(block("if new:  # <- here", READ), block("else:", "ctx = other"), SEND),
        ),
    },
    "unclear where": {
        "a copy pushed later": taking(
            SEND, "await tool()", "await self._rt_session.update_chat_ctx(ctx.copy())  # <- here"
        ),
        "the agent's context read before": block(
            "async def sync(self):",
            *("ctx = self._agent.chat_ctx.copy()", "await tool()", f"{SEND}  # <- here"),
        ),
        "parameter that becomes another context": given(
            "ctx = new.session.chat_ctx.copy()", f"{SEND}  # <- here"
        ),
    },
    "snapshot through an alias": {
        "snapshot of a session handed over": given(
            "new.rt_session = self._rt_session",
            "await self.push(new.rt_session.chat_ctx.copy())  # <- here",
        ),
    },
    "a second name of the session": {
        "property": """\
        @property
        def session(self):
            return self._rt_session

        async def sync(self, ctx):
            await self.session.update(ctx)  # <- here
        """,
    },
    "second name": {
        "nested function that returns the session": given(
            block("def session():", "return self._rt_session  # <- here"), "await helper(session())"
        ),
    },
    "not the _rt_session of AgentActivity": {
        "class inside the class": block(
            "class Inner:", block("async def sync(self, ctx):", f"{SEND}  # <- here")
        ),
        "lambda in the class": (
            "later = lambda self, ctx: self._rt_session.update_chat_ctx(ctx)  # <- here\n"
        ),
        "self by another name": block(
            "async def sync(this, ctx):", "await this._rt_session.update_tools(ctx)  # <- here"
        ),
    },
    "not taken in the same block": {
        "push in a loop": taking(block("for _ in range(3):", f"{SEND}  # <- here")),
        "push in a finally": taking(block("try:", "pass"), block("finally:", f"{SEND}  # <- here")),
    },
    "await or bind": {
        "snapshot that awaits": taking(SEND).replace("copy()", "copy(at=await now())  # <- here"),
    },
    "repeat this check": {
        "early return": given(block("if self._rt_session is None:  # <- here", "return"), SEND),
        "check by truth": given(block("if self._rt_session:  # <- here", SEND)),
        "check in an or": given(
            block("if self._rt_session is not None or other:  # <- here", SEND)
        ),
        "check in a while": given(block("while self._rt_session is not None:  # <- here", SEND)),
        "check kept in a variable": given(
            "there = self._rt_session is not None  # <- here", block("if there:", SEND)
        ),
    },
    "holds more than one snapshot": {
        "two pushes in one lock": given(block(HELD, SEND, SEND)),
        "a tool in the lock": given(block(HELD, "await tool()", SEND)),
        "error handling in the lock": given(
            block(HELD, block("try:", SEND), block("except RealtimeError:", "log()"))
        ),
        "function made inside the lock": given(
            block(HELD, block("async def later(ctx):", "pass"), SEND)
        ),
    },
    "taken inside itself": {
        "lock in the lock": given(block(HOLD, block(HELD, SEND))),
    },
    "has an `else`": {
        "check with an else": given(block(HOLD, block(CHECKED, SEND), block("else:", "log()"))),
    },
    "`other` is held here": {
        "another lock between": taking(block("async with other:  # <- here", SEND)),
    },
    "`self._rt_ctx_mutex` is held here": {
        "another lock around": given(
            block("async with self._rt_ctx_mutex:  # <- here", block(HOLD, SEND))
        ),
    },
    "`self._slot()` is held here": {
        "another lock beside the activity's": given(
            block("async with self._lock, self._slot() as slot:  # <- here", SEND)
        ),
    },
    "`self._mutex` is held here": {
        "another lock around a method that pushes": """\
        async def sync(self, ctx):
            await self._rt_session.update_chat_ctx(ctx)

        async def later(self, ctx):
            await self.sync(ctx)

        async def start(self):
            async with self._mutex:  # <- here
                if other:
                    await self.later(self._agent.chat_ctx)
        """,
    },
    "takes a lock in a method that pushes": {
        "another lock acquired": given(
            "await self._mutex.acquire()  # <- here",
            *(block("try:", SEND), block("finally:", "self._mutex.release()")),
        ),
    },
}


@pytest.mark.parametrize(
    ("methods", "reason"),
    [
        pytest.param(methods, reason, id=name)
        for reason, cases in REFUSED_SPANS.items()
        for name, methods in cases.items()
    ],
)
def test_refuses_the_method(methods: str, reason: str) -> None:
    source = locked(PUSH, methods)
    with refuses(source, reason):
        find_sites(source, NAME)


MARKED = "class AgentActivity:  # <- here"
TWO = module(PUSH) + "\n\n" + module(PUSH).replace("class AgentActivity:", MARKED)

REFUSED_MODULES = {
    "no class": ("# <- here\nclass Other:\n    pass\n", "There is no class"),
    "nothing": ("# <- here", "There is no class"),
    "two classes": (TWO, "There are 2 classes"),
    "class under an if": (block("if True:", f"{MARKED}\n    pass\n"), "at the top level"),
    "class in a class": (block("class Outer:", f"{MARKED}\n    pass\n"), "at the top level"),
    "no push": (f"{MARKED}\n    pass\n", "pushes no"),
    "nothing but a comparison": (
        module(
            block(
                "def same(self, other):",
                "return self._rt_session.chat_ctx.is_equivalent(other)\n",
            ),
            head=HEAD.replace("class AgentActivity:", MARKED),
        ),
        "pushes no",
    ),
    "no Python": ("x = 1\nclass AgentActivity(:  # <- here\n", "not Python source"),
    "function beside the class": (
        module(PUSH)
        + "\n\nasync def push(activity):\n    await activity._rt_session.x()  # <- here",
        "not the _rt_session of AgentActivity",
    ),
    "two locks": (
        module(PUSH, head=HEAD + LOCK + LOCK.replace("Lock()", "Lock()  # <- here")),
        "is made 2 times",
    ),
    "a lock that nobody makes": (module(given(block(HELD, SEND))), "taken and never made"),
    "a lock made under an if": (
        HEAD + "        if locks:\n    " + LOCK.replace("\n", "\n    ").rstrip() + "  # <- here\n",
        "not made directly in",
    ),
}


@pytest.mark.parametrize(("source", "reason"), REFUSED_MODULES.values(), ids=REFUSED_MODULES)
def test_refuses_the_module(source: str, reason: str) -> None:
    with refuses(source, reason):
        find_sites(source, NAME)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(b"x = 1\n\0\n", id="null byte"),
        pytest.param(b"# coding: nonsense\nx = 1\n", id="unknown encoding"),
        pytest.param(b"x = '\xe9'\n", id="not UTF-8"),
        pytest.param(b"x = " + b"+".join([b"1"] * 50_000), id="too long an expression"),
        pytest.param(b"x = " + b"(" * 5_000, id="too many parentheses"),
    ],
)
def test_refuses_what_python_does(source: bytes) -> None:
    with pytest.raises(NotUnderstood, match=r"not Python source|nested too deeply") as refused:
        find_sites(source, NAME)
    assert refused.value.line >= 1


ACCEPTED = {
    "return where there is a session": "if self._rt_session is not None: return",
    "assertion": "assert self._rt_session is not None, 'no session'",
    "type": "assert isinstance(self._rt_session, object)",
    "logged": "logger.debug('session', self._rt_session)",
    "handed over": "new.rt_session = self._rt_session",
    "taken over": "self._rt_session = new.rt_session",
    "conditional expression": "x = 1 if self._rt_session else 2",
    "negation": "x = not self._rt_session",
    "truth": "if x and (self._rt_session or y): pass",
    "loop": "while self._rt_session: break",
    "other update": "await self._rt_session.update_tools([])",
    "another lock around no push": "async with self._mutex: await tool()",
    "activity's lock around a push": "async with self._lock: await self.sync(x)",
    "a plain with, which cannot wait": "with keep(): await self.sync(x)",
    "words": "'a word on update_chat_ctx'",
    "own replacement": "await self.update_chat_ctx(x)",
}


@pytest.mark.parametrize("statement", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts_other_uses_of_the_session(statement: str) -> None:
    source = locked(PUSH, block("async def other(self, new, x, y):", statement))
    assert [site.function for site in find_sites(source, NAME)] == ["sync"]


def test_a_nested_function_may_use_a_name_of_its_own() -> None:
    own = block("async def later():", READ, SEND)
    source = module(taking(SEND, own, block("def other(ctx):", "return ctx")))
    assert [site.function for site in find_sites(source, NAME)] == ["sync", "later"]
