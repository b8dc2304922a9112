"""Rows of CSV, Parquet and XML files, column by column, and why rows cannot be had.

The exceptions and the checks at the beginning are those of :mod:`situ.tables.databases`, too.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from situ.lang.types.model import STRING, Attribute, ListOf, Struct, Type, plain
from situ.sources import Source
from situ.sources.queries import CellPath, cell_path, row_path

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Why rows cannot be had, before it is known for which source.


class Unreadable(Exception):
    """The rows cannot be read, with what to do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class NoColumn(Exception):
    """A column that was asked for is not there, or several times; ``known`` are those that are."""

    def __init__(self, where: str, column: str, known: Sequence[str]) -> None:
        super().__init__(column)
        self.where = where
        self.column = column
        self.known = tuple(known)


def check_columns(where: str, wanted: Iterable[str], known: Sequence[str]) -> None:
    """Raise :class:`NoColumn` for the first that is not there, :class:`Unreadable` for one that is there twice."""
    for name in wanted:
        if name not in known:
            raise NoColumn(where, name, known)
        if known.count(name) > 1:
            raise Unreadable(f"it has several columns `{name}`", "Give each column a name of its own.")


def check_size(rows: int, most: int) -> None:
    if rows > most:
        remedy = "Tables are held in memory: read fewer rows, by a view or a smaller file."
        raise Unreadable(f"it has more than {most} rows", remedy)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# CSV and Parquet.
#
# A CSV file has a line with the names of its columns, commas, and is UTF-8; a cell without anything in it is null, one
# with ``""`` is an empty text. Columns nobody asked for are not looked at.

Cells = Mapping[str, Sequence[Any]]

_REMEDY = "Look at the name of the file, and whether the user who runs this may read it."
_MOST_HEADER = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What the file system says of a file: as long as it says the same, the file is the same."""

    file: Path
    changed: int
    size: int
    node: tuple[int, int]


def stamp_of(file: Path) -> FileStamp:
    try:
        found = os.stat(file)  # noqa: PTH116 - the same call for all that it tells
    except OSError as error:
        raise no_file(error) from None
    return FileStamp(file, found.st_mtime_ns, found.st_size, (found.st_dev, found.st_ino))


def read_csv(file: Path, wanted: Sequence[str], most: int) -> Cells:
    """The texts of these columns; None is null."""
    try:
        check_columns("The file", wanted, _header(file))
        table = pa.csv.read_csv(
            file,
            read_options=pa.csv.ReadOptions(use_threads=False),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                include_columns=list(wanted),
                column_types={name: pa.string() for name in wanted},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except OSError as error:
        raise no_file(error) from None
    except UnicodeDecodeError:
        raise Unreadable("it is not UTF-8", "Save the file as UTF-8.") from None
    except (pa.ArrowException, csv.Error) as error:
        raise Unreadable(_first_line(error), "Correct the file: CSV has commas, and quotes around texts.") from None
    check_size(table.num_rows, most)
    return {name: table.column(name).to_pylist() for name in wanted}


def read_parquet(file: Path, wanted: Sequence[str], most: int) -> Cells:
    """The values of these columns."""
    try:
        with pa.parquet.ParquetFile(file) as opened:
            check_columns("The file", wanted, opened.schema_arrow.names)
            check_size(opened.metadata.num_rows, most)
            table = opened.read(columns=list(wanted), use_threads=False)
        return {name: _cells(table.column(name)) for name in wanted}
    except OSError as error:
        raise no_file(error) from None
    except pa.ArrowException as error:
        raise Unreadable(_first_line(error), "Is it a Parquet file, and complete?") from None


def _header(file: Path) -> list[str]:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        text = stream.read(_MOST_HEADER)
    for row in csv.reader(text.splitlines(keepends=True)):
        if row:
            return row
    raise Unreadable("it is empty", "Its first line must name the columns.")


def _cells(column: Any) -> list[Any]:
    coarse = _coarse(column.type)
    cells: list[Any] = (column if coarse == column.type else column.cast(coarse, safe=False)).to_pylist()
    return cells


def _coarse(type: Any) -> Any:
    """The type with times in microseconds: Python has no finer ones, and what is finer is cut off."""
    if pa.types.is_timestamp(type) and type.unit == "ns":
        return pa.timestamp("us", type.tz)
    if pa.types.is_duration(type) and type.unit == "ns":
        return pa.duration("us")
    if pa.types.is_struct(type):
        return pa.struct([each.with_type(_coarse(each.type)) for each in type])
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(_coarse(type.value_type)))
    return type


def no_file(error: OSError) -> Unreadable:
    reason = error.strerror or _first_line(error)
    return Unreadable(reason[:1].lower() + reason[1:], _REMEDY)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or ["no reason is given"]
    return lines[0].rstrip(".")[:200]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# XML: rows are elements that a path finds, cells what the paths of columns find in each of them.
#
# Expat finds the tags. Document types are refused, and with them entities of one's own, bombs and references to other
# files; size, depth and number of rows are bounded. Structs are made of an element's attributes and child elements
# of the same names, lists of all elements that are found; a struct that is nothing but a list, such as a polygon, takes
# all child elements.

MOST_BYTES = 256 * 1024 * 1024
DEEPEST = 200
_CHUNK = 1024 * 1024
_ABOVE = "document"
"""Stands above the outermost element, so that paths of rows can name that, too."""


def read_xml(file: Path, source: Source, most: int) -> Cells:
    """What is found for each column: texts, dictionaries of them, lists of them; None where there is nothing."""
    above = _parse(file)
    rows = above.findall(row_path(source.rows))
    check_size(len(rows), most)
    paths = dict(source.paths)
    parents = _parents(above) if any(text.startswith("..") for text in paths.values()) else {}
    return {each.name: [_cell(row, each, paths, parents, number) for number, row in enumerate(rows, 1)]
            for each in source.columns}  # fmt: skip


# ── elements ──────────────────────────────────────────────────────────────────────────────────────


def _parse(file: Path) -> Element:
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_document_type
    depth = 0

    def begin(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise Unreadable(f"elements stand in each other more than {DEEPEST} deep", "Make it flatter.")
        builder.start(_name(tag), {_name(key): value for key, value in attributes.items()})

    def finish(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(_name(tag))

    parser.StartElementHandler = begin
    parser.EndElementHandler = finish
    parser.CharacterDataHandler = builder.data
    builder.start(_ABOVE, {})
    _feed(parser, file)
    builder.end(_ABOVE)
    return builder.close()


def _feed(parser: expat.XMLParserType, file: Path) -> None:
    size = 0
    try:
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                if size > MOST_BYTES:
                    most = MOST_BYTES // (1024 * 1024)
                    raise Unreadable(f"it is larger than {most} MiB", "Read a smaller file, or put it in a database.")
                parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except OSError as error:
        raise no_file(error) from None
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, "it is not XML")
        raise Unreadable(f"line {error.lineno}: {reason}", "Correct the file; it must be XML.") from None


def _refuse_document_type(*_: object) -> None:
    remedy = "Take the line with <!DOCTYPE out, and write the entities it declares as they are."
    raise Unreadable("it has a document type, which may hold anything", remedy)


def _name(tag: str) -> str:
    # Expat puts the separator between namespace and name; with a brace before, that is ElementTree's `{namespace}name`.
    return f"{{{tag}" if "}" in tag else tag


def _parents(above: Element) -> dict[Element, Element]:
    return {child: parent for parent in above.iter() for child in parent}


# ── cells ─────────────────────────────────────────────────────────────────────────────────────────


def _cell(
    row: Element, column: Attribute, paths: Mapping[str, str], parents: Mapping[Element, Element], number: int
) -> Any:
    text = paths.get(column.name)
    if text is None:
        return _named(row, column.name, column.type, f"row {number}")
    path = cell_path(text)
    found = _found(row, path, parents)
    is_list = isinstance(plain(column.type), ListOf)
    if path.attribute:
        values: list[Any] = [each.get(path.attribute) for each in found if each.get(path.attribute) is not None]
        values = [_text(value, _element_type(column.type)) for value in values]
    else:
        values = [_value(each, _element_type(column.type), f"row {number}") for each in found]
    if is_list:
        return values
    return _single(values, f"row {number}: `{text}`")


def _found(row: Element, path: CellPath, parents: Mapping[Element, Element]) -> list[Element]:
    start: Element | None = row
    for _ in range(path.up):
        start = parents.get(start) if start is not None else None
    if start is None or start.tag == _ABOVE:
        return []
    return [start] if path.elements == "." else start.findall(path.elements)


def _element_type(type: Type) -> Type:
    bare = plain(type)
    return bare.element if isinstance(bare, ListOf) else type


def _value(element: Element, type: Type, where: str) -> Any:
    bare = plain(type)
    if isinstance(bare, Struct):
        return _struct(element, bare, where)
    if isinstance(bare, ListOf):
        return [_value(each, bare.element, where) for each in element]
    return _text("".join(element.itertext()), type)


def _struct(element: Element, struct: Struct, where: str) -> dict[str, Any]:
    only = struct.attributes[0] if len(struct.attributes) == 1 else None
    if only is not None and isinstance(items := plain(only.type), ListOf) and element.get(only.name) is None:
        return {only.name: [_value(each, items.element, where) for each in element]}
    return {each.name: _named(element, each.name, each.type, where) for each in struct.attributes}


def _named(element: Element, name: str, type: Type, where: str) -> Any:
    """The attribute of that name, else the child elements."""
    attribute = element.get(name)
    if attribute is not None:
        return _text(attribute, type)
    bare = plain(type)
    below = [each for each in element if each.tag.rpartition("}")[2] == name]
    if isinstance(bare, ListOf):
        return [_value(each, bare.element, where) for each in below]
    return _single([_value(each, type, where) for each in below], f"{where}: `{name}`")


def _single(values: list[Any], where: str) -> Any:
    if len(values) > 1:
        raise Unreadable(f"{where} is there {len(values)} times", "Let the path find one, or declare a list.")
    return values[0] if values else None


def _text(text: str, type: Type) -> str | None:
    """A text that is not of a text is without the blanks around it, and null if there is nothing else."""
    if plain(type) == STRING:
        return text.strip()
    return text.strip() or None
