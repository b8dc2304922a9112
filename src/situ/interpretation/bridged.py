"""The ways of a context that was made against a root which was replaced, straight from and to the root of now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from situ.interpretation.fused import fuse
from situ.interpretation.model import Direction
from situ.interpretation.transformation import Transformation

Ways = Mapping[str, Transformation]


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
    made = fuse(first, second).transformation
    return replace(
        made,
        context=own.context,
        direction=own.direction,
        mapping=own.mapping,
        dropped=(*first.dropped, *second.dropped),
    )
