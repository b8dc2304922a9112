"""Schemas in the words of Spark: Spark reads them, and means the same as Arrow."""

from __future__ import annotations

import decimal
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from situ.lang.types.arrow_schema import arrow_schema
from situ.lang.types.layout import spark_schema, spark_type
from situ.lang.types.model import Struct
from situ.lang.types.table import Types
from tests.types_files import types_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLANT = """
    types:
      Base: {n: int}
      Wide(Base): {size: double m, k: int}
      Tall(Base): {size: double ft, k: string}
      Empty: {}
      TagId(string): {}
    events:
      Reading:
        tag: TagId
        select: string
        price: "decimal(18,2)"
        of: Base
        more: "optional [Base]"
        grid: [[double]]
        at: timestamp
        day: optional date
        wait: optional duration
        raw: optional bytes
        big: long
        ok: boolean
        where: Point m
        area: optional GeoPolygon
    """


@pytest.fixture(scope="module")
def types() -> Types:
    return types_of(PLANT)


def bare(type: pa.DataType) -> str:
    """The type without notes and without names for the elements of lists."""
    if pa.types.is_struct(type):
        return "{" + ", ".join(f"{field.name}: {bare(field.type)}" for field in type) + "}"
    return f"[{bare(type.value_type)}]" if pa.types.is_list(type) else str(type)


def test_spark_and_arrow_mean_the_same(spark: SparkSession, types: Types) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    for struct in types.types.values():
        if isinstance(struct, Struct) and struct.attributes:
            read = StructType.fromDDL(spark_schema(struct, types))
            arrow = arrow_schema(struct, types)
            back = to_arrow_schema(read, timezone="UTC")
            assert [(each.name, bare(each.type)) for each in back] == [(each.name, bare(each.type)) for each in arrow]


def test_types_can_be_cast_to(spark: SparkSession, types: Types) -> None:
    casts = {name: f"CAST(NULL AS {spark_type(type, types)}) AS `{name}`" for name, type in types.types.items()}
    found = spark.sql("SELECT " + ", ".join(casts.values())).first()
    assert found is not None
    assert found.asDict() == dict.fromkeys(casts)


def test_rows_come_back_as_they_were(spark: SparkSession, types: Types) -> None:
    from pyspark.sql.types import StructType

    reading = types.event("Reading")
    assert reading is not None
    base = {"$type": None, "n": 1, "size": None, "size$Wide": None, "k": None, "k$Wide": None}
    row = {
        "tag": "T1", "select": "é", "price": decimal.Decimal("12.50"), "of": base,
        "more": [{**base, "$type": "Wide", "size$Wide": 2.5, "k$Wide": 3}, None], "grid": [[1.5], []],
        "at": datetime(2026, 11, 1, 8, 30, 0, 250_000, tzinfo=UTC), "day": date(2026, 11, 1),
        "wait": 86_399_999_999, "raw": b"\x00\xff", "big": 2**40, "ok": True,
        "where": {"x": 1.0, "y": -0.0}, "area": {"points": [{"lat": 1.0, "lon": 2.0}]},
    }  # fmt: skip
    schema = arrow_schema(reading, types)
    frame = spark.createDataFrame(
        pa.Table.from_pylist([row], schema=schema), StructType.fromDDL(spark_schema(reading, types))
    )
    assert frame.toArrow().to_pylist() == [row]
