"""The function table: every function and operator of the language, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from situ.expr.functions.geometry import GEOMETRY
from situ.expr.functions.lists import LISTS
from situ.expr.functions.numbers import NUMBERS
from situ.expr.functions.text import TEXT
from situ.expr.functions.time import TIME
from situ.expr.overload import Function, Overload

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {function.name: function for function in (*NUMBERS, *TEXT, *TIME, *GEOMETRY, *LISTS)}
)

SYNONYMS: Mapping[str, str] = MappingProxyType({"concat": "||"})


def overloads(name: str) -> tuple[Overload, ...]:
    return FUNCTIONS[name].overloads
