"""Fused transformations: from the terms of one context straight to those of another.

What the way out of root reads of a root event is what the way into root makes of it: put in its place, root events need
not be made. A fused transformation gives what the two give one after the other, and fails where one of them does: what
the way in would fail at is looked at even if the consumer does not ask for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from situ.errors import Problem
from situ.expr.linear import nothing_there
from situ.expr.simplify import simplify
from situ.expr.tree import Case, ForEach, IsNull, Literal, MakeStruct, Node, Read, rebuild, walk
from situ.interpretation.bodies import DATA, EVENT
from situ.interpretation.calls import External
from situ.interpretation.convert import Converter
from situ.interpretation.fusing import join_loops, known, put_in, renamed_loops
from situ.interpretation.model import Direction
from situ.interpretation.obligations import is_met, obligations
from situ.interpretation.rows import Find
from situ.interpretation.steps import Value
from situ.interpretation.transformation import Transformation
from situ.types.model import STRING, Struct
from situ.types.table import Types

_NONE: Mapping[str, Any] = MappingProxyType({})
_TYPE = "type"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """How events of ``inbound.source`` become events of ``outbound.target``, over a root type that is never made."""

    inbound: Transformation
    outbound: Transformation
    node: Node
    externals: Mapping[str, External] = field(default_factory=lambda: MappingProxyType({}))
    """What the host binds before it evaluates; those of the way out may read those of the way in."""
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
            lossy=self.inbound.lossy or self.outbound.lossy,
            externals=self.externals,
            types=self.types,
            targets=self.targets,
            plan=self.plan,
        )


def fused(inbound: Mapping[str, Transformation], outbound: Mapping[str, Transformation]) -> Mapping[str, Fused]:
    """What leads from one context to the other, by the producer's event type; what is not available has no entry."""
    return MappingProxyType(
        {
            name: fuse(way, outbound[way.target.name])
            for name, way in inbound.items()
            if way.target.name in outbound and outbound[way.target.name].source == way.target
        }
    )


def fuse(inbound: Transformation, outbound: Transformation) -> Fused:
    """The two in one; the way out begins with the type with which the way in ends."""
    if inbound.target != outbound.source:
        raise ValueError(f"{outbound.source} is not what becomes of {inbound.source}")
    made, types = simplify(inbound.node), inbound.targets
    taken = {part.variable for part in walk(made) if isinstance(part, Read | ForEach)} | inbound.externals.keys()
    owed = tuple(obligations(made))
    checked = frozenset(part for each in owed for part in walk(each))

    def through(node: Node) -> Node:
        """What the way out says of a root event, said of the event that came in."""
        apart = renamed_loops(_apart(node, outbound.externals), taken)
        return put_in(_named(apart, outbound.source.name), DATA, made, types)

    node = simplify(known(simplify(through(outbound.node)), checked))
    node = simplify(known(join_loops(node, types), checked))
    open_ends = [each for each in owed if not is_met(each, node)]
    if open_ends:
        node = _guarded(node, open_ends, outbound)
    externals = dict(inbound.externals)
    for name, each in outbound.externals.items():
        argument = through(each.argument)
        keys = tuple((column, through(key)) for column, key in each.keys)
        externals[_variable(name)] = replace(each, variable=_variable(name), argument=argument, keys=keys)
    return Fused(
        inbound=inbound,
        outbound=outbound,
        node=node,
        externals=MappingProxyType(externals),
        plan=hashlib.sha256(f"{inbound.plan} {outbound.plan}".encode()).hexdigest()[:16],
    )


class FusedConverter:
    """Converts events from one context to another, as :class:`~situ.interpretation.convert.Converter` does."""

    def __init__(self, way: Fused, find: Mapping[str, Find] = _NONE) -> None:
        self._find = find
        self.fused = way
        self._whole = Converter(way.transformation, find)

    def data(self, event: Mapping[str, Any], data: Mapping[str, Any], rows: Mapping[str, Any] = _NONE) -> Any:
        """The data of the target, as values of its type; ``event`` is the envelope of what came in."""
        return self._whole.data(event, data, rows)

    def text(self, event: Mapping[str, Any], text: bytes, rows: Mapping[str, Any] = _NONE) -> bytes:
        """The canonical text of the target's data, given that of the source's."""
        return self._whole.text(event, text, rows)

    def faults(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[Problem, ...]:
        """Every place that this event gives no value for: of root if it is already there, else of the target."""
        way = self.fused
        inbound = Converter(way.inbound, self._finders(way.inbound, lambda name: name))
        if problems := inbound.faults(event, data):
            return problems
        outbound = Converter(way.outbound, self._finders(way.outbound, _variable))
        return outbound.faults({**event, _TYPE: way.outbound.source.name}, inbound.data(event, data))

    def _finders(self, of: Transformation, called: Callable[[str], str]) -> dict[str, Find]:
        return {name: self._find[called(name)] for name in of.externals if called(name) in self._find}


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────


def _variable(name: str) -> str:
    """What the way out has bound, told apart from what the way in has."""
    return f"{name} out of root"


def _apart(node: Node, externals: Mapping[str, External]) -> Node:
    if isinstance(node, Read):
        return replace(node, variable=_variable(node.variable)) if node.variable in externals else node
    return rebuild(node, lambda part: _apart(part, externals))


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
