"""The base of far ends that are reached over a websocket."""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from typing import Any, ClassVar

from aiohttp import ClientSession, WSMsgType, web

from .far_end import FarEnd, Setting
from .trace import Recorder

__all__ = ["Connection", "WebSocketFarEnd"]


class Connection:
    """One client's connection.

    Attributes:
        number: From 1, in the order of connecting.
        request: The request that opened it.
        talk: What the far end knows of the conversation on it; whatever the far end puts there.
    """

    talk: Any = None

    def __init__(self, number: int, request: web.Request, socket: web.WebSocketResponse) -> None:
        self.number = number
        self.request = request
        self.socket = socket
        self.cut = False

    async def send(self, event: Any) -> None:
        """Sends bytes as they are and anything else as JSON; nothing if the connection is gone."""
        if self.socket.closed or self.cut:
            return
        try:
            if isinstance(event, bytes):
                await self.socket.send_bytes(event)
            else:
                await self.socket.send_str(json.dumps(event))
        except ConnectionError:
            pass

    async def tell(self, kind: str, **more: Any) -> None:
        """Sends an event of that type."""
        await self.send({"type": kind, **more})

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Ends the connection in the orderly way."""
        self.cut = True
        await self.socket.close(code=code, message=reason.encode())

    def abort(self) -> None:
        """Ends the connection without a word."""
        self.cut = True
        if (transport := self.request.transport) is not None:
            transport.abort()


class WebSocketFarEnd(FarEnd):
    """Listens on loopback; a subclass says what happens on a connection."""

    protocols: ClassVar[tuple[str, ...]] = ()
    """Subprotocols to agree to."""

    latency: ClassVar[float] = 0.0
    """Virtual seconds until a client is let in; over a network, longer than some loop steps."""

    def __init__(self, recorder: Recorder, setting: Setting | None = None) -> None:
        super().__init__(recorder, setting)
        self.connections: list[Connection] = []
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._http: ClientSession | None = None

    @property
    def http(self) -> ClientSession:
        """For plugins that want one: a client session that ends with the far end."""
        if self._http is None:
            self._http = ClientSession()
        return self._http

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._port}"

    @property
    def connection(self) -> Connection:
        """The newest connection that is open.

        Raises:
            ConnectionError: There is none.
        """
        for connection in reversed(self.connections):
            if not connection.cut:
                return connection
        raise ConnectionError("No client is connected.")

    async def connected(self, connection: Connection) -> None:
        """A client has connected: greet it, if the protocol has the server speak first."""

    @abstractmethod
    async def read(self, connection: Connection, frame: Any) -> None:
        """A client has sent something, bytes or decoded JSON; the next frame is read after this."""

    def frame_fact(self, frame: Any) -> Any:
        """What is taken down of a frame: by default all; None takes nothing down.

        Shorten sound to its length here, and keep everything else.
        """
        return f"{len(frame)} bytes" if isinstance(frame, bytes) else frame

    def about(self, request: web.Request) -> Any:
        """What is taken down of a request to connect."""
        return request.path_qs

    async def answer_http(self, request: web.Request) -> web.StreamResponse:
        """Answers a request that is no websocket's."""
        raise web.HTTPNotFound

    async def drop(self) -> None:
        """The connection dies without a word."""
        self.connection.abort()

    async def open(self) -> None:
        """Begins to listen on a free port."""
        application = web.Application()
        application.router.add_route("*", "/{tail:.*}", self._accept)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Ends all connections and no longer listens."""
        for connection in self.connections:
            connection.abort()
        if self._http is not None:
            await self._http.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _accept(self, request: web.Request) -> web.StreamResponse:
        if self.latency:
            await asyncio.sleep(self.latency)
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return await self.answer_http(request)
        socket = web.WebSocketResponse(protocols=self.protocols, max_msg_size=0)
        await socket.prepare(request)
        connection = Connection(self.connection_opened(self.about(request)), request, socket)
        self.connections.append(connection)
        try:
            await self.connected(connection)
            async for message in socket:
                if connection.cut:
                    break
                if message.type is WSMsgType.TEXT:
                    frame = json.loads(message.data)
                elif message.type is WSMsgType.BINARY:
                    frame = message.data
                else:
                    continue
                if (fact := self.frame_fact(frame)) is not None:
                    self.received(connection.number, fact)
                await self.read(connection, frame)
        except asyncio.CancelledError:
            connection.cut = True
            raise
        finally:
            if not connection.cut:
                connection.cut = True
                self.connection_closed(connection.number)
        return socket
