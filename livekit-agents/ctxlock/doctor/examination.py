"""Reads logs from the first line to the last, and keeps what there is to tell of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..errors import CtxlockError
from .calls import Calls, Totals
from .findings import STRONG, CallReport
from .lines import Counts, read
from .sources import check_readable, sources

__all__ = ["Examination", "examine"]


@dataclass
class Examination:
    """What was found.

    Attributes:
        files: The logs, in the order read; a line's file is a number of them.
        calls: Those of which there is something to tell.
        whole: Whether the times of all events are in whole seconds.
        with_text: Whether what items say is kept.
    """

    files: list[str]
    counts: Counts = field(default_factory=Counts)
    totals: Totals = field(default_factory=Totals)
    calls: list[CallReport] = field(default_factory=list)
    whole: bool = False
    with_text: bool = False

    @property
    def lost(self) -> bool:
        """Whether a call has lost an item, by strong evidence."""
        return self.totals.losing[STRONG] > 0


def examine(
    names: Sequence[str],
    *,
    with_text: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Examination:
    """Reads logs; calls that go on in the next file, as rotated ones do, are followed there.

    Args:
        names: Files, oldest first, and `-` for standard input.
        with_text: Whether what items say is kept.
        progress: Is told now and then how far it is.

    Raises:
        CtxlockError: A file cannot be read, or none holds an event of the engine's.
    """
    check_readable(names)
    logs = sources(names)
    found = Examination([log.title for log in logs], with_text=with_text)
    calls = Calls(found.calls.append, with_text=with_text)
    fine = False
    for number, log in enumerate(logs):
        size = log.size

        def tell(done: int, name: str = log.title, size: int = size) -> None:
            share = f"{100 * done // size} %" if size else f"{done:,} bytes"
            progress(f"{name}, {share}")

        for line in read(log, number, found.counts, tell):
            fine = fine or (line.time is not None and not line.whole)
            calls.feed(line)
    calls.end()
    found.totals = calls.totals
    found.whole = not fine
    if not found.counts.events:
        raise CtxlockError(_nothing(found))
    return found


def _nothing(found: Examination) -> str:
    read_ = ", ".join(found.files)
    damaged = f", {found.counts.damaged} of them damaged" if found.counts.damaged else ""
    lines = "1 line" if found.counts.lines == 1 else f"{found.counts.lines} lines"
    damaged += ", and the end is missing" if found.counts.cut else ""
    return (
        f"Found no event of a realtime model in {read_} ({lines}{damaged}). "
        "Looked for: lines of the OpenAI-compatible engine (OpenAI, Azure OpenAI, xAI) with the "
        "message >>> or <<< and an event, in JSON or as `dev` writes them. They are logged if "
        "LK_OPENAI_DEBUG=1 is in the agent's environment and the log level is DEBUG "
        "(LIVEKIT_LOG_LEVEL=DEBUG, or --log-level DEBUG)."
    )
