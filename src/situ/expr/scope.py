"""Scope: which names an expression may use, and what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from situ.expr.limits import DEFAULT_LIMITS, Limits
from situ.types.model import DOUBLE, STRING, TIMESTAMP, Attribute, Struct, Type
from situ.units import NO_UNIT, Unit, Units

if TYPE_CHECKING:
    from situ.expr.tree import Node
    from situ.types.table import Types


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A name with a type. ``trusted``: its values were checked, so its doubles are finite."""

    type: Type
    unit: Unit = NO_UNIT
    optional: bool = False
    trusted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A function that a project defines by an expression: parameters, result, and the checked body."""

    name: str
    parameters: tuple[tuple[str, Variable], ...]
    result: Variable
    body: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The variables, types, units and functions an expression sees.

    ``bare`` names the variable whose attributes can be written alone (the payload of an event). With ``with_units``
    false, numbers are plain and no unit is converted: so it is inside conversion functions, which say themselves how
    one unit becomes another.
    """

    variables: Mapping[str, Variable] = field(default_factory=lambda: MappingProxyType({}))
    bare: str = ""
    types: Types | None = None
    units: Units = field(default_factory=Units)
    functions: Mapping[str, Definition] = field(default_factory=lambda: MappingProxyType({}))
    with_units: bool = True
    limits: Limits = DEFAULT_LIMITS
    extensions: bool = False
    """Whether ``event.x`` is also the attribute of that name that the envelope may have: a text, or null."""


def envelope(units: Units) -> Struct:
    """What an expression sees of an event besides its payload."""
    return Struct(
        "",
        (
            Attribute(name="id", type=STRING),
            Attribute(name="source", type=STRING),
            Attribute(name="type", type=STRING),
            Attribute(name="time", type=TIMESTAMP),
            Attribute(name="confidence", type=DOUBLE, unit=units.parse("%"), optional=True),
        ),
    )


def event_scope(
    payload: Type,
    *,
    types: Types | None = None,
    units: Units | None = None,
    functions: Mapping[str, Definition] = MappingProxyType({}),
    with_units: bool = True,
    trusted: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    extensions: bool = False,
) -> Scope:
    """The scope of filters: ``event`` is the envelope, ``data`` the payload, whose attributes can stand alone."""
    known = units if units is not None else types.units if types is not None else Units()
    return Scope(
        variables={
            "event": Variable(type=envelope(known), trusted=trusted),
            "data": Variable(type=payload, trusted=trusted),
        },
        bare="data",
        types=types,
        units=known,
        functions=functions,
        with_units=with_units,
        limits=limits,
        extensions=extensions,
    )
