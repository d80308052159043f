from __future__ import annotations

import pytest
from activity import HEAD, LOCK, NAME, PUSH, assert_names, locked, module

from ctxlock.analysis.sites import Site, find_sites
from ctxlock.errors import NotUnderstood
from ctxlock.roles import Role

JUDGED = [
    pytest.param(
        """\
        async def update_chat_ctx(self, ctx):
            if self._rt_session is not None:
                await self._rt_session.update_chat_ctx(ctx)
        """,
        [("replacement", "bare", None)],
        id="bare replacement",
    ),
    pytest.param(
        """\
        async def update_chat_ctx(self, ctx):
            if self._rt_session is not None and other:
                async with self._rt_chat_ctx_lock:
                    await self._rt_session.update_chat_ctx(ctx)
        """,
        [("replacement", "guarded", False)],
        id="replacement that checks no second time",
    ),
    pytest.param(
        """\
        async def update_chat_ctx(self, ctx):
            if self._rt_session is not None:
                async with self._rt_chat_ctx_lock:
                    if self._rt_session is not None:
                        await self._rt_session.update_chat_ctx(ctx)
        """,
        [("replacement", "guarded", True)],
        id="guarded replacement",
    ),
    pytest.param(
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
        id="session start",
    ),
    pytest.param(
        """\
        async def _realtime_reply_task(self, text):
            try:
                async with self._rt_chat_ctx_lock:
                    ctx = self._rt_session.chat_ctx.copy()
                    said = ctx.add_message(content=text)
                    await self._rt_session.update_chat_ctx(ctx)
            except RealtimeError:
                log()
            remember(said)
        """,
        [("text turn", "guarded", None)],
        id="guarded text turn",
    ),
    pytest.param(
        """\
        async def _realtime_generation_task_impl(self, handle):
            if skipped:
                await self._rt_session.update_chat_ctx(self._agent._chat_ctx)
            if handle.interrupted:
                ctx = self._rt_session.chat_ctx.copy()
                ctx.items.extend(found)
                await self._rt_session.update_chat_ctx(ctx)
                return
            async with self._rt_chat_ctx_lock:
                ctx = self._rt_session.chat_ctx.copy()
                ctx.items.extend(found)
                await self._rt_session.update_chat_ctx(ctx)
        """,
        [
            ("never-played cleanup", "bare", None),
            ("interrupted tool outputs", "bare", None),
            ("tool outputs", "guarded", None),
        ],
        id="generation",
    ),
    pytest.param(
        """\
        async def _tts_task_impl(self, said):
            ctx = self._rt_session.chat_ctx.copy()
            ctx.insert(said)
            try:
                await self._rt_session.update_chat_ctx(ctx)
            finally:
                done()
        """,
        [("spoken message", "bare", None)],
        id="spoken message with a try",
    ),
    pytest.param(
        """\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy(exclude=True)
            async with self._rt_chat_ctx_lock:
                await self._rt_session.update_chat_ctx(ctx)
        """,
        [("other", "bare", None)],
        id="lock around the push alone",
    ),
    pytest.param(
        """\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy()
            async with self._rt_chat_ctx_lock:
                ctx.items.append(item)
                await self._rt_session.update_chat_ctx(ctx)
        """,
        [("other", "bare", None)],
        id="lock around all but the snapshot",
    ),
    pytest.param(
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
        id="snapshots that are only compared",
    ),
]


@pytest.mark.parametrize(("methods", "expected"), JUDGED)
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
    outer = """\
        async def sync(self, ctx):
            async def later(ctx):
                await self._rt_session.update_chat_ctx(ctx)

            await self._rt_session.update_chat_ctx(ctx)
    """
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
    with pytest.raises(NotUnderstood) as refused:
        find_sites(source, NAME)
    assert_names(refused, source, reason)


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
    source = module(
        f"""\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy()
            {statement}  # <- here
            await self._rt_session.update_chat_ctx(ctx)
        """
    )
    with pytest.raises(NotUnderstood) as refused:
        find_sites(source, NAME)
    assert_names(refused, source, "is not an addition to it")


REFUSED_SPANS = [
    pytest.param(
        """\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy()
            await self._rt_session.update_chat_ctx(ctx)
            keep(ctx)  # <- here
        """,
        "is used elsewhere",
        id="snapshot used later",
    ),
    pytest.param(
        """\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy()
            await self._rt_session.update_chat_ctx(ctx)

            def later():
                return ctx  # <- here
        """,
        "is used elsewhere",
        id="snapshot used in a nested function",
    ),
    pytest.param(
        """\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy()
            await self._rt_session.update_chat_ctx(ctx)

            async def later():
                await self._rt_session.update_chat_ctx(ctx)  # <- here
        """,
        "is used elsewhere",
        id="snapshot pushed by a nested function",
    ),
    pytest.param(
        """\
        async def sync(self):
            global ctx  # <- here
            ctx = self._rt_session.chat_ctx.copy()
            await self._rt_session.update_chat_ctx(ctx)
        """,
        "is used elsewhere",
        id="global snapshot",
    ),
    pytest.param(
        """\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy()
            await self._rt_session.update_chat_ctx(ctx)
            await tool()  # <- here
            await self._rt_session.update_chat_ctx(ctx)
        """,
        "is not an addition to it",
        id="pushed twice",
    ),
    pytest.param(
        """\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy()
            await self._rt_session.update_chat_ctx(ctx)
            await tool()
            await self._rt_session.update_chat_ctx(ctx.copy())  # <- here
        """,
        "unclear where",
        id="a copy pushed later",
    ),
    pytest.param(
        """\
        async def sync(self):
            first = self._rt_session.chat_ctx.copy()
            await self._rt_session.update_chat_ctx(first)
            ctx = self._rt_session.chat_ctx.copy()
            ctx.items.extend(first.items)  # <- here
            await self._rt_session.update_chat_ctx(ctx)
        """,
        "is used elsewhere",
        id="added to another snapshot",
    ),
    pytest.param(
        """\
        async def sync(self):
            ctx = self._agent.chat_ctx.copy()
            await tool()
            await self._rt_session.update_chat_ctx(ctx)  # <- here
        """,
        "unclear where",
        id="the agent's context read before",
    ),
    pytest.param(
        """\
        async def sync(self, new, ctx):
            ctx = new.session.chat_ctx.copy()
            await self._rt_session.update_chat_ctx(ctx)  # <- here
        """,
        "unclear where",
        id="parameter that becomes another context",
    ),
    pytest.param(
        """\
        async def sync(self, new):
            new.rt_session = self._rt_session
            await self.push(new.rt_session.chat_ctx.copy())  # <- here
        """,
        "snapshot through an alias",
        id="snapshot of a session handed over",
    ),
    pytest.param(
        """\
        @property
        def session(self):
            return self._rt_session

        async def sync(self, ctx):
            await self.session.update(ctx)  # <- here
        """,
        "a second name of the session",
        id="property",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            def session():
                return self._rt_session  # <- here

            await helper(session())
        """,
        "second name",
        id="nested function that returns the session",
    ),
    pytest.param(
        """\
        class Inner:
            async def sync(self, ctx):
                await self._rt_session.update_chat_ctx(ctx)  # <- here
        """,
        "not the _rt_session of AgentActivity",
        id="class inside the class",
    ),
    pytest.param(
        "later = lambda self, ctx: self._rt_session.update_chat_ctx(ctx)  # <- here\n",
        "not the _rt_session of AgentActivity",
        id="lambda in the class",
    ),
    pytest.param(
        """\
        async def sync(this, ctx):
            await this._rt_session.update_tools(ctx)  # <- here
        """,
        "not the _rt_session of AgentActivity",
        id="self by another name",
    ),
    pytest.param(
        """\
        async def sync(self):
            if new:
                ctx = self._rt_session.chat_ctx.copy()
            else:
                ctx = other
            await self._rt_session.update_chat_ctx(ctx)
        """.replace("if new:", "if new:  # <- here"),
        "is not an addition to it",
        id="snapshot in a branch",
    ),
    pytest.param(
        """\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy()
            for _ in range(3):
                await self._rt_session.update_chat_ctx(ctx)  # <- here
        """,
        "not taken in the same block",
        id="push in a loop",
    ),
    pytest.param(
        """\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy()
            try:
                pass
            finally:
                await self._rt_session.update_chat_ctx(ctx)  # <- here
        """,
        "not taken in the same block",
        id="push in a finally",
    ),
    pytest.param(
        """\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy(at=await now())  # <- here
            await self._rt_session.update_chat_ctx(ctx)
        """,
        "await or bind",
        id="snapshot that awaits",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            if self._rt_session is None:  # <- here
                return
            await self._rt_session.update_chat_ctx(ctx)
        """,
        "repeat this check",
        id="early return",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            if self._rt_session:  # <- here
                await self._rt_session.update_chat_ctx(ctx)
        """,
        "repeat this check",
        id="check by truth",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            if self._rt_session is not None or other:  # <- here
                await self._rt_session.update_chat_ctx(ctx)
        """,
        "repeat this check",
        id="check in an or",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            while self._rt_session is not None:  # <- here
                await self._rt_session.update_chat_ctx(ctx)
        """,
        "repeat this check",
        id="check in a while",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            there = self._rt_session is not None  # <- here
            if there:
                await self._rt_session.update_chat_ctx(ctx)
        """,
        "repeat this check",
        id="check kept in a variable",
    ),
    pytest.param(
        """\
        async def sync(self):
            if self._rt_session is not None:
                ctx = self._rt_session.chat_ctx.copy()
                said = ctx.add_message()
                await self._rt_session.update_chat_ctx(ctx)
                remember(said)  # <- here
        """,
        "is used elsewhere",
        id="item that a repeated check may skip",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            async with self._rt_chat_ctx_lock:  # <- here
                await self._rt_session.update_chat_ctx(ctx)
                await self._rt_session.update_chat_ctx(ctx)
        """,
        "holds more than one snapshot",
        id="two pushes in one lock",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            async with self._rt_chat_ctx_lock:  # <- here
                await tool()
                await self._rt_session.update_chat_ctx(ctx)
        """,
        "holds more than one snapshot",
        id="a tool in the lock",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            async with self._rt_chat_ctx_lock:  # <- here
                try:
                    await self._rt_session.update_chat_ctx(ctx)
                except RealtimeError:
                    log()
        """,
        "holds more than one snapshot",
        id="error handling in the lock",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            async with self._rt_chat_ctx_lock:
                async with self._rt_chat_ctx_lock:  # <- here
                    await self._rt_session.update_chat_ctx(ctx)
        """,
        "taken inside itself",
        id="lock in the lock",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            async with self._rt_chat_ctx_lock:
                if self._rt_session is not None:  # <- here
                    await self._rt_session.update_chat_ctx(ctx)
                else:
                    log()
        """,
        "has an `else`",
        id="check with an else",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            async with self._rt_chat_ctx_lock:  # <- here

                async def later(ctx):
                    pass

                await self._rt_session.update_chat_ctx(ctx)
        """,
        "holds more than one snapshot",
        id="function made inside the lock",
    ),
    pytest.param(
        """\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy()
            async with other:  # <- here
                await self._rt_session.update_chat_ctx(ctx)
        """,
        "`other` is held here",
        id="another lock between",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            async with self._rt_ctx_mutex:  # <- here
                async with self._rt_chat_ctx_lock:
                    await self._rt_session.update_chat_ctx(ctx)
        """,
        "`self._rt_ctx_mutex` is held here",
        id="another lock around",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            async with self._lock, self._slot() as slot:  # <- here
                await self._rt_session.update_chat_ctx(ctx)
        """,
        "`self._slot()` is held here",
        id="another lock beside the activity's",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            await self._rt_session.update_chat_ctx(ctx)

        async def later(self, ctx):
            await self.sync(ctx)

        async def start(self):
            async with self._mutex:  # <- here
                if other:
                    await self.later(self._agent.chat_ctx)
        """,
        "`self._mutex` is held here",
        id="another lock around a method that pushes",
    ),
    pytest.param(
        """\
        async def sync(self, ctx):
            await self._mutex.acquire()  # <- here
            try:
                await self._rt_session.update_chat_ctx(ctx)
            finally:
                self._mutex.release()
        """,
        "takes a lock in a method that pushes",
        id="another lock acquired",
    ),
]


@pytest.mark.parametrize(("methods", "reason"), REFUSED_SPANS)
def test_refuses_the_method(methods: str, reason: str) -> None:
    source = locked(PUSH, methods)
    with pytest.raises(NotUnderstood) as refused:
        find_sites(source, NAME)
    assert_names(refused, source, reason)


TWO = module(PUSH) + "\n\n" + module(PUSH).replace("AgentActivity:", "AgentActivity:  # <- here")

REFUSED_MODULES = [
    pytest.param("# <- here\nclass Other:\n    pass\n", "There is no class", id="no class"),
    pytest.param("# <- here", "There is no class", id="nothing"),
    pytest.param(TWO, "There are 2 classes", id="two classes"),
    pytest.param(
        "if True:\n    class AgentActivity:  # <- here\n        pass\n",
        "at the top level",
        id="class under an if",
    ),
    pytest.param(
        "class Outer:\n    class AgentActivity:  # <- here\n        pass\n",
        "at the top level",
        id="class in a class",
    ),
    pytest.param("class AgentActivity:  # <- here\n    pass\n", "pushes no", id="no push"),
    pytest.param(
        HEAD.replace("AgentActivity:", "AgentActivity:  # <- here")
        + "\n    def same(self, other):"
        + "\n        return self._rt_session.chat_ctx.is_equivalent(other)\n",
        "pushes no",
        id="nothing but a comparison",
    ),
    pytest.param("x = 1\nclass AgentActivity(:  # <- here\n", "not Python source", id="no Python"),
    pytest.param(
        module(PUSH)
        + "\n\nasync def push(activity):\n    await activity._rt_session.x()  # <- here",
        "not the _rt_session of AgentActivity",
        id="function beside the class",
    ),
    pytest.param(
        module(PUSH, head=HEAD + LOCK + LOCK.replace("Lock()", "Lock()  # <- here")),
        "is made 2 times",
        id="two locks",
    ),
    pytest.param(
        module(
            "async def sync(self, ctx):\n"
            "    async with self._rt_chat_ctx_lock:  # <- here\n"
            "        await self._rt_session.update_chat_ctx(ctx)\n"
        ),
        "taken and never made",
        id="a lock that nobody makes",
    ),
    pytest.param(
        HEAD + "        if locks:\n    " + LOCK.replace("\n", "\n    ").rstrip() + "  # <- here\n",
        "not made directly in",
        id="a lock made under an if",
    ),
]


@pytest.mark.parametrize(("source", "reason"), REFUSED_MODULES)
def test_refuses_the_module(source: str, reason: str) -> None:
    with pytest.raises(NotUnderstood) as refused:
        find_sites(source, NAME)
    assert_names(refused, source, reason)


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


ACCEPTED = [
    pytest.param("if self._rt_session is not None: return", id="return where there is a session"),
    pytest.param("assert self._rt_session is not None, 'no session'", id="assertion"),
    pytest.param("assert isinstance(self._rt_session, object)", id="type"),
    pytest.param("logger.debug('session', self._rt_session)", id="logged"),
    pytest.param("new.rt_session = self._rt_session", id="handed over"),
    pytest.param("self._rt_session = new.rt_session", id="taken over"),
    pytest.param("x = 1 if self._rt_session else 2", id="conditional expression"),
    pytest.param("x = not self._rt_session", id="negation"),
    pytest.param("if x and (self._rt_session or y): pass", id="truth"),
    pytest.param("while self._rt_session: break", id="loop"),
    pytest.param("await self._rt_session.update_tools([])", id="other update"),
    pytest.param("async with self._mutex: await tool()", id="another lock around no push"),
    pytest.param("async with self._lock: await self.sync(x)", id="activity's lock around a push"),
    pytest.param("with keep(): await self.sync(x)", id="a plain with, which cannot wait"),
    pytest.param("'a word on update_chat_ctx'", id="words"),
    pytest.param("await self.update_chat_ctx(x)", id="own replacement"),
]


@pytest.mark.parametrize("statement", ACCEPTED)
def test_accepts_other_uses_of_the_session(statement: str) -> None:
    source = locked(PUSH, f"async def other(self, new, x, y):\n    {statement}\n")
    assert [site.function for site in find_sites(source, NAME)] == ["sync"]


def test_a_nested_function_may_use_a_name_of_its_own() -> None:
    source = module(
        """\
        async def sync(self):
            ctx = self._rt_session.chat_ctx.copy()
            await self._rt_session.update_chat_ctx(ctx)

            async def later():
                ctx = self._rt_session.chat_ctx.copy()
                await self._rt_session.update_chat_ctx(ctx)

            def other(ctx):
                return ctx
        """
    )
    assert [site.function for site in find_sites(source, NAME)] == ["sync", "later"]
