"""Supports a new release as far as that goes by itself, and says what is left for a person.

``python tools/new_release.py 1.8.10``; docs/new-release.md walks through it. What it writes, it
leaves uncommitted.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import sweep
from packaging.version import Version

from ctxlock import PATCH_NUMBER, verified
from ctxlock.errors import CtxlockError
from ctxlock.release import parse
from ctxlock.verified import LAST_WITHOUT_LOCK, NEWEST

__all__ = ["left", "main", "moved", "steps", "wanted", "with_release"]

ROOT = Path(__file__).resolve().parent.parent
FILE = Path(verified.__file__)

GENERATED = "<!-- Generated"
"""How a page begins that a session writes."""

MEASURED = {
    "README.md": "uv run ctxlock verify",
    "benchmarks/README.md": "uv run nox -s benchmarks",
    "docs/doctor.md": 'uv run nox -s "doctor({})"',
    "docs/explorer.md": "uv run nox -s explore",
    "docs/installers.md": "uv run nox -s installers",
    "docs/integrity.md": 'uv run nox -s "full({0})" "benchmarks({0}-full)"',
    "docs/providers.md": "uv run nox -s provider_page",
}
"""The pages that say what was measured on the newest release, and what measures it again."""


def wanted(text: str, newest: str = NEWEST) -> str:
    """The release to support: a final one, and the newest that is verified or a later one.

    Raises:
        CtxlockError: `text` is none.
    """
    release = parse(text, "The argument")
    if release.is_prerelease:
        raise CtxlockError(f"{release} is a pre-release; give the number of a final release.")
    if release < Version(newest):
        raise CtxlockError(
            f"{release} is earlier than {newest}, the newest that is verified; to verify the last "
            f"release of an older minor, put it into {FILE.name} by hand."
        )
    return str(release)


def with_release(text: str, former: str, release: str) -> str:
    """The text of `verified.py`, with `release` as the newest instead of `former`.

    `former` goes if it is of the same minor, and is not the last one without upstream's own lock.

    Raises:
        CtxlockError: `former` has no line there of the usual form.
    """
    line, new = (f'    "{number}": Settings(),\n' for number in (former, release))
    if text.count(line) != 1:
        raise CtxlockError(f"{FILE.name} was expected to have one line {line.strip()!r}.")
    same_minor = Version(former).release[:2] == Version(release).release[:2]
    kept = "" if same_minor and former != LAST_WITHOUT_LOCK else line
    return text.replace(line, kept + new)


def moved(page: str, former: str, release: str) -> str:
    """A page whose examples build, install and pin `release` instead of `former`.

    A paragraph that asks for `former` by its number stays, or that tells of an earlier patch of it;
    so does a generated page.
    """
    if page.startswith(GENERATED):
        return page
    number = re.escape(former)
    example = re.compile(rf"(?<![\d.]){number}(?=\+ctxlock\.{PATCH_NUMBER}\.)|(?<=[=>]=){number}\b")
    meant = re.compile(rf"upstream[ =]{number}\b|{number}\+ctxlock\.(?!{PATCH_NUMBER}\.)")
    return "\n\n".join(
        part if meant.search(part) else example.sub(release, part) for part in page.split("\n\n")
    )


def steps(release: str) -> dict[str, str]:
    """What to do once the release is the newest: what each step is, and its command.

    With `--no-sync`, as `uv run` stops at pins that do not fit, which the first step mends.
    """
    nox = "uv run --no-sync nox -s"
    return {
        "the pins": f"{nox} pin -- livekit-plugins-openai",
        "the environment": "uv sync",
        "the table of releases": f"{nox} releases -- {release}",
        "the page of installers": "uv run --no-sync python tests/installer_page.py",
        "ruff and mypy": f"{nox} lint types patched_types",
        "the tests, on the patched release": "uv run --no-sync pytest -q",
        "the regressions on stock": f'{nox} "minors({release})"',
        "the regressions and schedules with the scope full": f'{nox} "full({release})"',
        "the lab: every provider": f"{nox} providers",
        "the lab: odd models, and where nothing overlaps": f"{nox} sequential",
    }


def left(
    release: str, former: str, failed: Iterable[str], pages: Mapping[str, str]
) -> Iterator[str]:
    """The lines that say what is left for a person.

    Args:
        release: The newest one now.
        former: The one before, or the same if all of it is committed.
        failed: The commands that failed.
        pages: The pages for readers, by path, as they are now.
    """
    if failed := [*failed]:
        yield "These failed. Mend what it is, and run this again:"
        yield from (f"    {command}" for command in failed)
    else:
        yield "Every step passed."
    yield "Nothing is committed. `git diff` shows what was written, and `git restore .` undoes it."
    yield "Left for you:"
    named = re.compile(rf"(?<![\d.]){re.escape(former)}(?!\.?\d)")
    for page, text in pages.items() if former != release else ():
        if text.startswith(GENERATED) and page not in MEASURED:
            continue
        lines = [str(n) for n, line in enumerate(text.splitlines(), 1) if named.search(line)]
        if lines:
            yield f"  - {page} names {former} in lines {', '.join(lines)}"
            if again := MEASURED.get(page):
                yield f"    it says what was measured: `{again.format(release)}`"
    yield "  - CHANGELOG.md, under Changed:"
    yield f"    - livekit-agents {release} is verified; a build takes it by default."
    yield "  - what else CI runs: `uv run nox`"
    yield "  - the commit"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 2 if it changed nothing, 1 if a step failed."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        if len(arguments) != 1:
            raise CtxlockError("Give the number of one release, such as 1.8.10.")
        release = wanted(arguments[0])
        if release != NEWEST:
            _write(release)
    except CtxlockError as e:
        print(f"new_release: {e}\nnew_release: Nothing was changed.", file=sys.stderr)
        return 2
    failed = [command for what, command in steps(release).items() if not _run(what, command)]
    print("", *left(release, _committed(), failed, _pages()), sep="\n")
    return 1 if failed else 0


def _write(release: str) -> None:
    """Makes it the newest one, in the file of the verified releases and in the pages' examples."""
    status = ("git", "status", "--porcelain")
    if changed := subprocess.run(status, cwd=ROOT, capture_output=True, text=True).stdout.split():
        raise CtxlockError(f"{' '.join(changed)}: commit or stash that first, to see what is new.")
    with tempfile.TemporaryDirectory(prefix="ctxlock-") as scratch:
        sweep.examine(sweep.fetch(Version(release), Path(scratch)))
    text = with_release(FILE.read_text(encoding="utf-8"), NEWEST, release)
    FILE.write_text(text, encoding="utf-8")
    for name, page in _pages().items():
        (ROOT / name).write_text(moved(page, NEWEST, release), encoding="utf-8")


def _committed() -> str:
    """The newest release in the file as it is committed."""
    command = ("git", "show", f"HEAD:{FILE.relative_to(ROOT).as_posix()}")
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    newest: str = re.findall(r'^    "(.+)": Settings\(', text, re.MULTILINE)[-1]
    return newest


def _pages() -> dict[str, str]:
    """The pages for readers, by path; not the changelog."""
    files = [ROOT / "README.md", ROOT / "benchmarks/README.md", *sorted(ROOT.glob("docs/*.md"))]
    return {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}


def _run(what: str, command: str) -> bool:
    """Does a step; returns whether it passed, and says how long it took."""
    print(f"\n== {what}: {command}", flush=True)
    began = time.monotonic()
    passed = subprocess.run(shlex.split(command), cwd=ROOT).returncode == 0
    minutes = (time.monotonic() - began) / 60
    print(f"== {what}: {'passed' if passed else 'FAILED'}, {minutes:.1f} minutes", flush=True)
    return passed


if __name__ == "__main__":
    sys.exit(main())
