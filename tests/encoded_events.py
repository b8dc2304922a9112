"""CloudEvents as compact JSON, as other programs send them: always the same text for the same event."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from situ.event.envelope import MARKS, NO_MARKS, SPEC_VERSION, CloudEvent, Marks
from situ.event.row import print_percent
from situ.lang.types.scalars import print_timestamp

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


def to_attributes(event: CloudEvent) -> dict[str, Any]:
    """The event as a JSON object: required attributes first, data last."""
    result: dict[str, Any] = {"specversion": SPEC_VERSION, "id": event.id, "source": event.source, "type": event.type}
    if event.time is not None:
        result["time"] = print_timestamp(event.time)
    if event.subject is not None:
        result["subject"] = event.subject
    if event.dataschema is not None:
        result["dataschema"] = event.dataschema
    if event.datacontenttype is not None:
        result["datacontenttype"] = event.datacontenttype
    if event.confidence is not None:
        result["confidence"] = print_percent(event.confidence)
    if event.extensions:
        result.update(sorted(event.extensions.items()))
    if event.marks is not NO_MARKS:
        result.update(_write_marks(event.marks))
    if event.data is not None:
        result["data"] = event.data
    return result


def encode_event(event: CloudEvent) -> bytes:
    """Structured JSON, compact, on one line."""
    return _ENCODER.encode(to_attributes(event)).encode("utf-8")


def encode_batch(events: Iterable[CloudEvent]) -> bytes:
    """Batched JSON with one event a line, so that a reader of lines needs no second parser."""
    lines = ",\n".join(_ENCODER.encode(to_attributes(event)) for event in events)
    return f"[\n{lines}\n]".encode() if lines else b"[]"


def _write_marks(marks: Marks) -> Iterable[tuple[str, Any]]:
    for name, (field, kind) in MARKS.items():
        value = getattr(marks, field)
        if value is not None:
            yield name, print_timestamp(value) if kind == "timestamp" else value
