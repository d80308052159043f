"""The command `ctxlock audit`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ..auditing.audit import Audit, audit_path, audit_python, audit_wheel
from ..reports.sites import site_table
from ..target import ADDED, TARGET
from .console import Exit, given, out

__all__ = ["audit"]


def audit(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH",
            callback=given,
            help="An agent_activity.py, or a folder that contains livekit/agents.",
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            metavar="EXE", callback=given, help="Audit what this Python interpreter imports."
        ),
    ] = None,
    wheel: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Audit a livekit-agents wheel.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, sorted, versioned.")] = False,
) -> None:
    """List the places in a livekit-agents that read or update the model's conversation.

    A place is guarded if it holds the lock, and bare if it does not: there, overlapping updates
    lose items. It is read-only if it updates nothing. It is unchecked if it holds the lock, but
    fails when a handoff takes its session during the wait. The audit also names the scope, and
    which parts of the scope full the file has. Without arguments it reads the livekit-agents of the
    environment that ctxlock runs in. It imports and changes nothing.

    If there is a dist-info folder, the changed file and the added file are compared with the record
    in it, ctxlock.json. The audit names each file that differs, is missing, or is one too many. It
    does not compare the other files; `ctxlock check` does, for a wheel.

    Exit codes: 0 every place is guarded and the files are as built, 1 a place is bare or unchecked,
    or a file is not as built, 2 wrong usage, 3 it could not be found out.
    """
    if sum(given is not None for given in (path, python, wheel)) > 1:
        raise typer.BadParameter("give one of PATH, --python and --wheel")
    if path is not None:
        found = audit_path(Path(path))
    elif wheel is not None:
        found = audit_wheel(wheel)
    else:
        found = audit_python(python)
    if json:
        print(found.as_json())
    else:
        _print_audit(found, of_a_wheel=wheel is not None)
    raise typer.Exit(Exit.HARM if found.harmed else Exit.WELL)


def _print_audit(found: Audit, of_a_wheel: bool) -> None:
    states = {difference.path: difference.state for difference in found.differences}
    if found.version is not None:
        out.print(f"livekit-agents {found.version}", highlight=False)
    out.print(found.file, style="dim", soft_wrap=True, highlight=False)
    if found.not_understood is None:
        out.print(site_table(found.sites))
    elif states.get(TARGET) != "missing":  # that is said below
        out.print(found.not_understood, soft_wrap=True, highlight=False, markup=False)
    if found.scope is not None:
        none = "the lock alone" if found.scope == "lock" else "the file has nothing of it"
        parts = ", ".join(found.parts) or none
        if found.parts and ADDED in states:
            parts += ", if the added file were as built"
        out.print(f"Scope {found.scope}: {parts}.", highlight=False)
        if found.compared and not found.differences:
            out.print("The files are as built: ctxlock.json says the same.", highlight=False)
        elif not found.compared and not found.differences:
            out.print("Not compared: there is no dist-info folder with a ctxlock.json beside it.")
    for path, state in states.items():
        out.print(f"{path}: {state}", style="red", soft_wrap=True)
    _print_remedy(states, of_a_wheel)
    if found.bare:
        out.print(
            f"{found.bare} bare: overlapping updates lose items there.",
            style="red",
        )
    if found.unchecked:
        out.print(
            f"{found.unchecked} unchecked: fails if a handoff comes during its wait.", style="red"
        )
    if found.bare or found.unchecked:
        out.print(
            "To patch it, in a clone of ctxlock: `pip install ./livekit-agents`, also after `uv`."
        )
    elif not found.harmed:
        out.print(
            "Every place that updates the conversation is guarded: it holds the lock.",
            style="green",
        )


def _print_remedy(states: Mapping[str, str], of_a_wheel: bool) -> None:
    """Says what to do about files in these states; nothing if there are none."""
    if not states:
        return
    out.print("The files are not as built.")
    if of_a_wheel:
        out.print("Build or fetch the wheel again.")
        return
    for path, state in states.items():
        if state == "one too many":
            out.print(f"Remove {path}.", soft_wrap=True, highlight=False)
    if set(states.values()) != {"one too many"}:
        out.print(
            "Install it again: with pip's `--force-reinstall --no-deps`, or with uv's "
            "`--reinstall-package livekit-agents`.",
            highlight=False,
        )
