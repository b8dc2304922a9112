"""One connection to NATS that is always there or on its way back.

Every connection is a fresh client: nothing that an old one still had to write can slip in before what is sent again in
order. What is subscribed here is subscribed again on each new connection, before anybody hears that it is up. Knows
connections, subscriptions and requests; nothing of streams.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from situ.bus.address import Address
from situ.bus.credentials import admission
from situ.bus.event_loop import end
from situ.lang.catalogue import BUS_FAILED, BUS_FORBIDS, BUS_REFUSES, BUS_UNREACHABLE, NO_ANSWER, NO_LISTENER
from situ.lang.problems import SituError
from situ.protocol.permissions import inbox_of

Receive = Callable[[Msg], None]

_CHANCE = random.SystemRandom()  # not the one that programs seed
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0
_LOOK_EVERY = 0.5
_REFUSED = ("authorization violation", "authentication", "user authentication")
_FORBIDDEN = re.compile(r'permissions violation for publish to "?([^"\s]+)', re.IGNORECASE)
_UNLIMITED = 0
_OLDEST = (2, 11)


class NatsSubscription:
    """A subject whose messages are handed to ``receive``, over all connections."""

    __slots__ = ("_link", "receive", "subject", "subscription")

    def __init__(self, link: NatsConnection, subject: str, receive: Receive) -> None:
        self._link = link
        self.subject = subject
        self.receive = receive
        self.subscription: Subscription | None = None

    async def start(self, client: Client) -> None:
        async def receive(message: Msg) -> None:
            self.receive(message)

        # Bounded elsewhere: nobody asks for more than he can hold, and a dropped answer would be a gap.
        self.subscription = await client.subscribe(
            self.subject, cb=receive, pending_msgs_limit=_UNLIMITED, pending_bytes_limit=_UNLIMITED
        )

    async def close(self) -> None:
        self._link.forget(self)
        if self.subscription is not None:
            with suppress(nats.errors.Error, OSError):  # the connection is gone, and the subscription with it
                await self.subscription.unsubscribe()
            self.subscription = None


class NatsConnection:
    """``connect`` once; from then on a lost connection is made again for ever, until ``close``."""

    def __init__(self, address: Address, *, name: str, patience: float) -> None:
        self.address = address
        self.patience = patience
        self.on_up: list[Callable[[], None]] = []
        self.on_down: list[Callable[[], None]] = []
        self.max_payload = 1024 * 1024
        self.reconnects = 0
        self.reason = "not connected yet"
        self._name = name
        self._refused = False
        self._asked: dict[str, set[asyncio.Future[Msg]]] = {}
        self._client: Client | None = None
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self._listening: dict[NatsSubscription, None] = {}
        self._keeper: asyncio.Task[None] | None = None
        self._closing = False
        self._numbers = iter(range(1, 2**62))

    @property
    def connected(self) -> bool:
        return self._up.is_set()

    @property
    def down(self) -> asyncio.Event:
        """Set when the connection of now is lost; a new one has a new event."""
        return self._down

    def unreachable(self) -> SituError:
        """Why there is no connection: nobody is there, or we were let in before and are no longer."""
        if self._refused:
            return self._refusal()
        return SituError(BUS_UNREACHABLE(servers=str(self.address), reason=self.reason))

    def _refusal(self) -> SituError:
        principal = self.address.principal
        if principal:
            remedy = f"Have new credentials made with `situ client rotate {principal}`, or `add` if it was removed."
        else:
            remedy = "Check the credentials under `bus` in situ.yaml; for the embedded bus, `.situ/credentials/bus`."
        return SituError(BUS_REFUSES(servers=str(self.address), reason=self.reason, remedy=remedy))

    # ── connecting ──

    async def connect(self, timeout: float) -> None:
        """The first connection; B-code if there is none within this time, at once if we are not let in."""
        deadline = asyncio.get_running_loop().time() + timeout
        wait = _FIRST_WAIT
        while True:
            try:
                await self._open()
                break
            except SituError:
                raise
            except (OSError, nats.errors.Error, TimeoutError) as error:
                self._note(error)
                self._raise_if_refused(error)
                if asyncio.get_running_loop().time() + wait > deadline:
                    raise self.unreachable() from error
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    async def _open(self) -> None:
        secrets = admission(self.address)
        client = Client()
        down = asyncio.Event()
        errors: list[Exception] = []

        async def note(error: Exception) -> None:
            if (forbidden := _FORBIDDEN.search(str(error))) is not None:
                # The server says so to nobody in particular, and answers the request with nothing.
                for request in self._asked.get(forbidden[1].lower(), ()):
                    request.cancel()
            errors.append(error)
            del errors[:-3]

        async def lost() -> None:
            if errors:
                self._note(errors[-1])
            down.set()

        try:
            await client.connect(
                list(self.address.servers),
                name=self._name,
                inbox_prefix=inbox_of(self.address.principal),
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=2,
                ping_interval=10,
                error_cb=note,
                closed_cb=lost,
                flusher_queue_size=4096,
                **secrets,
            )
            self._check_version(client)
            for listening in tuple(self._listening):
                await listening.start(client)
            await client.flush()
        except (OSError, nats.errors.Error, TimeoutError) as error:
            await _discard(client)
            raise (errors[-1] if isinstance(error, nats.errors.NoServersError) and errors else error) from error
        except (asyncio.CancelledError, SituError):
            await _discard(client)
            raise
        self.max_payload = client.max_payload
        self._refused = False
        self._client, self._down = client, down
        self._up.set()
        for call in self.on_up:
            call()

    async def _keep(self) -> None:
        while not self._closing:
            await self._lost()
            self._up.clear()
            gone, self._client = self._client, None
            for call in self.on_down:
                call()
            if gone is not None:
                await _discard(gone)
            wait = _FIRST_WAIT
            while not self._closing:
                try:
                    await self._open()
                    self.reconnects += 1
                    break
                except (OSError, nats.errors.Error, TimeoutError, SituError) as error:
                    self._note(error)
                await asyncio.sleep(wait * _CHANCE.uniform(0.7, 1.3))
                wait = min(2 * wait, _LONGEST_WAIT)

    async def _lost(self) -> None:
        """Wait until the connection is lost. The client library tells it, but not when its own task that noticed is
        ended by what it does then; so it is looked at as well."""
        while not self._down.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY):
                    await self._down.wait()
            if self._client is not None and self._client.is_closed:
                self._down.set()

    def _check_version(self, client: Client) -> None:
        version = client.connected_server_version
        if (version.major, version.minor) < _OLDEST:
            found, oldest = repr(version).strip("<>"), ".".join(map(str, _OLDEST))
            reason = f"{found} is too old, streams can be read in batches since {oldest}"
            raise SituError(BUS_FAILED(what="serve us", reason=reason))

    def _note(self, error: Exception) -> None:
        told = str(error).removeprefix("nats: ").strip("'").lower()
        self._refused = isinstance(error, nats.errors.Error) and told.startswith(_REFUSED)
        if isinstance(error, OSError) and error.strerror:
            self.reason = error.strerror.lower()
        elif isinstance(error, TimeoutError | nats.errors.TimeoutError):
            self.reason = "it does not answer"
        else:
            self.reason = (str(error) or type(error).__name__).removeprefix("nats: ").strip("'\" .")

    def _raise_if_refused(self, error: Exception) -> None:
        if isinstance(error, ssl.SSLError):
            remedy = "Check `tls` under `bus` in situ.yaml: `ca` must have signed the certificate of the server."
            raise SituError(BUS_REFUSES(servers=str(self.address), reason=self.reason, remedy=remedy)) from error
        if self._refused:
            raise self._refusal() from error

    # ── using the connection ──

    async def ready(self, patience: float | None = None) -> Client:
        """The connection, once there is one; B101 if that takes too long."""
        if not self._up.is_set():
            if self._closing:
                raise self.unreachable()
            try:
                async with asyncio.timeout(self.patience if patience is None else patience):
                    await self._up.wait()
            except TimeoutError:
                raise self.unreachable() from None
        assert self._client is not None
        return self._client

    @property
    def client(self) -> Client | None:
        """The connection if there is one now."""
        return self._client if self._up.is_set() else None

    def drop(self, reason: str) -> None:
        """Give this connection up and make a new one: it is open, but nothing comes of it."""
        self.reason = reason
        self._down.set()

    def inbox(self) -> str:
        """A subject nobody else listens on."""
        return f"{inbox_of(self.address.principal)}.{_CHANCE.getrandbits(64):016x}.{next(self._numbers)}"

    async def listen(self, subject: str, receive: Receive) -> NatsSubscription:
        client = await self.ready()
        listening = NatsSubscription(self, subject, receive)
        self._listening[listening] = None
        with suppress(nats.errors.ConnectionClosedError, OSError):  # the next connection starts it
            await listening.start(client)
        return listening

    def forget(self, listening: NatsSubscription) -> None:
        self._listening.pop(listening, None)

    async def publish(self, subject: str, body: bytes, headers: Mapping[str, str] | None, reply: str = "") -> None:
        """Hand it to the connection, or to the next if this one is lost before."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.patience
        while True:
            client = await self.ready(max(deadline - loop.time(), 0))
            try:
                return await client.publish(subject, body, reply=reply, headers=dict(headers) if headers else None)
            except (nats.errors.Error, OSError) as error:
                self._note(error)
                if loop.time() > deadline or not client.is_closed:
                    raise self.unreachable() from error
            await asyncio.sleep(0.01)  # until it is known that the connection is lost

    async def ask(
        self, subject: str, body: bytes = b"", headers: Mapping[str, str] | None = None, *, timeout: float = 5.0
    ) -> Msg:
        """Send once and wait for the answer."""
        client = await self.ready(min(timeout, self.patience))
        down = self._down
        request = asyncio.ensure_future(
            client.request(subject, body, timeout=timeout, headers=dict(headers) if headers else None)
        )
        lost = asyncio.ensure_future(down.wait())
        asked = self._asked.setdefault(subject.lower(), set())  # as the library writes what is forbidden
        asked.add(request)
        try:
            await asyncio.wait((request, lost), return_when=asyncio.FIRST_COMPLETED)
            if not request.done():
                raise self.unreachable()
            if request.cancelled():
                raise SituError(BUS_FORBIDS(who=self.address.principal or self._name, subject=subject))
            return request.result()
        except nats.errors.NoRespondersError:
            raise SituError(NO_LISTENER(subject=subject)) from None
        except (nats.errors.TimeoutError, TimeoutError):
            raise SituError(NO_ANSWER(subject=subject, seconds=float(timeout))) from None
        except (nats.errors.Error, OSError) as error:
            self._note(error)
            raise self.unreachable() from error
        finally:
            asked.discard(request)
            if not asked:
                self._asked.pop(subject.lower(), None)
            lost.cancel()
            if not request.done():
                request.cancel()
            await asyncio.gather(request, lost, return_exceptions=True)

    async def ask_server(self, subject: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A request that may be repeated, to JetStream itself, over lost connections; the answer or its error."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.patience
        payload = json.dumps(body).encode() if body is not None else b""
        while True:
            try:
                answer = await self.ask(f"$JS.API.{subject}", payload)
                found: dict[str, Any] = json.loads(answer.data)
                return found
            except SituError as error:
                missing = error.code == NO_LISTENER.code and self.connected
                if loop.time() >= deadline or self._closing:
                    if missing:
                        reason = "JetStream is not enabled on the server"
                        raise SituError(BUS_FAILED(what="keep messages", reason=reason)) from None
                    raise
                if missing:
                    # No JetStream behind it, or none yet: a server that starts up answers soon.
                    deadline = min(deadline, loop.time() + 3)
            except ValueError as error:
                raise SituError(BUS_FAILED(what=f"answer `{subject}`", reason="the answer is no JSON")) from error
            await asyncio.sleep(_FIRST_WAIT)

    async def close(self) -> None:
        self._closing = True
        await end([self._keeper])
        client, self._client = self._client, None
        self._up.clear()
        if client is not None:
            await _discard(client)


async def _discard(client: Client) -> None:
    """Close it; after a failed TLS handshake the library would wait for ever for an end that has been."""
    with suppress(TimeoutError, OSError, nats.errors.Error):
        await asyncio.wait_for(client.close(), 1)
