"""Handlers of operators and spatial forms: arithmetic, comparison, logic, choice; distance, within, inside."""

from __future__ import annotations

from situ.lang.catalogue import NOT_IN_LANGUAGE, UNKNOWN_NAME, WRONG_CALL, WRONG_TYPE
from situ.lang.expr import format as literals
from situ.lang.expr.checker.arithmetic import combine
from situ.lang.expr.checker.calls import apply_function, call
from situ.lang.expr.checker.coerce import Mismatch, is_number
from situ.lang.expr.checker.context import Checking, Handler
from situ.lang.expr.functions.table import FUNCTIONS, overloads
from situ.lang.expr.functions.text import ANY, LONGEST_PATTERN, like_pieces
from situ.lang.expr.scope import attribute_of, attribute_set
from situ.lang.expr.syntax import Syntax
from situ.lang.expr.tree import (
    FALSE,
    NULL,
    TRUE,
    And,
    Apply,
    Case,
    Coalesce,
    Compare,
    Each,
    ForEach,
    In,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Not,
    Or,
    Read,
    walk,
)
from situ.lang.problems import Problem
from situ.lang.types.model import BOOLEAN, DOUBLE, STRING, Attribute, ListOf, Struct, plain
from situ.lang.units import NO_UNIT


def _arithmetic(check: Checking, syntax: Syntax) -> Node | None:
    if syntax.kind in "*/" and syntax.parts[0].kind == "quantity":
        check.after_quantity = syntax.parts[1]
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    return combine(syntax.kind, nodes[0], nodes[1], (syntax.start, syntax.end), check.meeting(f"`{syntax.kind}`"))


def _negate(check: Checking, syntax: Syntax) -> Node | None:
    arg = check.node(syntax.parts[0])
    if isinstance(arg, Literal) and is_number(arg.type) and arg.value is not None:
        return literals.negative(arg, (syntax.start, syntax.end))
    return None if arg is None else call(check, "negate", [arg], syntax)


def _concat(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    return None if nodes is None else call(check, "||", nodes, syntax)


def compare(op: str, left: Node, right: Node, syntax: Syntax, check: Checking) -> Node:
    """A comparison of two values that meet in one type which has an order (or, for = and <>, equality)."""
    sides = check.meeting(f"`{op}`").meet((left, right))
    type = plain(sides[0].type)
    comparable = not isinstance(type, Struct | ListOf)
    if not comparable or (op not in ("=", "<>") and str(type) in ("boolean", "bytes")):
        raise Mismatch(
            WRONG_TYPE(
                check.at(syntax),
                what=f"`{op}`",
                found=str(type),
                expected="numbers, text, dates, timestamps or durations",
                remedy="Compare attributes of it instead." if not comparable else "",
            )
        )
    if type == NULL:
        sides = tuple(Literal(None, STRING, span=side.span) for side in sides)
    return Compare(op, sides[0], sides[1], span=(syntax.start, syntax.end))


def _compare(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    return None if nodes is None else compare(syntax.kind, nodes[0], nodes[1], syntax, check)


def _between(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    low, high = compare(">=", nodes[0], nodes[1], syntax, check), compare("<=", nodes[0], nodes[2], syntax, check)
    return And((low, high), span=(syntax.start, syntax.end))


def _in(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    item, options = nodes[0], nodes[1:]
    span = (syntax.start, syntax.end)
    values = [option for option in options if isinstance(option, Literal) and option.value is not None]
    others: list[Node] = [compare("=", item, o, syntax, check) for o in options if not isinstance(o, Literal)]
    if len(values) + len(others) < len(options):  # NULL in the list: never equal, never surely unequal
        others.append(Literal(None, BOOLEAN, span=span))
    if values:
        met = check.meeting("`IN`").meet((item, *values))
        compare("=", met[0], met[1], syntax, check)
        distinct = dict.fromkeys(
            node.value + 0.0 if isinstance(node.value, float) else node.value
            for node in met[1:]
            if isinstance(node, Literal)
        )
        others.insert(0, In(met[0], tuple(distinct), span=span))
    return others[0] if len(others) == 1 else Or(tuple(others), span=span)


def _like(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    text = check.as_type(nodes[0], STRING, NO_UNIT, "`LIKE`")
    pattern, escape = nodes[1], nodes[2] if len(nodes) > 2 else None
    for constant in (pattern, escape):
        if constant is not None and not (isinstance(constant, Literal) and isinstance(constant.value, str)):
            check.refuse(
                WRONG_CALL(
                    check.at(syntax.parts[1]),
                    name="LIKE",
                    reason="its pattern must be a text in quotes",
                    forms=("x LIKE 'a%'",),
                )
            )
            return None
    if text is None or not isinstance(pattern, Literal):
        return None
    written = pattern.value
    if isinstance(escape, Literal):
        if len(escape.value) != 1:
            check.refuse(
                WRONG_CALL(
                    check.at(syntax),
                    name="LIKE",
                    reason="ESCAPE takes one character",
                    forms=("x LIKE 'a!%' ESCAPE '!'",),
                )
            )
            return None
        written = _with_backslash(written, escape.value)
    found = _like_node(text, written, (syntax.start, syntax.end))
    if isinstance(found, Apply) and found.overload.name == "like" and len(written) > LONGEST_PATTERN:
        reason = f"a pattern has at most {LONGEST_PATTERN} characters"
        check.refuse(WRONG_CALL(check.at(syntax.parts[1]), name="LIKE", reason=reason, forms=("x LIKE 'a%'",)))
        return None
    return found


def _with_backslash(pattern: str, escape: str) -> str:
    result, characters = "", iter(pattern)
    for character in characters:
        if character == escape:
            result += "\\" + next(characters, escape)
        else:
            result += "\\\\" if character == "\\" else character
    return result


def _like_node(text: Node, pattern: str, span: tuple[int, int]) -> Node:
    """The plain forms become plainer functions, which engines run faster and an index understands."""
    pieces = like_pieces(pattern)
    fixed = [piece for piece in pieces if piece is not None]
    if not any(ANY in piece for piece in fixed) and len(fixed) <= 1:
        word = Literal(fixed[0] if fixed else "", STRING, span=span)
        match pieces:
            case [] | [str()]:
                return Compare("=", text, word, span=span)
            case [str(), None]:
                return Apply(overloads("starts_with")[0], (text, word), BOOLEAN, span=span)
            case [None, str()]:
                return Apply(overloads("ends_with")[0], (text, word), BOOLEAN, span=span)
            case [None, str(), None]:
                return Apply(overloads("contains")[0], (text, word), BOOLEAN, span=span)
    return Apply(overloads("like")[0], (text, Literal(pattern, STRING, span=span)), BOOLEAN, span=span)


def _connect(kind: type[And] | type[Or]) -> Handler:
    def handle(check: Checking, syntax: Syntax) -> Node | None:
        word = "`AND`" if kind is And else "`OR`"
        nodes = [check.condition(part, word) for part in syntax.parts]
        if None in nodes:
            return None
        flat: list[Node] = []
        for node in nodes:
            assert node is not None
            flat.extend(node.args if isinstance(node, kind) else (node,))
        return kind(tuple(flat), span=(syntax.start, syntax.end))

    return handle


def _not(check: Checking, syntax: Syntax) -> Node | None:
    arg = check.condition(syntax.parts[0], "`NOT`")
    return None if arg is None else Not(arg, span=(syntax.start, syntax.end))


def _is(check: Checking, syntax: Syntax) -> Node | None:
    subject, what = syntax.parts
    span = (syntax.start, syntax.end)
    if what.kind in ("name", "dot"):
        return _is_type(check, subject, what, syntax)
    if what.kind == "null":
        arg = check.node(subject)
        return None if arg is None else IsNull(arg, span=span)
    if what.kind in ("true", "false"):
        arg = check.condition(subject, "`IS`")
        if arg is None:
            return None
        sure = TRUE if what.kind == "false" else FALSE
        known: Node = Coalesce((arg, sure), BOOLEAN, span=span) if arg.nullable else arg
        return Not(known, span=span) if what.kind == "false" else known
    check.refuse(
        NOT_IN_LANGUAGE(check.at(what), found="IS with something that is neither NULL, TRUE, FALSE nor a type")
    )
    return None


def _is_type(check: Checking, subject: Syntax, what: Syntax, syntax: Syntax) -> Node | None:
    """``type IS T``: the event, or a struct in it, is of a type or one of its subtypes."""
    name, types = _dotted(what), check.scope.types
    wanted = types.get(name) if types is not None and name else None
    if wanted is None or types is None:
        known = list(types.types) if types is not None else []
        check.refuse(
            UNKNOWN_NAME(
                check.at(what),
                kind="type",
                name=name or "?",
                nearest=check.nearest(name, known),
                instead="IS takes NULL, TRUE, FALSE or the name of a type.",
            )
        )
        return None
    names = tuple(str(type) for type in types.subtypes(wanted))
    span = (syntax.start, syntax.end)
    envelope = check.scope.variables.get("event")
    if subject.kind == "name" and subject.text == "type" and envelope is not None:
        found = attribute_of(check.read("event", envelope, subject), "type", check.scope, span)
        return None if found is None else In(found, names, span=span)
    of = check.node(subject)
    if of is None:
        return None
    if not isinstance(plain(of.type), Struct):
        raise check.meeting("`IS`").wrong_type(of, wanted)
    dynamic = attribute_of(of, "$type", check.scope, span)
    if dynamic is None:
        return Literal(str(of.type) in names, BOOLEAN, span=span)
    declared = Literal(str(of.type), STRING, span=span)
    tested = In(Coalesce((dynamic, declared), STRING, span=span), names, span=span)
    if not of.nullable:
        return tested
    return Case(((IsNull(of, span=span), Literal(None, BOOLEAN, span=span)),), tested, BOOLEAN, span=span)


def _dotted(syntax: Syntax) -> str:
    if syntax.kind == "name":
        return syntax.text
    return f"{_dotted(syntax.parts[0])}.{syntax.text}" if syntax.kind == "dot" else ""


def _case(check: Checking, syntax: Syntax) -> Node | None:
    pairs = syntax.parts[: len(syntax.parts) // 2 * 2]
    conditions = [check.condition(part, "`WHEN`") for part in pairs[::2]]
    results = [check.node(part) for part in pairs[1::2]]
    last = (
        check.node(syntax.parts[-1]) if len(syntax.parts) % 2 else Literal(None, NULL, span=(syntax.start, syntax.end))
    )
    if None in conditions or None in results or last is None:
        return None
    return choose(check, [c for c in conditions if c], [*(r for r in results if r), last], syntax)


def choose(check: Checking, conditions: list[Node], results: list[Node], syntax: Syntax) -> Node:
    """CASE over checked parts; the results meet in one type and unit."""
    met = check.meeting("The results of CASE").meet(results)
    if met[0].type == NULL:
        if not any(condition.can_fail for condition in conditions):
            return Literal(None, NULL, span=(syntax.start, syntax.end))
        met = tuple(Literal(None, STRING, span=node.span) for node in met)
    arms = tuple(zip(conditions, met[:-1], strict=True))
    return Case(arms, met[-1], met[0].type, met[0].unit, span=(syntax.start, syntax.end))


OPERATORS: dict[str, Handler] = {
    "not": _not,
    "negate": _negate,
    "and": _connect(And),
    "or": _connect(Or),
    "||": _concat,
    "is": _is,
    "in": _in,
    "between": _between,
    "like": _like,
    "case": _case,
    **dict.fromkeys(("+", "-", "*", "/", "%"), _arithmetic),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _compare),
}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Spatial forms: points, boxes and polygons are taken apart into coordinates, recognised by their shape.

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
