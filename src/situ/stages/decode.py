"""Intake: the stage ``decode``. The body of a message → for each place in it a row, or what is wrong there.

Two ways lead to a row. The fast one reads a whole message at once by the plans of its types and accepts what is plainly
right. Where it hesitates, each event is read alone, and where that fails, too, it is judged by the decoders of
:mod:`situ.event.cloudevents` and :mod:`situ.lang.types.json_codec`, which define what is right and say what is wrong.
Both ways give the same rows.

That keys stand once in their object is seen from the quotes: what was accepted has so many keys and texts, each with
two quotes, and if there are no more in what was sent then nothing was left out and nothing stood there twice. An
escaped quote would upset the count, so texts with one take the slow way.

No text is deeper than a type when it is accepted the fast way: types have a known depth, and what they do not declare
has quotes that are not accounted for. Readers in C give up where Python's own stack would; the slow way counts brackets
before it reads anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from situ.event.cloudevents import decode_batch, event_of
from situ.event.data_reader import DataPlan, data_plan_of
from situ.event.envelope import CloudEvent, accept, check_time, own_source
from situ.event.failures import KEPT, failure_of, is_of_event
from situ.event.instants import instant_at, microseconds, read_instant
from situ.event.row import BadRow, Origin, Row, errors_of
from situ.lang.catalogue import EVENT_LIMIT, EVENT_TOO_LARGE
from situ.lang.documents.strict_json import JSON_LIMITS, JsonLimits, read_json, split_array, to_text
from situ.lang.problems import Problem, SituError
from situ.lang.types.json_codec import Extra
from situ.lang.types.lookup import EventData
from situ.lang.types.scalars import Unfit
from situ.lang.types.table import Types

STAGE = "decode"


class _Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The attributes that the fast way knows; all others take the slow one."""

    specversion: Literal["1.0"]
    type: str
    id: str | UnsetType = UNSET
    source: str | UnsetType = UNSET
    time: str | UnsetType = UNSET
    data: Raw | UnsetType = UNSET
    confidence: float | str | None = None
    situad: str | UnsetType = UNSET
    subject: str | UnsetType = UNSET
    datacontenttype: Literal["application/json"] | UnsetType = UNSET
    traceparent: str | UnsetType = UNSET


_decode_batch = msgspec.json.Decoder(list[_Envelope]).decode
_decode_event = msgspec.json.Decoder(_Envelope).decode
_encode = msgspec.json.Encoder().encode
_EMPTY = b"{}"
Needless = Callable[[str], bool]
_NOT_AN_EVENT = frozenset({"E701", "E702", "E704", "R007"})


def texts_of(body: bytes) -> list[bytes]:
    """The texts of the events of a message, uninterpreted; the whole if it does not come apart."""
    lines = body[2:-2].split(b",\n") if body.startswith(b"[\n{") and body.endswith(b"}\n]") else []
    if lines:
        return lines[: JSON_LIMITS.events]
    try:
        parts = split_array(to_text(body, len(body)))
    except SituError:
        parts = None
    return [body] if not parts else [part.encode() for part in parts[: JSON_LIMITS.events]]


class EventDecoder:
    """Decodes the messages of clients against one table of types. Each type's plan is made at its first event."""

    def __init__(
        self,
        types: Types,
        *,
        extra: Extra,
        ahead: timedelta,
        limit: int,
        suggests: bool = True,
        most: int = JSON_LIMITS.events,
    ) -> None:
        """``limit``: bytes of an event; ``most``: events of a message."""
        self._most = most
        self._types = types
        self._data = EventData(types, extra, suggests=suggests)
        self._ahead = ahead
        self._latest = ahead // timedelta(microseconds=1)
        self._limit = limit
        self._plans: dict[str, DataPlan | None] = {}

    def decode(self, body: bytes, origin: Origin, needless: Needless | None = None) -> list[Row | BadRow]:
        """A row or what is wrong, for each event of a message; the text of ``needless`` types may be left out."""
        try:
            return self._decode(body, origin, needless)
        except Exception as error:  # noqa: BLE001 - the message as a whole is what cannot be read
            return [self._failed(body, origin, 0, error)]

    def _decode(self, body: bytes, origin: Origin, needless: Needless | None) -> list[Row | BadRow]:
        if len(body) <= self._limit:
            rows = self._fast(body, origin, needless)
            if rows is not None:
                return rows
        lines = body[2:-2].split(b",\n") if body.startswith(b"[\n{") and body.endswith(b"}\n]") else []
        if len(lines) > self._most:
            too_many = EVENT_LIMIT(what="events in a batch", most=self._most)
            return [self._bad(body[: self._limit], origin, 0, (too_many,), size=len(body))]
        result = self._events(lines, origin)
        if lines and not any(_is_no_event(each) for each in result):
            return result
        # Written in another way, lines are no events: take it apart by its brackets. Where these do not match up, the
        # lines have to do, so that one event that was cut off does not take its neighbours with it.
        try:
            parts = split_array(to_text(body, len(body)))
        except SituError:
            parts = None
        if parts is None:
            return result or self._no_batch(body, origin)
        if len(parts) > self._most:
            too_many = EVENT_LIMIT(what="events in a batch", most=self._most)
            return [self._bad(body[: self._limit], origin, 0, (too_many,), size=len(body))]
        texts = [part.encode() for part in parts]
        return result if texts == lines else self._events(texts, origin)

    # ── the fast way ──────────────────────────────────────────────────────────────────────────────

    def _fast(self, body: bytes, origin: Origin, needless: Needless | None = None) -> list[Row | BadRow] | None:
        """The rows, if all events are plainly right."""
        if not _is_plain(body):
            return None
        try:
            envelopes = _decode_batch(body)
            return self._rows(envelopes, body, origin, 0, needless) if len(envelopes) <= self._most else None
        except (msgspec.MsgspecError, UnicodeDecodeError, Unfit, RecursionError):
            return None
        except Exception as error:
            if not is_of_event(error):
                raise
            return None

    def _events(self, lines: list[bytes], origin: Origin) -> list[Row | BadRow]:
        return [self._event(line, origin, place) for place, line in enumerate(lines)]

    def _event(self, line: bytes, origin: Origin, place: int) -> Row | BadRow:
        if len(line) <= self._limit and _is_plain(line):
            try:
                rows = self._rows([_decode_event(line)], line, origin, place)
            except (msgspec.MsgspecError, UnicodeDecodeError, Unfit, RecursionError):
                rows = None
            except Exception as error:
                if not is_of_event(error):
                    raise
                rows = None
            if rows is not None:
                return rows[0]
        try:
            return self._judge(line, origin, place)
        except Exception as error:  # noqa: BLE001 - of this event, and of no other
            return self._failed(line, origin, place, error)

    def _rows(
        self, envelopes: list[_Envelope], text: bytes, origin: Origin, place: int, needless: Needless | None = None
    ) -> list[Row | BadRow] | None:
        """The rows of these events, if they are all plainly right; ``text`` is what they were read from."""
        plans, unset = self._plans, UNSET
        client, incarnation, context, received = origin.client, origin.incarnation, origin.context, origin.received
        latest = received + self._latest
        seq, pos = origin.seq + place, origin.pos + place
        quotes = 8 * len(envelopes)  # of specversion and type
        rows: list[Row | BadRow] = []
        type_, plan, fixed, writes = "", None, None, True
        for each in envelopes:
            if each.type != type_ or plan is None:  # neighbours are mostly alike
                type_ = each.type
                plan = plans.get(type_) or self._plan(type_)
                if plan is None:
                    return None
                fixed = plan.quotes
                writes = fixed is None or needless is None or not needless(type_)
            data: Raw | bytes = _EMPTY
            if each.data is not unset:
                data = each.data
                quotes += 2
            value = plan.decode(data)
            if fixed is None:
                canonical = _encode(value)
                quotes += canonical.count(b'"')
                if plan.careful:
                    canonical = plan.mended(value, canonical)
            else:
                quotes += fixed
                if plan.careful:
                    plan.mend(value)
                canonical = _encode(value) if writes else b""
            id, source, time = each.id, each.source, received
            if id is unset:
                id = f"{incarnation}-{seq}"
            elif id and id.isprintable():
                quotes += 4
            else:
                return None
            if source == client:
                quotes += 4
            elif source is unset:
                source = client
            elif source and source.isprintable() and " " not in source:
                quotes += 4
                source = own_source(source, client)
            else:
                return None
            if each.time is not unset:
                quotes += 4
                read = read_instant(each.time)
                if read is None or read > latest:
                    return None
                time = read
            ad, confidence, ext = "", None, ""
            if each.situad is not unset:
                quotes += 4
                ad = each.situad
                if not ad.isprintable():
                    return None
            if each.confidence is not None:
                quotes += 4 if type(each.confidence) is str else 2
                confidence = _confidence(each.confidence)
                if confidence is None:
                    return None
            if each.subject is not unset or each.traceparent is not unset or each.datacontenttype is not unset:
                found = _ext(each)
                if found is None:
                    return None
                ext, more = found
                quotes += more
            rows.append(
                Row(
                    pos, client, incarnation, seq, context, received,
                    id, source, type_, time, ad, confidence, ext, canonical, None, value,
                )
            )  # fmt: skip
            seq += 1
            pos += 1
        return rows if quotes == text.count(b'"') else None

    def _plan(self, type: str) -> DataPlan | None:
        if type not in self._plans:
            struct = self._types.event(type)
            if struct is None:
                return None  # not remembered: whoever makes up names must not fill the memory
            self._plans[type] = data_plan_of(struct)
        return self._plans[type]

    # ── the slow way ──────────────────────────────────────────────────────────────────────────────

    def _judge(self, line: bytes, origin: Origin, place: int) -> Row | BadRow:
        if len(line) > self._limit:
            problem = EVENT_TOO_LARGE(size=len(line), most=self._limit)
            return self._bad(line[:KEPT], origin, place, (problem,), size=len(line))
        try:
            attributes = read_json(to_text(line, self._limit))
            _fill(attributes, origin, place)
            event = event_of(attributes, marked=False)
        except SituError as error:
            return self._bad(line, origin, place, error.problems)
        received = instant_at(origin.received)
        taken = accept(event, client=origin.client, received=received).event
        late = check_time(taken, received, self._ahead)
        decoded = self._data.decode(taken.type, taken.data)
        problems = (*((late,) if late else ()), *decoded.problems)
        if problems:
            return self._bad(line, origin, place, problems, ad=taken.marks.ad or "")
        return Row(
            pos=origin.pos + place,
            client=origin.client,
            incarnation=origin.incarnation,
            seq=origin.seq + place,
            context=origin.context,
            recv=origin.received,
            id=taken.id,
            source=taken.source,
            type=taken.type,
            time=origin.received if taken.time is None else microseconds(taken.time),
            ad=taken.marks.ad or "",
            confidence=taken.confidence,
            ext=_members(taken),
            data=_text(self._data.encode(taken.type, decoded.value)),
        )

    def _failed(self, text: bytes, origin: Origin, place: int, error: Exception) -> BadRow:
        failure = failure_of(error, STAGE)
        size = len(text) if len(text) > KEPT else None
        bad = self._bad(text[:KEPT], origin, place, (), size=size)
        bad.errors, bad.trace = failure.errors, failure.trace
        return bad

    def _no_batch(self, body: bytes, origin: Origin) -> list[Row | BadRow]:
        """The text as a whole is none; the reference says why."""
        (refused,) = decode_batch(body, limits=JsonLimits(batch=len(body)))
        assert not isinstance(refused, CloudEvent), "a batch that does not come apart has no events"
        return [self._bad(body[: self._limit], origin, 0, refused.problems, size=len(body))]

    def _bad(
        self,
        original: bytes,
        origin: Origin,
        place: int,
        problems: tuple[Problem, ...],
        *,
        ad: str = "",
        size: int | None = None,
    ) -> BadRow:
        return BadRow(
            pos=origin.pos + place,
            client=origin.client,
            incarnation=origin.incarnation,
            seq=origin.seq + place,
            context=origin.context,
            recv=origin.received,
            ad=ad,
            stage=STAGE,
            errors=errors_of(problems),
            original=original,
            size=size if size != len(original) else None,
        )


def _is_no_event(found: Row | BadRow) -> bool:
    return isinstance(found, BadRow) and found.errors[0][0] in _NOT_AN_EVENT


def _is_plain(text: bytes) -> bool:
    """UTF-8 in which quotes can be counted."""
    if b"\\" in text and (b'\\"' in text or b"\\u0022" in text):
        return False
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _confidence(value: float | str) -> float | None:
    if isinstance(value, str):
        # The plainest of the forms it can have; the others are read the slow way.
        whole, _, part = value.partition(".")
        digits = whole + part
        if not (digits.isdecimal() and digits.isascii() and 0 < len(whole) <= 3 and len(part) <= 20):
            return None
        if "." in value and not part:
            return None
        value = float(value)
    return value + 0.0 if 0 <= value <= 100 else None  # zero has no sign


def _fill(attributes: Any, origin: Origin, place: int) -> None:
    """What the producer may leave out: the key says it as well."""
    if type(attributes) is dict:
        if attributes.get("id") is None:
            attributes["id"] = f"{origin.incarnation}-{origin.seq + place}"
        if attributes.get("source") is None:
            attributes["source"] = origin.client


def _ext(each: _Envelope) -> tuple[str, int] | None:
    """Foreign attributes as members of a JSON object, and the quotes they had; None if one is not plainly right."""
    members: dict[str, str] = {}
    for name, value in (
        ("subject", each.subject),
        ("datacontenttype", each.datacontenttype),
        ("traceparent", each.traceparent),
    ):
        if value is not UNSET:
            if not value or not value.isprintable():
                return None
            members[name] = value
    return _encode(members)[1:-1].decode(), 4 * len(members)


def _members(event: CloudEvent) -> str:
    members = {
        name: value
        for name, value in (
            ("subject", event.subject),
            ("dataschema", event.dataschema),
            ("datacontenttype", event.datacontenttype),
        )
        if value is not None
    }
    members.update(sorted(event.extensions.items()))
    return _encode(members)[1:-1].decode()


def _text(value: Any) -> bytes:
    """Compact JSON. Undeclared attributes that are kept may hold integers of any size, which only Python writes."""
    try:
        return _encode(value)
    except (OverflowError, msgspec.MsgspecError):
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
