"""Expressions on Spark: columns from typed trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from situ.expr.emit_spark import Reader, emit_spark, read_column
from situ.expr.tree import Node


def value_and_failure(node: Node, reader: Reader = read_column) -> tuple[Column, Column]:
    """The value of an expression, and whether it fails; where it fails, the value means nothing."""
    text = emit_spark(node, reader)
    return sf.expr(text.value), sf.expr(text.fails or "FALSE")


def evaluate(frame: DataFrame, nodes: Mapping[str, Node], keep: Sequence[str] = ()) -> DataFrame:
    """A struct of ``value`` and ``failed`` for each named expression; where one failed its value means nothing."""
    columns = []
    for name, node in nodes.items():
        value, failed = value_and_failure(node)
        columns.append(sf.struct(value.alias("value"), failed.alias("failed")).alias(name))
    return frame.select(*keep, *columns)
