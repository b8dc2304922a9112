"""The table of types: those that a project declares, those built in, and the event types that Situ itself publishes."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.lang.problems import SituError
from situ.lang.types.dependency_order import dependency_order
from situ.lang.types.json_codec import decode, encode
from situ.lang.types.model import (
    DOUBLE,
    LONG,
    PLANAR,
    PRIMITIVES,
    ROOT_PREFIX,
    STRING,
    TIMESTAMP,
    Attribute,
    Decimal,
    DecimalRef,
    ListOf,
    ListRef,
    Named,
    NameRef,
    Primitive,
    Struct,
    Type,
    TypeRef,
    combine,
    format_type,
    geographic,
    own_attributes,
    parse_type,
)
from situ.lang.units import NO_UNIT, Units, UnknownUnit

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The event types that Situ itself publishes: every table knows them, nobody declares them.
#
# They are no part of a table's own declarations, so they change neither its canonical form nor what is listed of it.

DEAD_LETTER = Struct(
    "situ.deadletter",
    (
        Attribute(name="code", type=STRING),
        Attribute(name="stage", type=STRING),
        Attribute(name="path", type=STRING),
        Attribute(name="message", type=STRING),
        Attribute(name="hint", type=STRING),
        Attribute(name="others", type=ListOf(STRING), optional=True),
        Attribute(name="key", type=STRING),
        Attribute(name="ad", type=STRING),
        Attribute(name="context", type=STRING),
        Attribute(name="plan", type=STRING, optional=True),
        Attribute(name="encoding", type=STRING, optional=True),
        Attribute(name="size", type=LONG, optional=True),
        Attribute(name="original", type=STRING),
    ),
)
"""An event that could not go on, with the reason. ``encoding`` is ``base64`` where the original is no text, ``size``
its bytes where only the beginning was kept, ``others`` what else is wrong with it."""

LOSS = Struct(
    "situ.loss",
    (
        Attribute(name="client", type=STRING),
        Attribute(name="incarnation", type=LONG),
        Attribute(name="from_seq", type=LONG),
        Attribute(name="to_seq", type=LONG),
        Attribute(name="reason", type=STRING),
    ),
)
"""Events that a client numbered and gave up before they were stored."""

BINDING = Struct(
    "situ.binding",
    (
        Attribute(name="alias", type=STRING),
        Attribute(name="concept", type=STRING),
        Attribute(name="id", type=STRING),
    ),
)
"""Which instance of a concept an alias of a policy stands for."""

BINDINGS = ListOf(BINDING)

CAUSE_VALUE = Struct(
    "situ.cause.value",
    (
        Attribute(name="path", type=STRING),
        Attribute(name="number", type=DOUBLE, optional=True),
        Attribute(name="text", type=STRING, optional=True),
    ),
)
"""One value in the data of a causing event: a number in the unit of its attribute, or anything else as text."""

CAUSE = Struct(
    "situ.cause",
    (
        Attribute(name="id", type=STRING),
        Attribute(name="source", type=STRING),
        Attribute(name="type", type=STRING),
        Attribute(name="time", type=TIMESTAMP),
        Attribute(name="pos", type=LONG),
        Attribute(name="values", type=ListOf(CAUSE_VALUE)),
    ),
)
"""An event that caused a situation; ``pos`` is its place in the root log."""

SITUATION = Struct(
    "situ.situation",
    (
        Attribute(name="situation", type=STRING),
        Attribute(name="policy", type=STRING),
        Attribute(name="start", type=TIMESTAMP),
        Attribute(name="last", type=TIMESTAMP),
        Attribute(name="end", type=TIMESTAMP, optional=True),
        Attribute(name="reason", type=STRING, optional=True),
        Attribute(name="detection", type=STRING, optional=True),
        Attribute(name="text", type=STRING),
        Attribute(name="bindings", type=BINDINGS),
        Attribute(name="causes", type=ListOf(CAUSE)),
    ),
)
"""A policy is met. ``start`` and ``last`` are the times of its first and its latest detection, ``detection`` the one
that this event reports, with its causes; ``reason`` says why a situation was closed before nothing came any more."""

OPENED, CONTINUED, CLOSED = (
    Struct(f"{SITUATION.name}.{what}", SITUATION.attributes, (SITUATION,)) for what in ("opened", "continued", "closed")
)

NOTICE = Struct(
    "situ.notice",
    (
        Attribute(name="to", type=STRING),
        Attribute(name="text", type=STRING),
        Attribute(name="policy", type=STRING),
        Attribute(name="situation", type=STRING),
    ),
)
"""A text for people, from a policy that notifies them."""

COMMAND = Struct(
    "situ.command",
    (
        Attribute(name="to", type=STRING),
        Attribute(name="data", type=STRING),
        Attribute(name="policy", type=STRING),
        Attribute(name="situation", type=STRING),
    ),
)
"""A message to a device, which is a client; ``data`` is JSON."""

ACTION = Struct(
    "situ.action",
    (
        Attribute(name="verb", type=STRING),
        Attribute(name="action", type=STRING),
        Attribute(name="policy", type=STRING),
        Attribute(name="situation", type=STRING),
        Attribute(name="detection", type=STRING),
        Attribute(name="time", type=TIMESTAMP),
        Attribute(name="number", type=LONG),
        Attribute(name="place", type=LONG),
        Attribute(name="digest", type=STRING),
        Attribute(name="bindings", type=BINDINGS),
        Attribute(name="attributes", type=STRING),
    ),
)
"""Something is to be done that is no event: step ``place`` of the ``number``-th action of a policy. ``digest`` is that
of the step as it was declared then: what to do is looked up, never taken from the event. ``attributes`` is what was
known of the instances, as JSON; secrets are put in by whoever does it."""

WORKER = Struct(
    "situ.worker",
    (
        Attribute(name="worker", type=STRING),
        Attribute(name="host", type=STRING),
        Attribute(name="engine", type=STRING),
        Attribute(name="cpu", type=DOUBLE),
        Attribute(name="rows", type=DOUBLE),
        Attribute(name="lag", type=LONG),
        Attribute(name="buckets", type=LONG),
        Attribute(name="imprecision", type=DOUBLE),
    ),
)
"""How busy a process is that works events: the share of its cores, events a second, messages that wait for the engine,
buckets of policies. Until the next event of a worker no value is off by more than ``imprecision``: of the share as it
stands, of the others as a part of their value."""

WORKER_PUBLISHER = "situ-workers"
"""Who publishes events of workers: a name that no client and no policy may have."""

RESERVED_EVENTS: Mapping[str, Struct] = MappingProxyType(
    {
        each.name: each
        for each in (DEAD_LETTER, LOSS, SITUATION, OPENED, CONTINUED, CLOSED, NOTICE, COMMAND, ACTION, WORKER)
    }
)


def reserved_subtypes(event: Struct) -> tuple[Struct, ...]:
    """Those of Situ's own events that are below one of them, in the order of their names."""
    return tuple(RESERVED_EVENTS[name] for name in sorted(RESERVED_EVENTS) if event in RESERVED_EVENTS[name].supers)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The table of the types that are visible somewhere: by name, with what is below what.
#
# A table is immutable and complete: every type in it is resolved. It has a canonical JSON form, which deployment
# snapshots store; how people write types is :mod:`situ.lang.types.model`, how a table is made from that
# :mod:`situ.lang.types.resolve`.


@functools.cache
def built_in() -> Mapping[str, Struct]:
    """The spatial types every table has, unless a project's own type hides one."""
    return MappingProxyType({struct.name: struct for struct in (*PLANAR, *geographic(Units().parse("deg")))})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Types:
    """Types by name, the names of those that are events, and the units known beside the physical ones.

    ``types`` holds structs and named primitives in the order of their names, so a table does not depend on which
    file declares what; primitives are always there and not in it.
    """

    types: Mapping[str, Named | Struct]
    events: frozenset[str] = frozenset()
    units: Units = field(default_factory=Units)
    _below: Mapping[str, tuple[str, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        declared = {**built_in(), **self.types}
        types = {name: declared[name] for name in sorted(declared)}
        object.__setattr__(self, "types", MappingProxyType(types))
        object.__setattr__(self, "_below", _children(types))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Types):
            return NotImplemented
        return (self.types, self.events, self.units) == (other.types, other.events, other.units)

    def __hash__(self) -> int:
        return hash((tuple(self.types), self.events, self.units))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all structs and named primitives, in order."""
        return tuple(self.types)

    @property
    def declared(self) -> tuple[Named | Struct, ...]:
        """The types that are not built in."""
        return tuple(type for name, type in self.types.items() if built_in().get(name) != type)

    def get(self, name: str) -> Type | None:
        return self.types.get(name) or PRIMITIVES.get(name) or RESERVED_EVENTS.get(name)

    def event(self, name: str) -> Struct | None:
        """The event type of that name: a declared one, or one of Situ's own."""
        found = self.types.get(name) if name in self.events else RESERVED_EVENTS.get(name)
        return found if isinstance(found, Struct) else None

    def subtypes(self, type: Type) -> tuple[Type, ...]:
        """The type itself and then all types below it, in the order of their names."""
        if isinstance(type, ListOf):
            return tuple(ListOf(element) for element in self.subtypes(type.element))
        if isinstance(type, Struct) and RESERVED_EVENTS.get(type.name) == type:
            return (type, *reserved_subtypes(type))
        if isinstance(type, Named | Struct) and self.types.get(type.name) != type:
            return (type,)  # another type of its name hides it
        found: set[str] = set()
        waiting = list(self._below.get(str(type), ()))
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting.extend(self._below.get(name, ()))
        return (type, *(self.types[name] for name in sorted(found)))

    def as_json(self) -> dict[str, Any]:
        """The table as plain JSON values; equal tables give equal values."""
        return {
            "types": {type.name: _type_as_json(type, self) for type in self.declared},
            "events": sorted(self.events),
            "units": dict(sorted(self.units.labels.items())),
        }

    def own_as_json(self, own: Collection[str], above: Types) -> dict[str, Any]:
        """What these types, and the units that are not above, add to or hide of the table above."""
        labels = self.units.labels.items()
        return {
            "types": {name: _type_as_json(self.types[name], self) for name in sorted(own)},
            "events": sorted(self.events.intersection(own)),
            "units": {name: kind for name, kind in sorted(labels) if above.units.labels.get(name) != kind},
        }

    @classmethod
    def from_json(cls, value: Any) -> Types:
        """The table that :meth:`as_json` gave; ValueError for what it cannot have given."""
        try:
            units = Units(value["units"])
            return cls(types=_build(value["types"], units), events=frozenset(value["events"]), units=units)
        except (KeyError, TypeError, AttributeError, UnknownUnit, SituError) as error:
            raise ValueError(f"this is no table of types: {error!r}") from error


def seen_below(above: Types | None, root: Types | None, hidden: Collection[str]) -> dict[str, Named | Struct]:
    """What declarations below a table see of it: all but the names they declare anew, and root's as ``root:Name``."""
    visible = {
        name: type for name, type in (built_in() if above is None else above.types).items() if name not in hidden
    }
    if root is not None:
        visible |= {f"{ROOT_PREFIX}{name}": type for name, type in root.types.items()}
    return visible


def without_root(types: Mapping[str, Named | Struct]) -> dict[str, Named | Struct]:
    return {name: type for name, type in types.items() if not name.startswith(ROOT_PREFIX)}


def spell_type(type: Type, visible: Types) -> str:
    """How a type is written where this table is visible: ``root:Name`` if another type of its name hides it."""
    if isinstance(type, ListOf):
        return f"[{spell_type(type.element, visible)}]"
    if isinstance(type, Named | Struct) and visible.types.get(type.name, type) != type:
        return f"{ROOT_PREFIX}{type.name}"
    return format_type(type)


def _children(types: Mapping[str, Named | Struct]) -> Mapping[str, tuple[str, ...]]:
    below: dict[str, list[str]] = {}
    for name, type in types.items():
        above: Iterable[Type] = type.supers if isinstance(type, Struct) else (type.base,)
        for each in above:
            if types.get(str(each), each) == each:  # else a type of its name hides it
                below.setdefault(str(each), []).append(name)
    return {name: tuple(names) for name, names in below.items()}


def _type_as_json(type: Named | Struct, visible: Types) -> dict[str, Any]:
    if isinstance(type, Named):
        return {"base": spell_type(type.base, visible)}
    result: dict[str, Any] = {"attributes": [_attribute_as_json(a, visible) for a in own_attributes(type)]}
    if type.supers:
        result["supers"] = [spell_type(above, visible) for above in type.supers]
    return result


def _attribute_as_json(attribute: Attribute, visible: Types) -> dict[str, Any]:
    result: dict[str, Any] = {"name": attribute.name, "type": spell_type(attribute.type, visible)}
    if attribute.unit != NO_UNIT:
        result["unit"] = str(attribute.unit)
    if attribute.optional:
        result["optional"] = True
    if attribute.default is not None:
        result["default"] = encode(attribute.type, attribute.default)
    return result


def _build(declarations: Mapping[str, Any], units: Units) -> dict[str, Named | Struct]:
    types = seen_below(None, None, declarations)
    order, circles = dependency_order({name: _names_in(body) for name, body in declarations.items()})
    if circles:
        raise ValueError(f"this is no table of types: {circles[0]}")
    for name in order:
        types[name] = _type_from_json(name, declarations[name], types, units)
    return types


def _names_in(body: Mapping[str, Any]) -> list[str]:
    if "base" in body:
        return [body["base"]]
    return [*body.get("supers", ()), *(a["type"].strip("[]") for a in body["attributes"])]


def _type_from_json(
    name: str, body: Mapping[str, Any], types: Mapping[str, Named | Struct], units: Units
) -> Named | Struct:
    if "base" in body:
        base = _look_up(parse_type(body["base"]), types)
        if not isinstance(base, Primitive | Decimal | Named):
            raise TypeError(f"{name} is based on {base}")
        return Named(name, base)
    supers = tuple(_struct(above, types) for above in body.get("supers", ()))
    own = [_attribute_from_json(attribute, types, units) for attribute in body["attributes"]]
    return Struct(name, combine(supers, own), supers)


def _attribute_from_json(body: Mapping[str, Any], types: Mapping[str, Named | Struct], units: Units) -> Attribute:
    type = _look_up(parse_type(body["type"]), types)
    return Attribute(
        name=body["name"],
        type=type,
        unit=units.parse(body["unit"]) if "unit" in body else NO_UNIT,
        optional=body.get("optional", False),
        default=decode(type, body["default"]) if "default" in body else None,
    )


def _struct(name: str, types: Mapping[str, Named | Struct]) -> Struct:
    found = types[name]
    if not isinstance(found, Struct):
        raise TypeError(f"{name} is no struct")
    return found


def _look_up(ref: TypeRef, types: Mapping[str, Named | Struct]) -> Type:
    match ref:
        case NameRef(name=name):
            return types.get(name) or PRIMITIVES[name]
        case DecimalRef(type=type):
            return type
        case ListRef(element=element):
            return ListOf(_look_up(element, types))
