"""Rows of CSV and Parquet files, column by column.

A CSV file has a line with the names of its columns, commas, and is UTF-8; a cell without anything in it is null, one
with ``""`` is an empty text. Columns nobody asked for are not looked at.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from situ.tables.unreadable import Unreadable, check_columns, check_size

Cells = Mapping[str, Sequence[Any]]

_REMEDY = "Look at the name of the file, and whether the user who runs this may read it."
_MOST_HEADER = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the file system says of a file: as long as it says the same, the file is the same."""

    file: Path
    changed: int
    size: int
    node: tuple[int, int]


def stamp_of(file: Path) -> Stamp:
    try:
        found = os.stat(file)  # noqa: PTH116 - the same call for all that it tells
    except OSError as error:
        raise no_file(error) from None
    return Stamp(file, found.st_mtime_ns, found.st_size, (found.st_dev, found.st_ino))


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
