"""Where the lines come from: files, compressed ones, standard input; always as a stream."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import CtxlockError

__all__ = ["STDIN", "Source", "check_readable", "sources"]

STDIN = "-"
"""Stands for standard input."""

_LONGEST = 8 * 1024 * 1024
"""Bytes of a line beyond which it is cut: no event is as long, so that it is no line of a log."""

_ENDS = (b"\n"[0], "\n")

_OFTEN = 4096
"""Lines between two reports of how far it is."""

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Source:
    """One log, by the name that the user gave it."""

    name: str

    def lines(self, progress: Progress | None = None) -> Iterator[bytes]:
        """Yields its lines, and ends quietly where a compressed file is cut off.

        Args:
            progress: Called now and then with the bytes read of the file as it is stored.

        Raises:
            CtxlockError: The file cannot be read.
        """
        try:
            if self.name == STDIN:
                stream = _standard_input()
                yield from _lines(stream, stream, None)
                return
            with open(self.name, "rb") as stored:
                head = stored.read(2)
                stored.seek(0)
                if head in (BOM_UTF16_LE, BOM_UTF16_BE):
                    text = io.TextIOWrapper(stored, "utf-16", "replace")
                    yield from (line.encode() for line in _lines(text, stored, progress))
                elif head == b"\x1f\x8b":
                    with gzip.open(stored) as unpacked:
                        yield from _until_cut(_lines(unpacked, stored, progress))
                else:
                    yield from _lines(stored, stored, progress)
        except OSError as e:
            raise CtxlockError(f"{self.title} cannot be read: {e.strerror or e}.") from None

    @property
    def title(self) -> str:
        """What to call it in a message."""
        return "standard input" if self.name == STDIN else self.name

    @property
    def size(self) -> int:
        """How many bytes it is stored in; 0 if nobody knows."""
        try:
            return 0 if self.name == STDIN else Path(self.name).stat().st_size
        except OSError:
            return 0


def sources(names: Sequence[str]) -> list[Source]:
    """The logs of these names, each once."""
    return [Source(name) for name in dict.fromkeys(names)]


def check_readable(names: Sequence[str]) -> None:
    """Opens each file once, so that a mistake in the last is not found after an hour.

    Raises:
        CtxlockError: One is missing, a folder, or not to be read.
    """
    for name in names:
        if name == STDIN:
            continue
        try:
            with open(name, "rb"):
                pass
        except IsADirectoryError:
            raise CtxlockError(f"{name} is a folder; name the log files in it.") from None
        except OSError as e:
            raise CtxlockError(f"{name} cannot be read: {e.strerror or e}.") from None


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise CtxlockError("Standard input cannot be read: it is closed.")
    return sys.stdin.buffer


def _lines(stream: Any, stored: BinaryIO, progress: Progress | None) -> Iterator[Any]:
    """The lines; of one that is too long, the beginning."""
    count = 0
    while line := stream.readline(_LONGEST):
        count += 1
        rest = line
        while len(rest) == _LONGEST and rest[-1] not in _ENDS:
            rest = stream.readline(_LONGEST)
        if progress is not None and count % _OFTEN == 0:
            progress(stored.tell())
        yield line


def _until_cut(lines: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from lines
    except (EOFError, zlib.error, gzip.BadGzipFile):
        yield b""  # the end is missing; the reader says so
