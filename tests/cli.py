"""Runs the command line in this process."""

from __future__ import annotations

import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

from ctxlock.__main__ import main


def run(*arguments: str | Path) -> int:
    """Runs `ctxlock` with `arguments` and returns its exit code."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as left:
        patch.setattr(sys, "argv", ["ctxlock", *map(str, arguments)])
        main()
    assert isinstance(left.value.code, int)
    return left.value.code


@dataclass(frozen=True)
class Said:
    """What a command printed."""

    out: str
    err: str


def says(code: int, *arguments: str | Path) -> Said:
    """Runs `ctxlock` with `arguments`, which must end with that exit code; what it printed."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        left = run(*arguments)
    assert left == code, err.getvalue()
    return Said(out.getvalue(), err.getvalue())
