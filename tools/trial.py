"""Tries a wrong version of the patch: where it is unpacked, and what could catch it there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from ctxlock.environments.installer import Installer
from ctxlock.release import NEWEST_VERIFIED, Scope
from ctxlock.wheels.overlay import build_overlay
from ctxlock.wheels.upstream import read_installed

__all__ = ["PYTEST", "ROOT", "regressions", "run", "schedules", "unpack"]

ROOT = Path(__file__).resolve().parent.parent

PYTEST = ("pytest", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider")


def unpack(scope: Scope, scratch: Path, trees: Sequence[Path]) -> None:
    """Builds the newest verified livekit-agents in an empty folder; unpacks it into each tree."""
    Installer().fetch(str(NEWEST_VERIFIED), scratch / "stock")
    wheel = build_overlay(read_installed([str(scratch / "stock")]), scratch, scope).path
    for tree in trees:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tree)


def regressions(*left_out: str) -> list[str]:
    """The files of the regressions whose name has none of these words."""
    found = sorted((ROOT / "tests").glob("test_realtime_*.py"))
    return [f"tests/{file.name}" for file in found if not any(w in file.name for w in left_out)]


def run(
    paths: Sequence[Path], *module: str, limit: float | None = None
) -> subprocess.CompletedProcess[str] | None:
    """Runs a module with these folders in front; None if it takes more seconds than the limit."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-m", *module]
    try:
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return None


def schedules(name: str, explored: subprocess.CompletedProcess[str]) -> tuple[int, int]:
    """How many schedules the explorer ran on what has that name, and how many were violated.

    Raises:
        RuntimeError: It could not run.
    """
    if explored.returncode != 0:
        raise RuntimeError(f"{name}: the explorer could not run:\n{explored.stderr}")
    groups = json.loads(explored.stdout)["groups"]
    orders = [counts for group in groups for counts in group["orders"].values()]
    return sum(counts[0] for counts in orders), sum(counts[1] for counts in orders)
