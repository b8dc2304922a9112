"""The type that an event type becomes where rules change it and nobody wrote down what it is then.

It has the name and the attributes of the original; what a function converts has the type and unit that it gives.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from situ.errors import SituError
from situ.interpretation.model import IDENTITY, Context, Direction
from situ.interpretation.resolution import Place, Rules, expand
from situ.types.model import Attribute, ListOf, Struct, Type, fits, is_subtype
from situ.types.table import Types
from situ.units import Unit


def derived_types(context: Context) -> Types:
    """What is visible in a context that derives: event types of root that its rules change are as they leave them."""
    root = context.root.types
    mapped = [each.source for above in context.chain for each in above.mappings if each.direction is Direction.OUT]
    made: dict[str, Struct] = {}
    rules = Rules.of(context, Direction.OUT)
    for name in sorted(root.events):
        event = root.event(name)
        if event is None or context.declares(name):
            continue
        made[name] = event
        if not any(is_subtype(event, source) for source in mapped):
            with suppress(SituError):  # too many places: said where the type is checked
                made[name] = _derived(event, context, rules)
    linked: dict[str, Struct] = {}
    for name in made:
        _link(made[name], made, root, linked)
    types = context.types
    return Types(types={**types.types, **linked}, events=types.events, units=types.units)


def _derived(event: Struct, context: Context, rules: Rules) -> Struct:
    """The event type as rules of the way out leave it; itself if they leave all attributes as they are."""
    place = expand(event, rules, context.types_of(Direction.OUT))
    type, _ = _changed(place, event, Unit(), context)
    return type if isinstance(type, Struct) and place.rule is None else event


def _link(struct: Struct, made: dict[str, Struct], root: Types, linked: dict[str, Struct]) -> Struct:
    """The type below those that its supertypes have become, where it still has what they have."""
    original = root.event(struct.name)
    if original is None or struct.name not in made:
        return struct
    if struct.name not in linked:
        above = tuple(_link(made.get(each.name, each), made, root, linked) for each in original.supers)
        if above == original.supers and struct == original:
            linked[struct.name] = original
        else:
            kept = tuple(each for each in above if _has_all_of(struct, each))
            linked[struct.name] = replace(struct, supers=kept)
    return linked[struct.name]


def _has_all_of(struct: Struct, above: Struct) -> bool:
    own = {each.name: each for each in struct.attributes}
    return all(
        each.name in own and own[each.name].unit == each.unit and fits(own[each.name].type, each.type)
        for each in above.attributes
    )


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
