"""Expressions and visibility as Spark columns. Nothing in Situ but tests uses it: batches are worked by Python stages.

`value_and_failure` and `evaluate` give the columns of typed trees; `stamped_bits`, `is_visible` and
`visible_candidates` those of scopes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from situ.lang.expr.emit.spark import Reader, emit_spark, read_column
from situ.lang.expr.tree import FALSE, TRUE, Node
from situ.scopes.filter_sets import WORD, FilterNumbers, NestedFilterSets, Step, numbers_in, to_words
from situ.scopes.filters import FilterMeanings
from situ.scopes.visibility_plan import TagSetPair, Verdict, VisibilityPlan


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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Visibility: bits of events as native expressions, and the decision as one over the pairs of a plan. Stamping evaluates
# the filters that matter for a type. From then on events carry the place of their advertised tag set and their bits in
# words of 63; pairs that are not *never* are broadcast and joined on the places of both tag sets. *Always* has no
# family and asks for nothing. *Depends* has one family for each dimension: the sets of filters, or the steps of one
# that is nested.

_NEEDED = pa.list_(pa.struct([("at", pa.int32()), ("mask", pa.int64())]))
"""A set of filters: the words that have any of them, by their places."""
_WAY = pa.struct([("needed", _NEEDED), ("parts", pa.list_(pa.int32()))])

PAIRS = pa.schema(
    [
        ("advertised", pa.int32()),
        ("subscribed", pa.int32()),
        ("sets", pa.list_(pa.list_(_NEEDED))),
        ("nested", pa.list_(pa.list_(pa.list_(_WAY)))),
    ]
)
"""A row for each pair that is not never: for each of its families the sets, or the steps."""


def pair_rows(plan: VisibilityPlan) -> Iterator[dict[str, Any]]:
    """The pairs of a plan that are not never, as rows of :data:`PAIRS`."""
    for advertised, row in enumerate(plan.rows):
        for subscribed, pair in enumerate(row):
            if pair.verdict is not Verdict.NEVER:
                yield {"advertised": advertised, "subscribed": subscribed, **families(pair)}


def families(pair: TagSetPair) -> dict[str, Any]:
    """What a pair depends on, as the expression wants it."""
    return {
        "sets": [
            [_words(needed) for needed in each.sets] for each in pair.families if not isinstance(each, NestedFilterSets)
        ],
        "nested": [
            [_step(step) for step in each.program] for each in pair.families if isinstance(each, NestedFilterSets)
        ],
    }


def pairs_frame(spark: SparkSession, plan: VisibilityPlan) -> DataFrame:
    """The pairs, small enough to go to every worker."""
    return sf.broadcast(spark.createDataFrame(pa.Table.from_pylist(list(pair_rows(plan)), schema=PAIRS)))


def is_visible(bits: str = "bits", sets: str = "sets", nested: str = "nested") -> Column:
    """Whether bits satisfy all families of a pair; bits that are not there, of filters newer than the event, are 0."""
    return sf.expr(f"{_all_sets(bits, sets)} AND {_all_nested(bits, nested)}")


def visible_candidates(candidates: DataFrame, pairs: DataFrame, keys: Sequence[str] = ()) -> DataFrame:
    """The candidates, an event and a subscription that matches it each, whose event is visible to the subscription.

    They have the columns ``advertised``, ``subscribed`` and ``bits``, and the ``keys`` that tell plans apart.
    """
    on = [*keys, "advertised", "subscribed"]
    return candidates.join(pairs, on).where(is_visible()).drop("sets", "nested")


def stamped_bits(
    filters: FilterMeanings, numbers: FilterNumbers, stamped: int, type: str, reader: Reader = read_column
) -> Column:
    """The bits of events of one type, in words of 63: each filter that is not constant for the type, once."""
    texts = numbers.texts()
    words: list[list[str]] = [["0L"] for _ in to_words(stamped)]
    for number in numbers_in(stamped):
        at, place = divmod(number, WORD)
        node = filters.node(texts[number], type)
        if node == TRUE:
            words[at].append(f"{1 << place}L")
        elif node != FALSE:
            words[at].append(f"IF({emit_spark(node, reader).matches}, {1 << place}L, 0L)")
    return sf.expr(f"CAST(array({', '.join(' | '.join(parts) for parts in words)}) AS ARRAY<BIGINT>)")


def _all_sets(bits: str, sets: str) -> str:
    return f"forall({sets}, family -> exists(family, m -> {_contained(bits, 'm')}))"


def _all_nested(bits: str, nested: str) -> str:
    """Step by step: each is worked out from those before it, and the last one decides."""
    way = f"{_contained(bits, 'way.needed')} AND forall(way.parts, part -> known[part])"
    known = (
        f"aggregate(steps, CAST(array() AS ARRAY<BOOLEAN>), "
        f"(known, step) -> array_append(known, exists(step, way -> {way})))"
    )
    return f"forall({nested}, steps -> element_at({known}, -1))"


def _contained(bits: str, needed: str) -> str:
    return f"forall({needed}, w -> coalesce((get({bits}, w.at) & w.mask) = w.mask, FALSE))"


def _words(needed: int) -> list[dict[str, int]]:
    return [{"at": at, "mask": mask} for at, mask in enumerate(to_words(needed)) if mask]


def _step(step: Step) -> list[dict[str, Any]]:
    return [{"needed": _words(needed), "parts": list(parts)} for needed, parts in step]
