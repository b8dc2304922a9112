"""The event: its envelope in CloudEvents 1.0, the row that stages work on, the line in a log, the message on the bus.

It owns the marks that Situ writes on events, keys and positions, the names of subjects and headers, dead letters, and
the seals of numbers that clients get to see. It knows types (`situ.lang`). It must not know a bus, an engine, or any
part: what a stamp or a context means is decided elsewhere.

Front door: the names below (CloudEvent, Marks, accept, check_time, decode_event, decode_batch), `row`
(Row, BadRow, Origin), `message` (EventKey, Message, StoredMessage, position, join_lines, split_lines and the headers),
`subjects` (BusNames, shard_of, consumer_of, pack_root, pack_dead, pack_late, pack_group, pack_live), `lines`
(encode_row, decode_line, stored_lines, stamped_line, bare_lines, dead_letter), `data_reader` (data_plan_of,
data_reader, row_reader, read_envelope), `instants`, `failures` (failed, is_of_event, StageFailure, FailureLog), `seal`
(Seal, seal_of).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from situ.event.cloudevents import RefusedEvent as RefusedEvent
    from situ.event.cloudevents import decode_batch as decode_batch
    from situ.event.cloudevents import decode_event as decode_event
    from situ.event.envelope import NO_MARKS as NO_MARKS
    from situ.event.envelope import AcceptedEvent as AcceptedEvent
    from situ.event.envelope import CloudEvent as CloudEvent
    from situ.event.envelope import Marks as Marks
    from situ.event.envelope import accept as accept
    from situ.event.envelope import check_time as check_time
    from situ.lang.documents.strict_json import JSON_LIMITS as JSON_LIMITS
    from situ.lang.documents.strict_json import JsonLimits as JsonLimits

_PLACES = {
    "situ.event.cloudevents": ("RefusedEvent", "decode_batch", "decode_event"),
    "situ.event.envelope": ("NO_MARKS", "AcceptedEvent", "CloudEvent", "Marks", "accept", "check_time"),
    "situ.lang.documents.strict_json": ("JSON_LIMITS", "JsonLimits"),
}


def __getattr__(name: str) -> Any:
    # Names of subjects and headers are for everybody who has a bus; the envelope loads the type system.
    place = next((place for place, names in _PLACES.items() if name in names), None)
    if place is None:
        raise AttributeError(f"module 'situ.event' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(place), name)
