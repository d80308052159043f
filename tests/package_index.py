"""An index of packages on the loopback device, made of a folder of wheels (PEP 503)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

from packaging.utils import parse_wheel_filename

__all__ = ["make_index", "served"]


def make_index(folder: Path, wheels: Iterable[Path]) -> None:
    """Lays out `wheels` in `folder` as an index."""
    folder.mkdir(parents=True)
    projects: dict[str, list[Path]] = {}
    for wheel in wheels:
        projects.setdefault(parse_wheel_filename(wheel.name)[0], []).append(wheel)
    for name, files in projects.items():
        (folder / name).mkdir()
        for file in files:
            (folder / name / file.name).symlink_to(file)
        links = [f'<a href="{quote(file.name)}">{file.name}</a><br>' for file in sorted(files)]
        page = "\n".join(["<!DOCTYPE html>", "<title>Packages</title>", *links, ""])
        (folder / name / "index.html").write_text(page, encoding="utf-8")


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *args: Any, beyond: Mapping[str, str], **more: Any) -> None:
        self._beyond = beyond
        super().__init__(*args, **more)

    def do_GET(self) -> None:
        """Sends a file, or to the index that has what this one has not."""
        index, _, project = self.path.strip("/").partition("/")
        if index in self._beyond and project and not Path(self.translate_path(self.path)).exists():
            self.send_response(302)
            self.send_header("Location", f"{self._beyond[index].rstrip('/')}/{project}/")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Says nothing of clients that break off once they have read enough."""


@contextmanager
def served(folder: Path, beyond: Mapping[str, str]) -> Iterator[str]:
    """Serves the indexes in `folder` on a free port of the loopback device; yields its address.

    Args:
        folder: Holds a folder for each index.
        beyond: Where an index sends those who ask for a project that it has not, by its name.
    """
    handler = partial(_Handler, beyond=beyond, directory=str(folder))
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
