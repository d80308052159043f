"""Runs the realtime tests of a checkout of livekit/agents on stock and on patched.

``python tools/upstream_tests.py PATH`` reads the checkout's release, installs that as published
with what the tests need, runs them, puts the patched wheel in its place, runs them again, and
prints the outcomes that differ. The checkout is only read: its tests are copied, so that its own
sources are not what is imported. No key for a provider reaches them, so none is asked.

Exit codes: 0 no outcome differs, 1 some do, 2 wrong usage, 3 they could not be run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from packaging.version import Version
from rich.console import Console
from rich.table import Table
from upstream_checkout import Checkout, read_checkout

from ctxlock.errors import CtxlockError
from ctxlock.release import Scope, parse_scope

__all__ = ["Outcome", "differing", "main", "outcomes_of"]

ROOT = Path(__file__).resolve().parent.parent

LIMIT = 30
"""So many seconds a test may take; upstream's take some."""

FILE_LIMIT = 300
"""So many seconds a file of tests may take, where the limit of each test could not end one."""

_RUNNER = ("pytest-timeout>=2.3", "pytest-reportlog>=0.4")
_COPIED = ("pyproject.toml", "pytest.ini", "conftest.py", "setup.cfg", "tox.ini")
"""What pytest reads beside the tests."""

_SECRETS = ("_API_KEY", "_API_SECRET", "_TOKEN", "_ACCESS_KEY_ID", "_SECRET_ACCESS_KEY")
"""How variables end that would let a test ask a provider."""

_UNTOLD = "no outcome"

out = Console(highlight=False)


@dataclass(frozen=True)
class Outcome:
    """How a test ended, and the first line of what it said if that was not well."""

    state: str
    detail: str = ""


Outcomes = Mapping[str, Outcome]


def outcomes_of(log: str) -> dict[str, Outcome]:
    """The outcome of each test in a report log, by its id; a file that cannot be imported is one.

    Args:
        log: What pytest-reportlog wrote, perhaps cut short.
    """
    found: dict[str, Outcome] = {}
    for line in log.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # the last one, if pytest was ended while it wrote
        kind, test = entry.get("$report_type"), entry.get("nodeid")
        if kind == "CollectReport" and entry["outcome"] == "failed":
            found[test] = Outcome("not collected", _said(entry["longrepr"]))
        elif kind == "TestReport":
            outcome = _outcome(entry)
            # the teardown of what has failed adds nothing, and that of what passed may fail
            if outcome is not None and (test not in found or found[test].state == "passed"):
                found[test] = outcome
    return found


def _outcome(entry: Mapping[str, Any]) -> Outcome | None:
    expected = "wasxfail" in entry
    if entry["outcome"] == "failed":
        said = _said(entry["longrepr"])
        if "Timeout (>" in said:
            return Outcome("timed out", said)
        return Outcome("failed" if entry["when"] == "call" else "error", said)
    if entry["outcome"] == "skipped":
        return Outcome("xfailed" if expected else "skipped")
    if entry["when"] == "call":
        return Outcome("xpassed" if expected else "passed")
    return None


def _said(longrepr: Any) -> str:
    """The first line of an error, as pytest tells of it in one of several shapes."""
    if isinstance(longrepr, Mapping):
        longrepr = (longrepr.get("reprcrash") or {}).get("message", "")
    lines = str(longrepr or "").strip().splitlines()
    errors = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return (errors or lines or [""])[0]


def differing(runs: Mapping[str, Outcomes]) -> list[tuple[str, list[Outcome]]]:
    """The tests whose state is not the same in all runs, with their outcome in each."""
    tests = sorted({test for outcomes in runs.values() for test in outcomes})
    rows = [(t, [o.get(t, Outcome(_UNTOLD)) for o in runs.values()]) for t in tests]
    return [(t, row) for t, row in rows if len({outcome.state for outcome in row}) > 1]


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

    Raises:
        CtxlockError: Pytest does not run.
    """
    outcomes: dict[str, Outcome] = {}
    log, said = scratch / "log.jsonl", scratch / "said.txt"
    for test in tests:
        print(f"  {test}", file=sys.stderr, flush=True)
        log.unlink(missing_ok=True)
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={limit}"]
        with said.open("wb") as stream:
            process = subprocess.Popen(
                [*command, f"--report-log={log}", test],
                cwd=tree,
                env=environment(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
            try:
                process.wait(FILE_LIMIT)
            except subprocess.TimeoutExpired:
                outcomes[test] = Outcome("ended", f"after {FILE_LIMIT} s")
            finally:
                process.kill()
                process.wait()
        told = log.read_text(encoding="utf-8") if log.is_file() else ""
        if process.returncode in (3, 4) or not told:
            last = said.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            raise CtxlockError(
                f"Pytest could not run {test}: {''.join(last) or 'it said nothing'}; install what "
                "it lacks by the dependency group `dev` of the checkout."
            )
        outcomes |= outcomes_of(told)
    return outcomes


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="upstream_tests", description=(__doc__ or "").partition("\n")[0]
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
