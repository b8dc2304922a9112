"""What an expression gives for one sample: the sample read and checked against its type, and the expression run on it.

A sample is a CloudEvent, or only the data of one; the envelope of the latter is made up here and said to be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from situ.catalogue import OTHER_EVENT
from situ.errors import Location, SituError, nearest
from situ.event import Event, decode_event
from situ.event.strict_json import LIMITS, read_json, to_text
from situ.expr.interpret import interpret
from situ.expr.print import print_literal
from situ.expr.runtime import FAILURES
from situ.expr.tree import Node
from situ.types.decode import decode
from situ.types.encode import encode
from situ.types.model import Struct, is_subtype
from situ.types.table import Types
from situ.types.undeclared import unknown_event

_MADE_UP = "sample"


@dataclass(frozen=True, slots=True)
class Raw:
    """A sample as it was found in a file."""

    file: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The values of the variables of a scope, and where they come from."""

    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A value, null, or failure with its reason; ``shown`` is the value as it would be written in an expression."""

    sample: str
    shown: str
    value: Any = None
    failure: str = ""

    def as_json(self) -> dict[str, Any]:
        if self.failure:
            return {"sample": self.sample, "fails": True, "reason": self.failure}
        return {"sample": self.sample, "fails": False, "value": self.value}


def read_sample(raw: Raw, payload: Struct, types: Types, now: datetime) -> Sample:
    """The event, or data of an event, of that type or one below it; :class:`SituError` with all that is wrong."""
    with _placed(raw):
        value = _json(raw)
        if not _is_event(value):
            envelope = {**envelope_of(now), "type": payload.name}
            data = decode(payload, value, types)
            return Sample(name="data with a made-up envelope", values={"event": envelope, "data": data})
        event = decode_event(raw.content)
        envelope = {
            "id": event.id,
            "source": event.source,
            "type": event.type,
            "time": event.time or now,
            "confidence": event.confidence,
        }
        data = decode(_type_of(event, payload, types), event.data, types)
        return Sample(name=f"event {event.id} of {event.source}", values={"event": envelope, "data": data})


def type_of_sample(raw: Raw) -> str:
    """The type a CloudEvent says it has; empty for anything else."""
    with _placed(raw):
        value = _json(raw)
    type = value.get("type") if _is_event(value) else None
    return type if isinstance(type, str) else ""


def envelope_of(now: datetime) -> dict[str, Any]:
    """The envelope of an event of which only the data is known."""
    return {"id": _MADE_UP, "source": _MADE_UP, "type": _MADE_UP, "time": now, "confidence": None, "received": now}


def read_arguments(raw: Raw, parameters: Struct, types: Types) -> Sample:
    """A JSON object with the arguments of a function, by the names of its parameters."""
    with _placed(raw):
        return Sample(name="these arguments", values=decode(parameters, _json(raw), types, "reject"))


def evaluate(node: Node, sample: Sample, types: Types) -> Outcome:
    """Run the expression."""
    try:
        value = interpret(node, sample.values)
    except FAILURES as failure:
        return Outcome(sample=sample.name, shown="", failure=str(failure) or "the operation failed")
    encoded = None if value is None else encode(node.type, value, types)
    shown = print_literal(value, node.unit) if not isinstance(value, dict | list) else _structure(encoded)
    return Outcome(sample=sample.name, shown=shown, value=encoded)


@contextmanager
def _placed(raw: Raw) -> Iterator[None]:
    """Problems of a sample say in which file it is."""
    try:
        yield
    except SituError as error:
        place = Location(file=raw.file)
        raise SituError(*(replace(each, location=each.location or place) for each in error.problems)) from None


def _json(raw: Raw) -> Any:
    return read_json(to_text(raw.content, LIMITS.event), LIMITS.depth)


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and "specversion" in value


def _type_of(event: Event, wanted: Struct, types: Types) -> Struct:
    found = types.event(event.type)
    if found is None:
        known = sorted(types.events)
        raise SituError(unknown_event(event.type, nearest(event.type, known)))
    if not is_subtype(found, wanted):
        fitting = tuple(str(type) for type in types.subtypes(wanted))
        raise SituError(OTHER_EVENT(found=event.type, wanted=wanted.name, fitting=fitting[:5]))
    return found


def _structure(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
