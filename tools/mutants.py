"""Wrong versions of the patched file, to see that the races tell them from the right one.

Each is made from a file that is patched with the scope `lock` when it is asked for: one site left
bare, or a plausible fix that is none.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ctxlock.analysis.sites import Site, find_sites
from ctxlock.roles import Role
from ctxlock.target import CLASS, LOCK

__all__ = ["Mutant", "mutants"]

_PUSHED = "_pushed"
_COPY = "_copy"


@dataclass(frozen=True)
class Mutant:
    """A wrong version.

    Attributes:
        name: What is wrong with it.
        role: The role of the site left bare; None if it is another kind of mistake.
        source: Its text.
        explored: Whether the explorer has the operations that tell it from the right one.
    """

    name: str
    role: Role | None
    source: str
    explored: bool = True


Rewrite = Callable[[ast.AsyncWith], list[ast.stmt]]


def mutants(source: str, filename: str) -> Iterator[Mutant]:
    """Makes every wrong version of a patched file.

    Args:
        source: The text of a file that is patched with the scope `lock`.
        filename: How errors name it.
    """
    sites = [site for site in find_sites(source, filename) if site.state == "guarded"]
    for site in sites:
        name = f"{site.role} left bare"
        yield Mutant(name, site.role, _rewritten(source, [site], lambda lock: lock.body))
    for name, rewrite in _WRONG_FIXES.items():
        yield Mutant(name, None, _rewritten(source, sites, rewrite))
    yield Mutant("one lock per site", None, _one_lock_each(source, sites))
    for site in sites:
        if site.role is Role.NEVER_PLAYED_CLEANUP:
            # the context is copied nowhere, so that the wrong fixes above leave it as it is
            stale = _rewritten(source, [site], _copied_before)
            name = "never-played cleanup copied before the lock"
            yield Mutant(name, None, stale, explored=False)  # it takes an item of the server's


def _rewritten(source: str, sites: list[Site], rewrite: Rewrite) -> str:
    lines = {site.first_line for site in sites}

    class Rewriter(ast.NodeTransformer):
        def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST | list[ast.stmt]:
            if node.lineno not in lines:
                return self.generic_visit(node)
            lines.remove(node.lineno)
            return rewrite(node)

    tree = Rewriter().visit(ast.parse(source))
    assert not lines, f"no lock stands in the lines {sorted(lines)}"
    return ast.unparse(ast.fix_missing_locations(tree))


def _around(
    lock: ast.AsyncWith, wrap: Callable[[list[ast.stmt]], list[ast.stmt]]
) -> list[ast.stmt]:
    """Rewrites the span, inside its check of the session if it has one."""
    first = lock.body[0]
    if isinstance(first, ast.If):
        return [ast.If(test=first.test, body=wrap(first.body), orelse=[])]
    return wrap(lock.body)


def _push_alone(lock: ast.AsyncWith) -> list[ast.stmt]:
    return _around(
        lock, lambda span: [*span[:-1], ast.AsyncWith(items=lock.items, body=[span[-1]])]
    )


def _copied_before(lock: ast.AsyncWith) -> list[ast.stmt]:
    (push,) = lock.body
    assert isinstance(push, ast.Expr) and isinstance(push.value, ast.Await)
    call = push.value.value
    assert isinstance(call, ast.Call)
    copied = ast.parse(f"{_COPY} = {ast.unparse(call.args[0])}.copy()").body[0]
    call.args = [ast.Name(_COPY)]
    return [copied, lock]


def _released_early(lock: ast.AsyncWith) -> list[ast.stmt]:
    def wrap(span: list[ast.stmt]) -> list[ast.stmt]:
        push = span[-1]
        assert isinstance(push, ast.Expr) and isinstance(push.value, ast.Await)
        sent = ast.parse(f"{_PUSHED} = asyncio.ensure_future(None)").body[0]
        assert isinstance(sent, ast.Assign) and isinstance(sent.value, ast.Call)
        sent.value.args = [push.value.value]
        locked = ast.AsyncWith(items=lock.items, body=[*span[:-1], sent])
        return [locked, *ast.parse(f"async def f():\n await {_PUSHED}").body[0].body]  # type: ignore[attr-defined]

    return _around(lock, wrap)


_WRONG_FIXES: dict[str, Rewrite] = {
    "a lock around the push alone": _push_alone,
    "a lock released before the acknowledgement": _released_early,
}


def _one_lock_each(source: str, sites: list[Site]) -> str:
    names = {site.first_line: f"{LOCK}_{number}" for number, site in enumerate(sites, 1)}

    class Renamer(ast.NodeTransformer):
        def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
            if node.lineno in names:
                node.items = [ast.withitem(_attribute(names[node.lineno]))]
                return node
            return self.generic_visit(node)

        def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
            return self.generic_visit(node) if node.name == CLASS else node

        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
            if node.name == "__init__":
                made = (f"self.{name} = asyncio.Lock()" for name in names.values())
                node.body = [*node.body, *(ast.parse(text).body[0] for text in made)]
            return node

    return ast.unparse(ast.fix_missing_locations(Renamer().visit(ast.parse(source))))


def _attribute(name: str) -> ast.expr:
    return ast.parse(f"self.{name}", mode="eval").body
