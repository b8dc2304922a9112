"""Generated contexts: from one straight to the other gives what the two ways give, one after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from situ.contexts.model import Direction
from situ.contexts.transform.columns import in_columns
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.fusion import FusedConverter, FusedTransformation
from situ.contexts.transform.transformation import transformations
from situ.lang.expr.emit.spark import emit_spark
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.problems import Problems, SituError
from situ.lang.types.json_codec import decode, encode
from tests.context_files import fused_transformations
from tests.transformations import ENVELOPE, generated_pair, laid_out, make_attributes, make_struct
from tests.volume import seeds


def ways(seeds: range) -> Iterator[tuple[int, FusedTransformation]]:
    for seed in seeds:
        pair = generated_pair(seed)
        if pair is None:
            continue
        inbound = transformations(pair[0].context, Direction.IN, Problems())
        outbound = transformations(pair[1].context, Direction.OUT, Problems())
        for way in fused_transformations(inbound, outbound).values():
            yield seed, way


def as_decoded(data: Any, way: FusedTransformation) -> Any:
    """Events that come in have their defaults."""
    return decode(way.source, encode(way.source, data, way.types), way.types)


def outcome(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except FAILURES:
        return None


def one_after_the_other(way: FusedTransformation, data: Any) -> Any:
    between = outcome(Converter(way.inbound).data, ENVELOPE, data)
    if between is None:
        return None
    return outcome(Converter(way.outbound).data, {**ENVELOPE, "type": way.outbound.source.name}, between)


def hold_equal(seeds: range, number: int) -> None:
    seen = failed = changed = 0
    for seed, way in ways(seeds):
        converter = FusedConverter(way)
        dice = random.Random(seed)
        for _ in range(number):
            make = make_struct if dice.random() < 0.2 else make_attributes
            data = as_decoded(make(dice, way.source, way.types), way)
            about = (seed, way.source.name, data, way.node)
            expected = one_after_the_other(way, data)
            found = outcome(converter.data, ENVELOPE, data)
            assert found == expected, about
            assert bool(converter.faults(ENVELOPE, data)) == (found is None), about
            seen, failed, changed = seen + 1, failed + (found is None), changed + (found != data)
            text = msgspec.json.encode(encode(way.source, data, way.types))
            written = outcome(converter.text, ENVELOPE, text)
            if found is None:
                assert way.can_fail, about
                assert written is None, about
            else:
                assert written == msgspec.json.encode(encode(way.target, found, way.targets)), about
    assert seen > len(seeds)
    assert changed > seen / 2
    assert 0 < failed < seen / 2


@seeds(range(40), range(20_000, 30_000))
def test_fused_transformations_equal_one_after_the_other(seeds: range) -> None:
    hold_equal(seeds, 6)


@seeds(range(25), range(150))
def test_over_columns_they_give_the_same(seeds: range) -> None:
    written = 0
    for seed, way in ways(seeds):
        node, converter = in_columns(way.transformation), FusedConverter(way)
        with suppress(SituError):  # what Spark cannot compute exactly it is not asked to
            written += bool(emit_spark(node).value)
        dice = random.Random(seed)
        for _ in range(3):
            data = as_decoded(make_attributes(dice, way.source, way.types), way)
            values = {"event": ENVELOPE, "data": laid_out(data, way.source, way.types)}
            expected = laid_out(outcome(converter.data, ENVELOPE, data), way.target, way.targets)
            assert outcome(interpret, node, values) == expected, (seed, way.source.name, data)
    assert written > len(seeds) / 3
