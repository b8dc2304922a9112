"""Stamping: which filters matter for an event's type, and which of them are TRUE for it.

All filters of the scope document are evaluated that are not constant for the type, whoever may ask for them: so what
an event knows of itself depends on its type and on the epoch, and not on who subscribed when it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from situ.lang.expr.emit.python import compile_test
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.tree import FALSE, TRUE, Node
from situ.scopes.dimension_plan import constant
from situ.scopes.filter_sets import FilterNumbers, numbers_in
from situ.scopes.filters import FilterMeanings, event_types
from situ.scopes.graph import ScopeGraph

Test = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]


def constant_filters(graph: ScopeGraph, filters: FilterMeanings) -> Mapping[str, bool]:
    """The filters that pass every event of every type, or none."""
    types = list(event_types(filters.types))
    result: dict[str, bool] = {}
    for text in {each.text for each in graph.filters() if constant(each.text) is None}:
        nodes = {filters.node(text, type) for type in types}
        if nodes == {TRUE} or nodes == {FALSE}:
            result[text] = nodes == {TRUE}
    return MappingProxyType(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class RootEvent:
    """An event in the terms of root that can be asked: the slow way, one filter at a time."""

    filters: FilterMeanings
    type: str
    envelope: Mapping[str, Any]
    data: Mapping[str, Any]

    def passes(self, text: str) -> bool:
        """Whether a filter is true for it; not if it is false, null or fails."""
        try:
            return interpret(self.filters.node(text, self.type), {"event": self.envelope, "data": self.data}) is True
        except FAILURES:
            return False


class TypeStamper(NamedTuple):
    """Stamping for one type: what is TRUE and what is not without a look, and what must be evaluated, by its bit."""

    true: int
    false: int
    tests: tuple[tuple[int, Test], ...]

    def bits(self, envelope: Mapping[str, Any], data: Mapping[str, Any]) -> int:
        """The filters that are TRUE for an event of this type."""
        result = self.true
        for bit, test in self.tests:
            if test(envelope, data):
                result |= bit
        return result


class Stamper:
    """The filters of one epoch under one table of types; what is worked out for a type is kept."""

    def __init__(self, filters: FilterMeanings, numbers: FilterNumbers, stamped: int) -> None:
        texts = numbers.texts()
        self._filters = filters
        self._texts = [(1 << number, texts[number]) for number in numbers_in(stamped)]
        self._types: dict[str, TypeStamper] = {}

    def for_type(self, type: str) -> TypeStamper:
        """What is to be done for events of a type."""
        found = self._types.get(type)
        if found is None:
            found = self._types[type] = self._for_type(type)
        return found

    def bits(self, event: RootEvent) -> int:
        """The filters that are TRUE for an event."""
        return self.for_type(event.type).bits(event.envelope, event.data)

    def matter(self, types: Iterable[str]) -> int:
        """The filters that must be evaluated for events of any of these types."""
        result = 0
        for type in types:
            for bit, _ in self.for_type(type).tests:
                result |= bit
        return result

    def _for_type(self, type: str) -> TypeStamper:
        true = false = 0
        tests: list[tuple[int, Test]] = []
        for bit, text in self._texts:
            node = self._filters.node(text, type)
            if node == TRUE:
                true |= bit
            elif node == FALSE:
                false |= bit
            else:
                tests.append((bit, runnable(node)))
        return TypeStamper(true, false, tuple(tests))


def runnable(node: Node) -> Test:
    """A function that is true where the condition is, and false where it is false, null or fails."""
    run = compile_test(node, ("event", "data")).call

    def test(envelope: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
        try:
            return bool(run(envelope, data))
        except FAILURES:
            return False

    return test
