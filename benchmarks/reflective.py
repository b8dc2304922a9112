"""Interpretation by looking rules up for every event, as a library without compiled transformations would do it.

The reference interpreter walks the event, finds the rules about each place and applies the functions of those that
count. Everything around it, decoding, matching and delivering, is that of Situ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import msgspec

from situ.contexts.model import Context, Direction
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.transformation import Transformation
from situ.lang.problems import Problem
from situ.lang.records import replace
from situ.lang.types.json_codec import decoder, encoder
from situ.stages.interpret import Interpretation
from tests.oracles.transformation import transform

if TYPE_CHECKING:
    import pyarrow as pa

    from situ.bus.address import Address
    from situ.stages.plan import Plan

_encode = msgspec.json.Encoder().encode


class Reflecting:
    """Does what a converter does, with nothing compiled but how text is read and written."""

    def __init__(self, context: Context, way: Transformation) -> None:
        self.transformation = way
        self.is_identity = False
        self.needs_envelope = self.reads_envelope = True
        self.structs = None
        self._context = context
        self._read = decoder(way.source, way.types, "keep")
        self._write = encoder(way.target, way.targets)

    def data(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
        way = self.transformation
        return transform(self._context, way.direction, way.source, event, data, way.target).data

    def text(self, event: Mapping[str, Any], text: bytes) -> bytes:
        return _encode(self._write(self.data(event, self._read(msgspec.json.decode(text)).value)))

    def text_faults(self, event: Mapping[str, Any], text: bytes) -> Iterable[Problem]:
        return Converter(self.transformation).text_faults(event, text)


class Reflective(Interpretation):
    """The contexts of a deployment, with nothing compiled."""

    __slots__ = ()

    def converter(self, context: str, direction: Direction, type: str) -> Any:
        key = (context, direction is Direction.IN, type)
        if key not in self._converters:
            found = self.contexts.get(context)
            way = None if found is None else self._ways_of(found, direction).get(type)
            made: Any = None if found is None or way is None else Reflecting(found, way)
            self._converters[key] = made
        return self._converters[key]


def reflective(plan: Plan) -> Plan:
    """The same plan, interpreted by looking rules up."""
    given = plan.interpretation
    kept = {each.name: getattr(given, each.name) for each in fields(Interpretation) if not each.name.startswith("_")}
    return replace(plan, interpretation=Reflective(**kept))


def dispatching(address: Address, version: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What the engine maps over the rows of the source, interpreted by looking rules up."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from situ.spark import frames
        from situ.spark.dispatch import DispatchTask, publish
        from situ.spark.partitions import decode
        from situ.spark.plans import load_plan

        plan = _plans.get((address, version))
        if plan is None:
            plan = _plans[address, version] = reflective(load_plan(address, version))
        dispatch = DispatchTask(plan, 0)
        rows = decode(frames.messages_of(batches), plan, {}, lambda _: None)
        publish(address, dispatch.messages(rows), (), dispatch.on_stored)
        dispatch.finish()
        yield frames.count_batch(dispatch.counts())

    return run


_plans: dict[tuple[Address, int], Plan] = {}
