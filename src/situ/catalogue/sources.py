"""``S``: tables that others keep."""

from __future__ import annotations

from situ.catalogue.defining import define
from situ.errors import Severity

ONE_PLACE = define(
    "S101",
    "source in no place or several",
    "The source `{name}` says {found} of where its rows are.",
    "Write exactly one of {choices}.",
    name=str,
    found=str,
    choices=tuple,
)
BAD_STATEMENT = define(
    "S102",
    "statement that is no query",
    "This does not read a table: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
UNKNOWN_COLUMN = define(
    "S103",
    "unknown column of a source",
    "{where} has no column `{column}`.",
    "Did you mean {nearest}?",
    "Its columns are {known}.",
    where=str,
    column=str,
    nearest=tuple,
    known=tuple,
)
COLUMN_UNFIT = define(
    "S104",
    "column that cannot find rows",
    "`{column}` of type `{type}` cannot be {use}.",
    "{remedy}",
    column=str,
    type=str,
    use=str,
    remedy=str,
)
SOURCE_UNREADABLE = define(
    "S111",
    "source that cannot be read",
    "The source `{source}` cannot be read: {reason}.",
    "{remedy}",
    source=str,
    reason=str,
    remedy=str,
)
CELL_UNFIT = define(
    "S112",
    "cell does not fit its column",
    "Row {row} of the source `{source}`, column `{column}`: {found}, expected `{expected}`.",
    "{remedy}",
    "Correct the table, or declare another type for the column.",
    source=str,
    row=int,
    column=str,
    found=str,
    expected=str,
    remedy=str,
)
KEY_TWICE = define(
    "S113",
    "two rows for one key",
    "Rows {first} and {second} of the source `{source}` both have {key}.",
    "A key finds one row: take one of the two out, or look rows up by more columns.",
    source=str,
    first=int,
    second=int,
    key=str,
)
SOURCE_AGED = define(
    "S201",
    "source not read again",
    "The source `{source}` cannot be read again; what was read {age} ago stays in use.",
    severity=Severity.WARNING,
    source=str,
    age=str,
)
