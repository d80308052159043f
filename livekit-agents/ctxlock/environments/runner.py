"""Runs a module of the races with another interpreter."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import CtxlockError

__all__ = ["read_report", "run_module"]


def run_module(
    python: str,
    scratch: Path,
    command: Sequence[str],
    on_line: Callable[[str], None],
    paths: Sequence[str] = (),
) -> str:
    """Runs a module of the races on the livekit-agents that `python` imports.

    Args:
        python: An interpreter that has livekit-agents; this tool need not be installed there.
        scratch: A folder for a copy of the races, the first thing on the module path.
        command: The module and its arguments.
        on_line: Called with each line of progress.
        paths: What else to put on the module path, in front of the interpreter's own.

    Returns:
        What it printed.

    Raises:
        CtxlockError: It could not run.
    """
    package = Path(__file__).parents[1]
    copy = scratch / package.name
    if not copy.exists():
        ignored = shutil.ignore_patterns("__pycache__")
        for room in ("races", "explorer"):
            shutil.copytree(package / room, copy / room, ignore=ignored)
        for module in ("__init__.py", "roles.py"):
            shutil.copyfile(package / module, copy / module)
    said: list[str] = []
    # what it prints goes to a file, as a full pipe would stop it while its progress is read
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as printed,
        subprocess.Popen(
            [python, "-m", *command],
            cwd=scratch,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(scratch), *paths]),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        ) as process,
    ):
        assert process.stderr is not None
        try:
            for line in process.stderr:
                said.append(line.rstrip())
                on_line(line.rstrip())
            process.wait()
        except BaseException:
            process.kill()  # else leaving this block would wait for its end
            raise
        printed.seek(0)
        text = printed.read()
    if process.returncode != 0:
        last = next((line for line in reversed(said) if line), "they said nothing")
        raise CtxlockError(
            f"The races could not run with {python}: {last.rstrip('.')}; check that it can "
            "import livekit.agents, and reinstall that if it cannot."
        )
    return text


def read_report(printed: str) -> dict[str, Any]:
    """Reads what a module of the races printed.

    Raises:
        CtxlockError: It is no report: something else in that environment prints, too.
    """
    try:
        report = json.loads(printed)
    except ValueError:
        report = None
    if not isinstance(report, dict):
        first = printed.strip().partition("\n")[0][:80] or "nothing"
        raise CtxlockError(
            "The races printed something other than their report. It begins with: "
            f"{first}; make sure that nothing in that environment prints when Python starts."
        )
    return report
