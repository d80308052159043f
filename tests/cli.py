"""Runs the command line in this process."""

from __future__ import annotations

import sys
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
