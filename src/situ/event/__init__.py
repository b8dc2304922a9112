"""The event envelope: CloudEvents 1.0 with the marks Situ writes."""

from situ.event.decode import Refused, decode_batch, decode_event
from situ.event.encode import encode_batch, encode_event
from situ.event.envelope import NO_MARKS, Event, Marks, check_time
from situ.event.ingress import Accepted, accept
from situ.event.strict_json import LIMITS, Limits

__all__ = [
    "LIMITS",
    "NO_MARKS",
    "Accepted",
    "Event",
    "Limits",
    "Marks",
    "Refused",
    "accept",
    "check_time",
    "decode_batch",
    "decode_event",
    "encode_batch",
    "encode_event",
]
