"""The sections ``kafka:`` of clients and subscriptions, every one checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from situ.lang.catalogue import DECLARED_TWICE, KAFKA_NOT_SET, MISSING_KEY, TOPIC_UNFIT
from situ.lang.documents import Fields, Node, Reader, ScalarNode
from situ.lang.problems import nearest
from situ.lang.types.model import STRING, ListOf, Struct, plain
from situ.routing.topics import (
    BEGIN,
    CLOUDEVENTS,
    FORMATS,
    JSON,
    STARTS,
    WITH_REGISTRY,
    TopicSource,
    TopicTarget,
)
from situ.settings.kafka import KafkaSettings

SOURCE_KEYS = ("topics", "group", "format", "type", "time", "id", "source", "key", "start")
TARGET_KEYS = ("topic", "key", "format")

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def read_source(
    client: str, node: Node, read: Reader, kafka: KafkaSettings | None, event: Struct | None
) -> TopicSource | None:
    """What a client says of its topics; ``event`` is its declared type, if there is one of that name."""
    fields = read.fields(node, required=("topics",), optional=SOURCE_KEYS[1:])
    if fields is None:
        return None
    topics = tuple(_topics(fields))
    type = fields.text("type", "")
    format = fields.choice("format", FORMATS, JSON if type else CLOUDEVENTS)
    found = {key: fields.text(key, "") for key in ("time", "id", "source", "key")}
    if format == CLOUDEVENTS:
        for key in ("type", *found):
            if key in fields:
                reason = "a CloudEvent says itself what it is"
                _unfit(fields, client, key, reason, "Take it out, or say `format: json`.")
    elif not type:
        read.problems.add(MISSING_KEY(fields.mapping.location, key="type", where="in `kafka`"))
    if event is not None and found["key"]:
        attribute = event.attribute(found["key"])
        if attribute is None or plain(attribute.type) != STRING:
            _no_attribute(fields, client, found["key"], (event,), "an attribute of type `string`")
    _check_settings(client, fields, format, kafka, "reads topics")
    if not topics:
        return None
    return TopicSource(
        topics=topics,
        group=fields.text("group", ""),
        format=format,
        type=type,
        start=fields.choice("start", STARTS, BEGIN),
        **found,
    )


def read_target(
    id: str, node: Node, read: Reader, kafka: KafkaSettings | None, events: Sequence[Struct]
) -> TopicTarget | None:
    """What a subscription to these types says of its topic."""
    fields = read.fields(node, required=("topic",), optional=TARGET_KEYS[1:])
    if fields is None:
        return None
    topic = fields.scalar("topic")
    key, format = fields.text("key", ""), fields.choice("format", FORMATS, JSON)
    if key:
        for event in events:
            attribute = event.attribute(key)
            if attribute is None or isinstance(plain(attribute.type), Struct | ListOf):
                _no_attribute(fields, id, key, events, f"an attribute of `{event.name}` with a single value")
                break
    _check_settings(id, fields, format, kafka, "is delivered to a topic")
    if topic is None or not _is_topic(topic, read):
        return None
    return TopicTarget(topic=topic.text, key=key, format=format)


def _check_settings(name: str, fields: Fields, format: str, kafka: KafkaSettings | None, does: str) -> None:
    place = fields.mapping.under.location if fields.mapping.under is not None else fields.mapping.location
    if kafka is None:
        fields.read.problems.add(KAFKA_NOT_SET(place, name=name, does=does))
    elif format in WITH_REGISTRY and kafka.registry is None:
        remedy = "Add `registry: http://host:8081` to `kafka` in situ.yaml."
        _unfit(fields, name, f"format: {format}", "situ.yaml names no schema registry", remedy)


def _topics(fields: Fields) -> Iterable[str]:
    seen: dict[str, ScalarNode] = {}
    for scalar in fields.scalars("topics"):
        first = seen.setdefault(scalar.text, scalar)
        if first is not scalar:
            place = str(first.location)
            problem = DECLARED_TWICE(scalar.location, what="The topic", name=scalar.text, first=place)
            fields.read.problems.add(problem)
        elif _is_topic(scalar, fields.read):
            yield scalar.text
    node = fields.node("topics")
    if node is not None and not seen and fields.items("topics") == ():
        fields.read.wrong(node, "a list of topics", remedy="Write `topics: [name]`.")


def _is_topic(scalar: ScalarNode, read: Reader) -> bool:
    if _TOPIC.fullmatch(scalar.text) and scalar.text not in (".", ".."):
        return True
    remedy = "Names of topics have letters, digits, `.`, `_` and `-`, at most 249."
    read.wrong(scalar, "the name of a topic", remedy=remedy)
    return False


def _no_attribute(fields: Fields, name: str, key: str, events: Sequence[Struct], wanted: str) -> None:
    near = nearest(key, [each.name for event in events for each in event.attributes])
    remedy = f"Did you mean `{near[0]}`?" if near else "Name one that is declared, or take `key` out."
    _unfit(fields, name, "key", f"`{key}` is not {wanted}", remedy)


def _unfit(fields: Fields, name: str, key: str, reason: str, remedy: str) -> None:
    node = fields.node(key.partition(":")[0])
    place = node.location if node is not None else fields.mapping.location
    fields.read.problems.add(TOPIC_UNFIT(place, name=name, key=key, reason=reason, remedy=remedy))
