"""A filter, compiled: what is to be looked up in the index, and a function that decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from situ.catalogue import FILTER_INVALID
from situ.errors import SituError
from situ.expr.emit_python import compile_test
from situ.expr.limits import Limits
from situ.expr.results import check_bounded
from situ.expr.runtime import FAILURES
from situ.expr.scope import Definition, event_scope
from situ.expr.syntax import locate_in
from situ.expr.tree import TRUE, Node, Read, walk
from situ.subscription.normal_form import Conjunction, normal_form
from situ.types.model import BOOLEAN, Struct
from situ.types.table import Types


class Filter:
    """A condition on events of one type and its subtypes. Two are equal only if they are the same."""

    __slots__ = ("_test", "conjunctions", "data", "envelope", "node", "type")

    def __init__(self, type: str, node: Node) -> None:
        self.type = type
        self.node = node
        self.conjunctions: tuple[Conjunction, ...] = normal_form(node)
        reads = [each for each in walk(node) if isinstance(each, Read)]
        self.envelope: frozenset[str] = frozenset(each.path[0] for each in reads if each.variable == "event")
        """The attributes of the envelope it reads."""
        below = [each.path for each in reads if each.variable == "data"]
        self.data: frozenset[str] | None = frozenset(path[0] for path in below) if all(below) else None
        """The attributes of the data it reads, by the first step; None: the data as a whole."""
        self._test: Callable[[Any, Any], Any] | None = None

    @property
    def always(self) -> bool:
        return () in self.conjunctions

    def test(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
        """Whether the condition is true; not if it is false, null or fails."""
        run = self._test
        if run is None:
            run = self._test = compile_test(self.node, ("event", "data")).call
        try:
            return bool(run(event, data))
        except FAILURES:
            return False


def read_filter(
    subscription: str,
    event: Struct,
    where: str,
    types: Types,
    functions: Mapping[str, Definition],
    limits: Limits,
) -> Node:
    """The condition that a text means for events of this type; :class:`SituError` if it means none."""
    if not where:
        return TRUE
    scope = event_scope(event, types=types, functions=functions, limits=limits, extensions=True)
    checked = check_bounded(where, scope, locate_in(where), BOOLEAN)
    if checked.node is None:
        raise SituError(
            *(
                FILTER_INVALID(each.location, cause=each, subscription=subscription, type=event.name)
                for each in checked.problems
                if each.is_error
            )
        )
    return checked.node
