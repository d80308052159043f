"""Runs the races in an environment of the user's, which stays as it is."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from ..errors import CtxlockError
from ..release import OLDEST, Scope, public
from ..reports.comparison import Comparison, Races
from ..wheels.overlay import build_overlay
from ..wheels.upstream import read_installed
from .interpreter import Environment, inspect
from .temporary import Announce, Unavailable, run_races

__all__ = ["examine"]

_OLDEST_PYTHON = (3, 10)


def examine(python: str, scratch: Path, step: Announce, scope: Scope) -> Comparison:
    """Runs the races on the livekit-agents of `python`, and on a patched one in front of it.

    No index is asked, and nothing is written outside `scratch`. The patched one is made from the
    installed files; where that cannot be, the remark says why, and theirs runs alone.

    Args:
        python: The interpreter, or the folder of its virtual environment.
        scratch: An empty folder.
        step: Shows progress.
        scope: How much the patched one changes.

    Raises:
        CtxlockError: It is no such interpreter, its livekit-agents is too old, or the races could
            not run.
    """
    found = inspect(python)
    _check(found)
    columns, remark = _run("yours", found, scratch, step, [])
    try:
        overlay = _patched(found, scratch, step, scope)
    except CtxlockError as e:
        return Comparison(tuple(columns), f"{e} {remark}".rstrip())
    patched, _ = _run("patched", found, scratch, step, [str(overlay)])
    return Comparison((*columns, *patched), remark)


def _check(found: Environment) -> None:
    if found.minor < _OLDEST_PYTHON:
        raise CtxlockError(
            f"{found.python} is Python {found.minor[0]}.{found.minor[1]}, and the races need 3.10 "
            "or later; `ctxlock audit --python` reads what is installed there."
        )
    if found.version is None:
        raise CtxlockError(
            f"{found.python} imports livekit-agents from {found.folder}, which has no metadata "
            "that names its version; install it as a package."
        )
    if public(found.version) < OLDEST:
        raise CtxlockError(
            f"{found.python} has livekit-agents {found.version}, which is too old; {OLDEST} and "
            "later can be verified."
        )


def _patched(found: Environment, scratch: Path, step: Announce, scope: Scope) -> Path:
    """Unpacks a patched wheel of what is installed."""
    if "+ctxlock." in str(found.version):
        raise CtxlockError(f"livekit-agents {found.version} is patched already, and runs alone.")
    if found.root is None or not found.folder.samefile(found.root / "livekit" / "agents"):
        raise CtxlockError(
            f"No patched copy runs beside it: Python imports it from {found.folder}, not from "
            "where it is installed."
        )
    folder = scratch / "patched"
    with step("Patching a copy of it"):
        try:
            wheel = build_overlay(read_installed([str(found.root)]), scratch, scope).path
        except CtxlockError as e:
            raise CtxlockError(f"No patched copy runs beside it. {e}") from None
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder


def _run(
    column: str, found: Environment, scratch: Path, step: Announce, front: list[str]
) -> tuple[list[Races], str]:
    """Runs the races, and through the plugin; or says why not through that."""
    # what their own PYTHONPATH adds belongs to the environment; `livekit` is a namespace, so that
    # a patched livekit.agents in front leaves livekit.rtc and the plugins where they are
    theirs = os.environ.get("PYTHONPATH", "")
    paths = [*front, *(os.path.abspath(p) for p in theirs.split(os.pathsep) if p)]
    races = []
    whose = f"{'your' if column == 'yours' else 'the patched'} livekit-agents"
    for plugin in (False, True):
        how = " through livekit-plugins-openai, if it is there" if plugin else ""
        with step(f"Running the races on {whose} {found.version}{how}") as progress:
            try:
                races.append(
                    run_races(
                        *(column, found.python, scratch / "races", progress),
                        paths=paths,
                        through_plugin=plugin,
                    )
                )
            except Unavailable as e:
                return races, f"No races ran through the plugin: {e}"
    return races, ""
