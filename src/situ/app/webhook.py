"""One request to an address, over HTTP/1.1: sent, and its status read. What the answer says is not looked at.

Redirects are not followed: they would carry what is secret to somewhere else. Everything is over within the timeout,
whatever the other side does, and can be broken off at any time.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from urllib.parse import SplitResult, quote, unquote, urlsplit

from situ import __version__
from situ.policies.actions.invocations import ActionInvocation

_LIMIT = 64 * 1024
"""Bytes of a line of the answer's head."""
_HEARD, _MOST_HEARD = 1.0, 16
"""Seconds, and portions, for which the rest of an answer is listened to."""
_INTERIM = range(100, 200)
_AGAIN = frozenset((408, 425, 429))
"""Refusals that say themselves that a later try may do."""
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: ([^\r\n]*))?\r?\n")
_PORTS: Mapping[str, int] = MappingProxyType({"http": 80, "https": 443})
_IN_PATH = "/%:@!$&'()*+,;=~-._?[]"


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """What came of a request. Without a reason it was taken; ``again``: another try may do."""

    reason: str = ""
    again: bool = False


def host_of(url: str) -> str:
    """Host and port of an address, which requests to the same one share; the address itself if it has none."""
    try:
        parts = _split(url)
    except ValueError:
        return url
    return f"{parts.hostname}:{parts.port or _PORTS[parts.scheme]}"


async def send_request(deed: ActionInvocation, timeout: float) -> WebhookResponse:
    """Send the request; never raises for what the other side does."""
    try:
        parts = _split(deed.target)
    except ValueError as error:
        return WebhookResponse(f"is no address: {error}")
    try:
        async with asyncio.timeout(timeout):
            return _judged(*await _exchange(parts, deed))
    except TimeoutError:
        return WebhookResponse(f"did not answer within {timeout:g} s", again=True)
    except ssl.SSLCertVerificationError:
        return WebhookResponse("has a certificate that is not trusted")
    except (OSError, EOFError, ValueError) as error:  # of what the error says, nothing that could hold the address
        return WebhookResponse(_trouble(error), again=True)


def _split(url: str) -> SplitResult:
    """ValueError for what is no address. Blanks and control characters are looked for first: parsing drops some."""
    if any(sign <= " " or sign == "\x7f" for sign in url):
        raise ValueError("it has blanks or control characters")
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("it needs `https://` or `http://` and a host")
    _ = parts.port  # ValueError if it is none
    return parts


async def _exchange(parts: SplitResult, deed: ActionInvocation) -> tuple[int, str]:
    secure = parts.scheme == "https"
    assert parts.hostname is not None
    reader, writer = await asyncio.open_connection(
        parts.hostname,
        parts.port or _PORTS[parts.scheme],
        ssl=_trusting() if secure else None,
        server_hostname=parts.hostname if secure else None,
        limit=_LIMIT,
    )
    try:
        writer.write(request_bytes(parts, deed))
        await writer.drain()
        while True:
            found = _STATUS.fullmatch(await reader.readline())
            if found is None:
                raise EOFError("no status")
            status = int(found[1])
            if status not in _INTERIM:
                await _hear_out(reader)
                return status, (found[2] or b"").decode("ascii", "replace")
            while (await reader.readline()).strip():
                pass
    finally:
        writer.transport.abort()


async def _hear_out(reader: asyncio.StreamReader) -> None:
    """Let the other side say the rest, for a while: some take it ill to be cut off."""
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(_HEARD):
            for _ in range(_MOST_HEARD):
                if not await reader.read(_LIMIT):
                    return


def request_bytes(parts: SplitResult, deed: ActionInvocation) -> bytes:
    """Head and body of the request."""
    body = b"" if deed.method == "GET" else json.dumps(deed.body, ensure_ascii=False).encode()
    path = quote(parts.path or "/", safe=_IN_PATH) + (f"?{quote(parts.query, safe=_IN_PATH)}" if parts.query else "")
    lines = [f"{deed.method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in _headers(parts, deed, body))]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _headers(parts: SplitResult, deed: ActionInvocation, body: bytes) -> Iterator[tuple[str, str]]:
    given = {name.lower() for name, _ in deed.headers}
    yield "Host", parts.netloc.rpartition("@")[2].encode("idna" if not parts.netloc.isascii() else "ascii").decode()
    yield "Connection", "close"
    yield "Idempotency-Key", deed.key
    if "user-agent" not in given:
        yield "User-Agent", f"situ/{__version__}"
    if body:
        yield "Content-Length", str(len(body))
        if "content-type" not in given:
            yield "Content-Type", "application/json"
    if parts.username is not None and "authorization" not in given:
        known = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        yield "Authorization", f"Basic {base64.b64encode(known.encode()).decode()}"
    yield from deed.headers


def _judged(status: int, phrase: str) -> WebhookResponse:
    if 200 <= status < 300:
        return WebhookResponse()
    said = f"answered {status}{f' {phrase[:80]}' if phrase.isprintable() and phrase else ''}"
    if 300 <= status < 400:
        return WebhookResponse(f"{said}, and redirects are not followed")
    return WebhookResponse(said, again=status >= 500 or status in _AGAIN)


def _trouble(error: Exception) -> str:
    match error:
        case ConnectionRefusedError():
            return "refused the connection"
        case ConnectionError() | EOFError() | asyncio.LimitOverrunError():
            return "broke the connection off"
        case ssl.SSLError():
            return "speaks no TLS that is understood here"
        case ValueError():
            return "did not answer in HTTP"
        case _:
            return "cannot be reached"


@cache
def _trusting() -> ssl.SSLContext:
    return ssl.create_default_context()
