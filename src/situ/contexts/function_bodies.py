"""What the expressions of a conversion mean for the events of one type.

A function of a context reads ``event.x``: which attributes there are depends on the event in which the value stands,
and a rule may apply to many event types. So an expression is checked once per event type, against exactly the
attributes that type has; where it reads none of them (the envelope's ``id``, ``source``, ``time`` and ``type`` do not
count) it means the same everywhere, and :attr:`Conversion.body` holds that.

For those who make transformations, with ``event`` the source event's type::

    missing = missing_in(conversion, event)     # attributes it reads that the type lacks: INT402, per path
    node = body_for(conversion, event)          # only if nothing is missing; SituError with INT401 if it does not type
    keys = keys_for(conversion, lookup, event)  # (column, node) of a lookup, likewise
    key = key_for(conversion, event)            # of the remembered values, likewise

The nodes read the variables ``value`` (the value to convert), ``event`` (the envelope), ``data`` (the source event as
it came), and one named after each lookup and state (its row). ``event.x`` of an attribute x is a read of ``data``, so
nothing but these variables has to be bound. Numbers are plain: no unit is converted inside of a function that says
itself how. The result fits the function's result; a struct that is made here has no name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from situ.contexts.model import Conversion, Expression, TableLookup
from situ.lang.catalogue import FUNCTION_INVALID, NOT_IN_LANGUAGE
from situ.lang.expr.checker.check import Checked, check_bounded, check_result
from situ.lang.expr.limits import ExpressionLimits
from situ.lang.expr.scope import NameScope, Variable, envelope
from situ.lang.expr.syntax import Locate, Syntax, locate_in, parse_syntax
from situ.lang.expr.tree import Node, Read, rebuild, walk
from situ.lang.problems import Problem, SituError
from situ.lang.records import replace
from situ.lang.types.model import Attribute, Struct, Type
from situ.lang.units import NO_UNIT, Units

EVENT, DATA, VALUE = "event", "data", "value"

ENVELOPE: Mapping[str, Attribute] = {each.name: each for each in envelope(Units()).attributes if not each.optional}
"""What ``event.`` reads of the envelope, even where the event has an attribute of that name: that is ``data.id``."""

ANY_EVENT = Struct("", ())
"""An event of which nothing but the envelope is known."""


def body_for(conversion: Conversion, event: Struct) -> Node:
    """What the function does with a value in an event of this type; :class:`SituError` if it cannot."""
    if conversion.body is not None:
        return conversion.body
    if conversion.expression is None:
        raise ValueError(f"{conversion.name} has no expression")
    return _tree(conversion, check_body(conversion, event))


def keys_for(conversion: Conversion, lookup: TableLookup, event: Struct) -> tuple[tuple[str, Node], ...]:
    """Which row a lookup means: the values its columns must have."""
    checked = check_keys(conversion, lookup, event)
    return tuple((column, _tree(conversion, each)) for column, each in checked)


def key_for(conversion: Conversion, event: Struct) -> Node:
    """The key of the remembered values that a value in an event of this type is converted with."""
    if conversion.key is None:
        raise ValueError(f"{conversion.name} has no key")
    return _tree(conversion, check_key(conversion, event))


def missing_in(conversion: Conversion, event: Struct) -> tuple[str, ...]:
    """The attributes of the source event that the function reads and events of this type do not have."""
    known = {attribute.name for attribute in event.attributes}
    return tuple(name for name in reads(conversion) if name not in known)


def reads(conversion: Conversion) -> tuple[str, ...]:
    """The attributes of the source event that the function reads, in order of names."""
    found: set[str] = set()
    for expression in expressions(conversion):
        found.update(_reads(expression.written or expression.text, conversion.scope.limits))
    return tuple(sorted(found))


def expressions(conversion: Conversion) -> Iterator[Expression]:
    """All expressions that are worked out when a value is converted."""
    if conversion.expression is not None:
        yield conversion.expression
    if conversion.key is not None:
        yield conversion.key
    for lookup in conversion.lookups:
        yield from (key for _, key in lookup.keys)


# ── checking ──────────────────────────────────────────────────────────────────────────────────────


def check_body(conversion: Conversion, event: Struct) -> Checked:
    """The expression, checked for events of this type; all that is to say about it."""
    rows = {each.name: Variable(type=each.row) for each in conversion.lookups}
    rows |= {each.name: Variable(type=each.row) for each in conversion.states}
    scope = _scope(conversion, event, rows)
    assert conversion.expression is not None
    return _checked(conversion.expression, scope, conversion.result)


def check_keys(conversion: Conversion, lookup: TableLookup, event: Struct) -> tuple[tuple[str, Checked], ...]:
    scope = _scope(conversion, event, {})
    columns = {attribute.name: attribute for attribute in lookup.row.attributes}
    return tuple(
        (column, _checked(key, scope, Variable(type=columns[column].type) if column in columns else None))
        for column, key in lookup.keys
    )


def check_key(conversion: Conversion, event: Struct) -> Checked:
    assert conversion.key is not None
    return _checked(conversion.key, _scope(conversion, event, {}), None)


def check_over(expression: Expression, event: Struct, scope: NameScope, wanted: Type | None = None) -> Checked:
    """An expression over the attributes of an event alone, written without ``event.``: of a state."""
    variables = {DATA: Variable(type=event)}
    inner = replace(scope, variables=variables, bare=DATA, with_units=False)
    return _checked(expression, inner, Variable(type=wanted) if wanted is not None else None)


def place_of(expression: Expression) -> Locate:
    return expression.locate or locate_in(expression.written or expression.text)


def _scope(conversion: Conversion, event: Struct, rows: Mapping[str, Variable]) -> NameScope:
    parameter = conversion.parameter
    known = (*ENVELOPE.values(), *(each for each in event.attributes if each.name not in ENVELOPE))
    variables = {
        VALUE: Variable(type=parameter.type, unit=parameter.unit, optional=conversion.nulls or parameter.optional),
        EVENT: Variable(type=Struct("", known)),
        DATA: Variable(type=event),
        **rows,
    }
    return replace(conversion.scope, variables=variables, bare="", with_units=False)


def _checked(expression: Expression, scope: NameScope, result: Variable | None) -> Checked:
    text, locate = expression.written or expression.text, place_of(expression)
    if result is None:
        checked = check_bounded(text, scope, locate)
    else:
        checked = check_result(text, scope, replace(result, unit=NO_UNIT), locate)
    if checked.node is None:
        return checked
    whole = [part for part in walk(checked.node) if isinstance(part, Read) and part.variable == EVENT and not part.path]
    if whole:
        found = "`event` as a whole; it is read attribute by attribute"
        places = (locate(part.span[0], part.span[1] - part.span[0]) for part in whole)
        problems = (NOT_IN_LANGUAGE(place, found=found) for place in places)
        return Checked(text, None, (*checked.problems, *problems))
    return Checked(text, _from_data(checked.node), checked.problems)


def _from_data(node: Node) -> Node:
    """``event.x`` of an attribute x is a read of the data; the envelope has no such attribute."""
    if isinstance(node, Read):
        outside = node.variable == EVENT and node.path[0] not in ENVELOPE
        return replace(node, variable=DATA) if outside else node
    return rebuild(node, _from_data)


def _tree(conversion: Conversion, checked: Checked) -> Node:
    if checked.node is None:
        raise SituError(*as_invalid(conversion.name, checked.problems))
    return checked.node


def as_invalid(name: str, problems: tuple[Problem, ...]) -> Iterator[Problem]:
    """The problems of an expression as those of its function."""
    for problem in problems:
        yield FUNCTION_INVALID(problem.location, cause=problem, name=name) if problem.is_error else problem


# ── what is read of the event ─────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=10_000)  # asked of every function for every event type that it may be used for
def _reads(text: str, limits: ExpressionLimits) -> frozenset[str]:
    try:
        waiting: list[tuple[Syntax, frozenset[str]]] = [(parse_syntax(text, locate_in(text), limits), frozenset())]
    except SituError:
        return frozenset()  # said when the expression is checked
    found: set[str] = set()
    while waiting:
        part, hidden = waiting.pop()
        if part.kind == "dot" and part.parts[0].kind == "name" and part.parts[0].text not in hidden:
            of = part.parts[0].text
            if of == DATA or (of == EVENT and part.text not in ENVELOPE):
                found.add(part.text)
        inner = hidden | {part.text} if part.kind == "lambda" else hidden
        waiting.extend((below, inner) for below in part.parts)
    return frozenset(found)


__all__ = [
    "ANY_EVENT",
    "ENVELOPE",
    "as_invalid",
    "body_for",
    "check_body",
    "check_key",
    "check_keys",
    "check_over",
    "expressions",
    "key_for",
    "keys_for",
    "missing_in",
    "place_of",
    "reads",
]
