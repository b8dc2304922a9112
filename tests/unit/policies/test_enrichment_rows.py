from __future__ import annotations

import datetime as dt

from situ.lang.types.model import DOUBLE, POINT, STRING, TIMESTAMP, ListOf
from situ.policies.enrichment.rows import concat, from_blob, make_rows, no_rows, to_blob
from situ.policies.plan import Leaf, LeafScalar
from tests.situations import read_rows

LEAF = Leaf(
    concept="person",
    attribute="position",
    scalars=(
        LeafScalar(path=("id",), type=STRING),
        LeafScalar(path=("position", "x"), type=DOUBLE),
        LeafScalar(path=("shape", "points"), type=ListOf(POINT)),
        LeafScalar(path=("since",), type=TIMESTAMP),
    ),
)
ROWS = [
    (
        number,
        "s",
        str(number),
        "seen",
        7 * number,
        "ann",
        f"id of {number}",
        1.5 * number,
        [{"x": 1.0, "y": 2.0}] if number else None,
        dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC),
    )
    for number in range(3)
]


def test_rows_are_read_as_they_were_made() -> None:
    assert list(read_rows(LEAF, make_rows(LEAF, ROWS))) == ROWS


def test_batches_are_put_together() -> None:
    batch = make_rows(LEAF, ROWS)
    assert concat(LEAF, []) == no_rows(LEAF)
    assert list(read_rows(LEAF, concat(LEAF, [batch, no_rows(LEAF), batch]))) == ROWS * 2


def test_rows_of_several_leaves_travel_in_one_blob() -> None:
    batch = make_rows(LEAF, ROWS)
    found = from_blob(to_blob({0: batch, 1: no_rows(LEAF), 7: batch.slice(1)}))
    assert {number: concat(LEAF, batches) for number, batches in found.items()} == {0: batch, 7: batch.slice(1)}
    assert from_blob(to_blob({})) == {}


def test_the_columns_of_a_leaf_with_another_side() -> None:
    assert no_rows(Leaf(concept="person", attribute="position", other="room")).schema.names == [
        "time", "source", "id", "push", "pos", "identity", "other",
    ]  # fmt: skip
