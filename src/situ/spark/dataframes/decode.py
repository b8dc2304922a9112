"""Stage decode on DataFrames: JSON text or columns of any table → events of one type.

Text is decoded by :class:`situ.stages.decode.EventDecoder`, in a function over Arrow arrays: what a producer may have
got wrong is judged by the code that engines use, and says the same. Columns are put together and checked by expressions
of Spark alone: `ColumnPlan` casts what can be cast without loss, fills defaults in, and finds values that are missing
or no numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

from situ.event.data_reader import read_extensions
from situ.event.instants import instant_at, print_instant
from situ.event.row import BadRow, Error, Origin, Row, errors_of, print_percent
from situ.lang.catalogue import (
    FRAME_COLUMN_UNFIT,
    FRAME_EVENT_UNFIT,
    FROM_THE_FUTURE,
    NO_CLOUDEVENT,
    NOT_ON_DATAFRAMES,
    ROW_FAILED,
)
from situ.lang.expr.emit.spark import spark_literal
from situ.lang.expr.overload import spark_name, spark_text
from situ.lang.problems import SituError
from situ.lang.types.arrow_schema import arrow_type
from situ.lang.types.data_column import DataColumn, holds
from situ.lang.types.json_codec import TYPE_KEY, decoder, encode
from situ.lang.types.layout import Column, columns, spark_type
from situ.lang.types.model import DOUBLE, Attribute, ListOf, Struct, Type, plain
from situ.lang.types.scalars import print_duration, print_timestamp
from situ.lang.types.table import Types
from situ.spark.dataframes import worker
from situ.spark.dataframes.frame import (
    DATA,
    ENVELOPE,
    EVENT,
    FAILURE,
    EventFrame,
    arrow_function,
    column_type,
    envelope_column,
    failure_text,
    json_text,
    no_column,
    nullable,
    schema_of,
    without,
)
from situ.spark.dataframes.worker import (
    ProjectTerms,
    envelope_array,
    event_rows,
    failure,
    failure_array,
    failure_of_row,
    now,
)
from situ.stages.decode import STAGE, EventDecoder
from situ.stages.interpret import Interpretation

_DECODED, _ENCODED, _VALUE = "_situ_decoded", "_situ_encoded", "value"
_AT, _CAME = "_situ_at", "_situ_came"
_TOGETHER = 500
"""Events that are decoded as one message: those of a batch mostly are alike, and all in order."""
_ANYBODY = "~"
"""Stands for the client of events that say themselves whose they are."""
_LARGEST = "1.7976931348623157E308D"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeColumns:
    """Where the envelope of an event comes from: Spark SQL by field, where the user said something."""

    id: str | None = None
    source: str | None = None
    time: str | None = None
    confidence: str | None = None
    client: str | None = None
    ad: str | None = None
    received: str | None = None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# JSON text.


def decode_text(
    frame: DataFrame, terms: ProjectTerms, kind: EventFrame, column: DataColumn, value: str, given: EnvelopeColumns
) -> DataFrame:
    """The events in a column of texts, each a CloudEvent in JSON."""
    _check_text(frame, value)
    parts = {EVENT: worker.ENVELOPE, DATA: column.arrow, FAILURE: worker.FAILURE}
    decode = arrow_function(_decoding(terms, kind), pa.struct(list(parts.items())))
    received = f"unix_micros(CAST({given.received} AS TIMESTAMP))" if given.received else "CAST(NULL AS BIGINT)"
    client = f"CAST({given.client} AS STRING)" if given.client else "CAST(NULL AS STRING)"
    made = decode(sf.expr(f"CAST({spark_name(value)} AS BINARY)"), sf.expr(received), sf.expr(client))
    whole = without(frame, (name for name in parts if name != value)).select("*", made.alias(_DECODED))
    left = f"* EXCEPT ({_DECODED}{f', {spark_name(value)}' if value in parts else ''})"
    return kind.put_on(whole.selectExpr(left, *(f"{_DECODED}.{name} AS {name}" for name in parts)), sure=True)


def _check_text(frame: DataFrame, value: str) -> None:
    schema = schema_of(frame)
    if schema is None:
        return  # Spark says what is wrong when it analyses the query
    found = column_type(schema, value, "which has the text of events", "Name it with `value=`.")
    if not isinstance(found, StringType | BinaryType):
        wanted = "the text of events"
        raise SituError(
            FRAME_COLUMN_UNFIT(column=value, found=found.simpleString(), wanted=wanted, expected="string or binary")
        )


def _decoding(terms: ProjectTerms, kind: EventFrame) -> Any:
    def run(texts: pa.Array, received: pa.Array, clients: pa.Array) -> pa.Array:
        reader = TextReader(terms.plan().interpretation, kind)
        return reader.read(texts.to_pylist(), received.to_pylist(), clients.to_pylist())

    return run


class TextReader:
    """Decodes the texts of events of one type, in the terms of one context."""

    def __init__(self, interpretation: Interpretation, kind: EventFrame) -> None:
        context = interpretation.contexts.get(kind.context) or interpretation.contexts.root
        struct = context.types.event(kind.type)
        assert struct is not None, "the driver has looked it up"
        self._kind = kind
        self._column = DataColumn(struct, context.types)
        self._decoder = EventDecoder(
            context.types,
            extra=interpretation.extra,
            ahead=interpretation.ahead,
            limit=interpretation.size,
            suggests=interpretation.suggests,
        )

    def read(
        self, texts: Sequence[bytes | None], received: Sequence[int | None], clients: Sequence[str | None]
    ) -> pa.Array:
        """The columns ``event``, ``data`` and ``failure`` of these texts, as one of structs."""
        clock = now()
        found = list(self._rows(texts, received, clients, clock))
        failures: list[Mapping[str, Any] | None] = []
        rows: list[Row | None] = []
        for each, text in zip(found, texts, strict=True):
            refused: Mapping[str, Any] | None = None
            if isinstance(each, BadRow):
                refused = failure_of_row(each, self._kind.context, self._kind.type)
            elif each.type != self._kind.type:
                refused = self._of_another_type(each, text or b"")
            failures.append(refused)
            rows.append(each if isinstance(each, Row) else None)
        data = [
            None if row is None or refused is not None else row.data
            for row, refused in zip(rows, failures, strict=True)
        ]
        return pa.StructArray.from_arrays(
            [
                envelope_array(rows, self._kind.context, received),
                self._column.of_texts(data),
                failure_array(failures),
            ],
            [EVENT, DATA, FAILURE],
        )

    def _rows(
        self,
        texts: Sequence[bytes | None],
        received: Sequence[int | None],
        clients: Sequence[str | None],
        clock: int,
    ) -> Iterator[Row | BadRow]:
        for start in range(0, len(texts), _TOGETHER):
            some = slice(start, start + _TOGETHER)
            together = self._together(texts[some], received[some], clients[some], clock)
            if together is not None:
                yield from together
                continue
            for text, came, client in zip(texts[some], received[some], clients[some], strict=True):
                yield self._one(text, client, clock if came is None else came)

    def _together(
        self,
        texts: Sequence[bytes | None],
        received: Sequence[int | None],
        clients: Sequence[str | None],
        clock: int,
    ) -> list[Row | BadRow] | None:
        """All of them at once, as one message; None if these must be looked at one by one."""
        # A text with a line break could fall apart into two where a message is cut into lines.
        if any(text is None or not text or b"\n" in text for text in texts):
            return None
        if len(set(received)) > 1 or len(set(clients)) > 1:
            return None
        body = b"[\n%b\n]" % b",\n".join(text for text in texts if text)
        came = clock if received[0] is None else received[0]
        rows = self._decoder.decode(body, _origin(clients[0], came))
        if len(rows) != len(texts) or any(isinstance(row, BadRow) for row in rows):
            return None
        return [_claimed(row, clients[0], text or b"") for row, text in zip(rows, texts, strict=True)]

    def _one(self, text: bytes | None, client: str | None, received: int) -> Row | BadRow:
        if not text:
            missing = NO_CLOUDEVENT(attribute="the text", reason="is missing", remedy="")
            return _bad(b"", errors_of([missing]), received)
        rows = self._decoder.decode(b"[\n%b\n]" % text, _origin(client, received))
        if len(rows) != 1:
            several = NO_CLOUDEVENT(attribute="the text", reason=f"is {len(rows)} events", remedy="One event a row.")
            return _bad(text, errors_of([several]), received)
        return _claimed(rows[0], client, text)

    def _of_another_type(self, row: Row, text: bytes) -> Mapping[str, Any]:
        problem = FRAME_EVENT_UNFIT(
            found=f"an event of type `{row.type}`", expected=f"events of type `{self._kind.type}`"
        )
        original = text.decode(errors="replace")
        return failure(STAGE, self._kind.context, row.type, errors_of([problem]), original)


def _origin(client: str | None, received: int) -> Origin:
    return Origin(client=client or _ANYBODY, incarnation=0, seq=0, received=received, pos=0)


def _bad(original: bytes, errors: tuple[Error, ...], received: int) -> BadRow:
    return BadRow(0, "", 0, 0, "", received, "", STAGE, errors, original)


def _claimed(row: Row | BadRow, client: str | None, text: bytes) -> Row | BadRow:
    """With what an engine knows from the connection of a client: whose it is, and which of his events."""
    if isinstance(row, BadRow):
        row.original = text
        return row
    if row.id.startswith("0-") and b'"id"' not in text:
        # A text that is read again gets the same id again.
        row.id = hashlib.sha256(text).hexdigest()[:32]
    if client is None:
        if row.source == _ANYBODY:
            missing = NO_CLOUDEVENT(attribute="source", reason="is missing", remedy="Or name a column of clients.")
            return _bad(text, errors_of([missing]), row.recv)
        row.source = row.source.removeprefix(f"{_ANYBODY}/")
        row.client = row.source.partition("/")[0]
    return row


def encode_frame(frame: DataFrame, kind: EventFrame, terms: ProjectTerms) -> DataFrame:
    """The way back: a column of texts, with the columns of the user but what it replaces."""
    made = arrow_function(_encoding(terms, kind), pa.string())(envelope_column(), sf.col(DATA))
    good = without(frame, [_VALUE]).where(f"{FAILURE} IS NULL AND {DATA} IS NOT NULL")
    left = f"* EXCEPT ({EVENT}, {DATA}, {FAILURE}, {_ENCODED})"
    return good.select("*", made.alias(_ENCODED)).selectExpr(left, f"{_ENCODED} AS {_VALUE}")


def _encoding(terms: ProjectTerms, kind: EventFrame) -> Any:
    def run(events: pa.Array, data: pa.Array) -> pa.Array:
        context = terms.plan().interpretation.contexts.get(kind.context)
        struct = None if context is None else context.types.event(kind.type)
        assert context is not None, "the driver has looked it up"
        assert struct is not None, "the driver has looked it up"
        texts = DataColumn(struct, context.types).texts(data)
        rows = event_rows(events, texts, now())
        return pa.array([None if row is None else _cloud_event(row) for row in rows], pa.string())

    return run


def _cloud_event(row: Row) -> str:
    """An event as its producer would send it: without what Situ writes on events."""
    members: dict[str, Any] = {"specversion": "1.0", "id": row.id, "source": row.source, "type": row.type}
    members["time"] = print_instant(row.time)
    if row.confidence is not None:
        members["confidence"] = print_percent(row.confidence)
    if row.ad:
        members["situad"] = row.ad
    members |= read_extensions(row)
    return msgspec.json.encode({**members, "data": msgspec.Raw(row.data)}).decode()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Columns.


def decode_columns(
    frame: DataFrame,
    kind: EventFrame,
    column: DataColumn,
    attributes: Mapping[str, str],
    given: EnvelopeColumns,
    interpretation: Interpretation,
) -> DataFrame:
    """The events whose attributes are columns; ``attributes`` are those that are Spark SQL instead."""
    plan = ColumnPlan(column.struct, column.types)
    for name, text in attributes.items():
        if column.struct.attribute(name) is None:
            known = [each.name for each in column.struct.attributes]
            raise SituError(no_column(name, known, f"which `attributes` says is one of `{kind.type}`"))
        frame = frame.withColumn(_own(name), sf.expr(text))
    schema = schema_of(frame)
    if schema is None:
        remedy = "Call it outside of the function, and let the function return what it gives."
        reason = "a query function of a pipeline may not look at columns"
        raise SituError(NOT_ON_DATAFRAMES(what="`decode` of columns", reason=reason, remedy=remedy))
    data = plan.put_together(schema, {name: _own(name) for name in attributes})
    envelope = _envelope(schema, kind, given)
    event = ", ".join(f"{spark_text(name)}, {envelope[name]}" for name in ENVELOPE)
    left = [spark_name(name) for name in schema.names if name not in {*map(_own, attributes), EVENT, DATA, FAILURE}]
    typed = nullable(data, spark_type(column.struct, column.types))
    # In columns of their own: of the envelope Spark would make all fields, a hash among them, to read one.
    times = f"{envelope['time']} AS {_AT}", f"{envelope['received']} AS {_CAME}"
    made = frame.selectExpr(*left, f"named_struct({event}) AS {EVENT}", f"{typed} AS {DATA}", *times)
    ahead = interpretation.ahead.total_seconds()
    late = f"({_AT} > coalesce({_CAME}, current_timestamp()) + make_dt_interval(0, 0, 0, {ahead!r}))"
    fails = f"coalesce({late} OR {_AT} IS NULL OR {plan.fails(DATA)}, FALSE)"
    problem = ROW_FAILED(stage=STAGE, target=f"an event of type `{kind.type}`")
    failure = failure_text(
        stage=STAGE,
        context=spark_text(kind.context),
        type=spark_text(kind.type),
        problem=problem,
        original=json_text(DATA),
    )
    checked = made.selectExpr("*", f"CASE WHEN {fails} THEN {failure} END AS {FAILURE}")
    whole = checked.selectExpr(*left, EVENT, f"CASE WHEN {FAILURE} IS NULL THEN {DATA} END AS {DATA}", FAILURE)
    return kind.put_on(whole, sure=True)


def _own(attribute: str) -> str:
    return f"_situ_{attribute}"


def _envelope(schema: StructType, kind: EventFrame, given: EnvelopeColumns) -> Mapping[str, str]:
    """The fields of ``event``, of columns that are named, or are called as its fields are."""
    known = {name.casefold() for name in schema.names}

    def text(name: str, otherwise: str) -> str:
        said = getattr(given, name)
        return said or (spark_name(name) if name in known else otherwise)

    time = text("time", "")
    if not time:
        remedy = "Name the column that says when it was with `time=`."
        raise SituError(no_column("time", (), "which says when it was", remedy))
    source = text("source", "")
    client = text("client", "")
    if not source and not client:
        remedy = "Name the column that says who saw it with `source=`, or a constant: `source=\"'archive'\"`."
        raise SituError(no_column("source", (), "which says whose events these are", remedy))
    source = source or client
    row = ", ".join(spark_name(name) for name in schema.names if _hashable(schema[name].dataType))
    parts = {
        "id": text("id", f"left(sha2(to_json(struct({row})), 256), 32)"),
        "source": source,
        "type": spark_text(kind.type),
        "time": time,
        "confidence": text("confidence", "NULL"),
        "client": client or f"substring_index({source}, '/', 1)",
        "ad": text("ad", "NULL"),
        "received": text("received", "NULL"),
        "context": spark_text(kind.context),
        "extensions": "CAST(map() AS MAP<STRING, STRING>)",
    }
    return {name: f"CAST({text} AS {ENVELOPE[name]})" for name, text in parts.items()}


def _hashable(type: DataType) -> bool:
    """Whether Spark can write it as JSON: an id of a row is made of what it has."""
    return type.typeName() not in ("variant", "void", "geometry", "geography")


class ColumnPlan:
    """Columns of a table → the struct of an event type."""

    def __init__(self, struct: Struct, types: Types) -> None:
        self._struct, self._types = struct, types
        self._names = count()

    def put_together(self, schema: StructType, named: Mapping[str, str]) -> str:
        """The struct, as Spark SQL; ``named`` are columns that attributes are in under another name."""
        known = {field.name.casefold(): field for field in schema.fields}
        parts: list[str] = []
        for column in columns(self._struct, self._types):
            name = named.get(column.attribute, column.name)
            field = known.get(name.casefold())
            attribute = self._struct.attribute(column.attribute)
            if field is not None and column.name != TYPE_KEY:
                text = self._value(spark_name(field.name), field.dataType, column.type, column.name)
            elif attribute is not None and not attribute.optional and attribute.default is None:
                remedy = f"Name what it is with `attributes={{{attribute.name!r}: …}}`."
                raise SituError(no_column(name, schema.names, f"an attribute of `{self._struct}`", remedy))
            else:
                text = f"CAST(NULL AS {spark_type(column.type, self._types)})"
            parts.append(f"{spark_text(column.name)}, {self._filled(text, attribute)}")
        return f"named_struct({', '.join(parts)})"

    def _filled(self, text: str, attribute: Attribute | None) -> str:
        if attribute is None or attribute.default is None:
            return text
        return f"coalesce({text}, {self._default(attribute)})"

    def _default(self, attribute: Attribute) -> str:
        if not isinstance(attribute.default, dict | list):
            return spark_literal(attribute.default, attribute.type)
        written = msgspec.json.encode(encode(attribute.type, attribute.default, self._types)).decode()
        return f"from_json({spark_text(written)}, {spark_text(spark_type(attribute.type, self._types))})"

    def _value(self, text: str, found: DataType, declared: Type, path: str) -> str:
        """What is in a column, as a value of this type."""
        bare = plain(declared)
        wanted = from_arrow_type(arrow_type(bare, self._types))
        if _same(found, wanted):
            return text
        match bare:
            case Struct() if isinstance(found, StructType):
                return self._struct_value(text, found, bare, path)
            case ListOf(element=element) if isinstance(found, ArrayType):
                item = f"_situ_x{next(self._names)}"
                return f"transform({text}, {item} -> {self._value(item, found.elementType, element, f'{path}[]')})"
        if _widens(found, wanted):
            return f"CAST({text} AS {spark_type(bare, self._types)})"
        where = f"`{path}` of `{self._struct}`"
        raise SituError(
            FRAME_COLUMN_UNFIT(column=path, found=found.simpleString(), wanted=where, expected=wanted.simpleString())
        )

    def _struct_value(self, text: str, found: StructType, struct: Struct, path: str) -> str:
        known = {field.name.casefold(): field for field in found.fields}
        parts: list[str] = []
        for column in columns(struct, self._types):
            field = known.get(column.name.casefold())
            attribute = struct.attribute(column.attribute)
            if field is not None:
                inner = f"{text}.{spark_name(field.name)}"
                value = self._value(inner, field.dataType, column.type, f"{path}.{column.name}")
            elif attribute is not None and not attribute.optional and attribute.default is None:
                raise SituError(no_column(f"{path}.{column.name}", found.names, f"an attribute of `{struct}`"))
            else:
                value = f"CAST(NULL AS {spark_type(column.type, self._types)})"
            parts.append(f"{spark_text(column.name)}, {self._filled(value, attribute)}")
        return f"CASE WHEN {text} IS NOT NULL THEN named_struct({', '.join(parts)}) END"

    # ── what is wrong ──

    def fails(self, data: str) -> str:
        """Whether such a struct is no value of the type, as Spark SQL."""
        return self._any(self._faults(data, self._struct))

    def _faults(self, text: str, struct: Struct) -> Iterator[str]:
        own = {each.name: each for each in struct.attributes}
        for column in columns(struct, self._types):
            if column.name == TYPE_KEY:
                continue
            place = f"{text}.{spark_name(column.name)}"
            attribute = own.get(column.name)
            yield from self._value_faults(place, column)
            if attribute is not None and not attribute.optional:
                yield f"{place} IS NULL"
        yield from self._subtype_faults(text, struct)

    def _subtype_faults(self, text: str, struct: Struct) -> Iterator[str]:
        """Values that say they are of a type which is not below this one, or lack what that one must have."""
        below = [each for each in self._types.subtypes(struct)[1:] if isinstance(each, Struct)] if struct.name else []
        if not below:
            return
        says = f"{text}.{spark_name(TYPE_KEY)}"
        yield f"({says} NOT IN ({', '.join(spark_text(each.name) for each in (struct, *below))}))"
        laid = columns(struct, self._types)
        for subtype in below:
            for attribute in subtype.attributes:
                if not attribute.optional and struct.attribute(attribute.name) is None:
                    held = next(each for each in laid if holds(each, attribute))
                    yield f"({says} = {spark_text(subtype.name)} AND {text}.{spark_name(held.name)} IS NULL)"

    def _value_faults(self, place: str, column: Column) -> Iterator[str]:
        bare = plain(column.type)
        match bare:
            case Struct():
                inner = self._any(self._faults(place, bare))
                if inner != "FALSE":
                    yield f"({place} IS NOT NULL AND {inner})"
            case ListOf(element=element):
                item = f"_situ_x{next(self._names)}"
                of = Column(name=column.name, attribute=column.attribute, type=element)
                inner = self._any(self._value_faults(item, of))
                if inner != "FALSE":
                    yield f"exists({place}, {item} -> coalesce({inner}, FALSE))"
            case _ if bare == DOUBLE:
                # Spark orders NaN above all numbers, so one comparison finds it and both infinities.
                yield f"coalesce(abs({place}) > {_LARGEST}, FALSE)"

    def _any(self, faults: Iterable[str]) -> str:
        found = list(faults)
        return f"({' OR '.join(found)})" if found else "FALSE"


def _same(found: DataType, wanted: DataType) -> bool:
    return found.simpleString() == wanted.simpleString()


_WIDER: Mapping[type[DataType], tuple[type[DataType], ...]] = {
    IntegerType: (ByteType, ShortType),
    LongType: (ByteType, ShortType, IntegerType),
    DoubleType: (FloatType, ByteType, ShortType, IntegerType),
}


def _widens(found: DataType, wanted: DataType) -> bool:
    """Whether every value of the one is one of the other, too."""
    if isinstance(found, DecimalType) and isinstance(wanted, DecimalType):
        return found.scale <= wanted.scale and found.precision - found.scale <= wanted.precision - wanted.scale
    return isinstance(found, _WIDER.get(type(wanted), ())) or (
        isinstance(found, StringType) and isinstance(wanted, StringType)
    )


# ── why, in the words of engines ──


def explain_columns(
    column: DataColumn, original: str, time: int | None, received: int, interpretation: Interpretation
) -> tuple[Error, ...]:
    """What is wrong with a row whose struct Spark has written as JSON; empty if nothing is found."""
    decoded = decoder(column.struct, column.types)(column.layout_json(original))
    problems = list(decoded.problems)
    if time is None:
        problems.append(NO_CLOUDEVENT(attribute="time", reason="is missing", remedy="Every row says when it was."))
    elif instant_at(time) - instant_at(received) > interpretation.ahead:
        problems.append(
            FROM_THE_FUTURE(
                time=print_timestamp(instant_at(time)),
                received=print_timestamp(instant_at(received)),
                ahead=print_duration(interpretation.ahead),
            )
        )
    return errors_of(problems)
