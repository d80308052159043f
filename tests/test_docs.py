"""What the documentation tells its readers to type can be typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from ctxlock.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"(<!-- not run: [^\n]+ -->\n)?```sh\n(.*?)```", re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")
COMMANDS = getattr(get_command(app), "commands")  # noqa: B009  # typer has a click of its own
SESSIONS = set(re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text(), re.MULTILINE))


def by_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[str]:
    """The blocks of a page that are to be run."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [commands for skipped, commands in found if not skipped]


def spoken(page: Path) -> Iterator[str]:
    """The commands in a page: those in its text, and the lines of its blocks."""
    text = page.read_text(encoding="utf-8")
    for _, commands in BLOCK.findall(text):
        yield from commands.splitlines()
    for code in re.findall(r"`([^`\n]+)`", FENCE.sub("", text)):
        yield code.replace("\\|", "|")


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_commands_exist(page: Path) -> None:
    for line in spoken(page):
        if found := re.match(r"(?:uv run |\S+ctxlock )?ctxlock ([a-z]+)(.*)", line):
            name, rest = found.groups()
            assert name in COMMANDS, line
            known = {option for p in COMMANDS[name].params for option in p.opts} | {"--help"}
            assert set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", rest)) <= known, line
        if found := re.match(r"uv run nox (?:-s|--session) ([^-]+)", line):
            sessions = {word.strip('"').partition("(")[0] for word in found[1].split()}
            assert sessions <= SESSIONS, line


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_table_of_races_is_that_of_verify() -> None:
    from ctxlock.races.scenarios import SCENARIOS

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    _, _, table = text.partition("\n| race |")
    rows = table.partition("\n\n")[0].splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == [race.name for race in SCENARIOS]
    other = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
    assert f"runs {len(rows)} races" in text and f"runs {len(rows)} races" in other


@pytest.mark.network
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=by_name)
def test_blocks_run(page: Path, tmp_path: Path) -> None:
    (tmp_path / "ctxlock").symlink_to(ROOT)
    environment = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    for commands in blocks(page):
        command = ["bash", "-euo", "pipefail", "-c", commands]
        run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert run.returncode == 0, f"{commands}\n{run.stdout}{run.stderr}"


def test_the_race_is_written_as_the_page_shows_it() -> None:
    page = (ROOT / "docs/adding-a-race.md").read_text(encoding="utf-8")
    races = (ROOT / "livekit-agents/ctxlock/races/turn_races.py").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert shown in races
