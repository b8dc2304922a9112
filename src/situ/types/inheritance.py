"""What a struct has from its supertypes, and what it may change in it.

The attributes of the supertypes come first, in declared order; one that is declared again keeps its place and takes the
new declaration. That may only narrow: wherever a value of the supertype is expected, one of the subtype must do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from situ.types.model import Attribute, Struct, is_subtype
from situ.types.syntax import format_attribute


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """An attribute that does not go with the one a supertype has; all in words."""

    attribute: str
    found: str
    above: str
    expected: str
    remedy: str


def combine(supers: Iterable[Struct], own: Iterable[Attribute]) -> tuple[Attribute, ...]:
    """All attributes of a struct with these supertypes and own declarations."""
    attributes: dict[str, Attribute] = {}
    for above in supers:
        for attribute in above.attributes:
            attributes.setdefault(attribute.name, attribute)
    attributes.update((attribute.name, attribute) for attribute in own)
    return tuple(attributes.values())


def own_attributes(struct: Struct) -> tuple[Attribute, ...]:
    """The attributes the struct must declare itself: new ones, and those in which some supertype differs."""
    inherited = _inherited(struct.supers)
    return tuple(
        attribute
        for attribute in struct.attributes
        if attribute.name not in inherited or any(other != attribute for _, other in inherited[attribute.name])
    )


def find_conflicts(name: str, supers: tuple[Struct, ...], own: Mapping[str, Attribute]) -> Iterator[Conflict]:
    """Where own attributes do more than narrow inherited ones, and where supertypes disagree and nothing settles it."""
    inherited = _inherited(supers)
    for attribute in own.values():
        for above, other in inherited.get(attribute.name, ()):
            if remedy := _why_not(attribute, other):
                yield _conflict(f"`{format_attribute(attribute)}`", attribute.name, above, other, remedy)
    if len(supers) < 2:
        return
    for attribute_name, versions in inherited.items():
        first_above, first = versions[0]
        above, other = next(((a, o) for a, o in versions if o != first), (first_above, first))
        if other != first and attribute_name not in own:
            found = f"`{_shown(first)}` from `{first_above.name}`"
            remedy = f"Declare `{attribute_name}` in `{name}` with a type that suits both."
            yield _conflict(found, attribute_name, above, other, remedy)


def _inherited(supers: Iterable[Struct]) -> dict[str, list[tuple[Struct, Attribute]]]:
    result: dict[str, list[tuple[Struct, Attribute]]] = {}
    for above in supers:
        for attribute in above.attributes:
            result.setdefault(attribute.name, []).append((above, attribute))
    return result


def _why_not(attribute: Attribute, inherited: Attribute) -> str:
    if not is_subtype(attribute.type, inherited.type):
        return f"An attribute may be declared again only with a subtype of `{inherited.type}`."
    if attribute.unit != inherited.unit:
        return "An attribute that is declared again keeps its unit."
    if attribute.optional and not inherited.optional:
        return "An attribute that is always there cannot become optional."
    return ""


def _conflict(found: str, attribute: str, above: Struct, other: Attribute, remedy: str) -> Conflict:
    expected = f"`{_shown(other)}`"
    return Conflict(attribute=attribute, found=found, above=f"`{above.name}`", expected=expected, remedy=remedy)


def _shown(attribute: Attribute) -> str:
    text = format_attribute(attribute)
    return text if attribute.default is None else f"{text} with a default"
