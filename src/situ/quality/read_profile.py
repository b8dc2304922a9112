"""What somebody wrote of one capability profile → the profile, or everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from situ.catalogue import BAD_MODES, CURRENT_OUTSIDE, NOT_PUBLISHERS, TOO_MANY
from situ.documents import Fields, Node, Reader, Scalar
from situ.errors import nearest
from situ.quality.around import Around
from situ.quality.profile import Capability, Mode, Profile
from situ.quality.property import Property
from situ.quality.read_cost import read_cost, read_plain_cost
from situ.quality.read_need import Named, not_too_many
from situ.quality.read_value import Values

PROFILE_KEYS = ("publisher", "type", "capabilities", "modes", "mode")
CAPABILITY_KEYS = ("lb", "ub", "cv", "unit", "of", "cost")
MOST_MODES = 100
"""Each is weighed against each, and against all that anybody expects."""
MODE_KEYS = ("name", "values", "cost")


def read_profile(read: Reader, around: Around, fields: Fields, publisher: str, type: str) -> Profile | None:
    """What a publisher can do about events of a type; None if something is wrong with it, which is said."""
    before = len(read.problems)
    capabilities = read_capabilities(read, around, fields, type)
    moded, modes = _modes(read, around, fields, type)
    mode = _current(read, fields, modes)
    _check_apart(read, fields, capabilities, moded)
    if len(read.problems) > before:
        return None
    return Profile(
        publisher=publisher,
        type=type,
        capabilities=MappingProxyType(capabilities),
        modes=modes,
        mode=mode,
        moded=MappingProxyType(moded),
    )


def read_capabilities(read: Reader, around: Around, fields: Fields, type: str) -> dict[str, Capability]:
    """The free capabilities that are right, by the ids of their properties."""
    found: dict[str, Capability] = {}
    named = Named(read, around, (type,))
    for key, node in not_too_many(read, _entries(fields, "capabilities")):
        capability = _capability(named, key, node)
        if capability is not None and capability.about.id in found:
            read.wrong(key, f"each property once, and `{capability.about.id}` is there already")
        elif capability is not None:
            found[capability.about.id] = capability
    return found


def _capability(named: Named, key: Scalar, node: Node) -> Capability | None:
    read = named.read
    fields = read.fields(node, required=("cv",), optional=("lb", "ub", "unit", "of", "cost"))
    about = _declarable(named, key, fields)
    if about is None or fields is None:
        return None
    values = Values(read, named.around.types.units).in_unit(fields)
    bounds = values.bounds(about, fields)
    written = fields.node("cv")
    cv = None if written is None else values.value(about, written)
    if bounds is None or cv is None or written is None:
        return None
    lb, ub = bounds
    cost = read_cost(values, about, fields.node("cost"), lb, ub)
    if not lb <= cv <= ub:
        at, low, high = (about.shown(each) for each in (cv, lb, ub))
        read.problems.add(CURRENT_OUTSIDE(written.location, name=about.id, cv=at, lb=low, ub=high))
        return None
    return None if cost is None else Capability(about=about, lb=lb, ub=ub, cv=cv, cost=cost)


def _declarable(named: Named, key: Scalar, fields: Fields | None = None) -> Property | None:
    about = named.property(key, fields)
    if about is not None and about.determined_by == "middleware":
        named.read.problems.add(NOT_PUBLISHERS(key.location, name=about.id))
        return None
    return about


# ── modes ──


def _modes(read: Reader, around: Around, fields: Fields, type: str) -> tuple[dict[str, Property], tuple[Mode, ...]]:
    named = Named(read, around, (type,))
    moded: dict[str, Property] = {}
    modes: list[Mode] = []
    items = fields.items("modes")
    if len(items) > MOST_MODES:
        read.problems.add(TOO_MANY(items[MOST_MODES].location, count=len(items), what="modes", most=MOST_MODES))
        return {}, ()
    for node in items:
        body = read.fields(node, required=("name", "values"), optional=("cost",))
        if body is None:
            continue
        name = body.scalar("name")
        properties, values = _values(named, body)
        cost = read_plain_cost(Values(read, around.types.units), body.node("cost"))
        if name is None or cost is None or len(values) < len(body.entries("values")):
            continue
        if any(each.name == name.text for each in modes):
            _bad(read, name, f"Two modes are called `{name.text}`", "Give one of them another name.")
        elif modes and properties.keys() != moded.keys():
            here, there = (", ".join(f"`{each}`" for each in sorted(ids)) or "none" for ids in (properties, moded))
            what = f"Mode `{name.text}` has values of {here}, mode `{modes[0].name}` of {there}"
            _bad(read, name, what, "Give all modes of a profile the same properties.")
        else:
            moded = properties
            modes.append(Mode(name=name.text, values=MappingProxyType(values), cost=cost))
    return moded, tuple(modes)


def _values(named: Named, body: Fields) -> tuple[dict[str, Property], dict[str, float]]:
    reading = Values(named.read, named.around.types.units)
    properties: dict[str, Property] = {}
    values: dict[str, float] = {}
    for key, node in not_too_many(named.read, body.entries("values")):
        about = _declarable(named, key)
        value = None if about is None else reading.value(about, node)
        if about is not None and value is not None:
            properties[about.id], values[about.id] = about, value
    return properties, values


def _current(read: Reader, fields: Fields, modes: tuple[Mode, ...]) -> str:
    names = tuple(each.name for each in modes)
    node = fields.mapping.get("modes")
    current = fields.scalar("mode")
    if current is None and names and node is not None and fields.node("mode") is None:
        _bad(read, node, "There are modes, and none of them is the current one", f"Add `mode: {names[0]}`.")
    # With modes that are wrong themselves nobody knows which there are.
    elif current is not None and current.text not in names and len(names) == len(fields.items("modes")):
        similar = nearest(current.text, names) or names
        remedy = f"Name one of {', '.join(f'`{each}`' for each in similar)}." if similar else "List it under `modes:`."
        _bad(read, current, f"There is no mode `{current.text}`", remedy)
    return current.text if current is not None else ""


def _check_apart(
    read: Reader, fields: Fields, capabilities: Mapping[str, Capability], moded: Mapping[str, Property]
) -> None:
    for key, _ in _entries(fields, "capabilities"):
        if key.text in capabilities and key.text in moded:
            what = f"`{key.text}` is in `capabilities:` and in `modes:`"
            _bad(read, key, what, "What the mode determines is not free: keep it in `modes:` alone.")


def _entries(fields: Fields, name: str) -> tuple[tuple[Scalar, Node], ...]:
    node = fields.node(name)
    nothing = node is None or (isinstance(node, Scalar) and node.value is None)
    return () if nothing else fields.entries(name)


def _bad(read: Reader, node: Node, what: str, remedy: str) -> None:
    read.problems.add(BAD_MODES(node.location, what=what, remedy=remedy))
