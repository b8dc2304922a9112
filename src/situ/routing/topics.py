"""Topics of Kafka in the declarations of clients: where its events come from, and where a subscription is delivered.

Plain data: `situ.routing.load_topics` reads it, and nothing here talks to Kafka.
"""

from __future__ import annotations

from situ.lang.json_form import StoredForm

CLOUDEVENTS, JSON, AVRO, PROTOBUF = FORMATS = ("cloudevents", "json", "avro", "protobuf")
WITH_REGISTRY = (AVRO, PROTOBUF)
BEGIN, END = STARTS = ("begin", "end")
QUEUED, REAL_TIME = DELIVERIES = ("queued", "real-time")
"""How a subscription's events reach its topic: by its queue on the bus, or some by a query in real-time mode."""


class TopicSource(StoredForm, frozen=True, kw_only=True, omit_defaults=True):
    """A client's events are the records of these topics.

    Without a ``type`` each record is a CloudEvent, in structured or binary mode. With one it is the data of an event of
    that type, and ``time``, ``id`` and ``source`` name the fields of the record that say these; ``key`` is the
    attribute that the key of the record is put into.
    """

    topics: tuple[str, ...]
    group: str = ""
    """Under which Kafka is told how far it is; empty: one of its own."""
    format: str = CLOUDEVENTS
    type: str = ""
    time: str = ""
    id: str = ""
    source: str = ""
    key: str = ""
    start: str = BEGIN
    """Where in a topic that was never read."""


class TopicTarget(StoredForm, frozen=True, kw_only=True, omit_defaults=True):
    """A subscription is delivered to this topic.

    ``key`` is the attribute that records have as their key; empty: the key of the event.
    """

    topic: str
    key: str = ""
    format: str = JSON
