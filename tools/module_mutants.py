"""Does each statement of the added module earn its place? What catches a module that lacks one?

``python tools/module_mutants.py`` builds the newest verified livekit-agents with the scope `full`,
changes one thing in the added module at a time, runs its tests, the regressions over the fake
provider and, where these pass, the explorer with `--integrity`, and names each change that nothing
has noticed. Exit code 0: all were noticed, 1: some were not.

It takes an hour or so; `--only TEXT` tries the changes whose name has that text.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from trial import PYTEST, regressions, run, schedules, unpack

import ctxlock
from ctxlock.target import MODULE, TARGET

TESTS = ("tests/test_turns.py", "tests/test_full_items.py", "tests/test_full_lock.py")
PATIENCE = 4.0
"""How many times as long as on the module as it is a run may take; then it counts as one that
hangs."""

FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True)
class Mutant:
    """The module with one change.

    Attributes:
        name: The change: the method, the line, and what was done there.
        source: The module's text.
    """

    name: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Leaves out each statement and each operand, and turns each condition, one at a time."""
    tree, made = ast.parse(source), {source}
    for owner in ast.walk(tree):
        if isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(owner):
                for does, change in _changes(node):
                    done = ast.unparse(ast.fix_missing_locations(_with(tree, node, change)))
                    if done not in made:  # a function in a function is met twice
                        made.add(done)
                        line = getattr(node, "lineno", 0)
                        yield Mutant(f"{owner.name}, line {line}: {does}", done)


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], ast.AST | None]]]:
    text = ast.unparse(node).partition("\n")[0] if isinstance(node, ast.stmt | ast.expr) else ""
    match node:
        case ast.Expr(value=ast.Constant()):  # a docstring
            return
        case ast.Expr() | ast.Assign() | ast.AugAssign() | ast.Delete() | ast.Raise():
            yield f"without `{text}`", lambda _: ast.Pass()
        case ast.If() | ast.While() | ast.IfExp() if not _flips(node.test):
            yield f"`{ast.unparse(node.test)}` negated", _negated
        case ast.BoolOp(values=values):
            for number, value in enumerate(values):
                yield f"`{text}` without `{ast.unparse(value)}`", _without(number)
        case ast.Compare() if _flips(node):
            yield f"`{text}` flipped", _flipped
        case ast.Return(value=ast.Constant(value=bool())):
            yield f"`{text}` flipped", _other_result


def _flips(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in FLIPPED


def _negated(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.If | ast.While | ast.IfExp)
    node.test = ast.UnaryOp(ast.Not(), node.test)
    return node


def _without(number: int) -> Callable[[ast.AST], ast.AST]:
    def leave_out(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.BoolOp)
        del node.values[number]
        return node if len(node.values) > 1 else node.values[0]

    return leave_out


def _flipped(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.Compare)
    node.ops = [FLIPPED[type(node.ops[0])]()]
    return node


def _other_result(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.Return) and isinstance(node.value, ast.Constant)
    node.value = ast.Constant(not node.value.value)
    return node


def _with(tree: ast.AST, wanted: ast.AST, change: Callable[[ast.AST], ast.AST | None]) -> ast.AST:
    """A copy of the tree in which `wanted` is changed."""
    number = [*ast.walk(tree)].index(wanted)
    other = copy.deepcopy(tree)
    found = [*ast.walk(other)][number]

    class Changer(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST | None:
            return change(node) if node is found else self.generic_visit(node)

    changed = Changer().visit(other)
    assert isinstance(changed, ast.AST)
    return changed


def what_catches(mutant: Mutant, tree: Path, limit: float | None = None) -> str:
    """What notices a mutant, in a folder with livekit-agents and ctxlock; or nothing.

    Args:
        mutant: The module to try.
        tree: The folder, which nobody else uses.
        limit: After how many seconds a run of the tests, or of the explorer, counts as one that
            hangs.

    Raises:
        RuntimeError: The tests or the explorer could not run.
    """
    for folder in (Path(TARGET).parent, Path("ctxlock/payload")):
        (tree / folder / f"{MODULE}.py").write_text(mutant.source, encoding="utf-8")
    command = (*PYTEST, "-x", "-n", "0", "-k", "not websocket")
    files = (*TESTS, *regressions("engine", "siblings"))
    ran = run([tree], *command, *files, limit=limit)
    if ran is None:
        return "the tests hang"
    if ran.returncode == 1:
        failed = [s for s in ran.stdout.splitlines() if s.startswith(("FAILED ", "ERROR "))]
        return failed[0].partition(" ")[2].partition(" - ")[0] if failed else "a test"
    if ran.returncode in (2, 4):
        return "the tests cannot be collected"
    if ran.returncode != 0:
        raise RuntimeError(f"{mutant.name}: the tests could not run:\n{ran.stdout}{ran.stderr}")
    explored = run([tree], "ctxlock.explorer", "--integrity", limit=limit)
    if explored is None:
        return "the explorer hangs"
    _, violated = schedules(mutant.name, explored)
    return f"{violated} schedules" if violated else ""


def main() -> int:
    """Prints each change, and what has noticed it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--only", default="", metavar="TEXT", help="changes whose name has this")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ctxlock-") as folder:
        made_trees = [Path(folder, f"tree {number}") for number in range(arguments.jobs)]
        unpack("full", Path(folder), made_trees)
        trees: SimpleQueue[Path] = SimpleQueue()
        for tree in made_trees:
            shutil.copytree(Path(ctxlock.__file__).parent, tree / "ctxlock")
            trees.put(tree)
        source = (tree / Path(TARGET).parent / f"{MODULE}.py").read_text(encoding="utf-8")

        def examine(mutant: Mutant, limit: float | None) -> tuple[Mutant, str]:
            tree = trees.get()
            try:
                return mutant, what_catches(mutant, tree, limit)
            finally:
                trees.put(tree)

        began = time.monotonic()
        _, noticed = examine(Mutant("unchanged", source), None)
        limit = PATIENCE * (time.monotonic() - began)
        if noticed:
            print(f"The module as it is does not pass: {noticed}", file=sys.stderr)
            return 1
        made = [mutant for mutant in mutants(source) if arguments.only in mutant.name]
        survivors = []
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for done in as_completed([pool.submit(examine, mutant, limit) for mutant in made]):
                mutant, noticed = done.result()
                print(f"{mutant.name}: {noticed or 'NOTHING NOTICES THIS'}", flush=True)
                survivors += [] if noticed else [mutant.name]
    print(f"{len(made) - len(survivors)} of {len(made)} changes were noticed.")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
