"""The type that an event type becomes where rules change it and nobody wrote down what it is then.

It has the name and the attributes of the original; what a function converts has the type and unit that it gives.
"""

from __future__ import annotations

from dataclasses import replace

from situ.interpretation.model import IDENTITY, Context, Direction
from situ.interpretation.resolution import Place, Rules, expand
from situ.types.model import Attribute, ListOf, Struct, Type
from situ.units import Unit


def derived(event: Struct, context: Context, rules: Rules) -> Struct:
    """The event type as rules of the way out leave it; itself if they leave all attributes as they are."""
    place = expand(event, rules, context.types_of(Direction.OUT))
    type, _ = _changed(place, event, Unit(), context)
    return type if isinstance(type, Struct) else event


def _changed(place: Place, type: Type, unit: Unit, context: Context) -> tuple[Type, Unit]:
    if place.rule is not None:
        function = None if place.rule.function == IDENTITY else context.conversion(place.rule.function)
        return (type, unit) if function is None else (function.result.type, function.result.unit)
    if isinstance(type, Struct):
        attributes = tuple(_attribute(place, attribute, context) for attribute in type.attributes)
        return (type if attributes == type.attributes else Struct(type.name, attributes)), unit
    if isinstance(type, ListOf):
        element, inner = _changed(place.elements[0], type.element, unit, context)
        return (type if element == type.element else ListOf(element)), inner
    return type, unit


def _attribute(place: Place, attribute: Attribute, context: Context) -> Attribute:
    """What stands there where the value is of the declared type: those of its subtypes have to fit the same."""
    type, unit = _changed(place.attributes[attribute.name][0], attribute.type, attribute.unit, context)
    if (type, unit) == (attribute.type, attribute.unit):
        return attribute
    default = attribute.default if type == attribute.type else None
    return replace(
        attribute, type=type, unit=unit, default=default, optional=attribute.optional or default != attribute.default
    )
