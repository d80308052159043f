"""The websocket server: accepts clients, and ends their connections with itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from aiohttp import WSMsgType, web

from .provider import Provider
from .wire import Event

__all__ = ["Connection", "listening"]


class Waiting(Protocol):
    """Where a client that connects finds its far end."""

    def claim(self) -> Provider:
        """Returns the far end that waits for a connection."""


class Connection:
    """One websocket, written to in order and without waiting."""

    def __init__(self, websocket: web.WebSocketResponse) -> None:
        self._websocket = websocket
        self._outgoing: asyncio.Queue[Event | None] = asyncio.Queue()
        self.was_cut = False

    def send(self, event: Event) -> None:
        """Puts an event on its way."""
        self._outgoing.put_nowait(event)

    def cut(self) -> None:
        """Ends the connection once what was sent before is written."""
        self.was_cut = True
        self._outgoing.put_nowait(None)

    async def write(self) -> None:
        """Writes until it is cut."""
        while (event := await self._outgoing.get()) is not None:
            await self._websocket.send_str(json.dumps(event))
        await self._websocket.close(code=1011)

    async def serve(self, far_end: Provider) -> None:
        """Reads until the connection ends, whichever side ends it."""
        writer = asyncio.create_task(self.write(), name="write to the engine")
        try:
            async for message in self._websocket:
                if message.type is WSMsgType.TEXT and not self.was_cut:
                    far_end.read(message.data)
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)


@asynccontextmanager
async def listening(waiting: Waiting, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Listens, and yields the address to connect to; a port of 0 is any free one.

    Raises:
        OSError: If the port is taken, or the host is none of this machine's.
    """
    connections: set[Connection] = set()

    async def accept(request: web.Request) -> web.WebSocketResponse:
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        connection = Connection(websocket)
        connections.add(connection)
        far_end = waiting.claim()
        far_end.attach(connection)
        try:
            await connection.serve(far_end)
        finally:
            connections.discard(connection)
            far_end.detach(closed=not connection.was_cut)
        return websocket

    application = web.Application()
    application.router.add_get("/v1/realtime", accept)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"
    finally:
        for connection in connections:
            connection.cut()
        await runner.cleanup()
