"""An index of packages on the loopback device, made of a folder of wheels (PEP 503)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

from packaging.utils import parse_wheel_filename

__all__ = ["make_index", "served"]


def make_index(folder: Path, wheels: Iterable[Path]) -> Path:
    """Lays out `wheels` in `folder` as an index, for a server as well as for `file://`."""
    projects: dict[str, list[Path]] = {}
    for wheel in wheels:
        projects.setdefault(parse_wheel_filename(wheel.name)[0], []).append(wheel)
    _write_page(folder, [f"{name}/" for name in projects])
    for name, files in projects.items():
        _write_page(folder / name, [file.name for file in files])
        for file in files:
            (folder / name / file.name).symlink_to(file)
    return folder


def _write_page(folder: Path, links: Iterable[str]) -> None:
    folder.mkdir(parents=True)
    lines = [f'<a href="{quote(link)}">{link}</a><br>' for link in sorted(links)]
    page = "\n".join(["<!DOCTYPE html>", "<title>Packages</title>", *lines, ""])
    (folder / "index.html").write_text(page, encoding="utf-8")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serves `folder` on a free port of the loopback device; yields its address."""
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
