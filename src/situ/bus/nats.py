"""The bus on NATS with JetStream: one connection, and what the protocol of a bus promises.

Puts together the link (connection), the publisher (storing), readers, consumers and buckets; what each promises is told
in its module.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from types import TracebackType

import nats.errors
from nats.aio.msg import Msg

from situ.bus import reading
from situ.bus.address import Address
from situ.bus.consuming import Consumers, NatsConsumption
from situ.bus.interface import Ack, ConsumerState, Entry, Guard, Handler, StreamState
from situ.bus.keys import Keys
from situ.bus.link import Link, Listening
from situ.bus.names import Names
from situ.bus.publishing import Publisher
from situ.bus.streams import configurations, make
from situ.catalogue import MESSAGE_TOO_LARGE
from situ.errors import SituError
from situ.event.message import REPLY, Message, Stored
from situ.settings import Settings

_log = logging.getLogger(__name__)

PATIENCE = 60.0
"""Seconds that work waits for a bus that is away, before it fails with B101."""


async def open_bus(address: Address, *, name: str, timeout: float = 10.0, patience: float = PATIENCE) -> NatsBus:
    """Connect; B101 if there is no bus within ``timeout``, B102 at once if it does not let us in."""
    bus = NatsBus(address, name=name, patience=patience)
    await bus.connect(timeout)
    return bus


class NatsBus:
    """See :class:`situ.bus.interface.Bus`."""

    def __init__(self, address: Address, *, name: str, patience: float = PATIENCE) -> None:
        self.names = Names(address.zone)
        self._link = Link(address, name=name, patience=patience)
        self._publisher = Publisher(self._link)
        self._consumers = Consumers(self._link, self.names)
        self._keys = Keys(self._link)
        self._consuming: set[NatsConsumption] = set()
        self._serving: set[NatsServing] = set()

    async def connect(self, timeout: float) -> None:
        try:
            await self._link.connect(timeout)
            await self._publisher.start()
        except BaseException:
            await self._link.close()
            raise

    async def __aenter__(self) -> NatsBus:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def zone(self) -> str:
        return self.names.zone

    @property
    def connected(self) -> bool:
        return self._link.connected

    @property
    def reconnects(self) -> int:
        """How often the connection was lost and made again."""
        return self._link.reconnects

    @property
    def trouble(self) -> str:
        """Why there is no connection; empty if there is one."""
        return "" if self._link.connected else self._link.reason

    @property
    def max_message(self) -> int:
        """The largest message, headers and all, that the server takes."""
        return self._link.max_payload

    async def prepare(self, settings: Settings) -> None:
        for configuration in configurations(self.names, settings):
            await make(self._link, configuration)

    # ── streams ──

    async def store(self, message: Message, *, lane: str = "") -> asyncio.Future[Ack]:
        return await self._publisher.store(message, lane)

    def hand_over(self, message: Message, *, lane: str = "") -> asyncio.Future[Ack]:
        """Like ``store``, but never waits: for callers that bound what is under way themselves."""
        return self._publisher.hand_over(message, lane)

    async def flush(self) -> None:
        """All that was handed over is stored or has failed."""
        await self._publisher.flush()

    def read(
        self, stream: str, first: int, last: int | None = None, *, subjects: Sequence[str] = ()
    ) -> AsyncGenerator[Stored, None]:
        return reading.read(self._link, stream, first, last, subjects)

    async def state(self, stream: str) -> StreamState:
        return await reading.state_of(self._link, stream)

    async def find(self, stream: str, at: datetime) -> int:
        return await reading.find(self._link, stream, at)

    async def purge(self, stream: str, before: int) -> None:
        # Beyond its end a purge would make the stream skip sequences.
        before = min(before, (await self.state(stream)).last + 1)
        if before <= 1:
            return
        answer = await self._link.ask_server(f"STREAM.PURGE.{stream}", {"seq": before})
        if "error" in answer:
            raise reading.failure(answer["error"], "stream", stream)

    # ── durable consumers ──

    async def ensure_consumer(self, name: str, groups: Sequence[str], *, guarded: bool = False) -> None:
        await self._consumers.ensure(name, groups, guarded=guarded)

    def guard(self, guard: Guard) -> None:
        """The server hands over."""

    async def drop_consumer(self, name: str) -> None:
        await self._consumers.drop(name)

    async def consumers(self) -> tuple[ConsumerState, ...]:
        return await self._consumers.list()

    async def consume(self, name: str, *, pending: int = 16) -> NatsConsumption:
        consumption = await self._consumers.attach(name, pending)
        self._consuming.add(consumption)
        return consumption

    # ── at once ──

    async def send(self, message: Message) -> None:
        self._check_size(message)
        headers, reply = message.headers, ""
        if REPLY in headers:
            headers = {name: value for name, value in headers.items() if name != REPLY}
            reply = message.headers[REPLY]
        await self._link.publish(message.subject, message.body, headers, reply)

    async def request(self, message: Message, *, timeout: float = 2.0) -> Message:
        self._check_size(message)
        answer = await self._link.ask(message.subject, message.body, message.headers, timeout=timeout)
        return Message(subject=answer.subject, body=answer.data, headers=answer.headers or {})

    async def serve(self, subject: str, handler: Handler) -> NatsServing:
        serving = NatsServing(self._link, handler, self._serving)
        await serving.start(subject)
        self._serving.add(serving)
        return serving

    def _check_size(self, message: Message) -> None:
        if len(message.body) > self._link.max_payload:
            problem = MESSAGE_TOO_LARGE(subject=message.subject, size=len(message.body), most=self._link.max_payload)
            raise SituError(problem)

    # ── values and objects ──

    async def get(self, bucket: str, key: str) -> Entry | None:
        return await self._keys.get(bucket, key)

    async def put(self, bucket: str, key: str, value: bytes, *, expected: int | None = None) -> int:
        return await self._keys.put(bucket, key, value, expected)

    async def remove(self, bucket: str, key: str) -> None:
        await self._keys.remove(bucket, key)

    async def entries(self, bucket: str, prefix: str = "") -> tuple[Entry, ...]:
        return await self._keys.entries(bucket, prefix)

    def watch(self, bucket: str, key: str) -> AsyncGenerator[Entry, None]:
        return self._keys.watch(bucket, key)

    async def put_object(self, bucket: str, name: str, content: bytes) -> None:
        await self._keys.put_object(bucket, name, content)

    async def get_object(self, bucket: str, name: str) -> bytes | None:
        return await self._keys.get_object(bucket, name)

    async def remove_object(self, bucket: str, name: str) -> None:
        await self._keys.remove_object(bucket, name)

    async def close(self) -> None:
        for consumption in tuple(self._consuming):
            await consumption.close()
        for serving in tuple(self._serving):
            await serving.close()
        await self._publisher.close()
        await self._link.close()


class NatsServing:
    """A handler at work: one message after the other."""

    def __init__(self, link: Link, handler: Handler, among: set[NatsServing]) -> None:
        self._link = link
        self._among = among
        self._handler = handler
        self._came: asyncio.Queue[Msg] = asyncio.Queue()
        self._listening: Listening | None = None
        self._worker: asyncio.Task[None] | None = None

    async def start(self, subject: str) -> None:
        self._listening = await self._link.listen(subject, self._came.put_nowait)
        if (client := self._link.client) is not None:
            await client.flush()  # who is told that we serve must find us
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        while True:
            came = await self._came.get()
            try:
                headers = dict(came.headers or {})
                headers.pop(REPLY, None)  # only the server says where an answer goes
                if came.reply:
                    headers[REPLY] = came.reply
                answer = await self._handler(Message(subject=came.subject, body=came.data, headers=headers))
            except Exception:  # noqa: BLE001 - a defect of one handler must not end what it serves
                _log.exception("the handler of %s failed", came.subject)
                continue
            if answer is not None and came.reply and (client := self._link.client) is not None:
                try:
                    await client.publish(came.reply, answer.body, headers=dict(answer.headers) or None)
                except (nats.errors.Error, OSError):
                    continue  # who asked is gone with the connection, and asks again

    async def close(self) -> None:
        self._among.discard(self)
        if self._listening is not None:
            await self._listening.close()
            self._listening = None
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None
