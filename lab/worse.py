"""Makes the patch worse by hand, and sees that the lab says so: `python -m lab.worse`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable

import typer

from . import providers
from .__main__ import compare
from .environments import NEWEST, TARGET, CannotRun, Laboratory, Side, prepare, scratch_folder
from .options import Python, Scratch, exits

__all__ = ["app"]

PUSH = "await self._rt_session.update_chat_ctx(chat_ctx)"
START = re.compile(r"^( +)(await self\._rt_session\._update_session\()", re.MULTILINE)


def late(source: str) -> str:
    """Each session starts one step of the loop later."""
    return START.sub(r"\1await asyncio.sleep(0)\n\1\2", source)


def lost(source: str) -> str:
    """The last tool output of each generation is not pushed."""
    head, _, tail = source.rpartition(PUSH)
    return head + PUSH.replace("chat_ctx)", "llm.ChatContext(chat_ctx.items[:-1]))") + tail


def apart(source: str) -> str:
    """Each push of tool outputs is made by a task of its own."""
    head, _, tail = source.rpartition(PUSH)
    return head + "await asyncio.create_task(" + PUSH.removeprefix("await ") + ")" + tail


WORSE: dict[str, tuple[Callable[[str], str], str, str]] = {
    "late": (late, "google", "greeting"),
    "lost": (lost, "openai", "tool after typed turn"),
    "apart": (apart, "openai", "tool after typed turn"),
}
"""By name: the change, and a provider and a step that must differ for it."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Exit codes: 0 each was seen, 1 one was not, 3 it cannot run.")
def main(scratch: Scratch = None, python: Python = None) -> None:
    """Makes the scope lock worse in three ways, and runs a step that must differ for each."""
    missed = 0
    with exits(CannotRun), scratch_folder(scratch) as folder:
        loaded = map(providers.load, providers.names())  # as the lab itself, to share
        needs = [need for provider in loaded for need in provider.needs(NEWEST)]
        lab = prepare(NEWEST, ["lock"], needs, folder, python=python)
        for name, (change, named, step) in WORSE.items():
            worse = worsened(lab.sides["lock"], name, change)
            sides = {"stock": lab.sides["stock"], name: worse}
            verdicts = compare(Laboratory(lab.python, sides), [named], [step], 0, 2)
            verdict = verdicts[name, named, step]
            missed += verdict.kind not in ("differs", "inside")
            print(f"{name}, {named}, {step}: {verdict.kind}, {len(verdict.lines)} lines")
    raise typer.Exit(1 if missed else 0)


def worsened(side: Side, name: str, change: Callable[[str], str]) -> Side:
    """A copy of a side with a change made to its patched file.

    Raises:
        CannotRun: The change finds nothing to change.
    """
    folder = side.folder.with_name(f"{name}-{side.folder.name}")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(side.folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / TARGET
    before = file.read_text(encoding="utf-8")
    if (after := change(before)) == before:
        raise CannotRun(f"The change {name} finds nothing to change in {file}; mend lab/worse.py.")
    file.write_text(after, encoding="utf-8")
    return Side(name, folder, side.version)


if __name__ == "__main__":
    app()
