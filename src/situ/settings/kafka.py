"""The setting ``kafka``: where brokers and schema registry are, and how they are reached.

``{servers: [host:9092], registry: http://host:8081, options: {security.protocol: SASL_SSL, …}}``. Options are those of
librdkafka. Values may come from the environment; what a snapshot shows of them is what stands in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from situ.lang.catalogue import KAFKA_OPTION_TAKEN, MISSING_KEY
from situ.lang.documents import Fields, Node, Reader, ScalarNode, SequenceNode
from situ.settings.kinds import Kind, Text, is_unresolved, text_of

_SERVER = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_URL = re.compile(r"https?://\S+")
_KEYS = ("servers", "registry", "options")
_TAKEN = MappingProxyType(
    {
        "bootstrap.servers": "`servers` says it",
        "metadata.broker.list": "`servers` says it",
        "group.id": "a client says it as `group`",
        "transactional.id": "each subscription has its own, which keeps two processes from writing at once",
        "enable.idempotence": "without it records would be written twice",
        "enable.auto.commit": "how far a client is follows from what is stored",
        "enable.auto.offset.store": "how far a client is follows from what is stored",
        "enable.partition.eof": "it says where what is read ends",
        "isolation.level": "what a transaction did not commit is not there",
        "auto.offset.reset": "a client says it as `start`",
    }
)


class KafkaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``options`` are sorted by their names."""

    servers: tuple[Text, ...]
    registry: Text | None = None
    options: tuple[tuple[str, Text], ...] = ()

    def connection(self) -> str:
        """What a process needs to connect, secrets and all: nothing that may be shown."""
        content = {
            "servers": ",".join(each.value for each in self.servers),
            "registry": self.registry.value if self.registry is not None else "",
            "options": [(name, each.value) for name, each in self.options],
        }
        return json.dumps(content)


def _read(node: Node, read: Reader) -> KafkaSettings | None:
    fields = read.fields(node, optional=_KEYS)
    if fields is None:
        return None
    servers = tuple(_servers(fields))
    if "servers" not in fields:
        read.problems.add(MISSING_KEY(fields.mapping.location, key="servers", where="in `kafka`"))
    registry = fields.scalar("registry")
    if registry is not None and not (_URL.fullmatch(registry.text) or is_unresolved(registry.text)):
        read.wrong(registry, "an address such as `http://host:8081`")
        registry = None
    options = dict(_options(fields))
    if not servers:
        return None
    return KafkaSettings(
        servers=servers,
        registry=text_of(registry) if registry is not None else None,
        options=tuple(sorted(options.items())),
    )


def _servers(fields: Fields) -> Iterable[Text]:
    """One may stand alone, several in a list."""
    node = fields.node("servers")
    nodes = (node,) if isinstance(node, ScalarNode) else fields.items("servers")
    if isinstance(node, SequenceNode) and not nodes:
        fields.read.wrong(node, "at least one server such as `host:9092`")
    for each in nodes:
        scalar = fields.read.scalar(each)
        if scalar is None:
            continue
        if is_unresolved(scalar.text) or all(_SERVER.fullmatch(one.strip()) for one in scalar.text.split(",")):
            yield text_of(scalar)
        else:
            fields.read.wrong(scalar, "a server such as `host:9092`")


def _options(fields: Fields) -> Iterable[tuple[str, Text]]:
    for key, value in fields.entries("options"):
        reason = _TAKEN.get(key.text)
        if reason is not None:
            fields.read.problems.add(KAFKA_OPTION_TAKEN(key.location, option=key.text, reason=reason))
        elif not isinstance(value, ScalarNode) or value.value is None:
            fields.read.wrong(value, "a text, a number, `true` or `false`")
        else:
            yield key.text, text_of(value)


def _write(kafka: KafkaSettings) -> dict[str, Any]:
    written: dict[str, Any] = {"servers": [each.written for each in kafka.servers]}
    if kafka.registry is not None:
        written["registry"] = kafka.registry.written
    if kafka.options:
        written["options"] = {name: each.written for name, each in kafka.options}
    return written


_TEXT: Mapping[str, Any] = {"type": "string"}

KAFKA: Kind[KafkaSettings] = Kind(
    _read,
    _write,
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["servers"],
        "properties": {
            "servers": {
                "description": "brokers to begin with, as `host:9092`",
                "anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}],
            },
            "registry": {**_TEXT, "description": "the schema registry, for Avro and Protobuf"},
            "options": {
                "type": "object",
                "description": "options of librdkafka, such as those for TLS and SASL",
                "additionalProperties": {"type": ["string", "number", "boolean"], "description": "one of them"},
            },
        },
    },
)
