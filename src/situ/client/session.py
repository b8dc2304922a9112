"""A client's session with its router: connecting, asking, hearing, and connecting again.

The session has one number from the first connection to the last. When the router has forgotten the client (it was
restarted, or the client was silent for too long), the client connects again by itself and tells everything it has;
when somebody else has connected under its name, the session is over.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress

from situ.bus.event_loop import end
from situ.bus.failure_log import InternalErrors
from situ.bus.interface import Bus, Serving
from situ.client.publish_queue import pause
from situ.event.message import MESSAGE, Message
from situ.event.subjects import BusNames
from situ.lang.catalogue import BUS_FORBIDS, BUS_REFUSES, OLD_SESSION, TOO_MUCH_AT_ONCE, ZONE_UNREACHABLE
from situ.lang.problems import SituError
from situ.protocol.messages import (
    Closed,
    Connect,
    ConnectAck,
    Disconnect,
    FromClient,
    FromRouter,
    FullList,
    FullListAck,
    FullListRequest,
    Heartbeat,
    Nack,
    Terms,
)
from situ.protocol.wire import ROUTER_KINDS, Malformed, decode_from_router, encode, error_from_nack

_log = logging.getLogger("situ.client")
_CHANCE = random.SystemRandom()  # not the one that programs seed
_ANSWER_WITHIN = 2.0
_LOOK_EVERY = 0.2
_NEVER = (BUS_REFUSES.code, BUS_FORBIDS.code)
_LATER = ("R001", TOO_MUCH_AT_ONCE.code)


class Session:
    """One client at one router."""

    def __init__(self, bus: Bus, client: str, number: int, incarnation: int, router: str = "r1") -> None:
        self.client = client
        self.number = number
        self.incarnation = incarnation
        self.router = router
        self.terms = Terms()
        self.reconnects = 0
        self.error: SituError | None = None
        """Why the session is over."""
        self.listing: Callable[[], FullList] = FullList
        """Everything the client has, asked for at each connection."""
        self.on_ready: Callable[[FullListAck], None] = lambda known: None
        self.on_lost: Callable[[], None] = lambda: None
        self.on_up: Callable[[], None] = lambda: None
        """Called when the bus is back after it was away."""
        self.on_over: Callable[[SituError], None] = lambda error: None
        self.on_told: Callable[[FromRouter], None] = lambda message: None
        self.on_events: Callable[[Message], None] = lambda message: None
        self._bus = bus
        names = BusNames(bus.zone)
        self._zone = bus.zone
        self._subject = names.ingress(router, client)
        self._live = names.live(client)
        self._of_router = 0
        self._ready = asyncio.Event()
        self._hurry = asyncio.Event()
        self._serving: Serving | None = None
        self._reconnecting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._closing = False
        self._requests = 0
        self.mistakes = InternalErrors(_log)

    def request(self) -> int:
        """The number of the next request."""
        self._requests += 1
        return self._requests

    @property
    def ready(self) -> bool:
        return self._ready.is_set()

    # ── beginning and end ──

    async def open(self, timeout: float) -> None:
        """Connect for the first time; R008 if no router answers in this time."""
        self._serving = await self._bus.serve(self._live, self._heard)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        attempt = 0
        while True:
            try:
                await self._connect(first=True)
                break
            except SituError as error:
                if error.code in _NEVER or (error.code.startswith("R") and error.code not in _LATER):
                    raise
                wait = min(pause(attempt, _CHANCE.random()), 1.0)
                if loop.time() + wait > deadline:
                    problem = ZONE_UNREACHABLE(zone=self._zone, client=self.client, reason=_reason(error))
                    raise SituError(problem) from error
                attempt += 1
                await asyncio.sleep(wait)
        self._watching = loop.create_task(self._watch())

    async def close(self) -> None:
        """Leave the router, if it can be told."""
        self._closing = True
        await end([self._watching, self._reconnecting])
        if self.ready and self.error is None:
            with suppress(SituError):
                await self._request(Disconnect(reason="closed"))
        self._ready.clear()
        if self._serving is not None:
            await self._serving.close()
            self._serving = None

    # ── asking ──

    async def ask(self, message: FromClient, *, timeout: float = 30.0) -> FromRouter:
        """The router's answer, over lost connections; what it refuses is raised."""
        if self.error is not None:
            raise self.error
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        attempt = 0
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._wait_ready()
                answer = await self._request(message)
            except TimeoutError:
                reason = "the connection to it was lost"
                raise SituError(ZONE_UNREACHABLE(zone=self._zone, client=self.client, reason=reason)) from None
            except SituError as error:
                if self._is_over or error.code in _NEVER:
                    raise
                wait = pause(attempt, _CHANCE.random())
                if loop.time() + wait > deadline or not error.code.startswith("B"):
                    raise
                attempt += 1
                await asyncio.sleep(wait)
                continue
            if not isinstance(answer, Nack):
                return answer
            if answer.code in ("R001", "R005"):
                self.lost()
                continue
            wait = pause(attempt, _CHANCE.random())
            if answer.code != TOO_MUCH_AT_ONCE.code or loop.time() + wait > deadline:
                raise error_from_nack(answer)
            attempt += 1
            await asyncio.sleep(wait)

    @property
    def _is_over(self) -> bool:
        """Whether it ended meanwhile."""
        return self.error is not None

    async def transmit(self, message: FromClient) -> FromRouter:
        """Ask once, whatever comes of it."""
        return await self._request(message)

    async def _wait_ready(self) -> None:
        await self._ready.wait()
        if self.error is not None:
            raise self.error

    async def _request(self, message: FromClient) -> FromRouter:
        headers, body = encode(message, self.number)
        request = Message(subject=self._subject, headers=headers, body=body)
        answer = await self._bus.request(request, timeout=_ANSWER_WITHIN)
        try:
            return decode_from_router(answer.headers, answer.body)
        except Malformed as error:
            reason = f"its answer cannot be read ({error})"
            raise SituError(ZONE_UNREACHABLE(zone=self._zone, client=self.client, reason=reason)) from error

    # ── connecting ──

    async def _connect(self, *, first: bool) -> None:
        answer = await self._request(Connect(incarnation=self.incarnation))
        while isinstance(answer, Nack) and answer.code == "R005" and first and answer.expected is not None:
            # The clock went back, or the numbers were lost with the disk: this is the newer connection all the same.
            if answer.name == "incarnation":
                self.incarnation = answer.expected
            else:
                self.number = answer.expected
            answer = await self._request(Connect(incarnation=self.incarnation))
        if isinstance(answer, Nack):
            raise error_from_nack(answer)
        assert isinstance(answer, ConnectAck)
        self.terms, self._of_router = answer.terms, answer.incarnation
        known = await self._request(self.listing())
        if isinstance(known, Nack):
            raise error_from_nack(known)
        assert isinstance(known, FullListAck)
        self._ready.set()
        self.on_ready(known)

    def lost(self) -> None:
        """The router does not know this client any more: connect again."""
        if self._closing or self.error is not None:
            return
        self._hurry.set()
        if self._reconnecting is not None and not self._reconnecting.done():
            return
        self._ready.clear()
        self.on_lost()
        self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect())

    async def _reconnect(self) -> None:
        attempt = 0
        while True:
            self._hurry.clear()
            try:
                await self._connect(first=False)
            except Exception as error:  # noqa: BLE001 - whatever it is: without a router a client is nothing
                if not isinstance(error, SituError | OSError):
                    self.mistakes.note(error, "client connect")
                elif isinstance(error, SituError) and error.code == "R005":
                    self._over(error)
                    return
                _log.info("%s: the router does not answer: %s", self.client, error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause(attempt, _CHANCE.random())):
                        await self._hurry.wait()
                attempt += 1
                continue
            self.reconnects += 1
            return

    def _over(self, error: SituError) -> None:
        if self.error is None:
            _log.error("%s", error)
            self.error = error
            self._ready.set()
            self.on_over(error)

    async def _watch(self) -> None:
        """Signs of life, and an eye on the bus: when it is back, what waits for it is tried at once."""
        loop = asyncio.get_running_loop()
        beat = loop.time() + self.terms.heartbeat
        away = False
        while self.error is None:
            await asyncio.sleep(_LOOK_EVERY)
            connected = self._bus.connected
            if connected and away:
                self._hurry.set()
                self._call("up", self.on_up)
                beat = loop.time()
            away = not connected
            if connected and loop.time() >= beat and self.ready:
                beat = loop.time() + self.terms.heartbeat
                with suppress(SituError, OSError), self.mistakes.noted("client heartbeat"):
                    answer = await self._request(Heartbeat())
                    if isinstance(answer, Nack) and answer.code != TOO_MUCH_AT_ONCE.code:
                        self.lost()

    # ── hearing ──

    def _call(self, what: str, told: Callable[[], None]) -> None:
        with self.mistakes.noted(f"client {what}"):
            told()

    async def _heard(self, message: Message) -> None:
        kind = message.headers.get(MESSAGE, "events")
        with self.mistakes.noted(f"client {kind if kind in ROUTER_KINDS else 'message'}"):
            self._take(message)

    def _take(self, message: Message) -> None:
        if MESSAGE not in message.headers:
            self.on_events(message)
            return
        try:
            told = decode_from_router(message.headers, message.body)
        except Malformed as error:
            _log.warning("%s: a message of the router cannot be read: %s", self.client, error)
            return
        if isinstance(told, Closed):
            if told.session > self.number:
                problem = OLD_SESSION(client=self.client, session=self.number, known=told.session)
                self._over(SituError(problem))
        elif isinstance(told, FullListRequest):
            if self._of_router and told.incarnation != self._of_router:
                self.lost()
        else:
            self.on_told(told)


def _reason(error: SituError) -> str:
    return error.problems[0].message.rstrip(".")
