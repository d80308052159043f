"""Sweeps releases: fetches each, patches it, has the result judged, and records what was found.

``python tools/sweep.py`` regenerates the table of releases; ``--check`` compares with it instead.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import TypeVar

from packaging.version import Version
from release_table import PAGE, TABLE, Release, SiteStates, dump, load, render
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ctxlock.analysis.sites import Site, find_sites
from ctxlock.analysis.without_calls import parts_of
from ctxlock.environments.installer import Installer
from ctxlock.errors import CtxlockError, NotUnderstood
from ctxlock.patching.patch import Patched, patch_source
from ctxlock.release import Scope, parse
from ctxlock.target import ADDED, TARGET
from ctxlock.wheels.upstream import read_installed

__all__ = ["examine", "fetch", "main"]

T = TypeVar("T")
Key = TypeVar("Key")


def fetch(release: Version, scratch: Path) -> bytes:
    """Fetches a stock release into a folder in `scratch`; returns its `agent_activity.py`.

    Raises:
        CtxlockError: It cannot be had, or is not what its RECORD says.
    """
    folder = scratch / str(release)
    Installer().fetch(str(release), folder)
    return read_installed([str(folder)]).target


def examine(source: bytes, filename: str = TARGET) -> Release:
    """Patches a stock `agent_activity.py` in both scopes and says what there was to find.

    That the scope full refuses it is a finding.

    Raises:
        CtxlockError: The scope lock refuses it, a result does not compile, or the scope full lacks
            its file or leaves a site otherwise than the lock does.
    """
    before = find_sites(source, filename)
    locked = _patch(source, filename, "lock")
    sites = tuple(
        SiteStates(was.role, _state(was), _state(now))
        for was, now in zip(before, locked.sites, strict=True)
    )
    sha256 = hashlib.sha256(source).hexdigest()
    try:
        full = _patch(source, filename, "full")
    except NotUnderstood as e:
        return Release(sha256, sites, refused=e.reason)
    if ADDED not in full.added:
        raise CtxlockError(f"{filename}: the scope full adds no {ADDED}.")
    if [(site.role, _state(site)) for site in full.sites] != [(s.role, s.after) for s in sites]:
        raise CtxlockError(f"{filename}: the scope full leaves other sites than the scope lock.")
    return Release(sha256, sites, parts_of(full.source))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Regenerates the table of releases.")
    parser.add_argument("--check", action="store_true", help="compare with the table, write none")
    parser.add_argument(
        "release", nargs="*", help="sweep these alone, new ones included; default: all in the table"
    )
    given = parser.parse_args(argv)
    try:
        return _sweep([parse(text, "The argument") for text in given.release], given.check)
    except CtxlockError as e:
        print(f"sweep: {e}", file=sys.stderr)
        return 3


def _sweep(wanted: Sequence[Version], check: bool) -> int:
    table = load(TABLE.read_text(encoding="utf-8"))
    releases = sorted(wanted or table)
    with _progress() as progress, tempfile.TemporaryDirectory(prefix="ctxlock-") as scratch:
        workers = os.cpu_count() or 1
        with ThreadPoolExecutor(workers) as threads:
            fetched = partial(fetch, scratch=Path(scratch))
            sources = _run(threads, fetched, releases, progress, "fetched")
        with ProcessPoolExecutor(workers) as processes:  # what is the same is patched once
            found = _run(processes, examine, sorted({*sources.values()}), progress, "patched")
    swept = {release: found[source] for release, source in sources.items()}
    print(f"{len(releases)} releases swept, {len(found)} different contents.")
    if not check:
        table.update(swept)
        TABLE.write_text(dump(table), encoding="utf-8", newline="\n")
        PAGE.write_text(render(table), encoding="utf-8", newline="\n")
        return 0
    different = [str(release) for release in releases if table.get(release) != swept[release]]
    if different:
        print(f"These are not what the table says: {', '.join(different)}.", file=sys.stderr)
    return 1 if different else 0


def _patch(source: bytes, filename: str, scope: Scope) -> Patched:
    """Patches it, and has what comes of it compiled."""
    patched = patch_source(source, filename, scope)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # as old as the release is
            for path, content in {filename: patched.source, **patched.added}.items():
                compile(content, path, "exec", dont_inherit=True)
    except SyntaxError as e:
        raise CtxlockError(f"{filename} does not compile once it is patched: {e}.") from None
    return patched


def _state(site: Site) -> str:
    return "unchecked" if site.rechecked is False else site.state


def _run(
    executor: Executor,
    work: Callable[[Key], T],
    keys: Collection[Key],
    progress: Progress,
    what: str,
) -> dict[Key, T]:
    """Does the work for each key; the first that fails ends it all."""
    futures = {executor.submit(work, key): key for key in keys}
    task = progress.add_task(what, total=len(futures))
    done: dict[Key, T] = {}
    try:
        for future in as_completed(futures):
            done[futures[future]] = future.result()
            progress.advance(task)
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    return {key: done[key] for key in keys}


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))


if __name__ == "__main__":
    sys.exit(main())
