"""How Kafka is reached: addresses with their secrets, consumers and producers, and what its errors mean.

The client library is imported when something is read or written: projects without topics do not need it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from situ.bus.address import SECRET
from situ.lang.catalogue import KAFKA_AWAY, NO_KAFKA_LIBRARY
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.settings import Settings

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient

T = TypeVar("T")

VARIABLE = f"{SECRET}KAFKA"
"""Where processes of Spark find the address: it holds secrets, so it is in no plan and no option."""

PATIENCE = 10.0
"""Seconds that one question to Kafka may take."""

_MOVING = 0.2
_SLICE = 1.0
"""Seconds after which it is looked why a question about a topic has no answer."""

# A fetch at the end of a topic waits on the broker for more; an assignment that follows it would wait as long.
_READING = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 100,
    "fetch.error.backoff.ms": 100,
}
_WRITING = {"enable.idempotence": True, "acks": "all", "linger.ms": 5, "compression.type": "lz4"}
_SOON = {"reconnect.backoff.max.ms": 1000, "socket.connection.setup.timeout.ms": 5000, "log_level": 2}


class KafkaAddress(msgspec.Struct, frozen=True):
    """Servers, schema registry and options, secrets and all: it is shown nowhere."""

    servers: str
    registry: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> KafkaAddress | None:
        """None: the project has no Kafka."""
        return None if settings.kafka is None else msgspec.json.decode(settings.kafka.connection(), type=cls)

    @classmethod
    def of_process(cls) -> KafkaAddress:
        """The address that this process has: a run by its settings, processes of Spark by their environment."""
        if _of_run is not None:
            return _of_run
        given = os.environ.get(VARIABLE)
        if given is None:
            reason = f"this process was not given its address in the variable `{VARIABLE}`"
            raise SituError(KAFKA_AWAY(servers="an unknown address", reason=reason))
        return msgspec.json.decode(given, type=cls)

    def variables(self, *, files: bool = False) -> dict[str, str]:
        """What processes of Spark need in their environment to find it; with ``files``, also what is in files here."""
        address = self
        if files:
            address = replace(self, options=tuple(self._carried(*each) for each in self.options))
        return {VARIABLE: msgspec.json.encode(address).decode()}

    def _carried(self, name: str, value: str) -> tuple[str, str]:
        """An option that names a file as the one that has its content."""
        if name not in _FILES or Path(value).is_dir():
            return name, value
        try:
            return _FILES[name], Path(value).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise self.away(f"`{value}`, which `{name}` names, cannot be read: {reason}") from error

    def __repr__(self) -> str:
        return f"KafkaAddress({self.servers})"

    # ── what is opened ──

    def consumer(self, group: str, **options: Any) -> Consumer:
        with library():
            from confluent_kafka import Consumer
        return self._open(Consumer, {**_READING, "group.id": group, **options})

    def producer(self, transactional_id: str) -> Producer:
        with library():
            from confluent_kafka import Producer
        return self._open(Producer, {**_WRITING, "transactional.id": transactional_id})

    def admin(self) -> AdminClient:
        with library():
            from confluent_kafka.admin import AdminClient
        return self._open(AdminClient, {})

    def _open(self, client: Callable[..., T], own: Mapping[str, Any]) -> T:
        """A client with our options and ``own``; N160 if the library does not take them."""
        from confluent_kafka import KafkaException

        common = {**_SOON, **dict(self.options), "bootstrap.servers": self.servers, "error_cb": self._hear}
        try:
            return client({**common, **own}, logger=_quiet())
        except KafkaException as error:
            raise self.away(error) from error

    def _hear(self, error: Any) -> None:
        """The library tells why it is not let in aside, and goes on trying: what is asked meanwhile only times out."""
        from confluent_kafka import KafkaError

        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            _refusals[self] = time.monotonic(), _AROUND.sub("", str(error.str()))

    def _refusal(self) -> str:
        """Why Kafka did not let us in just now; nothing, if it did or does not answer at all."""
        at, reason = _refusals.get(self, (float("-inf"), ""))
        return reason if time.monotonic() - at < PATIENCE else ""

    def topic(self, client: Any, name: str) -> Any:
        """What Kafka says of a topic; N160 if it says nothing. ``client`` is an administrator, or reads nothing."""
        from confluent_kafka import KafkaError, KafkaException

        until = time.monotonic() + PATIENCE
        while True:
            try:
                return client.list_topics(name, timeout=_SLICE).topics[name]
            except KafkaException as error:
                client.poll(0)
                silent = error.args[0].code() in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
                if not silent or self._refusal() or time.monotonic() > until:
                    raise self.away(error) from error

    def when_coordinated(self, ask: Callable[[], T]) -> T:
        """What a group's coordinator says; one that has just become it is asked again. N160 if it does not say."""
        from confluent_kafka import KafkaError, KafkaException

        moving = (
            KafkaError.NOT_COORDINATOR,
            KafkaError.COORDINATOR_NOT_AVAILABLE,
            KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        )
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return ask()
            except KafkaException as error:
                if error.args[0].code() not in moving or time.monotonic() > until:
                    raise self.away(error) from error
            time.sleep(_MOVING)

    def away(self, error: object) -> SituError:
        """N160: it does not answer, or not as it should."""
        return SituError(KAFKA_AWAY(servers=self.servers, reason=reason_of(self._refusal() or error)))


_refusals: dict[KafkaAddress, tuple[float, str]] = {}
_AROUND = re.compile(r"^\S+://\S+: | \(after [^()]*\)$|error:[0-9A-F]+:SSL routines:[^:]*:")
"""What of the library's text is of one connection, or of its own code."""
_of_run: KafkaAddress | None = None


_FILES = {f"ssl.{each}.location": f"ssl.{each}.pem" for each in ("ca", "certificate", "key")}


def use_settings(settings: Settings) -> None:
    """Have this process find the address that these settings say."""
    global _of_run
    _of_run = KafkaAddress.of(settings)


@contextmanager
def library() -> Iterator[None]:
    """N164 where the library is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise SituError(NO_KAFKA_LIBRARY(module=error.name or "confluent_kafka")) from error


def reason_of(error: object) -> str:
    """What went wrong, in the words of the library, which name no secret."""
    inside = getattr(error, "args", ())
    found = inside[0] if inside and hasattr(inside[0], "str") else error
    text = str(found.str()) if hasattr(found, "str") else str(found)
    return " ".join(text.split()).rstrip(".")[:300] or type(error).__name__


def _quiet() -> Any:
    """The library's own lines go to our log, below warnings: what matters is told as a problem."""
    import logging

    return logging.getLogger("situ.kafka.library")


def group_of(project: str, zone: str, client: str, named: str = "") -> str:
    """The consumer group of a client, or of a subscription `client/name`."""
    return named or f"situ.{project}.{zone}.{client.replace('/', '.')}"
