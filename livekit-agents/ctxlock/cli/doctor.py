"""The command `ctxlock doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .console import Exit, Quiet, out, step

if TYPE_CHECKING:
    from ..doctor.examination import Examination

__all__ = ["doctor"]


def doctor(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG...",
            help="Log files, oldest first, .gz too; - is standard input.",
            show_default=False,
        ),
    ],
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Tell explained deletions, and all else of each call.",
        ),
    ] = False,
    with_text: Annotated[
        bool, typer.Option("--with-text", help="Show what the lost items say. It is personal.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, sorted, versioned.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page with a diagram of each loss, too."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Tell from a log of your calls which items their conversations have lost, and how.

    It reads what the OpenAI-compatible engine (OpenAI, Azure OpenAI, xAI) logs if LK_OPENAI_DEBUG=1
    is in the agent's environment and its log level is DEBUG: each event but sound. JSON lines, the
    coloured lines of `dev` and `console`, and either behind what `docker logs` or a log drain adds.

    Each deletion is graded, with reasons and line numbers. Strong evidence: it came too soon for
    anybody to have meant it. Weak: a part of that. Explained: a trim, a summary, a handoff,
    cleanup, which --details tells. docs/doctor.md has what was measured, and what would fool it.

    Only ids, types, roles, tool names and lengths are printed, unless --with-text is given.

    Exit codes: 0 nothing lost by strong evidence, 1 something lost, 2 wrong usage, 3 a file cannot
    be read, or none holds such events.
    """
    if html is not None:
        from ..wheels.wheel import check_writable

        if any(html.resolve() == Path(log).resolve() for log in logs):
            raise typer.BadParameter(f"{html} is a log that is to be read", param_hint="--html")
        check_writable(html)
    from ..doctor.examination import examine

    with step("Reading the log") as tell:
        found = examine(logs, with_text=with_text, progress=tell)
    if html is not None:
        from ..doctor.drawing import page
        from ..wheels.wheel import write_atomically

        content = page(found).encode()
        write_atomically(html, lambda stream: stream.writelines([content]))
    if json:
        from ..doctor.report import as_json

        print(as_json(found))
    else:
        _print(found, details)
        if html is not None:
            _say(f"The diagrams are in {html}.")
    raise typer.Exit(Exit.HARM if found.lost else Exit.WELL)


def _print(found: Examination, details: bool) -> None:
    from ..doctor.report import advice, call_lines, meaning, remarks, sentences

    for sentence in sentences(found):
        _say(sentence, "red" if found.lost else "green")
    for remark in remarks(found):
        _say(remark, "dim")
    for call in found.calls:
        lines = list(call_lines(found, call, details=details))
        if lines:
            out.print()
            for line in lines:
                _say(line)
    if words := [*meaning(found), *advice(found)]:
        out.print()
        for word in words:
            _say(word, "dim")


def _say(text: str, style: str | None = None) -> None:
    out.print(text, style=style, soft_wrap=True, highlight=False, markup=False)
