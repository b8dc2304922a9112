"""Faults in declarations that are reported already, so that what merely follows from them is not reported again.

A type that does not resolve is missing from the table, and so is a faulty attribute; without this every filter that
uses one would be called wrong, too. Only problems that name what is missing are left out: no fault hides another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import msgspec

from situ.lang.catalogue import TYPE_NOT_AVAILABLE, UNKNOWN_NAME, UNKNOWN_TYPE, WRONG_TYPE, WRONG_UNIT
from situ.lang.documents import Document, MappingNode, Node, ScalarNode
from situ.lang.problems import Problem
from situ.lang.records import replace
from situ.lang.types.model import ListOf, Struct, Type, plain
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT

_GIVEN = re.compile(r"an attribute `(\w+)`")
"""How a struct is said to have an attribute that its declared type has not."""


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """What was declared, but is not there: types, attributes by type, attributes without their unit, functions."""

    types: frozenset[str] = frozenset()
    attributes: Mapping[str, frozenset[str]] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    without_unit: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()

    def with_functions(self, names: Iterable[str]) -> Faults:
        return replace(self, functions=frozenset(name.lower() for name in names))

    def explain(self, problem: Problem, *used: Type) -> bool:
        """Whether the problem follows from a known fault, in an expression over values of the types ``used``."""
        while problem.cause is not None:
            problem = problem.cause
        values = problem.values
        if problem.code in (UNKNOWN_TYPE, TYPE_NOT_AVAILABLE):
            return values.get("name", values.get("type")) in self.types
        if problem.code is WRONG_UNIT:
            return any("without unit" in values[side] for side in ("found", "expected")) and any(
                name in self.without_unit for name in _reached(used)
            )
        if problem.code is WRONG_TYPE and (given := _GIVEN.fullmatch(values["found"])):
            return any(given[1] in self.attributes.get(name, ()) for name in _reached(used))
        if problem.code is not UNKNOWN_NAME:
            return False
        match values["kind"]:
            case "type":
                return values["name"] in self.types
            case "function":
                return values["name"].lower() in self.functions
            case _:
                return any(values["name"] in self.attributes.get(name, ()) for name in _reached(used))


NO_FAULTS = Faults()


def find_faults(documents: Iterable[Document], types: Types) -> Faults:
    """Compare what the files of ``types/`` declare with what the table holds."""
    missing: set[str] = set()
    lost: dict[str, frozenset[str]] = {}
    unitless: set[str] = set()
    for head, body in _declarations(documents):
        name = head.text.split("(")[0].strip()
        found = types.types.get(name)
        if found is None:
            missing.add(name)
            continue
        declared = {key.text: node for key, node in body.entries} if isinstance(body, MappingNode) else {}
        present = {each.name: each for each in found.attributes} if isinstance(found, Struct) else {}
        if absent := declared.keys() - present.keys():
            lost[name] = frozenset(absent)
        if any(_has_unit(declared[key]) and present[key].unit == NO_UNIT for key in declared.keys() & present.keys()):
            unitless.add(name)
    return Faults(types=frozenset(missing), attributes=MappingProxyType(lost), without_unit=frozenset(unitless))


def _declarations(documents: Iterable[Document]) -> Iterator[tuple[ScalarNode, Node]]:
    for document in documents:
        if isinstance(document.root, MappingNode):
            for section in ("types", "events"):
                node = document.root.get(section)
                if isinstance(node, MappingNode):
                    yield from node.entries


def _has_unit(node: Node) -> bool:
    if isinstance(node, MappingNode):
        return "unit" in node
    return isinstance(node, ScalarNode) and len(node.text.removeprefix("optional ").split()) > 1


def _reached(used: Iterable[Type]) -> Iterator[str]:
    """The names of all structs that values of these types hold, supertypes included."""
    seen: set[str] = set()
    waiting = list(used)
    while waiting:
        type = plain(waiting.pop())
        if isinstance(type, ListOf):
            waiting.append(type.element)
        elif isinstance(type, Struct) and type.name not in seen:
            if type.name:
                seen.add(type.name)
                yield type.name
            waiting.extend(type.supers)
            waiting.extend(attribute.type for attribute in type.attributes)
