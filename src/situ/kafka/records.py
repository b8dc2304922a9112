"""Records of topics as events: keys, texts, and the messages that they travel in.

The key of an event follows from where its record stands: an incarnation for each partition of a topic, the offset as
the number. A record that is read again has the same key, and what was taken already is dropped as from any client.

`RecordReader` makes the text of an event of a record, or says why it is none; `pack_records` puts the events of a
partition into messages. Messages are cut at fixed offsets, so that they are the same whenever they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import msgspec

from situ.event.failures import KEPT, failure_of
from situ.event.instants import print_instant
from situ.event.message import TOPICS, EventKey, join_lines
from situ.event.row import Error, errors_of
from situ.lang.catalogue import RECORD_LACKS, RECORD_NO_EVENT
from situ.lang.problems import SituError
from situ.routing.topics import AVRO, PROTOBUF, TopicSource

EVENTS = 500
"""Offsets after a multiple of which a message ends."""
_SIZE = 512 * 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class KafkaRecord(msgspec.Struct, frozen=True):
    """A record as it was read; ``time`` in milliseconds, 0 if it has none."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    time: int

    @classmethod
    def of(cls, message: Any) -> KafkaRecord:
        """Of what the client library gives."""
        kind, time = message.timestamp()
        headers = tuple((str(name), value) for name, value in message.headers() or ())
        at = (message.topic(), message.partition(), message.offset())
        return cls(*at, message.key(), message.value(), headers, max(time, 0) if kind else 0)


def incarnation_of(topic: str, partition: int) -> int:
    """The incarnation of events that come from a partition."""
    return TOPICS | crc32(topic.encode()) << 16 | partition


def number_of(offset: int) -> int:
    """The number of the event at an offset: those of clients begin with 1."""
    return offset + 1


class RecordMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Events of one partition that follow each other, or a record that is none, with the reasons."""

    key: EventKey
    count: int
    body: bytes
    errors: tuple[Error, ...] = ()

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.key.seq + self.count - 1


def pack_records(records: Iterable[KafkaRecord], client: str, reader: RecordReader) -> Iterator[RecordMessage]:
    """Messages of the records of one partition, in their order."""
    lines: list[bytes] = []
    first, size = 0, 0
    incarnation = 0

    def done() -> Iterator[RecordMessage]:
        nonlocal lines, size
        if lines:
            key = EventKey(client, incarnation, number_of(first))
            yield RecordMessage(key=key, count=len(lines), body=join_lines(lines))
        lines, size = [], 0

    for record in records:
        incarnation = incarnation or incarnation_of(record.topic, record.partition)
        if lines and (record.offset != first + len(lines) or record.offset % EVENTS == 0 or size >= _SIZE):
            yield from done()
        try:
            line = reader.line(record)
        except SituError as error:
            if error.code.startswith("N"):
                raise  # of the schema registry, and not of the record
            yield from done()
            yield _refused(record, client, incarnation, errors_of(error.problems))
            continue
        except Exception as error:  # noqa: BLE001 - of this record, and of no other
            yield from done()
            yield _refused(record, client, incarnation, failure_of(error, "read record").errors)
            continue
        if not lines:
            first = record.offset
        lines.append(line)
        size += len(line)
    yield from done()


def _refused(record: KafkaRecord, client: str, incarnation: int, errors: tuple[Error, ...]) -> RecordMessage:
    key = EventKey(client, incarnation, number_of(record.offset))
    return RecordMessage(key=key, count=1, body=(record.value or b"")[:KEPT], errors=errors)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A record → the text of an event. What is written here is judged by the stage ``decode`` as that of any client: this
# only has to be sure that a record is one JSON object, so that none can pass for several.

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_any = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode
_CE = "ce_"
_STRUCTURED = b"application/cloudevents"
_JSON_TYPES = (b"", b"application/json", b"text/json")
_PLAIN_JSON = "Write one JSON object in UTF-8 as the value of each record."
_CLOUDEVENT = "Write CloudEvents in structured or binary mode, or declare the `type` that the records of a topic are."

Decode = Callable[[str, bytes], dict[str, Any]]
"""Topic and value of a record → its fields as JSON values; ``SituError`` if it cannot be read."""


class RecordReader:
    """Reads the records of one client's topics. ``decode`` reads those that are not JSON."""

    def __init__(self, source: TopicSource, decode: Decode | None = None) -> None:
        self._source = source
        self._decode = decode
        self._typed = source.format in (AVRO, PROTOBUF)
        assert not self._typed or decode is not None
        self._start = b'{"specversion":"1.0","type":%b' % _encode(source.type) if source.type else b""

    def line(self, record: KafkaRecord) -> bytes:
        """The text of the event, without line breaks; ``SituError`` if it is none."""
        if not self._source.type:
            return self._cloudevent(record)
        return self._mapped(record)

    # ── CloudEvents ──

    def _cloudevent(self, record: KafkaRecord) -> bytes:
        headers = {name.lower(): value or b"" for name, value in record.headers}
        if f"{_CE}specversion" in headers and not headers.get("content-type", b"").startswith(_STRUCTURED):
            return self._binary(record, headers)
        value = record.value
        if value is None:
            raise _no_event(record, "it has no value", _CLOUDEVENT)
        self._object_in(record, value, _CLOUDEVENT)
        return _on_one_line(value)

    def _binary(self, record: KafkaRecord, headers: Mapping[str, bytes]) -> bytes:
        members: dict[str, Any] = {}
        for name, value in headers.items():
            if name.startswith(_CE):
                members[name.removeprefix(_CE)] = _text(record, value, f"the header `{name}`")
        if record.value is None:
            return _encode(members)
        kind = headers.get("content-type", b"").partition(b";")[0].strip()
        if kind not in _JSON_TYPES:
            raise _no_event(record, f"its data is `{kind.decode(errors='replace')[:60]}`", "Write its data as JSON.")
        try:
            data = msgspec.json.decode(record.value, type=msgspec.Raw)
            members["data"] = msgspec.Raw(_on_one_line(bytes(data)))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise _no_event(record, f"its data is not JSON: {error}", _PLAIN_JSON) from None
        return _encode(members)

    # ── records that are data ──

    def _mapped(self, record: KafkaRecord) -> bytes:
        if record.value is None:
            raise _no_event(record, "it has no value", "Write records with a value; others delete, and are no events.")
        if self._typed:
            assert self._decode is not None
            data = _encode(self._decode(record.topic, record.value))
            fields = _object.decode(data)
        else:
            fields = self._object_in(record, record.value, _PLAIN_JSON)
            data = _on_one_line(record.value)
        source = self._source
        if source.key:
            data = self._with_key(record, source.key, fields, data)
        parts = [self._start, b',"time":"%b"' % self._time(record, fields).encode()]
        if source.id:
            parts.append(b',"id":%b' % self._named(record, "id", source.id, fields))
        if source.source:
            parts.append(b',"source":%b' % self._named(record, "source", source.source, fields))
        parts.append(b',"data":%b}' % data)
        return b"".join(parts)

    def _with_key(self, record: KafkaRecord, name: str, fields: Mapping[str, msgspec.Raw], data: bytes) -> bytes:
        if name in fields or record.key is None:
            return data
        member = b"%b:%b" % (_encode(name), _encode(_text(record, record.key, "its key")))
        return b"{%b%b%b" % (member, b"," if fields else b"", data[data.index(b"{") + 1 :])

    def _time(self, record: KafkaRecord, fields: Mapping[str, msgspec.Raw]) -> str:
        name = self._source.time
        if not name:
            return print_instant(record.time * 1000)
        value = self._value(record, "time", name, fields)
        if isinstance(value, str):
            return _encode(value)[1:-1].decode()
        if isinstance(value, int) and not isinstance(value, bool):
            try:
                return print_instant((_EPOCH + timedelta(milliseconds=value) - _EPOCH) // timedelta(microseconds=1))
            except (OverflowError, ValueError):
                pass
        reason = f"`{name}` is neither a text nor milliseconds since 1970"
        raise SituError(RECORD_LACKS(topic=record.topic, key="time", reason=reason))

    def _named(self, record: KafkaRecord, key: str, name: str, fields: Mapping[str, msgspec.Raw]) -> bytes:
        value = self._value(record, key, name, fields)
        if isinstance(value, str):
            return _encode(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return _encode(str(value))
        raise SituError(RECORD_LACKS(topic=record.topic, key=key, reason=f"`{name}` is neither a text nor a number"))

    def _value(self, record: KafkaRecord, key: str, name: str, fields: Mapping[str, msgspec.Raw]) -> Any:
        text = fields.get(name)
        if text is None:
            raise SituError(RECORD_LACKS(topic=record.topic, key=key, reason=f"it has no `{name}`"))
        return _any.decode(text)

    def _object_in(self, record: KafkaRecord, value: bytes, remedy: str) -> dict[str, msgspec.Raw]:
        try:
            value.decode()
            return _object.decode(value)
        except UnicodeDecodeError:
            raise _no_event(record, "its value is not UTF-8", remedy) from None
        except (msgspec.MsgspecError, RecursionError) as error:
            raise _no_event(record, f"its value is no JSON object ({_reason(error)})", remedy) from None


def _on_one_line(value: bytes) -> bytes:
    """JSON without line breaks: what stands between the events of a message is one."""
    value = value.strip(b" \t\r\n")
    return msgspec.json.format(value, indent=-1) if b"\n" in value or b"\r" in value else value


def _text(record: KafkaRecord, value: bytes, what: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise _no_event(record, f"{what} is not UTF-8", _CLOUDEVENT) from None


def _no_event(record: KafkaRecord, reason: str, remedy: str) -> SituError:
    return SituError(RECORD_NO_EVENT(topic=record.topic, reason=reason, remedy=remedy))


def _reason(error: Exception) -> str:
    return str(error).partition(" - at")[0].rstrip(".")[:200] or type(error).__name__
