"""A transformation followed for one event: for every value of the target what it was made of, and what it became."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

from situ.expr.interpret import interpret
from situ.expr.runtime import FAILURES
from situ.expr.tree import Node
from situ.interpretation.steps import Choice, Elements, Filled, Record, Step, Value, below, is_nothing, leaves
from situ.types.encode import encode
from situ.types.table import Types

NOTHING = object()
"""Where a value is made of nothing in the event: a constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A value of the target, before and after, as JSON values; ``failure`` says why there is none.

    ``path`` has no indices, ``indices`` are those of its lists in order.
    """

    path: str
    step: Value
    before: Any = NOTHING
    after: Any = None
    failure: str = ""
    when: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()


def places(step: Step) -> Iterator[Made]:
    """Every value that the target can have, without any event."""
    for path, value, when in leaves(step):
        yield Made(path=path, step=value, when=tuple(f"{place or 'the event'} is {dynamic}" for place, dynamic in when))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracing:
    """Follows the steps for one event. ``source`` is its data as a JSON value, ``targets`` what is visible there.

    ``evaluate`` gives the value of an expression, what it looks up included.
    """

    source: Any
    targets: Types
    evaluate: Callable[[Node, Mapping[str, Any]], Any] = interpret

    def trace(
        self, step: Step, values: Mapping[str, Any], path: str = "", indices: tuple[int, ...] = ()
    ) -> Iterator[Made]:
        """Every value that the target has for these values of the variables, in its order."""
        match step:
            case Value(parts=parts):
                if parts is not None:
                    yield from self.trace(parts, values, path, indices)
                elif not is_nothing(step):
                    yield self._made(step, values, path, indices)
            case Record(fields=fields):
                for name, part in fields:
                    yield from self.trace(part, values, below(path, name), indices)
            case Elements():
                items = self.evaluate(step.list, values)
                for number, item in enumerate(items if items is not None else ()):
                    bound = {**values, step.variable: item}
                    yield from self.trace(step.element, bound, f"{path}[]", (*indices, number))
            case Choice(arms=arms, otherwise=otherwise):
                chosen = next((part for condition, _, part in arms if self.evaluate(condition, values)), otherwise)
                yield from self.trace(chosen, values, path, indices)
            case Filled(of=of):
                for made in self.trace(of, values, path, indices):
                    unfilled = made.path == path and made.after is None and not made.failure
                    yield self._filled(made, step) if unfilled else made
            case _:
                assert_never(step)

    def _made(self, step: Value, values: Mapping[str, Any], path: str, indices: tuple[int, ...]) -> Made:
        from_event = step.source or step.rule is not None
        before = _at(self.source, _parts(step.source), list(indices)) if from_event else NOTHING
        made = Made(path=path, step=step, before=before, indices=indices)
        function = step.conversion
        if function is not None and function.states:
            return replace(made, failure="it needs more than the event")
        try:
            value = self.evaluate(step.node, values)
        except FAILURES as failure:
            return replace(made, failure=str(failure) or "no value")
        return replace(made, after=None if value is None else encode(step.node.type, value, self.targets))

    def _filled(self, made: Made, step: Filled) -> Made:
        if step.default is None:
            return replace(made, failure="missing or null")
        return replace(made, after=encode(step.type, step.default, self.targets))


def _parts(path: str) -> list[str]:
    """``crates[].spare`` → ``crates``, ``[]``, ``spare``."""
    return [part for part in path.replace("[]", ".[]").split(".") if part]


def _at(value: Any, path: Sequence[str], indices: list[int]) -> Any:
    """What is at a place of a JSON value; of lists without an index all."""
    if not path or value is None:
        return value
    first, *rest = path
    if first != "[]":
        return _at(value.get(first), rest, indices)
    if indices:
        return _at(value[indices[0]], rest, indices[1:])
    return [_at(item, rest, []) for item in value]
