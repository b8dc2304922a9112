"""The function table: every function and operator of the language, by name; and its rows for lists.

:data:`FORMS` lists the forms that take values of any type: the checker settles their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from situ.lang.expr.functions.numbers import GEOMETRY, NUMBERS
from situ.lang.expr.functions.text import TEXT, clamped
from situ.lang.expr.functions.time import TIME
from situ.lang.expr.overload import Function, Overload, UnitRule


def _at_most(args: Sequence[str], constants: Sequence[Any]) -> str:
    size = f"CAST(array_size({args[0]}) AS BIGINT)"
    counted = f"try_multiply({size}, {args[2]})" if len(args) > 2 else size
    return f"CASE WHEN {counted} <= {constants[0]} THEN {args[0]} END"


def _at_most_python(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
    return f"_at_most({', '.join(args)})"


LISTS: tuple[Function, ...] = (
    Function(
        name="size",
        group="lists",
        doc="Number of elements.",
        overloads=(Overload(name="size", parameters=("list",), result="long", spark="CAST(array_size({0}) AS BIGINT)", python="len({0})", unit=UnitRule.FREE),),
        examples=(),
    ),
    Function(
        name="element_at",
        group="lists",
        doc="The element at a place counted from 1, from the end if negative; null if there is none.",
        overloads=(
            Overload(
                name="element_at",
                parameters=("list", "long"),
                result="element",
                spark=f"try_element_at({{0}}, nullif({clamped('{1}')}, 0))",
                python="_element_at({0}, {1})",
                may_be_null=True,
                unit=UnitRule.FREE,
            ),
        ),
    ),
    Function(
        name="at_most",
        group="lists",
        doc="The list itself. Fails if it has more than so many elements, each counted as often as the third argument says.",
        overloads=(Overload(name="at_most", parameters=("list", "int", "long"), result="list", spark=_at_most, python=_at_most_python, optional=1, constants=(1,), fails=True, unit=UnitRule.SAME),),
    ),
    Function(
        name="contains",
        group="text",
        doc="Whether the text has the other in it; for lists write `exists(list, x -> x = …)`.",
        overloads=(Overload(name="contains", parameters=("string", "string"), result="boolean", spark="contains({0}, {1})", python="({1} in {0})"),),
        examples=(("contains('situ', 'it')", "true"),),
    ),
)  # fmt: skip

FORMS: tuple[tuple[str, str, str], ...] = (
    ("CASE WHEN c THEN a … ELSE b END", "choice", "The result of the first condition that is true; null if none is and there is no ELSE. `if(c, a, b)` is the short form."),
    ("coalesce(a, b, …)", "choice", "The first that is not null."),
    ("least(a, b, …), greatest(a, b, …)", "choice", "The smallest, the largest; null if one of them is null."),
    ("to_unit(x, 'km/h')", "conversions", "The same quantity counted in another unit of its dimension, as a double."),
    ("struct(a AS x, b AS y)", "structs", "A struct with these attributes."),
    ("transform(list, x -> e)", "lists", "The list of the results of e, for each element x."),
    ("filter(list, x -> c)", "lists", "The elements for which c is true."),
    ("exists(list, x -> c), forall(list, x -> c)", "lists", "Whether c is true for one element, for all elements."),
    ("inside(point, box), inside(point, polygon)", "geometry", "Whether a point lies in an area; planar or geographic. The border of a box counts as inside."),
    ("within(a, b, d)", "geometry", "Whether two points are at most so far apart: `distance(a, b) <= d`."),
    ("a = b, a <> b, a < b, a <= b, a > b, a >= b", "comparison", "Numbers by value, text by code points, times by time; null if a side is null."),
    ("a IN (v, …), a BETWEEN x AND y", "comparison", "One of the values; from x to y, both included."),
    ("a IS NULL, a IS NOT NULL, c IS TRUE, c IS FALSE", "comparison", "Never null themselves."),
    ("type IS T, x IS T", "comparison", "Whether an event, or a struct, is of a type or one of its subtypes."),
    ("AND, OR, NOT", "logic", "With SQL's null. A part that fails does not matter where another part decides."),
    ("TIMESTAMP '2026-11-01T12:00:00Z', DATE '2026-11-01', DURATION 'PT5S', 5 m, 90 [km/h]", "literals", "Text in single quotes, numbers, numbers with units, instants, dates and durations."),
)  # fmt: skip
"""What the checker handles itself: form, group, what it means."""


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The function table: every function and operator of the language, by name.

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {function.name: function for function in (*NUMBERS, *TEXT, *TIME, *GEOMETRY, *LISTS)}
)

SYNONYMS: Mapping[str, str] = MappingProxyType({"concat": "||"})


def overloads(name: str) -> tuple[Overload, ...]:
    return FUNCTIONS[name].overloads
