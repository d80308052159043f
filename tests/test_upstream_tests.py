"""What `tools/upstream_tests.py` makes of report logs, and a whole run on an invented checkout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from packages import put
from upstream_checkout import VERSION
from upstream_outcomes import Outcome, differing, ended_in, is_whole, outcomes_of
from upstream_tests import environment, main, report

from ctxlock.errors import CtxlockError
from ctxlock.release import NEWEST_VERIFIED


def line(test: str, when: str, outcome: str, said: str = "", **more: str) -> str:
    longrepr = {"reprcrash": {"message": said}} if said else None
    entry = {"nodeid": test, "when": when, "outcome": outcome, "longrepr": longrepr, **more}
    return json.dumps({"$report_type": "TestReport", **entry})


def phases(test: str, **outcomes: str) -> str:
    """The log of a test whose phases pass, but for those that are named."""
    told = {"setup": "passed", "call": "passed", "teardown": "passed", **outcomes}
    return "\n".join(line(test, when, outcome) for when, outcome in told.items())


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        pytest.param(phases("t"), Outcome("passed"), id="passed"),
        pytest.param(
            line("t", "setup", "passed") + "\n" + line("t", "call", "failed", "assert 1\nmore"),
            Outcome("failed", "assert 1"),
            id="failed",
        ),
        pytest.param(line("t", "setup", "failed", "no x"), Outcome("error", "no x"), id="setup"),
        pytest.param(phases("t", teardown="failed"), Outcome("error"), id="teardown"),
        pytest.param(
            line("t", "call", "failed", "first") + "\n" + line("t", "teardown", "failed", "second"),
            Outcome("failed", "first"),
            id="the first failure counts",
        ),
        pytest.param(line("t", "setup", "skipped"), Outcome("skipped"), id="skipped"),
        pytest.param(line("t", "call", "skipped", wasxfail=""), Outcome("xfailed"), id="xfailed"),
        pytest.param(line("t", "call", "passed", wasxfail=""), Outcome("xpassed"), id="xpassed"),
    ],
)
def test_an_outcome(log: str, expected: Outcome) -> None:
    assert outcomes_of(log) == {"t": expected}


def test_a_file_that_cannot_be_imported() -> None:
    longrepr = "ImportError while importing\nTraceback:\nE   ModuleNotFoundError: No module x"
    entry = {"nodeid": "f.py", "outcome": "failed", "longrepr": longrepr}
    log = json.dumps({"$report_type": "CollectReport", **entry})
    expected = Outcome("not collected", "ModuleNotFoundError: No module x")
    assert outcomes_of(log) == {"f.py": expected}


def test_a_log_that_was_cut_short() -> None:
    log = f'{{"$report_type": "SessionStart"}}\n{phases("a")}\n{phases("b")[:-20]}'
    assert outcomes_of(log) == {"a": Outcome("passed"), "b": Outcome("passed")}
    assert outcomes_of("") == {}
    assert ended_in(log) == {"a"}
    assert not is_whole(log)
    assert is_whole(f'{log}\n{{"$report_type": "SessionFinish"}}')


def test_what_differs() -> None:
    runs = {
        "1": {"a": Outcome("passed"), "b": Outcome("failed", "x"), "c": Outcome("passed")},
        "2": {"a": Outcome("timed out"), "b": Outcome("failed", "y")},
    }
    assert differing(runs) == [
        ("a", [Outcome("passed"), Outcome("timed out")]),
        ("c", [Outcome("passed"), Outcome("no outcome")]),
    ]


def test_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    same = {"t[a]": Outcome("passed"), "u": Outcome("failed", "x")}
    broken = {"f.py": Outcome("not collected", "No module x")}
    assert not report({"1": {**same, **broken}, "2": {**same, **broken}})
    assert "1: 1 failed, 1 not collected, 1 passed\n" in (said := capsys.readouterr().out)
    assert said.count("not collected: f.py: No module x\n") == 1
    assert "No outcome differs." in said
    assert report({"1": same, "2": {**same, "t[a]": Outcome("timed out", "late")}})
    said = capsys.readouterr().out
    assert "t[a]" in said and "timed out  late" in said and "1 outcomes differ." in said


def test_nothing_that_ran_shows_nothing() -> None:
    none = {"f.py": Outcome("not collected"), "t": Outcome("skipped")}
    with pytest.raises(CtxlockError, match="No test ran on stock"):
        report({"1": none, "2": none})


def test_the_variables_that_tests_see() -> None:
    given = {"PATH": "x", "OPENAI_API_KEY": "x", "LIVEKIT_API_SECRET": "x", "PYTHONPATH": "x"}
    assert environment(given) == {"PATH": "x"}


def test_what_cannot_be_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "missing")]) == 3
    assert "missing is no folder; name a checkout" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main([])
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert "nox -s upstream_tests -- PATH" in said
    assert "PATH is a checkout of livekit/agents" in said


TESTS = """\
import asyncio
from importlib.metadata import version
from pathlib import Path

import livekit.agents
import pytest

PATCHED = "+" in version("livekit-agents")


def test_where_it_is_imported_from():
    assert Path(__file__).parents[1] not in Path(livekit.agents.__file__).parents


def test_the_same():
    pass


def test_fails_on_patched():
    assert not PATCHED, "it is patched"


async def swallow():
    while True:
        try:
            await asyncio.sleep(0)
        except BaseException:
            pass


@pytest.mark.parametrize("name", ["a b", "[c]::"])
def test_waits_on_patched(name):
    if PATCHED:
        asyncio.run(swallow())


def test_after_that():
    pass
"""


@pytest.mark.network
def test_a_whole_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        VERSION: f'__version__ = "{NEWEST_VERIFIED}"\n',
        "livekit-agents/livekit/agents/__init__.py": "raise ImportError('the checkout')\n",
        "pyproject.toml": '[dependency-groups]\ndev = ["pytest>=8"]\n',
        "tests/__init__.py": "",
        "tests/test_realtime_things.py": TESTS,
        "tests/test_realtime_broken.py": "import no_such_module\n",
    }
    put(tmp_path, {path: text.encode() for path, text in files.items()})
    before = sorted(tmp_path.rglob("*"))
    assert main([str(tmp_path), "--scope", "lock", "--limit", "10"]) == 1
    said = capsys.readouterr().out
    assert f"{NEWEST_VERIFIED}: 1 not collected, 6 passed\n" in said
    assert ": 1 failed, 1 not collected, 3 passed, 2 timed out\n" in said
    assert "test_fails_on_patched" in said and "AssertionError: it is patched" in said
    assert "test_waits_on_patched[a b]" in said and "test_waits_on_patched[[c]::]" in said
    assert "3 outcomes differ." in said
    assert sorted(tmp_path.rglob("*")) == before
