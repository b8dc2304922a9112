"""An HTTP server on loopback that keeps what it was sent and answers as it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sent:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def key(self) -> str:
        return self.headers["idempotency-key"]

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@dataclass
class Target:
    """``answer`` gives the status for a request; None: there is no answer."""

    port: int = 0
    answer: Callable[[Sent], int | None] = lambda sent: 204
    sent: list[Sent] = field(default_factory=list)
    most: int = 0
    """Requests that were under way at once."""
    _under_way: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, path, _ = head[0].split(" ")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            sent = Sent(method, path, headers, body)
            self.sent.append(sent)
            status = self.answer(sent)
            if status is None:
                await reader.read()  # until the other side gives up
            else:
                writer.write(f"HTTP/1.1 {status} So\r\nContent-Length: 0\r\nLocation: /else\r\n\r\n".encode())
                await writer.drain()
        finally:
            self._under_way -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def http_target(answer: Callable[[Sent], int | None] = lambda sent: 204, port: int = 0) -> AsyncIterator[Target]:
    target = Target(answer=answer)
    server = await asyncio.start_server(target.serve, "127.0.0.1", port)
    target.port = server.sockets[0].getsockname()[1]
    try:
        yield target
    finally:
        server.close()
