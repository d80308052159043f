"""Runs the server until it is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable

from ..errors import CtxlockError
from ..races.loopback.server import listening
from .report import Report
from .scripted import Lobby

__all__ = ["run"]


async def run(lobby: Lobby, report: Report, host: str, port: int, *, interactive: bool) -> None:
    """Serves until an interrupt or a SIGTERM.

    Args:
        lobby: Where clients get their models.
        report: Where to tell what happens.
        host: The address to listen on.
        port: The port; 0 is any free one.
        interactive: Whether a line on stdin sends what is kept back.

    Raises:
        CtxlockError: The address cannot be listened on.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # on Windows an interrupt raises instead
            loop.add_signal_handler(name, stop.set)
    async with contextlib.AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(listening(lobby, host, port))
        except OSError as e:
            raise CtxlockError(
                f"The server cannot listen on {host}, port {port}: {e.strerror or e}. "
                "Give a --port that is free (0 picks one), and a --host of this machine."
            ) from None
        line = f'openai.realtime.RealtimeModel(base_url="{url}", api_key="unused")'
        text = f"Listening on {url}. Give your agent this model:\n  {line}"
        text += f"\nOr run it unchanged with OPENAI_BASE_URL={url} and OPENAI_API_KEY=unused."
        report.tell("listening", text, base_url=url, model=line)
        if interactive:
            _on_each_line(lambda: loop.call_soon_threadsafe(lobby.release, "you asked for it"))
        await stop.wait()


def _on_each_line(act: Callable[[], object]) -> None:
    """Acts on each line of stdin; the thread ends with the process."""
    if sys.stdin is None:
        return
    if hasattr(signal, "SIGTTIN"):
        # a job in the background is not stopped for want of a terminal, and reads nothing
        signal.signal(signal.SIGTTIN, signal.SIG_IGN)

    def read() -> None:
        # not sys.stdin, whose lock this thread would keep to the end
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            while given := os.read(sys.stdin.fileno(), 1024):
                if b"\n" in given:
                    act()

    threading.Thread(target=read, name="read stdin", daemon=True).start()
