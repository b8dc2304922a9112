"""A schema registry over HTTP, as Confluent's speaks it: schemas by id, ids of schemas of ours, and values by these.

A value begins with a zero byte and the id of its schema in four. A schema of an id never changes, so it is asked for
once; what a topic's producers change to has another id, which is asked for when the first record has it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import httpx
import msgspec

from situ.lang.catalogue import EVENT_NOT_WRITTEN, RECORD_NO_EVENT, SCHEMA_REGISTRY_AWAY
from situ.lang.problems import SituError
from situ.lang.types.lookup import EventData
from situ.lang.types.model import Struct
from situ.lang.types.table import Types

_MAGIC = 0
_PATIENCE = 10.0
_ASK_AGAIN = 5.0
"""Seconds for which a schema that is not there is not asked for again."""
_TYPE = "application/vnd.schemaregistry.v1+json"


class Schema(msgspec.Struct, frozen=True):
    """As the registry has it; ``references`` are names with the schemas they stand for."""

    kind: str
    text: str
    references: tuple[tuple[str, Schema], ...] = ()


class UnknownSchema(Exception):
    """There is no schema of this id."""


class SchemaRegistry:
    """One registry. Calls block."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(timeout=_PATIENCE, headers={"Accept": _TYPE})
        self._url = url.rstrip("/")
        parts = urlsplit(self._url)
        host = parts.hostname or ""
        self.shown = urlunsplit((parts.scheme, f"{host}:{parts.port}" if parts.port else host, parts.path, "", ""))
        """The address without what one logs in with."""
        self._schemas: dict[tuple[int, str], Schema] = {}
        self._unknown: dict[int, float] = {}
        self._ids: dict[tuple[str, str], int] = {}

    def schema(self, id: int, format: str = "") -> Schema:
        """The schema of an id; ``format`` is how it is to be written. N162 if the registry does not say."""
        key = (id, format)
        if key not in self._schemas:
            if time.monotonic() < self._unknown.get(id, 0.0):
                raise UnknownSchema
            found = self._ask("GET", f"/schemas/ids/{id}{f'?format={format}' if format else ''}")
            if found is None:
                self._unknown[id] = time.monotonic() + _ASK_AGAIN
                raise UnknownSchema
            self._schemas[key] = self._read(found, format)
        return self._schemas[key]

    def _read(self, found: dict[str, Any], format: str) -> Schema:
        references = []
        for each in found.get("references") or ():
            path = f"/subjects/{quote(each['subject'], safe='')}/versions/{each['version']}"
            of = self._ask("GET", path)
            if of is None:
                raise UnknownSchema
            references.append((str(each["name"]), self.schema(int(of["id"]), format)))
        return Schema(str(found.get("schemaType", "AVRO")), str(found["schema"]), tuple(references))

    def register(self, subject: str, kind: str, text: str) -> int:
        """The id of this schema, which is registered if it is not yet. N162 if the registry does not take it."""
        key = (subject, text)
        if key not in self._ids:
            body = {"schema": text, **({} if kind == "AVRO" else {"schemaType": kind})}
            found = self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
            if found is None:
                raise self._away("it does not know the subject")
            self._ids[key] = int(found["id"])
        return self._ids[key]

    def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any] | None:
        """What it answers; None: there is no such thing."""
        try:
            answer = self._client.request(method, self._url + path, json=body)
        except httpx.HTTPError as error:
            raise self._away(str(error) or type(error).__name__) from error
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        try:
            found = answer.json()
        except ValueError:
            found = {}
        if answer.is_success and isinstance(found, dict):
            return found
        reason = found.get("message", "") if isinstance(found, dict) else ""
        raise self._away(f"{answer.status_code} {reason}".strip())

    def _away(self, reason: str) -> SituError:
        return SituError(SCHEMA_REGISTRY_AWAY(url=self.shown, reason=reason.rstrip(".")))


def split_value(topic: str, value: bytes) -> tuple[int, bytes]:
    """The id of the schema of a value, and what is behind it; E760 if it has none."""
    if len(value) < 5 or value[0] != _MAGIC:
        reason = "its value does not begin with the id of a schema"
        remedy = "Have its producer use the schema registry, or declare another `format`."
        raise SituError(RECORD_NO_EVENT(topic=topic, reason=reason, remedy=remedy))
    return int.from_bytes(value[1:5], "big"), value[5:]


def join_value(id: int, content: bytes) -> bytes:
    return bytes([_MAGIC]) + id.to_bytes(4, "big") + content


class SchemaWriter:
    """Data of events → values of a topic, by the schema of their type; in which form, subclasses say."""

    format: str

    def __init__(self, registry: SchemaRegistry, topic: str, types: Types, read: Callable[[bytes], Any]) -> None:
        self._registry = registry
        self._topic = topic
        self._types = types
        self._data = EventData(types)
        self._read = read
        self._schemas: dict[str, tuple[int, Any]] = {}

    def define(self, struct: Struct) -> tuple[str, str, Any]:
        """The kind of schema, its text, and what values of this type are encoded by."""
        raise NotImplementedError

    def encode(self, by: Any, value: Any) -> bytes:
        """What comes behind the id of the schema."""
        raise NotImplementedError

    def __call__(self, type: str, data: bytes) -> bytes:
        decoded = self._data.decode(type, self._read(data))
        if decoded.problems:
            raise self._unwritten(decoded.problems[0].message)
        try:
            id, by = self._schema(type)
            content = self.encode(by, decoded.value)
        except SituError:
            raise
        except Exception as error:  # noqa: BLE001 - of this event, and of no other
            raise self._unwritten(f"{error.__class__.__name__}: {error}") from None
        return join_value(id, content)

    def _schema(self, type: str) -> tuple[int, Any]:
        if type not in self._schemas:
            struct = self._types.event(type)
            assert struct is not None, "what was decoded has a type"
            kind, text, by = self.define(struct)
            self._schemas[type] = self._registry.register(f"{self._topic}-{type}", kind, text), by
        return self._schemas[type]

    def _unwritten(self, reason: str) -> SituError:
        reason = " ".join(reason.split()).rstrip(".")[:200]
        return SituError(EVENT_NOT_WRITTEN(topic=self._topic, format=self.format, reason=reason))
