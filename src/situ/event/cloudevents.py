"""CloudEvents in JSON, structured and batched: events are decoded, with all that is wrong with them.

Decoding reads what clients send and what Situ itself wrote; :mod:`situ.event.lines` writes.
"""

from __future__ import annotations

import base64
import re
from datetime import datetime
from typing import Any

import msgspec

from situ.event.envelope import MARKS, NO_MARKS, SPEC_VERSION, CloudEvent, MarkKind, Marks
from situ.lang.catalogue import EVENT_LIMIT, EVENT_NOT_CARRIED, NO_CLOUDEVENT
from situ.lang.documents.strict_json import JSON_LIMITS, JsonLimits, read_json, split_array, to_text
from situ.lang.problems import Problem, SituError
from situ.lang.types.scalars import Unfit, describe, read_timestamp

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Decoding: JSON, structured or batched → events, or all that is wrong with them.
#
# Any bytes give events or problems of ours. The official SDK is not used: it reads no batches, stops at the first
# fault, makes up what is missing (an id, the current time), and takes keys twice, NaN and times without offset. The
# tests hold the two against each other on what both accept.

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SPACE = re.compile(r"\s")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+")
_EXTENSION_NAME = re.compile(r"[a-z0-9]+")
_JSON_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/(?:[a-z0-9!#$&^_.-]+\+)?json\s*(?:;.*)?", re.IGNORECASE)
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,100}/[a-z0-9!#$&^_.+-]{1,100}\s*(?:;.*)?", re.IGNORECASE)
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,20})?)\s*%?")
_LONGEST_NAME = 64
_SMALLEST_INTEGER, _LARGEST_INTEGER = -(2**31), 2**31 - 1
_MOST_FAULTS = 100
_MARKS = dict(MARKS)


class RefusedEvent(msgspec.Struct, frozen=True):
    """What stands in a batch where an event could not be read: what was sent, and why that is none."""

    original: bytes | str
    problems: tuple[Problem, ...]


def decode_event(raw: bytes | str, *, limits: JsonLimits = JSON_LIMITS, marked: bool = True) -> CloudEvent:
    """Read one event in structured JSON; :class:`SituError` with every problem if it is none.

    ``marked`` says that the event comes from Situ itself: its marks are read. What clients send is read without, and
    then goes through :func:`situ.event.envelope.accept`.
    """
    return event_of(read_json(to_text(raw, limits.event), limits.depth), marked)


def decode_batch(
    raw: bytes | str, *, limits: JsonLimits = JSON_LIMITS, marked: bool = True
) -> tuple[CloudEvent | RefusedEvent, ...]:
    """Read a batch: for each place in it the event, or why there is none. One bad event spoils no other."""
    try:
        text = to_text(raw, limits.batch)
        # Situ writes one event a line, which splits fast.
        lines = text[2:-2].split(",\n") if text.startswith("[\n{") and text.endswith("}\n]") else []
        result = _events(lines, limits, marked)
        if lines and not any(isinstance(each, RefusedEvent) for each in result):
            return result
        # Written in another way, lines are no events: take it apart by its brackets. Where these do not match up, the
        # lines have to do, so that one event that was cut off does not take its neighbours with it.
        parts = split_array(text)
        if parts is not None:
            return _events(parts, limits, marked)
        if lines:
            return result
        read_json(text, limits.depth)
    except SituError as error:
        return (RefusedEvent(raw, error.problems),)
    return (RefusedEvent(raw, (NO_CLOUDEVENT(attribute="the text", reason="is no JSON array", remedy=_BATCH_FORM),)),)


_BATCH_FORM = "A batch is an array of events: [{…}, {…}]."


def _events(texts: list[str], limits: JsonLimits, marked: bool) -> tuple[CloudEvent | RefusedEvent, ...]:
    if len(texts) > limits.events:
        raise SituError(EVENT_LIMIT(what="events in a batch", most=limits.events))
    return tuple(_event_or_refused(text, limits, marked) for text in texts)


def _event_or_refused(text: str, limits: JsonLimits, marked: bool) -> CloudEvent | RefusedEvent:
    try:
        if len(text) * 4 > limits.event:
            to_text(text, limits.event)
        return event_of(read_json(text, limits.depth), marked)
    except SituError as error:
        return RefusedEvent(text, error.problems)


def event_of(attributes: Any, marked: bool) -> CloudEvent:
    """The event that these attributes make; they are ours to take apart."""
    if type(attributes) is not dict:
        raise SituError(_fault("the text", f"is {describe(attributes)}", "An event is a JSON object: {…}."))
    faults: list[Problem] = []
    take = attributes.pop
    if (version := take("specversion", None)) != SPEC_VERSION:
        faults.append(_fault("specversion", _found(version), f'Situ reads CloudEvents "{SPEC_VERSION}".'))
    identifier, source, type_ = take("id", None), take("source", None), take("type", None)
    if not _in_order(identifier):
        _text("id", identifier, faults, required=True)
    if not _in_order(source):
        _reference("source", source, faults, required=True)
    if not _in_order(type_):
        _reference("type", type_, faults, required=True)
    time, data = take("time", None), take("data", None)
    if "data_base64" in attributes:
        data = _binary(data, take("data_base64"), faults)
    if time is not None:
        time = _time("time", time, faults)
    if not attributes and not faults:
        return CloudEvent(id=identifier, source=source, type=type_, time=time, data=data)
    event = CloudEvent(
        id=identifier,
        source=source,
        type=type_,
        time=time,
        data=data,
        subject=_text("subject", take("subject", None), faults),
        dataschema=_uri("dataschema", take("dataschema", None), faults),
        datacontenttype=_content_type(take("datacontenttype", None), faults),
        confidence=_confidence(take("confidence", None), faults),
        marks=_read_marks(attributes, faults) if marked else NO_MARKS,
        extensions=_extensions(attributes, faults) if attributes else {},
    )
    if faults:
        raise SituError(*faults)
    return event


def _fault(attribute: str, reason: str, remedy: str = "") -> Problem:
    plain = attribute.isprintable() and len(attribute) <= _LONGEST_NAME
    return NO_CLOUDEVENT(attribute=attribute if plain else describe(attribute), reason=reason, remedy=remedy)


def _not_carried(attribute: str, reason: str, remedy: str) -> Problem:
    """CloudEvents allows it; Situ has no use for it."""
    return EVENT_NOT_CARRIED(attribute=attribute, reason=reason, remedy=remedy)


def _found(value: Any) -> str:
    return "is missing" if value is None else f"is {describe(value)}"


def _in_order(value: Any) -> bool:
    """Plainly a reference and a text; what is not is looked at more closely."""
    return type(value) is str and value != "" and value.isprintable() and " " not in value


def _text(name: str, value: Any, faults: list[Problem], *, required: bool = False) -> Any:
    """A non-empty text without control characters; None where it is optional or at fault."""
    if value is None and not required:
        return None
    if type(value) is str and value:
        if value.isprintable() or not _CONTROL.search(value):
            return value
        faults.append(_fault(name, "contains control characters"))
    else:
        faults.append(_fault(name, _found(value), "It is a text that is not empty."))
    return None


def _reference(name: str, value: Any, faults: list[Problem], *, required: bool = False) -> Any:
    """A text without space, as in a URI."""
    text = _text(name, value, faults, required=required)
    if text is not None and _SPACE.search(text):
        faults.append(_fault(name, "contains space", "In a URI, space is written %20."))
    return text


def _uri(name: str, value: Any, faults: list[Problem]) -> Any:
    """A URI with its scheme; CloudEvents allows no relative one here."""
    text = _reference(name, value, faults)
    if text is not None and not _SPACE.search(text) and not _ABSOLUTE.fullmatch(text):
        faults.append(_fault(name, "is no absolute URI", "It begins with its scheme: https://example.org/schema.json."))
    return text


def _binary(data: Any, encoded: Any, faults: list[Problem]) -> Any:
    """The data that stands in ``data_base64``: JSON all the same, as its content type says or nothing says."""
    name = "data_base64"
    if encoded is None:
        return data
    if data is not None:
        faults.append(_fault(name, "stands beside `data`", "An event has one of them."))
        return None
    try:
        if type(encoded) is not str:
            raise ValueError
        raw = base64.b64decode(encoded, validate=True)
    except ValueError:
        faults.append(_fault(name, f"is {describe(encoded)}", "It is a text of base64, as in RFC 4648."))
        return None
    try:
        return read_json(to_text(raw, JSON_LIMITS.event))
    except SituError as error:
        cause = error.problems[0].message
        faults.append(_not_carried(name, "holds no JSON", f"Situ carries JSON data. {cause}"))
        return None


def _time(name: str, value: Any, faults: list[Problem]) -> datetime | None:
    if value is None:
        return None
    try:
        return read_timestamp(value)
    except Unfit as error:
        faults.append(_fault(name, _found(value), error.remedy))
        return None


def _content_type(value: Any, faults: list[Problem]) -> Any:
    if value is None or value == "application/json":
        return value
    if type(value) is str and len(value) <= 200 and _JSON_TYPE.fullmatch(value):
        return value
    if type(value) is str and _MEDIA_TYPE.fullmatch(value):
        remedy = "Situ carries JSON data: send it as application/json, bytes as base64 text in an attribute."
        faults.append(_not_carried("datacontenttype", _found(value), remedy))
    else:
        faults.append(_fault("datacontenttype", _found(value), "It is a media type: application/json."))
    return None


def _confidence(value: Any, faults: list[Problem]) -> float | None:
    """A number from 0 to 100, as text or number, with or without percent sign."""
    if value is None:
        return None
    match = _PERCENT.fullmatch(value.strip()) if type(value) is str else None
    number = float(match[1]) if match else value
    if type(number) in (int, float) and 0 <= number <= 100:
        return float(number) + 0.0  # zero has no sign
    faults.append(_not_carried("confidence", _found(value), 'It is a number from 0 to 100, in percent: "97.5".'))
    return None


def _read_marks(attributes: dict[str, Any], faults: list[Problem]) -> Marks:
    """Takes what Situ wrote out of the attributes."""
    found: dict[str, Any] = {}
    for name in [name for name in attributes if name in _MARKS]:
        field, kind = _MARKS[name]
        value = attributes.pop(name)
        if kind == "text" and _in_order(value):
            found[field] = value
        elif value is not None:
            found[field] = _mark(name, kind, value, faults)
    return Marks(**found) if found else NO_MARKS


def _mark(name: str, kind: MarkKind, value: Any, faults: list[Problem]) -> Any:
    if kind == "text":
        return _text(name, value, faults)
    if kind == "timestamp":
        return _time(name, value, faults)
    if type(value) is (bool if kind == "boolean" else int):
        return value
    faults.append(_fault(name, _found(value), f"It is of the type {kind}."))
    return None


def _extensions(attributes: dict[str, Any], faults: list[Problem]) -> dict[str, str]:
    """Foreign attributes as text. Null is how JSON writes an attribute that is not there."""
    result: dict[str, str] = {}
    for name, value in attributes.items():
        if len(faults) >= _MOST_FAULTS:
            break
        if value is None:
            continue
        if not _EXTENSION_NAME.fullmatch(name):
            faults.append(_fault(name, "is no name of an attribute", "Names consist of lower-case letters and digits."))
        elif type(value) is str:
            result[name] = value
            _text(name, value or "-", faults)
        elif type(value) is bool:
            result[name] = "true" if value else "false"
        elif type(value) is int and _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER:
            result[name] = str(value)
        else:
            remedy = "Attributes are text, whole numbers of 32 bits or booleans; more goes into `data`."
            faults.append(_fault(name, _found(value), remedy))
    return result
