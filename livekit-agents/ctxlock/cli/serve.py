"""The command `ctxlock serve`."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import math
from pathlib import Path
from typing import Annotated

import typer

from ..errors import CtxlockError
from .console import err

__all__ = ["serve"]


def serve(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 is any free one.")
    ] = 8765,
    rules: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What the model says and calls, as TOML.")
    ] = None,
    ack_delay: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="Acknowledge each update after this delay."),
    ] = 0,
    hold_tool_outputs: Annotated[
        bool,
        typer.Option(
            "--hold-tool-outputs",
            help="Hold the acknowledgement of each tool output until you press Enter, "
            "the user's next text arrives, or 4 s have passed.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Run a scripted realtime model for your own agent to talk to, offline.

    It speaks the protocol of OpenAI's realtime API. It prints, live, what the model's conversation
    holds, and each tool output that is deleted there and not replaced. It needs the extra `serve`.
    docs/serve.md describes the rules.

    Exit codes: 0 ended by Ctrl-C or SIGTERM, 2 wrong usage, 3 it could not run.
    """
    if not math.isfinite(ack_delay):
        raise typer.BadParameter("--ack-delay is not a number of seconds")
    if not host:
        raise typer.BadParameter("--host is empty")
    try:
        from ..serve.acknowledgements import Patience
        from ..serve.report import Report
        from ..serve.rules import read_rules
        from ..serve.run import run
        from ..serve.scripted import Lobby
    except ModuleNotFoundError as e:
        raise CtxlockError(
            f"`ctxlock serve` needs {e.name}, which is not installed: install the extra `serve`, "
            "for example with `uv tool install '.[serve]'` in a clone of this project."
        ) from None
    if not _is_loopback(host):
        warning = f"Anybody who reaches {host} can talk to this server: it asks for no key."
        err.print(f"ctxlock: {warning}", style="yellow", soft_wrap=True, highlight=False)
    report = Report(as_json=json)
    patience = Patience(ack_delay, hold_tool_outputs)
    lobby = Lobby([] if rules is None else read_rules(rules), patience, report)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run(lobby, report, host, port, interactive=hold_tool_outputs))
    text = f"Ended. Connections: {report.connections}; tool outputs deleted: {report.lost}."
    report.tell("ended", text, connections=report.connections, lost=report.lost)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
