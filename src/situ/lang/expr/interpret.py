"""The slow, obvious meaning of an expression: walk the tree, node by node.

The emitters must agree with this on every input. It also computes constants, once, when expressions are simplified.
"""

from __future__ import annotations

import decimal
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from situ.lang.expr import runtime
from situ.lang.expr.overload import Overflow, Overload
from situ.lang.expr.runtime import NAMESPACE
from situ.lang.expr.tree import (
    And,
    Apply,
    Case,
    Coalesce,
    Coerce,
    Compare,
    Each,
    Field,
    ForEach,
    In,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Not,
    Or,
    Read,
)
from situ.lang.types.model import DOUBLE, Decimal, Type
from situ.lang.units import DoubleStep, convert_double

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def interpret(node: Node, values: Mapping[str, Any]) -> Any:
    """The value of an expression, None for null; raises one of ``runtime.FAILURES`` where it fails."""
    return bounded(_value(node, values), Overflow.NONE)


def bounded(value: Any, tolerated: Overflow) -> Any:
    """The value, unless it is a double beyond what is tolerated here."""
    if isinstance(value, float):
        if tolerated is Overflow.NONE:
            return runtime.finite(value)
        if tolerated is Overflow.INFINITE:
            return runtime.number(value)
    return value


def _value(node: Node, values: Mapping[str, Any]) -> Any:
    match node:
        case Literal(value=value):
            return value
        case Read(variable=variable, path=path):
            return _read(values[variable], path)
        case Apply(overload=overload, args=args):
            given = [bounded(_value(arg, values), overload.tolerance(place)) for place, arg in enumerate(args)]
            return None if None in given else _function(overload, len(args), node.constants)(*given)
        case Coerce(arg=arg, type=type, steps=steps):
            return _coerced(_value(arg, values), type, steps)
        case Compare(op=op, left=left, right=right):
            a, b = (bounded(_value(side, values), Overflow.INFINITE) for side in (left, right))
            return None if a is None or b is None else COMPARISONS[op](a, b)
        case In(item=item, values=options):
            found = bounded(_value(item, values), Overflow.INFINITE)
            return None if found is None else found in options
        case And(args=args):
            return runtime.conjunction(*(functools.partial(_value, arg, values) for arg in args))
        case Or(args=args):
            return runtime.disjunction(*(functools.partial(_value, arg, values) for arg in args))
        case Not(arg=arg):
            value = _value(arg, values)
            return None if value is None else not value
        case IsNull(arg=arg):
            return interpret(arg, values) is None
        case Case(arms=arms, otherwise=otherwise):
            chosen = next((result for condition, result in arms if _value(condition, values)), otherwise)
            return interpret(chosen, values)
        case Coalesce(args=args):
            return next((value for arg in args if (value := interpret(arg, values)) is not None), None)
        case MakeStruct(fields=fields):
            made = {name: interpret(part, values) for name, part in fields}
            return runtime.without_nulls(made) if node.sparse else made
        case Field(of=of, name=name):
            return _read(_value(of, values), (name,))
        case ForEach():
            return _each(node, values)


def _read(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if value is None:
            return None
        value = value.get(step)
    return value


def _coerced(value: Any, type: Type, steps: Iterable[DoubleStep]) -> Any:
    if value is None:
        return None
    if type == DOUBLE:
        return convert_double(float(value), steps)
    if isinstance(type, Decimal):
        return runtime.fit_decimal(decimal.Decimal(value), type.precision, type.scale)
    return value


def _each(node: ForEach, values: Mapping[str, Any]) -> Any:
    items = _value(node.list, values)
    if items is None:
        return None

    def body(item: Any) -> Any:
        return interpret(node.body, {**values, node.variable: item})

    match node.kind:
        case Each.TRANSFORM:
            return runtime.transform(items, body)
        case Each.FILTER:
            return runtime.keep(items, body)
        case Each.EXISTS:
            return runtime.exists(items, body)
        case Each.FORALL:
            return runtime.forall(items, body)


@functools.lru_cache(maxsize=4096)
def _function(overload: Overload, count: int, constants: tuple[Any, ...]) -> Callable[..., Any]:
    """The Python side of a row of the function table, as a function of its arguments."""
    bound = dict(NAMESPACE)

    def bind(value: Any) -> str:
        name = f"_k{len(bound)}"
        bound[name] = value
        return name

    names = [f"a{place}" for place in range(count)]
    text = (
        overload.python.format(*names) if isinstance(overload.python, str) else overload.python(names, constants, bind)
    )
    return eval(f"lambda {', '.join(names)}: {text}", bound)  # type: ignore[no-any-return]
