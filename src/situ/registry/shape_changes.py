"""Shapes in the registry: what negotiation makes of subscriptions is part of what is in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from situ.quality.shape import UNSHAPED, Shape
from situ.registry.objects import Key, shape_body
from situ.registry.proposal import Move, Proposal, State


def propose_shapes(state: State, shapes: Mapping[str, Shape | None]) -> Proposal:
    """These subscriptions are shaped like this from now on, or not at all; others stay as they are."""
    result = dict(state.deployment.shapes)
    moves: dict[Key, Move | None] = {}
    for id, shape in shapes.items():
        key = Key("shape", id)
        if shape is None or shape == UNSHAPED:
            if key in state.objects:
                moves[key] = None
            result.pop(id, None)
        elif key not in state.objects or state.objects[key].body != shape_body(shape):
            moves[key] = Move(body=shape_body(shape), origin="api")
            result[id] = shape
    ordered = MappingProxyType({id: result[id] for id in sorted(result)})
    return Proposal(deployment=replace(state.deployment, shapes=ordered), moves=moves)
