"""Files of others as history: CSV and Parquet, by a map that says which column is what.

``{files: "*.csv", type: FaceSeen, columns: {person: badge}, time: {column: when, format: …, zone: …}}``. `load_map`
reads one with all that is wrong in it, `find_files` holds it against the files there are, `read_mapped` makes events of
their rows. A row becomes the CloudEvent that a producer would have sent, and goes the way of one: decoded against its
type, converted from its context into root. So what is wrong with a row has the code that an engine would give it.
"""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv
from pyarrow import parquet

from situ.contexts.model import ROOT
from situ.event.instants import microseconds, print_instant
from situ.event.message import join_lines, position
from situ.event.row import BadRow, Origin, Row
from situ.lang.catalogue import (
    BAD_MAPPED_TIME,
    MALFORMED_LINE,
    MAPPED_FILE_UNREADABLE,
    NO_MAPPED_ATTRIBUTE,
    NO_MAPPED_COLUMN,
    NO_MAPPED_FILES,
    NOT_IN_PROJECT,
)
from situ.lang.documents import Document, Fields, MappingNode, Node, Reader, ScalarNode, SequenceNode
from situ.lang.problems import Location, Problem, Problems, SituError, nearest
from situ.lang.types.model import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, Decimal, Struct, Type, plain
from situ.lang.types.table import Types
from situ.model import Deployment
from situ.stages.plan import Plan
from situ.storage.state_folder import StateFolder

_KEYS = ("files", "context", "columns", "id", "source", "client", "confidence", "delimiter")
_UNITS = {"seconds": 1_000_000, "milliseconds": 1_000, "microseconds": 1}
ISO = "iso"
_TOGETHER = 500
"""Events that are decoded as one message."""
_LONGEST = 200
"""Characters of a row that failed which are kept."""
_encode = msgspec.json.Encoder(decimal_format="number").encode

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The map.


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedColumn:
    """A column, and how times in it are written; ``path`` leads to the attribute that it is."""

    name: str
    path: tuple[str, ...] = ()
    format: str = ISO
    zone: str = ""
    place: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMap:
    """What rows of files are. A column that is not named here is the attribute that is called like it."""

    file: str
    files: str
    type: str
    context: str
    time: MappedColumn
    columns: tuple[MappedColumn, ...]
    id: tuple[MappedColumn, ...]
    source: str
    source_column: MappedColumn | None
    confidence: MappedColumn | None
    client: str
    delimiter: str

    def struct(self, deployment: Deployment) -> tuple[Struct, Types]:
        """The type of the events, as its context has it."""
        context = deployment.contexts.get(self.context)
        types = deployment.types if context is None or self.context == ROOT else context.types
        struct = types.event(self.type)
        assert struct is not None, "the map has been checked"
        return struct, types

    @property
    def named(self) -> Iterator[tuple[MappedColumn, str]]:
        """The columns that must be there, and what each is."""
        yield self.time, "the time of an event"
        for each in self.columns:
            yield each, f"`{'.'.join(each.path)}`"
        for each in self.id:
            yield each, "a part of its id"
        if self.source_column is not None:
            yield self.source_column, "its source"
        if self.confidence is not None:
            yield self.confidence, "its confidence"


def load_map(document: Document, deployment: Deployment, problems: Problems) -> FileMap | None:
    """What a map says; None, with the problems noted, if it cannot be used."""
    before = len(problems.errors)
    read = Reader(problems)
    found = read.document(document, required=("type", "time"), optional=_KEYS)
    if found is None:
        return None
    client = found.text("client", "history")
    known = deployment.clients.get(client)
    context = found.text("context", ROOT if known is None else known.context)
    struct = _struct(found, context, deployment, problems)
    time = _time(found, read)
    columns = tuple(_columns(found, struct, read))
    source = found.node("source")
    column = _column(source, read) if isinstance(source, MappingNode) else None
    confidence = found.node("confidence")
    delimiter = found.text("delimiter", ",")
    if len(delimiter) != 1:
        node = found.node("delimiter")
        assert node is not None, "the default is one character"
        read.wrong(node, "one character, such as `;`")
    if len(problems.errors) > before or struct is None or time is None:
        return None
    return FileMap(
        file=found.mapping.location.file,
        files=found.text("files", "*"),
        type=struct.name,
        context=context,
        time=time,
        columns=columns,
        id=tuple(_id_columns(found, read)),
        source=client if column is not None or source is None else found.text("source", client),
        source_column=column,
        confidence=None if confidence is None else _column(confidence, read),
        client=client,
        delimiter=delimiter,
    )


def _struct(found: Fields, context: str, deployment: Deployment, problems: Problems) -> Struct | None:
    known = deployment.contexts.get(context)
    if known is None and context != ROOT:
        names = sorted({ROOT, *deployment.contexts.by_id})
        problems.add(_unknown(found, "context", context, names))
        return None
    types = deployment.types if known is None else known.types
    name = found.text("type", "")
    struct = types.event(name)
    if struct is None:
        where = "" if context == ROOT else f" in the context `{context}`"
        problems.add(_unknown(found, "type", name, sorted(types.events), where))
    return struct


def _unknown(found: Fields, key: str, name: str, known: Sequence[str], where: str = "") -> Problem:
    node = found.node(key) or found.node("client")
    shown = ", ".join(f"`{each}`" for each in known[:10])
    return NOT_IN_PROJECT(
        found.mapping.location if node is None else node.location,
        kind="event type" if key == "type" else key,
        name=name,
        where=where,
        nearest=nearest(name, known),
        remedy=f"It has {shown}.",
    )


def _time(found: Fields, read: Reader) -> MappedColumn | None:
    node = found.node("time")
    return None if node is None else _column(node, read)


def _column(node: Node, read: Reader, path: tuple[str, ...] = ()) -> MappedColumn | None:
    """A column by its name, or with the form of its times."""
    if isinstance(node, ScalarNode):
        text = read.text(node)
        return None if text is None else MappedColumn(name=text, path=path, place=node.location)
    fields = read.fields(node, required=("column",), optional=("format", "zone"))
    if fields is None or "column" not in fields:
        return None
    form, zone = fields.text("format", ISO), fields.text("zone", "")
    if form != ISO and form not in _UNITS and "%" not in form:
        reason = f"`{form}` is no format"
        remedy = (
            f"Use `{ISO}`, {', '.join(f'`{each}`' for each in _UNITS)} since 1970, or letters as in `%d.%m.%Y %H:%M`."
        )
        read.problems.add(BAD_MAPPED_TIME(_place(fields, "format"), reason=reason, remedy=remedy))
    if zone and zone not in zoneinfo.available_timezones():
        near = nearest(zone, zoneinfo.available_timezones())
        remedy = f"Did you mean `{near[0]}`?" if near else "Name it as in `Europe/Berlin`, or `UTC`."
        read.problems.add(BAD_MAPPED_TIME(_place(fields, "zone"), reason=f"there is no zone `{zone}`", remedy=remedy))
    return MappedColumn(name=fields.text("column", ""), path=path, format=form, zone=zone, place=node.location)


def _place(fields: Fields, key: str) -> Location:
    node = fields.node(key)
    return fields.mapping.location if node is None else node.location


def _columns(found: Fields, struct: Struct | None, read: Reader) -> Iterator[MappedColumn]:
    node = found.node("columns")
    mapping = None if node is None else read.mapping(node)
    for key, value in () if mapping is None else mapping.entries:
        path = tuple(key.text.split("."))
        if struct is not None and (problem := _misses(struct, path, key)) is not None:
            read.problems.add(problem)
        column = _column(value, read, path)
        if column is not None:
            yield column


def _misses(struct: Struct, path: Sequence[str], key: ScalarNode) -> Problem | None:
    at: Type = struct
    for place, name in enumerate(path):
        bare = plain(at)
        attribute = bare.attribute(name) if isinstance(bare, Struct) else None
        if attribute is None:
            known = [each.name for each in bare.attributes] if isinstance(bare, Struct) else []
            where = f" in `{'.'.join(path[:place])}`" if place else ""
            return NO_MAPPED_ATTRIBUTE(
                key.location, type=struct.name, name=name, where=where, nearest=nearest(name, known)
            )
        at = attribute.type
    return None


def _id_columns(found: Fields, read: Reader) -> Iterator[MappedColumn]:
    node = found.node("id")
    if node is None:
        return
    for each in node.items if isinstance(node, SequenceNode) else (node,):
        column = _column(each, read)
        if column is not None:
            yield column


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The files.


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedFile:
    """A file of a folder, and which of the maps it is read by."""

    folder: StateFolder
    name: str
    map: int

    def __str__(self) -> str:
        return f"{self.folder}/{self.name}"


def find_files(folder: StateFolder, maps: Sequence[FileMap], deployment: Deployment) -> tuple[MappedFile, ...]:
    """The files of each map, with all columns that it names; SituError with everything that is not there."""
    names = [each for each in folder.walk() if _is_table(each)]
    if not names and _is_table(folder.name):
        folder, names = folder.parent, [folder.name]
    problems = Problems()
    found: list[MappedFile] = []
    for number, each in enumerate(maps):
        own = [name for name in names if fnmatchcase(name, each.files)]
        if not own:
            problems.add(NO_MAPPED_FILES(Location(file=each.file), place=str(folder), pattern=each.files))
        for name in own:
            file = MappedFile(folder=folder, name=name, map=number)
            found.append(file)
            problems.extend(_missing(file, each, deployment))
    problems.raise_errors()
    return tuple(found)


def _is_table(name: str) -> bool:
    return name.endswith((".csv", ".csv.gz", ".parquet"))


def _missing(file: MappedFile, by: FileMap, deployment: Deployment) -> Iterator[Problem]:
    try:
        known = _columns_of(file, by)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        yield _unreadable(file, error)
        return
    struct, _ = by.struct(deployment)
    shown = ", ".join(f"`{each}`" for each in known[:20])
    named = [*by.named]
    taken = {each.path[0] for each in by.columns}
    named += [
        (MappedColumn(name=each.name), f"the attribute of `{struct.name}` of that name")
        for each in struct.attributes
        if not each.optional and each.default is None and each.name not in taken
    ]
    for column, wanted in named:
        if column.name not in known:
            yield NO_MAPPED_COLUMN(
                column.place or Location(file=by.file),
                file=str(file),
                column=column.name,
                wanted=wanted,
                nearest=nearest(column.name, known),
                known=shown,
            )


def _columns_of(file: MappedFile, by: FileMap) -> list[str]:
    if file.name.endswith(".parquet"):
        with file.folder.open(file.name) as source, parquet.ParquetFile(source) as opened:
            return list(opened.schema_arrow.names)
    with _opened(file) as source:
        return list(_csv(source, by, lambda row: "skip", None).schema.names)


def _opened(file: MappedFile) -> Any:
    source = file.folder.open(file.name)
    return pa.CompressedInputStream(source, "gzip") if file.name.endswith(".gz") else source


def _csv(source: Any, by: FileMap, invalid: Callable[[Any], str], columns: Sequence[str] | None) -> Any:
    return pyarrow.csv.open_csv(
        source,
        read_options=pyarrow.csv.ReadOptions(use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=by.delimiter, newlines_in_values=True, invalid_row_handler=invalid
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={} if columns is None else dict.fromkeys(columns, pa.binary()),
            strings_can_be_null=False,
            include_columns=columns or [],
        ),
    )


def _unreadable(file: MappedFile, error: Exception) -> Problem:
    said = str(error).splitlines()[0][:_LONGEST].rstrip(".") if str(error) else type(error).__name__
    return MAPPED_FILE_UNREADABLE(Location(file=str(file)), file=str(file), reason=said)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Rows → events.


class DeadRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that is no event, and why."""

    code: str
    file: str
    row: int
    """The first is 1; 0: a line that does not have the columns of the others, whose number is not known."""
    message: str
    original: str


class _Unfit(Exception):
    """A value that is not what its column is said to hold."""


def read_mapped(file: MappedFile, by: FileMap, plan: Plan) -> Iterator[Row | DeadRow]:
    """The events of a file in root's terms, in its order, and what is none. N-codes if the file cannot be read."""
    struct, types = by.struct(plan.deployment)
    maker = _EventMaker(by, struct, types, str(file))
    left: list[DeadRow] = []

    def invalid(row: Any) -> str:
        reason = f"it has {row.actual_columns} columns, and the header has {row.expected_columns}"
        left.append(_dead(MALFORMED_LINE(reason=reason), file, 0, row.text or ""))
        return "skip"

    try:
        rows = enumerate(_values(file, by, struct, invalid), 1)
        while some := list(islice(rows, _TOGETHER)):
            yield from _events(some, maker, file, by, plan)
            yield from left
            left.clear()
    except (OSError, pa.ArrowException) as error:
        raise SituError(_unreadable(file, error)) from None
    yield from left


def _events(
    some: Sequence[tuple[int, Mapping[str, Any]]], maker: _EventMaker, file: MappedFile, by: FileMap, plan: Plan
) -> Iterator[Row | DeadRow]:
    lines: list[bytes] = []
    numbers: list[int] = []
    latest = 0
    for number, values in some:
        try:
            line, time = maker.event(number, values)
        except _Unfit as error:
            yield _dead(MALFORMED_LINE(reason=str(error)), file, number, _shown(values))
            continue
        lines.append(line)
        numbers.append(number)
        latest = max(latest, time)
    if not lines:
        return
    # What was recorded came when it was: nothing of it is in the future.
    origin = Origin(
        client=by.client, incarnation=1, seq=numbers[0], received=latest, pos=position(numbers[0]), context=by.context
    )
    interpretation = plan.interpretation
    decoded = interpretation.decode(join_lines(lines), origin)
    for number, each in zip(numbers, interpretation.into_root(decoded), strict=True):
        if isinstance(each, BadRow):
            yield _dead_row(each, file, number)
        else:
            each.pos = position(number)
            yield each


def _dead(problem: Problem, file: MappedFile, row: int, original: str) -> DeadRow:
    said = problem.message.replace("\n", " ")
    return DeadRow(code=problem.code.code, file=str(file), row=row, message=said, original=original[:_LONGEST])


def _dead_row(bad: BadRow, file: MappedFile, row: int) -> DeadRow:
    code, _, message, _ = bad.errors[0]
    original = bad.original.decode(errors="replace")[:_LONGEST]
    return DeadRow(code=code, file=str(file), row=row, message=message, original=original)


def _shown(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _values(
    file: MappedFile, by: FileMap, struct: Struct, invalid: Callable[[Any], str]
) -> Iterator[Mapping[str, Any]]:
    """The rows of a file, of the columns that count."""
    known = _columns_of(file, by)
    own = {each.name for each in struct.attributes} - {each.path[0] for each in by.columns}
    wanted = [name for name in known if name in {each.name for each, _ in by.named} | own]
    if file.name.endswith(".parquet"):
        with file.folder.open(file.name) as source, parquet.ParquetFile(source) as opened:
            for batch in opened.iter_batches(_TOGETHER * 8, columns=wanted, use_threads=False):
                yield from _rows(batch.schema.names, [_cells(column) for column in batch.columns])
        return
    with _opened(file) as source:
        for batch in _csv(source, by, invalid, wanted):
            yield from _rows(batch.schema.names, [_texts(column) for column in batch.columns])


def _rows(names: Sequence[str], columns: Iterable[Sequence[Any]]) -> Iterator[Mapping[str, Any]]:
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _cells(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        # Values of Python hold microseconds; finer digits of time are cut off, as everywhere.
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    found: list[Any] = column.to_pylist()
    return found


def _texts(column: pa.Array) -> list[Any]:
    """The texts of a column; nothing is nothing. What is no UTF-8 stays bytes, and is found unfit."""
    try:
        found = column.cast(pa.string()).to_pylist()
    except pa.ArrowInvalid:
        found = [_text(each) for each in column.to_pylist()]
    return [each or None for each in found]


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


class _EventMaker:
    """Makes CloudEvents of the rows of one file."""

    def __init__(self, by: FileMap, struct: Struct, types: Types, file: str) -> None:
        self._by, self._types = by, types
        self._file = hashlib.sha256(file.encode()).hexdigest()[:16]
        taken = {each.path[0] for each in by.columns}
        own = [MappedColumn(name=each.name, path=(each.name,)) for each in struct.attributes if each.name not in taken]
        self._attributes = [
            (each.path[:-1], each.path[-1], each.name, _converter(_type_at(struct, each.path), each))
            for each in (*by.columns, *own)
        ]
        self._time = partial(_instant, column=by.time)

    def event(self, number: int, values: Mapping[str, Any]) -> tuple[bytes, int]:
        """The event of a row, and its time; _Unfit if it has none."""
        by = self._by
        when = values.get(by.time.name)
        if when is None:
            raise _Unfit(f"it has no time: `{by.time.name}` is empty")
        time = self._time(when)
        data: dict[str, Any] = {}
        for above, name, column, convert in self._attributes:
            value = values.get(column)
            if value is None:
                continue
            place = data
            for step in above:
                place = place.setdefault(step, {})
            place[name] = convert(value)
        parts = [values.get(each.name) for each in by.id]
        event: dict[str, Any] = {
            "specversion": "1.0",
            "id": "/".join(map(str, parts)) if parts else f"{self._file}-{number}",
            "source": self._source(values),
            "type": by.type,
            "time": print_instant(time),
        }
        if by.confidence is not None and (stated := values.get(by.confidence.name)) is not None:
            event["confidence"] = str(stated)
        try:
            return _encode({**event, "data": data}), time
        except (TypeError, ValueError, OverflowError) as error:
            raise _Unfit(str(error)) from None

    def _source(self, values: Mapping[str, Any]) -> str:
        column = self._by.source_column
        if column is None:
            return self._by.source
        found = values.get(column.name)
        if found is None:
            raise _Unfit(f"it has no source: `{column.name}` is empty")
        return str(found)


def _type_at(struct: Struct, path: Sequence[str]) -> Type:
    at: Type = struct
    for name in path:
        bare = plain(at)
        assert isinstance(bare, Struct), "the map has been checked"
        attribute = bare.attribute(name)
        assert attribute is not None, "the map has been checked"
        at = attribute.type
    return plain(at)


def _converter(type: Type, column: MappedColumn) -> Callable[[Any], Any]:
    """A cell → the JSON value that an attribute of this type has; what does not fit is left to the decoder."""
    if type == TIMESTAMP:
        return lambda value: print_instant(_instant(value, column))
    if type == STRING:
        return lambda value: value if isinstance(value, str) else _plain_text(value)
    if type in (INT, LONG):
        return partial(_number, int)
    if type == DOUBLE:
        return partial(_number, float)
    if isinstance(type, Decimal):
        return _plain_text
    if type == BOOLEAN:
        return lambda value: (
            {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value
        )
    return _json


def _number(of: Callable[[Any], Any], value: Any) -> Any:
    """A number that is another kind of number there; what is lost by that, or is none, stays what it is."""
    try:
        found = of(value)
    except (ValueError, TypeError, OverflowError):
        return value
    return found if isinstance(value, str) or found == value else value


def _plain_text(value: Any) -> str:
    if isinstance(value, bytes):
        raise _Unfit("it is not UTF-8")
    return value.isoformat() if isinstance(value, dt.date | dt.datetime) else str(value)


def _json(value: Any) -> Any:
    """Structs and lists of Parquet are there as such; in CSV they are JSON."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            return value
    return value


def _instant(value: Any, column: MappedColumn) -> int:
    """A cell as an instant in microseconds; :class:`_Unfit` with what is wrong with it."""
    form = column.format
    if isinstance(value, bytes):
        raise _Unfit(f"`{column.name}` is not UTF-8")
    try:
        if form in _UNITS:
            return int(decimal.Decimal(str(value)) * _UNITS[form])
        if isinstance(value, dt.datetime):
            found = value
        elif isinstance(value, dt.date):
            found = dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001 - its zone is that of the column
        else:
            found = dt.datetime.fromisoformat(value) if form == ISO else dt.datetime.strptime(value, form)  # noqa: DTZ007
    except (ValueError, TypeError, ArithmeticError):
        raise _Unfit(f"`{value}` in `{column.name}` is no time of the form `{form}`") from None
    if found.tzinfo is None:
        if not column.zone:
            raise _Unfit(f"`{value}` in `{column.name}` says no zone, and the map says none: add `zone`")
        found = found.replace(tzinfo=zoneinfo.ZoneInfo(column.zone))
    return microseconds(found)
