"""Runs the realtime tests of a checkout of livekit/agents on stock and on patched.

``python tools/upstream_tests.py PATH`` reads the checkout's release, installs that as published
with what the tests need, runs them, puts the patched wheel in its place, runs them again, and
prints the outcomes that differ. The checkout is only read: its tests are copied, so that its own
sources are not what is imported. No key for a provider reaches them, so none is asked.

Exit codes: 0 no outcome differs, 1 some do, 2 wrong usage, 3 they could not be run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import get_args

from packaging.version import Version
from rich.console import Console
from rich.table import Table
from upstream_checkout import Checkout, read_checkout
from upstream_outcomes import Outcome, Outcomes, differing, ended_in, is_whole, outcomes_of

from ctxlock.errors import CtxlockError
from ctxlock.release import Scope, parse_scope

__all__ = ["environment", "main", "report"]

ROOT = Path(__file__).resolve().parent.parent

LIMIT = 30
"""So many seconds a test may take; upstream's take some."""

FILE_LIMIT = 300
"""So many seconds a file of tests may take, should the limit of a test not end it."""

_RUNNER = ("pytest-timeout>=2.3", "pytest-reportlog>=0.4")
_COPIED = ("pyproject.toml", "pytest.ini", "conftest.py", "setup.cfg", "tox.ini")
"""What pytest reads beside the tests."""

_SECRETS = ("_API_KEY", "_API_SECRET", "_TOKEN", "_ACCESS_KEY_ID", "_SECRET_ACCESS_KEY")
"""How variables end that would let a test ask a provider."""

out = Console(highlight=False)


def copy_tests(checkout: Checkout, tree: Path) -> None:
    """Copies the tests into `tree`, and nothing that could be imported as livekit."""
    ignored = shutil.ignore_patterns("__pycache__", ".env*")
    shutil.copytree(checkout.root / "tests", tree / "tests", ignore=ignored)
    for name in _COPIED:
        if (checkout.root / name).is_file():
            shutil.copy(checkout.root / name, tree / name)


def run_tests(
    python: str, tree: Path, tests: Iterable[str], limit: int, scratch: Path
) -> dict[str, Outcome]:
    """Runs each file of tests in a process of its own.

    A test that is past the limit takes its process along: an exception in it, the other way to end
    it, may be caught by a task that nobody looks at. The tests behind it run in a new process.

    Raises:
        CtxlockError: Pytest does not run.
    """
    outcomes: dict[str, Outcome] = {}
    for file in tests:
        print(f"  {file}", file=sys.stderr, flush=True)
        left, limits = [file], [f"--timeout={limit}", "--timeout-method=thread"]
        while left:
            code, log, said = _pytest(python, tree, scratch, *limits, *left)
            if code in (3, 4) or not log:
                raise CtxlockError(
                    f"Pytest could not run {file}: {said[-1] if said else 'it said nothing'}; "
                    "install what it lacks by the dependency group `dev` of the checkout."
                )
            outcomes |= outcomes_of(log)
            if is_whole(log):
                break
            if left == [file]:
                _, _, said = _pytest(python, tree, scratch, "--collect-only", file)
                left = [line for line in said if line.startswith(f"{file}::")]
            left = [test for test in left if test not in ended_in(log)]
            late = code is None or code == 1  # pytest-timeout ends with 1
            how = Outcome("timed out") if late else Outcome("crashed", f"with the exit code {code}")
            outcomes.update(dict.fromkeys(left[:1] or [file], how))
            left = left[1:]
    return outcomes


def _pytest(
    python: str, tree: Path, scratch: Path, *arguments: str
) -> tuple[int | None, str, list[str]]:
    """Runs pytest; returns its exit code, None if it had to be ended, its log, and what it said."""
    log, said = scratch / "log.jsonl", scratch / "said.txt"
    log.unlink(missing_ok=True)
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--report-log={log}"]
    with said.open("wb") as stream:
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=tree,
            env=environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
        code = None
        try:
            code = process.wait(FILE_LIMIT)
        except subprocess.TimeoutExpired:
            pass
        finally:
            process.kill()
            process.wait()
    told = log.read_text(encoding="utf-8") if log.is_file() else ""
    return code, told, said.read_text(encoding="utf-8", errors="replace").splitlines()


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The variables that tests see: none that would put other modules in front, or pay a bill."""
    kept = {name: value for name, value in given.items() if not name.endswith(_SECRETS)}
    for name in ("PYTHONPATH", "PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        kept.pop(name, None)
    return kept


def uv(*arguments: str) -> None:
    """Runs uv.

    Raises:
        CtxlockError: It is not there, or could not do it.
    """
    try:
        done = subprocess.run(["uv", *arguments], cwd=ROOT, capture_output=True, text=True)
    except OSError as e:
        raise CtxlockError(f"uv could not be started: {e}; install it, then try again.") from None
    if done.returncode != 0:
        said = " ".join(done.stderr.split())
        raise CtxlockError(f"`uv {' '.join(arguments[:2])}` could not do its part. uv said: {said}")


def check_installed(python: str, tree: Path, version: str) -> None:
    """Sees that what the tests will import is what was installed, in that version.

    Raises:
        CtxlockError: It is another.
    """
    code = "import importlib.metadata as m, livekit.agents as a; print(a.__file__)"
    code += "; print(m.version('livekit-agents'))"
    done = subprocess.run(
        [python, "-c", code], cwd=tree, env=environment(os.environ), capture_output=True, text=True
    )
    file, _, found = done.stdout.strip().partition("\n")
    inside = Path(python).parent.parent.resolve() in Path(file).resolve().parents
    if done.returncode != 0 or not inside or Version(found) != Version(version):
        told = done.stderr.strip().splitlines()[-1:] or [f"{found} from {file}"]
        raise CtxlockError(
            f"livekit-agents {version} was installed, and cannot be imported: {told[0]}."
        )


def examine(checkout: Checkout, scopes: Sequence[Scope], limit: int) -> dict[str, Outcomes]:
    """Runs the tests on stock and in each scope.

    Raises:
        CtxlockError: Something could not be installed, built or run.
    """
    release = str(checkout.release)
    runs: dict[str, Outcomes] = {}
    with tempfile.TemporaryDirectory(prefix="ctxlock-", ignore_cleanup_errors=True) as name:
        scratch = Path(name).resolve()
        tree = scratch / "tree"
        copy_tests(checkout, tree)
        print(f"Installing stock livekit-agents {release}", file=sys.stderr, flush=True)
        uv("venv", "-q", "-p", sys.executable, str(scratch / "environment"))
        python = str(
            scratch / "environment" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        )
        wishes = (f"livekit-agents==={release}", *checkout.requirements, *_RUNNER)
        uv("pip", "install", "-q", "-p", python, *wishes)
        for column in ("stock", *scopes):
            version = release
            if column != "stock":
                folder = scratch / f"wheel-{column}"
                settings = ("-C", f"upstream={release}", "-C", f"scope={column}")
                uv("build", "-q", "--wheel", "livekit-agents", *settings, "-o", str(folder))
                (wheel,) = folder.glob("*.whl")
                version = wheel.name.split("-")[1]
                uv("pip", "install", "-q", "-p", python, "--no-deps", "--reinstall", str(wheel))
            check_installed(python, tree, version)
            print(f"Running the tests on {version}", file=sys.stderr, flush=True)
            runs[version] = run_tests(python, tree, checkout.tests, limit, scratch)
    return runs


def report(runs: Mapping[str, Outcomes]) -> bool:
    """Prints how many tests ended how, and what differs; returns whether something does.

    Raises:
        CtxlockError: No test ran on stock, so that nothing is shown.
    """
    for version, outcomes in runs.items():
        states = [outcome.state for outcome in outcomes.values()]
        counts = ", ".join(f"{states.count(s)} {s}" for s in sorted({*states}))
        out.print(f"{version}: {counts or 'no test'}", soft_wrap=True)
    stock, *_ = runs.values()
    if not any(outcome.state in ("passed", "failed") for outcome in stock.values()):
        raise CtxlockError("No test ran on stock, so that this shows nothing.")
    for test, outcome in stock.items():
        if outcome.state == "not collected":
            out.print(f"not collected: {test}: {outcome.detail}", soft_wrap=True, markup=False)
    rows = differing(runs)
    for test, row in rows:
        out.print(f"\n{test}", soft_wrap=True, markup=False)
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for version, outcome in zip(runs, row, strict=True):
            table.add_row(f"  {version}", outcome.state, outcome.detail)
        out.print(table, markup=False)
    out.print(f"\n{len(rows)} outcomes differ." if rows else "\nNo outcome differs.")
    return bool(rows)


_USAGE = f"""\
nox -s upstream_tests -- PATH [--scope {{{",".join(get_args(Scope))}}}] [--limit SECONDS]
PATH is a checkout of livekit/agents, the folder that git cloned."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="upstream_tests",
        description=(__doc__ or "").partition("\n")[0],
        usage=_USAGE,
    )
    parser.add_argument("path", metavar="PATH", help="a checkout of livekit/agents")
    parser.add_argument(
        "--scope",
        action="append",
        choices=get_args(Scope),
        help="a scope to run them in; may be given twice (both)",
    )
    parser.add_argument(
        "--limit", type=int, default=LIMIT, help="seconds that a test may take (%(default)s)"
    )
    given = parser.parse_args(arguments)
    scopes = [parse_scope(scope, "--scope") for scope in given.scope or get_args(Scope)]
    try:
        return 1 if report(examine(read_checkout(Path(given.path)), scopes, given.limit)) else 0
    except CtxlockError as e:
        print(f"upstream_tests: {e}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
