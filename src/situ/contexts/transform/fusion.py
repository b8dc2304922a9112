"""Fused transformations: from the terms of one context straight to those of another.

What the way out of root reads of a root event is what the way into root makes of it: put in its place, root events need
not be made. A fused transformation gives what the two give one after the other, and fails where one of them does: what
the way in would fail at is looked at even if the consumer does not ask for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.errors import Problem
from situ.expr.linear import nothing_there
from situ.expr.simplify import simplify
from situ.expr.tree import Case, ForEach, IsNull, Literal, MakeStruct, Node, Read, rebuild, walk
from situ.interpretation.bodies import DATA, EVENT
from situ.interpretation.convert import Converter
from situ.interpretation.fusing import join_loops, known, put_in, renamed_loops
from situ.interpretation.model import Direction
from situ.interpretation.obligations import is_met, obligations
from situ.interpretation.rows import Find, with_rows
from situ.interpretation.steps import Value
from situ.interpretation.transformation import Transformation
from situ.types.model import STRING, Struct
from situ.types.table import Types

_NONE: Mapping[str, Any] = MappingProxyType({})
_TYPE = "type"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """How events of ``inbound.source`` become events of ``outbound.target``, over a root type that is never made.

    Rows of tables and results of Python are calls in ``node``; nothing has to be bound.
    """

    inbound: Transformation
    outbound: Transformation
    node: Node
    find: tuple[Mapping[str, Find], Mapping[str, Find]] = field(default=(_NONE, _NONE), compare=False, repr=False)
    """How what the two ways need besides the event is found."""
    plan: str = ""

    @property
    def source(self) -> Struct:
        return self.inbound.source

    @property
    def target(self) -> Struct:
        return self.outbound.target

    @property
    def types(self) -> Types:
        return self.inbound.types

    @property
    def targets(self) -> Types:
        return self.outbound.targets

    @property
    def can_fail(self) -> bool:
        return self.node.can_fail

    @property
    def lossy(self) -> bool:
        return self.inbound.lossy or self.outbound.lossy

    @property
    def is_identity(self) -> bool:
        return isinstance(self.node, Read) and not self.node.path and self.source == self.target

    @property
    def transformation(self) -> Transformation:
        """As one transformation, which says of no place why it is as it is."""
        return Transformation(
            context=f"{self.inbound.context} → {self.outbound.context}",
            direction=Direction.OUT,
            source=self.source,
            target=self.target,
            step=Value(node=self.node, function="fused", copied=self.is_identity),
            lossy=self.lossy,
            types=self.types,
            targets=self.targets,
            plan=self.plan,
        )


def fused(inbound: Mapping[str, Transformation], outbound: Mapping[str, Transformation]) -> Mapping[str, Fused]:
    """What leads from one context to the other by expressions alone, by the producer's event type."""
    pairs = ((name, way, outbound.get(way.target.name)) for name, way in inbound.items())
    return MappingProxyType(
        {
            name: fuse(way, back)
            for name, way, back in pairs
            if back is not None and back.source == way.target and not way.externals and not back.externals
        }
    )


def fuse(
    inbound: Transformation,
    outbound: Transformation,
    find: tuple[Mapping[str, Find], Mapping[str, Find]] = (_NONE, _NONE),
) -> Fused:
    """The two in one; the way out begins with the type with which the way in ends.

    ``find`` gives functions for everything that the two need besides the event.
    """
    if inbound.target != outbound.source:
        raise ValueError(f"{outbound.source} is not what becomes of {inbound.source}")
    for way, found in zip((inbound, outbound), find, strict=True):
        if lacking := way.externals.keys() - found.keys():
            raise ValueError(f"nobody finds {', '.join(sorted(lacking))}")
    made, types = simplify(with_rows(inbound.node, inbound.externals, find[0])), inbound.targets
    taken = {part.variable for part in walk(made) if isinstance(part, Read | ForEach)}
    owed = tuple(obligations(made))
    checked = frozenset(part for each in owed for part in walk(each))
    out = renamed_loops(with_rows(outbound.node, outbound.externals, find[1]), taken)
    node = put_in(_named(out, outbound.source.name), DATA, made, types)
    node = simplify(known(simplify(node), checked))
    node = simplify(known(join_loops(node, types), checked))
    open_ends = [each for each in owed if not is_met(each, node)]
    return Fused(
        inbound=inbound,
        outbound=outbound,
        node=_guarded(node, open_ends, outbound) if open_ends else node,
        find=find,
        plan=hashlib.sha256(f"{inbound.plan} {outbound.plan}".encode()).hexdigest()[:16],
    )


class FusedConverter:
    """Converts events from one context to another, as :class:`~situ.interpretation.convert.Converter` does."""

    def __init__(self, way: Fused) -> None:
        self.fused = way
        self._whole = Converter(way.transformation)

    def data(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
        """The data of the target, as values of its type; ``event`` is the envelope of what came in."""
        return self._whole.data(event, data)

    def text(self, event: Mapping[str, Any], text: bytes) -> bytes:
        """The canonical text of the target's data, given that of the source's."""
        return self._whole.text(event, text)

    def faults(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[Problem, ...]:
        """Every place that this event gives no value for: of root if it does not get there, else of the target."""
        way = self.fused
        inbound = Converter(way.inbound, way.find[0])
        if problems := inbound.faults(event, data):
            return problems
        outbound = Converter(way.outbound, way.find[1])
        return outbound.faults({**event, _TYPE: way.outbound.source.name}, inbound.data(event, data))


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────


def _named(node: Node, type: str) -> Node:
    """On the way out the type of the event is that of root."""
    if isinstance(node, Read) and node.variable == EVENT and node.path == (_TYPE,):
        return Literal(type, STRING, span=node.span)
    return rebuild(node, lambda part: _named(part, type))


def _guarded(node: Node, open_ends: list[Node], outbound: Transformation) -> Node:
    """Evaluates what the way in would fail at and the consumer does not ask for, and goes on."""
    looked_at = MakeStruct(tuple((f"p{number}", each) for number, each in enumerate(open_ends)), Struct("", ()))
    never = nothing_there(outbound.target, outbound.targets)
    return Case(((IsNull(looked_at), never),), node, outbound.target)
