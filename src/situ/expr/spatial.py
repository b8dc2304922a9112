"""Spatial forms: points, boxes and polygons are taken apart into coordinates, recognised by their shape."""

from __future__ import annotations

from situ.catalogue import WRONG_CALL
from situ.errors import Problem
from situ.expr.calls import apply_function
from situ.expr.checking import Checking, Handler
from situ.expr.functions.table import FUNCTIONS
from situ.expr.navigate import attribute_of, attribute_set
from situ.expr.operators import compare
from situ.expr.syntax import Syntax
from situ.expr.tree import And, Each, ForEach, MakeStruct, Node, Read, walk
from situ.types.model import DOUBLE, Attribute, ListOf, Struct, plain
from situ.units import NO_UNIT

_PLANE, _GLOBE = ("x", "y"), ("lat", "lon")
_BOX, _GEO_BOX = ("x1", "y1", "x2", "y2"), ("west", "south", "east", "north")


def _coordinates(check: Checking, node: Node, *shapes: tuple[str, ...]) -> list[Node] | None:
    """The parts of a struct that has one of these shapes, in the order the shape names them."""
    struct = plain(node.type)
    if not isinstance(struct, Struct):
        return None
    for shape in shapes:
        if attribute_set(struct) >= set(shape):
            parts = [attribute_of(node, name, check.scope, node.span) for name in shape]
            return [part for part in parts if part is not None]
    return None


def _distance(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    if len(nodes) == 2:
        return _distance_of(check, nodes[0], nodes[1], syntax)
    return apply_function(check, FUNCTIONS["distance"], nodes, syntax)


def _distance_of(check: Checking, a: Node, b: Node, syntax: Syntax) -> Node | None:
    for shape, function in ((_PLANE, "distance"), (_GLOBE, "geo_distance")):
        first, second = _coordinates(check, a, shape), _coordinates(check, b, shape)
        if first is not None and second is not None:
            return apply_function(check, FUNCTIONS[function], [*first, *second], syntax)
    check.refuse(_not_spatial(check, "distance", (a, b), "two points with x and y, or with lat and lon", syntax))
    return None


def _within(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    if len(nodes) != 3:
        check.refuse(
            WRONG_CALL(
                check.at(syntax),
                name="within",
                reason=f"it takes 3 arguments, got {len(nodes)}",
                forms=("within(a, b, 5 m)",),
            )
        )
        return None
    found = _distance_of(check, nodes[0], nodes[1], syntax)
    return None if found is None else compare("<=", found, nodes[2], syntax, check)


def _inside(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    if len(nodes) == 2:
        point, area = nodes
        for shape, corners in ((_PLANE, _BOX), (("lon", "lat"), _GEO_BOX)):
            here, box = _coordinates(check, point, shape), _coordinates(check, area, corners)
            if here is not None and box is not None:
                x1, y1, x2, y2 = box
                sides = ((">=", here[0], x1), ("<=", here[0], x2), (">=", here[1], y1), ("<=", here[1], y2))
                return And(
                    tuple(compare(op, a, b, syntax, check) for op, a, b in sides), span=(syntax.start, syntax.end)
                )
        if (found := _in_polygon(check, point, area, syntax)) is not None:
            return found
    check.refuse(_not_spatial(check, "inside", tuple(nodes), "a point and a box or polygon", syntax))
    return None


def _in_polygon(check: Checking, point: Node, area: Node, syntax: Syntax) -> Node | None:
    points = _coordinates(check, area, ("points",))
    if points is None or not isinstance(corners := plain(points[0].type), ListOf):
        return None
    element = plain(corners.element)
    if not isinstance(element, Struct):
        return None
    meeting = check.meeting("`inside`")
    if attribute_set(element) >= set(_PLANE) and (here := _coordinates(check, point, _PLANE)) is not None:
        unit = area.unit if area.unit != NO_UNIT else points[0].unit
        there = [meeting.coerce(part, DOUBLE, unit if part.unit != NO_UNIT else NO_UNIT) for part in here]
        return apply_function(check, FUNCTIONS["in_polygon"], [*there, points[0]], syntax)
    if attribute_set(element) >= set(_GLOBE) and (here := _coordinates(check, point, ("lon", "lat"))) is not None:
        variable = check.new_local("corner")
        trusted = all(read.trusted for read in walk(area) if isinstance(read, Read))
        corner = Read(variable, (), element, NO_UNIT, (True,), trusted, span=area.span)
        lat_lon = _coordinates(check, corner, ("lon", "lat")) or []
        made = MakeStruct(
            tuple(zip(("x", "y"), lat_lon, strict=True)),
            Struct("", tuple(Attribute(name=n, type=DOUBLE, optional=True) for n in ("x", "y"))),
            span=area.span,
        )
        planar = ForEach(Each.TRANSFORM, points[0], variable, made, ListOf(made.type), span=area.span)
        return apply_function(check, FUNCTIONS["in_polygon"], [*here, planar], syntax)
    return None


def _not_spatial(check: Checking, name: str, nodes: tuple[Node, ...], wanted: str, syntax: Syntax) -> Problem:
    found = ", ".join(str(node.type) for node in nodes)
    return WRONG_CALL(
        check.at(syntax), name=name, reason=f"it takes {wanted}, found ({found})", forms=(f"{name}(a, b)",)
    )


SPATIAL_FORMS: dict[str, Handler] = {"distance": _distance, "within": _within, "inside": _inside}
