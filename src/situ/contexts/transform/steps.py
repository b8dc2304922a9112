"""A transformation taken apart: which step makes which part of the target, and why.

Every step has the expression that does it; that of the outermost is the whole transformation, which engines compile.
The steps themselves serve people: what a rule did where, and if an event fails, every place that does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

import msgspec

from situ.contexts.model import Conversion, Rule
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.tree import Literal, Node
from situ.lang.types.model import Struct, Type

COPIED = "copied"


class ValueStep(msgspec.Struct, frozen=True, kw_only=True):
    """A value that comes whole from one source: copied, converted by a function, constant, or of an expression.

    ``source`` is the place it comes from. ``copied`` is how it came, with the same type; if rules below had a word in
    that, ``parts`` tells.
    """

    node: Node
    source: str = ""
    rule: Rule | None = None
    function: str = COPIED
    conversion: Conversion | None = None
    beaten: tuple[Rule, ...] = ()
    units: str = ""
    copied: bool = False
    parts: Step | None = None


class StructStep(msgspec.Struct, frozen=True, kw_only=True):
    """A struct that is made of its attributes."""

    node: Node
    type: Struct
    fields: tuple[tuple[str, Step], ...]


class ListStep(msgspec.Struct, frozen=True, kw_only=True):
    """A list whose elements are converted, each as ``variable``."""

    node: Node
    list: Node
    variable: str
    element: Step


class ChoiceStep(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a value depends on its dynamic type, or on whether it is there: the first that holds."""

    node: Node
    arms: tuple[tuple[Node, str, Step], ...]
    """Condition, the dynamic type that it asks for (empty for null), and what becomes of the value."""
    otherwise: Step


class DefaultStep(msgspec.Struct, frozen=True, kw_only=True):
    """A value that must not be null: a default stands in, or with none it fails."""

    node: Node
    of: Step
    type: Type
    default: Any = None


Step = ValueStep | StructStep | ListStep | ChoiceStep | DefaultStep
Evaluate = Callable[[Node, Mapping[str, Any]], Any]
Conditions = tuple[tuple[str, str], ...]
"""Places with the subtypes that their values must be of."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where one place of the target comes from. ``when`` names the dynamic types for which that holds, if it varies."""

    target: str
    source: str
    rule: Rule | None
    function: str
    beaten: tuple[Rule, ...] = ()
    units: str = ""
    when: str = ""
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFault:
    """A place of the target that one event gives no value for; ``missing``: because there is none, else why."""

    path: str
    missing: bool
    type: Type
    reason: str = ""
    step: ValueStep | None = None
    values: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What variables stood for."""


def is_nothing(step: Step) -> bool:
    return isinstance(step, ValueStep) and isinstance(step.node, Literal) and step.node.value is None


def leaves(step: Step, path: str = "", when: Conditions = ()) -> Iterator[tuple[str, ValueStep, Conditions]]:
    """Every value of the target in its order: where it is, what makes it, and which subtypes have it."""
    match step:
        case ValueStep(parts=parts):
            if parts is not None:
                yield from leaves(parts, path, when)
            elif not is_nothing(step):
                yield path, step, when
        case StructStep(fields=fields):
            for name, part in fields:
                yield from leaves(part, below(path, name), when)
        case ListStep(element=element):
            yield from leaves(element, f"{path}[]", when)
        case ChoiceStep(arms=arms, otherwise=otherwise):
            yield from leaves(otherwise, path, when)
            for _, dynamic, part in arms:
                if dynamic:
                    yield from leaves(part, path, (*when, (path, dynamic)))
        case DefaultStep(of=of):
            yield from leaves(of, path, when)
        case _:
            assert_never(step)


def provenance(step: Step) -> Iterator[Provenance]:
    """Every value of the target, in its order."""
    for path, value, when in leaves(step):
        yield Provenance(
            target=path,
            source=value.source,
            rule=value.rule,
            function=value.function,
            beaten=value.beaten,
            units=value.units,
            when=", ".join(f"{place or 'event'}: {dynamic}" for place, dynamic in when),
            node=value.node,
        )


def faults(
    step: Step, values: Mapping[str, Any], evaluate: Evaluate = interpret, path: str = ""
) -> Iterator[StepFault]:
    """Every place that fails for these values, in the order of the target."""
    match step:
        case ValueStep(node=node):
            try:
                evaluate(node, values)
            except FAILURES as failure:
                yield StepFault(path=path, missing=False, type=node.type, reason=str(failure), step=step, values=values)
        case StructStep(fields=fields):
            for name, part in fields:
                yield from faults(part, values, evaluate, below(path, name))
        case ListStep():
            items = evaluate(step.list, values)
            for number, item in enumerate(items if items is not None else ()):
                yield from faults(step.element, {**values, step.variable: item}, evaluate, f"{path}[{number}]")
        case ChoiceStep(arms=arms, otherwise=otherwise):
            chosen = next((part for condition, _, part in arms if evaluate(condition, values)), otherwise)
            yield from faults(chosen, values, evaluate, path)
        case DefaultStep(of=of, type=type, default=default):
            found = list(faults(of, values, evaluate, path))
            yield from found
            if not found and default is None and evaluate(of.node, values) is None:
                yield StepFault(path=path, missing=True, type=type, values=values)
        case _:
            assert_never(step)


def below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
