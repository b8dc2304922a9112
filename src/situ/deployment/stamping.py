"""Which filters are true for a row: one generated function for each type and choice of filters.

Only what the filters ask for is read, of the envelope and of the data, and nothing at all where the type alone decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from situ.errors import SituError
from situ.event.row import Row
from situ.expr.emit_python import Emitter
from situ.expr.runtime import FAILURES
from situ.expr.tree import FALSE, TRUE, Node, Read, walk
from situ.subscription.reading import read_envelope, row_reader
from situ.visibility.bits import Numbers, numbers_in
from situ.visibility.filters import Filters
from situ.visibility.stamping import runnable

Bits: TypeAlias = int | Callable[[Row], int]
"""Those for all rows of a type, where the type alone decides; else a function of the row."""
_Asked = tuple[int, Node]
_Many = Callable[[Mapping[str, Any], Mapping[str, Any]], int]

_EMPTY: Mapping[str, Any] = MappingProxyType({})
_TOGETHER = 32
"""Filters in one function."""


def bits_function(filters: Filters, numbers: Numbers, wanted: int, type: str) -> Bits:
    """Those of the wanted filters that are true for rows of a type."""
    texts = numbers.texts()
    always = 0
    asked: list[_Asked] = []
    for number in numbers_in(wanted):
        node = filters.node(texts[number], type)
        if node == TRUE:
            always |= 1 << number
        elif node != FALSE:
            asked.append((1 << number, node))
    event = filters.types.event(type)
    if not asked or event is None:
        return always
    reads = [each for _, node in asked for each in walk(node) if isinstance(each, Read)]
    below = [each.path for each in reads if each.variable == "data"]
    names = frozenset(path[0] for path in below) if all(below) else None
    read = row_reader(event, names, filters.types) if below else _nothing
    around = read_envelope if any(each.variable == "event" for each in reads) else _nothing
    functions = [_function(asked[start : start + _TOGETHER]) for start in range(0, len(asked), _TOGETHER)]

    def bits(row: Row) -> int:
        envelope, data = around(row), read(row)
        found = always
        for function in functions:
            found |= function(envelope, data)
        return found

    return bits


def bits_of(bits: Bits, row: Row) -> int:
    return bits if isinstance(bits, int) else bits(row)


def _nothing(whole: object) -> Mapping[str, Any]:
    """No filter asks for any of it."""
    return _EMPTY


def _function(asked: Sequence[_Asked]) -> _Many:
    """One function that asks them all; what fails is not true, and the others are asked all the same."""
    emitter = Emitter(("event", "data"))
    lines = ["    found = 0"]
    for bit, node in asked:
        test = emitter.test(node)
        lines += ["    try:", f"        if {test}: found |= {bit}", "    except FAILURES: pass"]
    emitter.constants["FAILURES"] = FAILURES
    try:
        call: _Many = emitter.block("\n".join((*lines, "    return found\n"))).call
    except SituError:  # too long for one function
        return _one_by_one(asked)
    return call


def _one_by_one(asked: Sequence[_Asked]) -> _Many:
    tests = [(bit, runnable(node)) for bit, node in asked]

    def call(envelope: Mapping[str, Any], data: Mapping[str, Any]) -> int:
        return sum(bit for bit, test in tests if test(envelope, data))

    return call
