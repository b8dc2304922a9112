"""Which row a key finds, and a key as of an instant, equals what going through all rows gives."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from situ.lang.problems import SituError
from situ.lang.types.model import LONG, STRING, TIMESTAMP, Attribute, Struct
from situ.sources import Source, SourceKind, Table, make_table

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
COLUMNS = (
    Attribute(name="a", type=STRING, optional=True),
    Attribute(name="b", type=LONG, optional=True),
    Attribute(name="n", type=LONG),
    Attribute(name="t", type=TIMESTAMP, optional=True),
)
SOURCE = Source(name="s", kind=SourceKind.CSV, place="s.csv", row=Struct("", COLUMNS))

texts = st.none() | st.sampled_from(["x", "y", ""])
numbers = st.none() | st.integers(0, 2)
instants = st.none() | st.integers(0, 8).map(lambda minutes: BEGIN + timedelta(minutes=minutes))
rows = st.lists(st.tuples(texts, numbers, instants), max_size=12)
keys = st.sampled_from([("a",), ("b",), ("a", "b"), ("b", "a")])

Row = dict[str, Any]


def table_of(cells: Sequence[tuple[Any, Any, Any]]) -> Table:
    columns = {name: [row[place] for row in cells] for place, name in enumerate(("a", "b", "t"))}
    return make_table(SOURCE, {**columns, "n": list(range(len(cells)))})


def matching(table: Table, columns: tuple[str, ...], key: tuple[Any, ...]) -> list[Row]:
    """All rows in which every column is there and has its value."""
    return [
        dict(row)
        for row in table.rows
        if all(value is not None and row.get(name) == value for name, value in zip(columns, key, strict=True))
    ]


def is_ambiguous(table: Table, columns: tuple[str, ...], as_of: str) -> bool:
    found = [tuple(row.get(name) for name in (*columns, *([as_of] if as_of else []))) for row in table.rows]
    complete = [each for each in found if None not in each]
    return len(complete) > len(set(complete))


def ask(
    table: Table, columns: tuple[str, ...], as_of: str, key: tuple[Any, ...], at: datetime | None = None
) -> tuple[list[str], Any]:
    """The codes with which the question is refused, or the row."""
    try:
        return [], table.index(columns, as_of).find(key, at)
    except SituError as error:
        return [error.code], None


@given(rows, keys, st.tuples(texts, numbers))
def test_a_key_finds_what_a_scan_finds(
    cells: list[tuple[Any, Any, Any]], columns: tuple[str, ...], wanted: Any
) -> None:
    table = table_of(cells)
    key = tuple(dict(zip(("a", "b"), wanted, strict=True))[name] for name in columns)
    refused, found = ask(table, columns, "", key)
    assert refused == (["S113"] if is_ambiguous(table, columns, "") else [])
    if refused:
        return
    expected = matching(table, columns, key)
    assert ([] if found is None else [found]) == expected


@given(rows, keys, st.tuples(texts, numbers), st.none() | st.integers(-60, 600))
def test_a_key_as_of_an_instant_finds_what_a_scan_finds(
    cells: list[tuple[Any, Any, Any]], columns: tuple[str, ...], wanted: Any, seconds: int | None
) -> None:
    table = table_of(cells)
    key = tuple(dict(zip(("a", "b"), wanted, strict=True))[name] for name in columns)
    at = None if seconds is None else BEGIN + timedelta(seconds=seconds)
    refused, found = ask(table, columns, "t", key, at)
    assert refused == (["S113"] if is_ambiguous(table, columns, "t") else [])
    if refused:
        return
    before = [row for row in matching(table, columns, key) if at is not None and "t" in row and row["t"] <= at]
    assert found == max(before, key=lambda row: row["t"], default=None)


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_count(cells: list[tuple[Any, Any, Any]], chance: Any) -> None:
    table = table_of(cells)
    columns = {name: [row.get(name) for row in table.rows] for name in ("a", "b", "n", "t")}
    order = list(range(len(table)))
    chance.shuffle(order)
    shuffled = make_table(SOURCE, {name: [column[place] for place in order] for name, column in columns.items()})
    assert shuffled.digest == table.digest
