"""What clients tell of expectations and profiles: JSON in the words of ``quality/*.yaml``, checked like those files.

Everything that is wrong is said at once, with its place in what was told. Nothing here knows who asks; ids are given by
the caller.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.catalogue import ABOUT_NOTHING
from situ.documents import Fields, Limits, Reader, parse_json
from situ.documents import Mapping as MappingNode
from situ.errors import Problems, SituError, nearest
from situ.quality.around import Around
from situ.quality.expectation import Expectation
from situ.quality.profile import Capability, Profile
from situ.quality.read_expectation import OPTION_KEYS, read_parts
from situ.quality.read_need import Named
from situ.quality.read_profile import read_capabilities, read_profile
from situ.quality.read_value import Values

_LIMITS = Limits(size=1024 * 1024, nodes=20_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What has become different of a profile; what is left out stays."""

    capabilities: Mapping[str, Capability] = field(default_factory=lambda: MappingProxyType({}))
    values: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Property → the value that is operated at now, where that is all that is said."""
    mode: str | None = None


def told_expectation(value: Any, around: Around, *, id: str, subscription: str) -> Expectation:
    """An expectation: ``need``, ``utility`` and options. :class:`SituError` with everything that is wrong."""
    parts = told_changes(value, around, subscription=subscription)
    return Expectation(id=id, subscription=subscription, **{"needs": MappingProxyType({}), **parts})


def told_changes(value: Any, around: Around, *, subscription: str) -> dict[str, Any]:
    """The fields of an expectation that are told, by name: what an update changes."""
    problems = Problems()
    fields = _fields(value, "expectation", ("need", *OPTION_KEYS), problems)
    parts = read_parts(Reader(problems), around, fields, subscription)
    problems.raise_errors()
    return parts


def told_profile(value: Any, around: Around, *, publisher: str, type: str) -> Profile:
    """A profile: ``capabilities``, ``modes`` and ``mode``. :class:`SituError` with everything that is wrong."""
    problems = Problems()
    fields = _fields(value, "profile", ("capabilities", "modes", "mode"), problems)
    types = around.types_for(publisher)
    if types.event(type) is None:
        remedy = "A profile is about an event type that its publisher has a name for."
        similar = nearest(type, types.events)
        problems.add(ABOUT_NOTHING(what="event type", name=type, nearest=similar, remedy=remedy))
    found = read_profile(Reader(problems), around, fields, publisher, type)
    problems.raise_errors()
    assert found is not None  # without it there is an error
    return found


def told_revision(value: Any, around: Around, *, type: str) -> Revision:
    """What an update of a profile says. A capability of which only ``cv`` is told keeps its range and its cost."""
    problems = Problems()
    fields = _fields(value, "profile", ("capabilities", "mode"), problems)
    read = Reader(problems)
    node = fields.node("capabilities")
    entries = node.entries if isinstance(node, MappingNode) else ()
    moved = {key.text for key, body in entries if isinstance(body, MappingNode) and _only_current(body)}
    values = _current_values(Named(read, around, (type,)), fields, moved)
    whole = _without(fields, moved)
    capabilities = read_capabilities(read, around, whole, type)
    mode = fields.text("mode")
    problems.raise_errors()
    return Revision(capabilities=MappingProxyType(capabilities), values=MappingProxyType(values), mode=mode)


def told_values(value: Any, around: Around, *, type: str) -> dict[str, float]:
    """Property → value, as a publisher tells what it can do of an advice that it does not follow."""
    problems = Problems()
    fields = _fields({"values": value}, "values", ("values",), problems)
    reading = Values(Reader(problems), around.types.units)
    named = Named(Reader(problems), around, (type,))
    found = {}
    for key, node in fields.entries("values"):
        about = named.property(key)
        at = None if about is None else reading.value(about, node)
        if about is not None and at is not None:
            found[about.id] = at
    problems.raise_errors()
    return found


def _current_values(named: Named, fields: Fields, moved: set[str]) -> dict[str, float]:
    found = {}
    for key, node in fields.entries("capabilities") if "capabilities" in fields else ():
        body = named.read.fields(node, optional=("cv", "unit", "of")) if key.text in moved else None
        about = None if body is None else named.property(key, body)
        written = None if body is None else body.node("cv")
        if about is not None and body is not None and written is not None:
            value = Values(named.read, named.around.types.units).in_unit(body).value(about, written)
            if value is not None:
                found[about.id] = value
    return found


def _only_current(body: MappingNode) -> bool:
    keys = {key.text for key, _ in body.entries}
    return "cv" in keys and keys <= {"cv", "unit", "of"}


def _without(fields: Fields, keys: set[str]) -> Fields:
    """The fields without these capabilities."""
    mapping = fields.mapping
    node = mapping.get("capabilities")
    if not isinstance(node, MappingNode):
        return fields
    left = tuple(entry for entry in node.entries if entry[0].text not in keys)
    kept = MappingNode(left, node.under, node.source, node.start, node.end)
    entries = tuple((key, kept if below is node else below) for key, below in mapping.entries)
    return Fields(fields.read, MappingNode(entries, mapping.under, mapping.source, mapping.start, mapping.end))


def _fields(value: Any, what: str, keys: tuple[str, ...], problems: Problems) -> Fields:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = "null"
    document = parse_json(text, what, _LIMITS)
    problems.extend(document.problems)
    fields = None if document.root is None else Reader(problems).fields(document.root, optional=keys)
    if fields is None:
        raise SituError(*problems)
    return fields
