"""One request to an address, over HTTP/1.1 by httpx: sent, and its status read. What the answer says is not looked at.

Redirects are not followed: they would carry what is secret to somewhere else. Everything is over within the timeout,
whatever the other side does, and can be broken off at any time.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from situ import __version__
from situ.policies.actions.invocations import ActionInvocation

if TYPE_CHECKING:
    import httpx

_HEARD, _MOST_HEARD = 1.0, 1024 * 1024
"""Seconds, and bytes, for which the rest of an answer is listened to."""
_AGAIN = frozenset((408, 425, 429))
"""Refusals that say themselves that a later try may do."""
_PORTS: Mapping[str, int] = MappingProxyType({"http": 80, "https": 443})

for _name in ("httpx", "httpcore"):
    # They log each address, and what is in it may be secret.
    logging.getLogger(_name).setLevel(logging.WARNING)


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
    if "httpx" not in sys.modules:
        await asyncio.to_thread(import_module, "httpx")  # a third of a second, in which the router goes on
    import httpx

    try:
        request = build_request(deed)
    except ValueError as error:
        return WebhookResponse(f"is no address: {error}")
    try:
        # Environment variables name proxies; addresses of actions are called directly.
        async with (
            asyncio.timeout(timeout),
            httpx.AsyncClient(verify=_trusted(), trust_env=False, timeout=None) as client,
        ):
            response = await client.send(request, stream=True)
            await _hear_out(response)
            return _judged(response)
    except TimeoutError:
        return WebhookResponse(f"did not answer within {timeout:g} s", again=True)
    except httpx.HTTPError as error:  # of what the error says, nothing that could hold the address
        causes = tuple(_causes(error))
        if any(isinstance(each, ssl.SSLCertVerificationError) for each in causes):
            return WebhookResponse("has a certificate that is not trusted")
        return WebhookResponse(_trouble(error, causes), again=True)


def _split(url: str) -> SplitResult:
    """ValueError for what is no address. Blanks and control characters are looked for first: parsing drops some."""
    if any(sign <= " " or sign == "\x7f" for sign in url):
        raise ValueError("it has blanks or control characters")
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("it needs `https://` or `http://` and a host")
    _ = parts.port  # ValueError if it is none
    return parts


def build_request(deed: ActionInvocation) -> httpx.Request:
    """The request with its head and body; ValueError if its target is no address."""
    import httpx

    parts = _split(deed.target)
    body = None if deed.method == "GET" else json.dumps(deed.body, ensure_ascii=False).encode()
    try:
        url = httpx.URL(urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")))
    except httpx.InvalidURL:  # what it says shows a part of the address
        raise ValueError("its host cannot be read") from None
    headers = [(name.encode(), value.strip().encode()) for name, value in _headers(parts, deed, body)]
    return httpx.Request(deed.method, url, headers=headers, content=body)


def _headers(parts: SplitResult, deed: ActionInvocation, body: bytes | None) -> Iterator[tuple[str, str]]:
    given = {name.lower() for name, _ in deed.headers}
    yield "Connection", "close"
    yield "Idempotency-Key", deed.key
    if "user-agent" not in given:
        yield "User-Agent", f"situ/{__version__}"
    if body and "content-type" not in given:
        yield "Content-Type", "application/json"
    if parts.username is not None and "authorization" not in given:
        known = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        yield "Authorization", f"Basic {base64.b64encode(known.encode()).decode()}"
    yield from deed.headers


async def _hear_out(response: httpx.Response) -> None:
    """Let the other side say the rest, for a while: some take it ill to be cut off."""
    import httpx

    heard = 0
    with suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(_HEARD):
            async for part in response.aiter_raw():
                heard += len(part)
                if heard > _MOST_HEARD:
                    return


def _judged(response: httpx.Response) -> WebhookResponse:
    status, phrase = response.status_code, response.reason_phrase
    if 200 <= status < 300:
        return WebhookResponse()
    said = f"answered {status}{f' {phrase[:80]}' if phrase.isprintable() and phrase else ''}"
    if 300 <= status < 400:
        return WebhookResponse(f"{said}, and redirects are not followed")
    return WebhookResponse(said, again=status >= 500 or status in _AGAIN)


def _trouble(error: httpx.HTTPError, causes: tuple[BaseException, ...]) -> str:
    import httpx

    if any(isinstance(each, ConnectionRefusedError) for each in causes):
        return "refused the connection"
    if any(isinstance(each, ssl.SSLError) for each in causes):
        return "speaks no TLS that is understood here"
    if isinstance(error, httpx.ConnectError):
        return "cannot be reached"
    return "broke the connection off"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it; attempts at several addresses of a host are a group."""
    yield error
    for each in getattr(error, "exceptions", ()):
        yield from _causes(each)
    further = error.__cause__ or error.__context__
    if further is not None:
        yield from _causes(further)


@cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()
