"""The ways of a context that was made against a root which was replaced, straight from and to the root of now.

What leads from one root to the other is made of expressions alone. The context's own ways may need tables, memory or
Python as well; what these are asked for is then said of the event as it is now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from situ.expr.simplify import simplify
from situ.expr.tree import ForEach, Literal, Node, Read, rebuild, walk
from situ.interpretation.bodies import DATA, EVENT
from situ.interpretation.calls import External
from situ.interpretation.fused import fuse
from situ.interpretation.fusing import put_in, renamed_loops
from situ.interpretation.model import Direction
from situ.interpretation.steps import Value
from situ.interpretation.transformation import Transformation
from situ.types.model import STRING

Ways = Mapping[str, Transformation]
_TYPE = "type"


def bridged(own: Ways, bridge: Ways, direction: Direction) -> Ways:
    """``own`` are from or to the old root, ``bridge`` between the old root and the new one, in the same direction."""
    first, second = (bridge, own) if direction is Direction.OUT else (own, bridge)
    return MappingProxyType(
        {
            name: _one(way, second[way.target.name], way if first is own else second[way.target.name])
            for name, way in first.items()
            if way.target.name in second and second[way.target.name].source == way.target
        }
    )


def _one(first: Transformation, second: Transformation, own: Transformation) -> Transformation:
    """The two in one, as one of the context's ``own``."""
    if first.is_identity:
        return replace(second, context=own.context, types=first.types)
    if second.is_identity:
        return replace(first, context=own.context, targets=second.targets)
    needs_more = first.externals or second.externals
    made = _with_externals(first, second) if needs_more else fuse(first, second).transformation
    return replace(
        made,
        context=own.context,
        direction=own.direction,
        mapping=own.mapping,
        dropped=(*first.dropped, *second.dropped),
        plan=f"{first.plan[:8]}{second.plan[:8]}",
        through=(first, second),
    )


def _with_externals(first: Transformation, second: Transformation) -> Transformation:
    """As one, where names of loops are said outside of them: in what tables are asked for."""
    second = _apart(second, first.externals.keys())
    made, behind = simplify(first.node), second.node
    if second.externals:
        others = (*(each.argument for each in second.externals.values()), *_keys(second.externals))
        made = renamed_loops(made, {name for node in (behind, *others) for name in _variables(node)})
    else:
        behind = renamed_loops(behind, _variables(made))

    def through(node: Node) -> Node:
        return put_in(_named(node, second.source.name), DATA, made, first.targets)

    externals = {
        name: replace(
            each,
            argument=through(each.argument),
            keys=tuple((column, through(key)) for column, key in each.keys),
        )
        for name, each in second.externals.items()
    }
    return replace(
        second,
        source=first.source,
        types=first.types,
        step=Value(node=simplify(through(behind)), function="fused"),
        lossy=first.lossy or second.lossy,
        externals=MappingProxyType({**first.externals, **externals}),
    )


def _apart(way: Transformation, taken: Collection[str]) -> Transformation:
    """The same, with other names for what it needs where another way has those."""
    names = {name: f"{name} behind" for name in way.externals if name in taken}
    if not names:
        return way

    def change(node: Node) -> Node:
        if isinstance(node, Read) and node.variable in names:
            return replace(node, variable=names[node.variable])
        return rebuild(node, change)

    externals = {
        names.get(name, name): replace(
            each,
            variable=names.get(name, name),
            argument=change(each.argument),
            keys=tuple((column, change(key)) for column, key in each.keys),
        )
        for name, each in way.externals.items()
    }
    return replace(way, step=Value(node=change(way.node), function="fused"), externals=MappingProxyType(externals))


def _keys(externals: Mapping[str, External]) -> list[Node]:
    return [key for each in externals.values() for _, key in each.keys]


def _variables(node: Node) -> set[str]:
    return {part.variable for part in walk(node) if isinstance(part, Read | ForEach)}


def _named(node: Node, type: str) -> Node:
    """What is said of the event's type is said of the one between."""
    if isinstance(node, Read) and node.variable == EVENT and node.path == (_TYPE,):
        return Literal(type, STRING, span=node.span)
    return rebuild(node, lambda part: _named(part, type))
