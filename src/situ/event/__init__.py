"""The event envelope: CloudEvents 1.0 with the marks Situ writes."""

from situ.event.cloudevents import RefusedEvent, decode_batch, decode_event, encode_batch, encode_event
from situ.event.envelope import NO_MARKS, AcceptedEvent, CloudEvent, Marks, accept, check_time
from situ.lang.documents.strict_json import JSON_LIMITS, JsonLimits

__all__ = [
    "JSON_LIMITS",
    "NO_MARKS",
    "AcceptedEvent",
    "CloudEvent",
    "JsonLimits",
    "Marks",
    "RefusedEvent",
    "accept",
    "check_time",
    "decode_batch",
    "decode_event",
    "encode_batch",
    "encode_event",
]
