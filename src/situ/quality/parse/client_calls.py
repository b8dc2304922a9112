"""What clients tell of expectations and profiles: JSON in the words of ``quality/*.yaml``, checked like those files.

Everything that is wrong is said at once, with its place in what was told. Nothing here knows who asks; ids are given by
the caller.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

from situ.lang.catalogue import ABOUT_NOTHING
from situ.lang.documents import DocumentLimits, Fields, MappingNode, Node, Reader, SequenceNode, parse_json, to_data
from situ.lang.problems import Problems, SituError, nearest
from situ.quality.model.declarations import Expectation, Profile, QualityEnvironment, QualityProperty
from situ.quality.model.json_form import profile_as_json
from situ.quality.parse.declarations import (
    CAPABILITY_KEYS,
    OPTION_KEYS,
    PropertyReader,
    not_too_many,
    read_parts,
    read_profile,
)
from situ.quality.parse.values import Values

_LIMITS = DocumentLimits(size=512 * 1024, nodes=10_000)
"""Of what is told: whoever reads it does nothing else meanwhile."""
_WHOLE = DocumentLimits(size=4 * 1024 * 1024, nodes=100_000)
"""Of a profile that is there already, of which a file may have said more."""


def parse_expectation(value: Any, around: QualityEnvironment, *, id: str, subscription: str) -> Expectation:
    """An expectation: ``need``, ``utility`` and options. :class:`SituError` with everything that is wrong."""
    parts = parse_expectation_changes(value, around, subscription=subscription)
    return Expectation(id=id, subscription=subscription, **{"needs": MappingProxyType({}), **parts})


def parse_expectation_changes(value: Any, around: QualityEnvironment, *, subscription: str) -> dict[str, Any]:
    """The fields of an expectation that are told, by name: what an update changes."""
    problems = Problems()
    fields = _fields(value, "expectation", ("need", *OPTION_KEYS), problems)
    parts = read_parts(Reader(problems), around, fields, subscription)
    problems.raise_errors()
    return parts


def parse_profile(
    value: Any, around: QualityEnvironment, *, publisher: str, type: str, limits: DocumentLimits = _LIMITS
) -> Profile:
    """A profile: ``capabilities``, ``modes`` and ``mode``. :class:`SituError` with everything that is wrong."""
    problems = Problems()
    fields = _fields(value, "profile", ("capabilities", "modes", "mode"), problems, limits)
    types = around.types_for(publisher)
    if types.event(type) is None:
        remedy = "A profile is about an event type that its publisher has a name for."
        similar = nearest(type, types.events)
        problems.add(ABOUT_NOTHING(what="event type", name=type, nearest=similar, remedy=remedy))
    found = read_profile(Reader(problems), around, fields, publisher, type)
    problems.raise_errors()
    assert found is not None  # without it there is an error
    return found


def parse_profile_revision(value: Any, around: QualityEnvironment, *, known: Profile) -> tuple[Profile, frozenset[str]]:
    """A profile with what an update says of it, and of which capabilities it says anything, be it nothing new. Of a
    capability, too, what is not told stays as it is."""
    problems = Problems()
    fields = _fields(value, "profile", ("capabilities", "mode"), problems)
    told = _parse_capabilities(PropertyReader(Reader(problems), around, (known.type,)), fields)
    problems.raise_errors()
    written = profile_as_json(known)
    there = written.get("capabilities", {})
    whole: dict[str, Any] = {key: written[key] for key in ("modes", "mode") if key in written}
    whole["capabilities"] = there | {id: {**there.get(id, {}), **each} for id, each in told.items()}
    if "mode" in fields:
        whole["mode"] = value["mode"]
    found = parse_profile(whole, around, publisher=known.publisher, type=known.type, limits=_WHOLE)
    return found, frozenset(told)


def _parse_capabilities(named: PropertyReader, fields: Fields) -> dict[str, dict[str, Any]]:
    """What is told of capabilities, by the ids of properties and in their units: it goes beside what is not told."""
    found: dict[str, dict[str, Any]] = {}
    for key, node in not_too_many(named.read, fields.entries("capabilities")):
        body = named.read.fields(node, optional=CAPABILITY_KEYS)
        about = None if body is None else named.property(key, body)
        if body is None or about is None:
            continue
        values = Values(named.read, named.around.types.units).in_unit(body)
        mine = found[about.id] = {"unit": about.unit} if about.of and about.unit else {}
        for name in ("lb", "ub", "cv"):
            written = body.node(name)
            at = None if written is None else values.value(about, written)
            if at is not None:
                mine[name] = about.written(at)
        if (cost := body.node("cost")) is not None:
            mine["cost"] = _in_own_unit(values, about, cost)
    return found


def _in_own_unit(values: Values, about: QualityProperty, cost: Node) -> Any:
    """A cost whose points are at values of the property's unit; whether it is one at all is seen with the range."""
    told = to_data(cost)
    points = cost.get("points") if isinstance(cost, MappingNode) and not about.levels else None
    if not isinstance(points, SequenceNode) or not all(
        isinstance(each, SequenceNode) and each.items for each in points.items
    ):
        return told
    places = [values.value(about, each.items[0]) for each in points.items if isinstance(each, SequenceNode)]
    return {**told, "points": [[place, *each[1:]] for place, each in zip(places, told["points"], strict=True)]}


def parse_advice_values(value: Any, around: QualityEnvironment, *, type: str) -> dict[str, float]:
    """Property → value, as a publisher tells what it can do of an advice that it does not follow."""
    problems = Problems()
    fields = _fields({"values": value}, "values", ("values",), problems)
    reading = Values(Reader(problems), around.types.units)
    named = PropertyReader(Reader(problems), around, (type,))
    found = {}
    for key, node in not_too_many(named.read, fields.entries("values")):
        about = named.property(key)
        at = None if about is None else reading.value(about, node)
        if about is not None and at is not None:
            found[about.id] = at
    problems.raise_errors()
    return found


def _fields(
    value: Any, what: str, keys: tuple[str, ...], problems: Problems, limits: DocumentLimits = _LIMITS
) -> Fields:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = "null"
    document = parse_json(text, what, limits)
    problems.extend(document.problems)
    fields = None if document.root is None else Reader(problems).fields(document.root, optional=keys)
    if fields is None:
        raise SituError(*problems)
    return fields
