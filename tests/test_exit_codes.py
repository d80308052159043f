"""What the command line exits with when something happens that nobody foresaw."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli import says

from ctxlock.cli import app as command
from ctxlock.environments.runner import read_report
from ctxlock.errors import CtxlockError

COMMAND = [sys.executable, "-m", "ctxlock"]


def test_unforeseen(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr(command, "app", fail)
    said = says(
        3,
    ).err
    assert said == (
        "ctxlock: This error was not expected: ZeroDivisionError: by zero; "
        "set CTXLOCK_TRACEBACK=1 to see where it arose.\n"
    )
    monkeypatch.setenv("CTXLOCK_TRACEBACK", "1")
    assert (
        "Traceback (most recent call last)"
        in says(
            3,
        ).err
    )


@pytest.mark.parametrize("arguments", [["audit", "--json"], ["audit"], ["--help"]], ids=" ".join)
def test_a_reader_that_has_gone(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=writing, stderr=subprocess.PIPE, text=True
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "audit", "--json"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 3
    assert "No space left on device" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("printed", ["", "hello\n{}", "[1]"])
def test_what_is_no_report(printed: str) -> None:
    with pytest.raises(CtxlockError, match="printed something other than their report"):
        read_report(printed)
