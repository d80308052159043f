"""The scripted server, in this process or as a command, and plain clients of it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp

from ctxlock.races.loopback.server import listening
from ctxlock.serve.acknowledgements import Patience
from ctxlock.serve.report import Report
from ctxlock.serve.rules import Rule
from ctxlock.serve.scripted import Lobby

WATCHDOG = 60.0
"""A guard against hanging, nothing else."""

Event = dict[str, Any]


class Heard(Report):
    """A report that is kept, and can be waited for."""

    def __init__(self) -> None:
        super().__init__(as_json=True)
        self.events: list[Event] = []
        self._more = asyncio.Event()

    def tell(self, event: str, text: str, /, *, style: str = "", **data: Any) -> None:
        self.events.append({"event": event, "text": text, **data})
        self._more.set()

    def of(self, event: str) -> list[Event]:
        return [e for e in self.events if e["event"] == event]

    async def until(self, event: str, count: int = 1) -> Event:
        """The ``count``th event of that kind, once it is there."""
        while len(self.of(event)) < count:
            self._more.clear()
            await asyncio.wait_for(self._more.wait(), WATCHDOG)
        return self.of(event)[count - 1]


class Client:
    """A client that speaks the protocol itself."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self.websocket = websocket

    async def send(self, kind: str, **more: Any) -> None:
        await self.websocket.send_json({"type": kind, **more})

    async def create(self, item: Event) -> None:
        await self.send("conversation.item.create", item=item)

    async def receive(self, kind: str) -> Event:
        """The next event of that kind; what comes before it is thrown away."""
        while True:
            event: Event = await self.websocket.receive_json(timeout=WATCHDOG)
            if event["type"] == kind:
                return event

    async def acknowledged(self) -> str:
        event = await self.receive("conversation.item.added")
        return str(event["item"]["id"])


class Served:
    """A server that listens, and where to reach it."""

    def __init__(self, url: str, lobby: Lobby, heard: Heard, http: aiohttp.ClientSession) -> None:
        self.url, self.lobby, self.heard, self.http = url, lobby, heard, http

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with self.http.ws_connect(f"{self.url}/realtime") as websocket:
            yield Client(websocket)


@asynccontextmanager
async def served(
    *, rules: Sequence[Rule] = (), patience: Patience | None = None
) -> AsyncIterator[Served]:
    """Serves in this process, on a free port of the loopback device."""
    heard = Heard()
    lobby = Lobby(rules, patience or Patience(), heard)
    async with listening(lobby) as url, aiohttp.ClientSession() as http:
        yield Served(url, lobby, heard, http)


def user(name: str, text: str) -> Event:
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "id": name, "content": content}


def call(call_id: str, tool: str = "lookup") -> Event:
    item = {"id": f"call_{call_id}", "call_id": call_id, "name": tool, "arguments": "{}"}
    return {"type": "function_call", **item}


def output(call_id: str, text: str = "found") -> Event:
    item = {"id": f"output_{call_id}", "call_id": call_id, "output": text}
    return {"type": "function_call_output", **item}


class Command:
    """`ctxlock serve --json`, running."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.events: list[Event] = []
        self.url: str = self.until("listening")["base_url"]

    def until(self, event: str) -> Event:
        """The next event of that kind; those before it are in `events`, too."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == event:
                return self.events[-1]
        raise AssertionError(f"The server ended before {event!r}; it told {self.events}.")

    def press_enter(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self, by: signal.Signals = signal.SIGINT) -> Event:
        """Ends it; returns what it told last."""
        self.process.send_signal(by)
        last = self.until("ended")
        assert self.process.wait() == 0
        return last


@contextmanager
def command(*options: str) -> Iterator[Command]:
    """Runs the command on a free port, and kills it if nobody has ended it."""
    with subprocess.Popen(
        [sys.executable, "-m", "ctxlock", "serve", "--json", "--port", "0", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        watchdog = threading.Timer(WATCHDOG, process.kill)
        watchdog.start()
        try:
            yield Command(process)
        finally:
            watchdog.cancel()
            process.kill()
