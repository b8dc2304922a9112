"""The event: its envelope in CloudEvents 1.0, the row that stages work on, the line in a log, the message on the bus.

It owns the marks that Situ writes on events, keys and positions, the names of subjects and headers, dead letters, and
the seals of numbers that clients get to see. It knows types (`situ.lang`). It must not know a bus, an engine, or any
part: what a stamp or a context means is decided elsewhere.

Front door: the names below (CloudEvent, Marks, accept, check_time, decode_event, encode_event and their batches), `row`
(Row, BadRow, Origin), `message` (EventKey, Message, StoredMessage, position, join_lines, split_lines and the headers),
`subjects` (BusNames, shard_of, consumer_of, pack_root, pack_dead, pack_late, pack_group, pack_live), `lines`
(encode_row, decode_line, stored_lines, stamped_line, bare_lines, dead_letter), `data_reader` (data_plan_of,
data_reader, row_reader, read_envelope), `instants`, `failures` (failed, is_of_event, StageFailure, FailureLog), `seal`
(Seal, seal_of).
"""

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
