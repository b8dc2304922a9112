"""`Contexts`, all contexts of a deployment by their identifiers, and the canonical JSON form of each.

`context_as_json` gives what a context declares, `as_file` the same as a file of ``contexts/``. Reading it back is
:func:`situ.contexts.load.contexts_from_json`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, assert_never

from situ.contexts.functions import print_conversion
from situ.contexts.model import (
    ROOT,
    Context,
    Conversion,
    Direction,
    EventMapping,
    Expression,
    FromDefault,
    FromExpression,
    FromPath,
    MissingValue,
    Origin,
    Path,
    ReferenceState,
    TableLookup,
)
from situ.contexts.patterns import print_pattern
from situ.lang.expr.definitions import DefinedFunction
from situ.lang.expr.faults import Faults
from situ.lang.expr.scope import NameScope
from situ.lang.quantities import format_duration
from situ.lang.records import replace
from situ.lang.types.json_codec import encode
from situ.lang.types.model import ROOT_PREFIX, Struct, Type, format_head, plain
from situ.lang.types.table import Types

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Canonical JSON, which deployment snapshots hold: only what the context declares itself, in the words of its file, each
# list in the order that counts. Types have the form of tables of types.


def context_as_json(context: Context, shared: Collection[str] = ()) -> dict[str, Any]:
    """What a context declares; ``shared`` functions are declared elsewhere."""
    result: dict[str, Any] = {}
    if context.parent is not None:
        result["extends"] = context.parent.id
        own = context.types.own_as_json(context.own, context.parent.types)
        result.update((key, value) for key, value in own.items() if value)
    if context.derive:
        result["derive"] = True
    if context.mappings:
        result["maps"] = [_mapping(each, context) for each in context.mappings]
    for section, kept in (("rules", False), ("kept", True)):
        rules = {direction.value: _rules(context, direction, kept=kept) for direction in Direction}
        if any(rules.values()):
            result[section] = {direction: each for direction, each in rules.items() if each}
    functions = [_function(each, context) for name, each in context.functions.items() if name not in shared]
    if functions:
        result["functions"] = functions
    return result


def as_file(id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The same as a file of ``contexts/`` declares it; the order of keys counts."""
    result: dict[str, Any] = {"context": id}
    result.update((key, body[key]) for key in ("extends", "derive", "units") if key in body)
    events = body.get("events", ())
    for section, wanted in (("types", False), ("events", True)):
        types = {name: each for name, each in body.get("types", {}).items() if (name in events) is wanted}
        if types:
            result[section] = dict(_type_as_file(name, each) for name, each in types.items())
    result.update((key, body[key]) for key in ("maps", "rules", "kept") if key in body)
    functions = [dict(each) for each in body.get("functions", ())]
    if functions:
        result["functions"] = {each.pop("name"): each for each in functions}
    return result


def _type_as_file(name: str, body: Mapping[str, Any]) -> tuple[str, Any]:
    above = (body["base"],) if "base" in body else tuple(body.get("supers", ()))
    attributes = {each["name"]: _attribute_as_file(each) for each in body.get("attributes", ())}
    return format_head(name, above), attributes


def _attribute_as_file(body: Mapping[str, Any]) -> Any:
    if "default" in body:
        return {key: value for key, value in body.items() if key != "name"}
    words = ["optional"] if body.get("optional") else []
    return " ".join([*words, body["type"], *([body["unit"]] if "unit" in body else ())])


# ── rules and mappings ────────────────────────────────────────────────────────────────────────────


def _rules(context: Context, direction: Direction, *, kept: bool) -> list[str]:
    types = context.types_of(direction)
    found = (each for each in context.rules if each.direction is direction and each.kept is kept)
    own = sorted(found, key=lambda each: each.order)
    return [f"{print_pattern(each.pattern, types)} -> {each.function}" for each in own]


def _mapping(mapping: EventMapping, context: Context) -> dict[str, Any]:
    direction = mapping.direction
    source = _event(mapping.source, context.types_of(direction))
    target = _event(mapping.target, context.targets_of(direction))
    result: dict[str, Any] = {direction.value: f"{source} -> {target}"}
    if mapping.attributes:
        entries = sorted(mapping.attributes.items())
        result["attributes"] = {".".join(path): _origin(each, mapping.target, path) for path, each in entries}
    return result


def _event(event: Struct, types: Types) -> str:
    return event.name if types.types.get(event.name, event) == event else f"{ROOT_PREFIX}{event.name}"


def _origin(origin: Origin, target: Struct, path: Path) -> Any:
    match origin:
        case FromPath(path=source):
            return ".".join(source)
        case FromExpression(text=text):
            return {"expr": text}
        case FromDefault(value=value):
            return {"default": encode(_type_at(target, path), value)}
        case _:
            assert_never(origin)


def _type_at(target: Struct, path: Path) -> Type:
    here: Type = target
    for step in path:
        below = plain(here)
        attribute = below.attribute(step) if isinstance(below, Struct) else None
        if attribute is None:
            raise KeyError(step)
        here = attribute.type
    return here


# ── functions ─────────────────────────────────────────────────────────────────────────────────────


def _function(each: Conversion, context: Context) -> dict[str, Any]:
    result: dict[str, Any] = {"name": each.name, "signature": print_conversion(each, context.types)}
    if each.expression is not None:
        result["expr"] = each.expression.text
    if each.python:
        result |= {"python": each.python, "code": each.code}
    if each.time:
        result["time"] = each.time
    if each.lookups:
        result["lookup"] = {lookup.name: _lookup(lookup) for lookup in each.lookups}
    if each.key is not None:
        result["key"] = each.key.text
    if each.states:
        result["state"] = {state.name: _state(state) for state in each.states}
    if each.missing is not MissingValue.ERROR:
        result["missing"] = _missing(each)
    if each.nulls:
        result["nulls"] = "call"
    if each.lossy:
        result["lossy"] = True
    if each.inverse:
        result["inverse"] = each.inverse
    return result


def _missing(each: Conversion) -> Any:
    if each.missing is MissingValue.DEFAULT:
        return {"default": encode(each.result.type, each.default)}
    return f"hold {format_duration(each.hold)}" if each.missing is MissingValue.HOLD else each.missing.value


def _lookup(lookup: TableLookup) -> dict[str, Any]:
    result: dict[str, Any] = {"source": lookup.source, "key": {column: key.text for column, key in lookup.keys}}
    return {**result, "as_of": lookup.as_of} if lookup.as_of else result


def _state(state: ReferenceState) -> dict[str, Any]:
    result: dict[str, Any] = {
        "event": state.event.name,
        "key": state.key.text,
        "keep": {name: each.text for name, each in state.keep},
        "ttl": format_duration(state.ttl),
        "max_keys": state.max_keys,
    }
    return {**result, "history": format_duration(state.history)} if state.history else result


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# All contexts. ``root`` is always there. Two such sets are equal if they declare the same, wherever it was written.


class Contexts:
    """Contexts by id, those that others extend first."""

    __slots__ = ("_shared", "by_id", "faulty", "lost")

    def __init__(
        self,
        contexts: Iterable[Context] = (),
        shared: Iterable[str] = (),
        faulty: Mapping[str, Faults | None] = MappingProxyType({}),
        lost: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        found = {each.id: each for each in contexts}
        if ROOT not in found:
            found = {ROOT: Context(id=ROOT), **found}
        self.by_id: Mapping[str, Context] = MappingProxyType(found)
        self._shared = frozenset(shared)
        self.lost = lost
        """Places of mapped types, as (type, path), for which something was written that cannot be used."""
        self.faulty = faulty
        """Contexts that lack something, because it was wrong; None where nobody knows what: the parent is missing."""

    @classmethod
    def only_root(
        cls, types: Types, functions: Mapping[str, DefinedFunction], scope: NameScope | None = None
    ) -> Contexts:
        """Where nobody declares a context: one root, with the conversions of the project."""
        shared = conversions_of(functions, scope or NameScope(types=types, units=types.units))
        return cls([Context(id=ROOT, types=types, functions=MappingProxyType(shared))], shared)

    @property
    def root(self) -> Context:
        return self.by_id[ROOT]

    def get(self, name: str) -> Context | None:
        """The context called ``acme.us``, or ``acme.us@7`` if that is the version there is."""
        id, at, version = name.partition("@")
        found = self.by_id.get(id)
        return None if found is None or (at and version != str(found.version)) else found

    def children(self, id: str) -> tuple[Context, ...]:
        """Those that extend this one directly, in the order of their ids."""
        return tuple(each for each in self if each.parent is not None and each.parent.id == id)

    @property
    def versions(self) -> Mapping[str, int]:
        """Of those that were changed since they were first declared."""
        return {each.id: each.version for each in self if each.version != 1}

    def at_versions(self, versions: Mapping[str, int]) -> Contexts:
        """The same contexts, each as the version that is given; those that are not named are first ones."""
        if self.versions == {id: version for id, version in versions.items() if version != 1 and id in self.by_id}:
            return self
        made: dict[str, Context] = {}
        left = dict(self.by_id)
        while left:
            for id, each in tuple(left.items()):
                parent = each.parent
                if parent is None or parent.id not in left:
                    made[id] = replace(each, version=versions.get(id, 1), parent=self._parent(parent, made))
                    del left[id]
        return self.with_all(made.values())

    @staticmethod
    def _parent(parent: Context | None, made: Mapping[str, Context]) -> Context | None:
        if parent is None or parent.bridge is None:
            return None if parent is None else made[parent.id]
        bridge = made[parent.id]
        return replace(parent, version=bridge.version, bridge=bridge)

    def with_all(self, contexts: Iterable[Context]) -> Contexts:
        """Others in their place, of the same deployment."""
        return Contexts(contexts, self._shared, self.faulty, self.lost)

    def __iter__(self) -> Iterator[Context]:
        return (self.by_id[id] for id in sorted(self.by_id))

    def __len__(self) -> int:
        return len(self.by_id)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values, the same for equal contexts; root is there only if it declares something of its own.

        Root's types are those of the deployment, and its conversions from ``functions/`` are that one's, too.
        """
        bodies = {each.id: context_as_json(each, self._shared if each.id == ROOT else ()) for each in self}
        return {id: body for id, body in bodies.items() if body or id != ROOT}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Contexts):
            return NotImplemented
        return self.by_id.keys() == other.by_id.keys() and self.as_json() == other.as_json()

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.by_id)))


EMPTY_CONTEXTS = Contexts()
"""Where nothing is said about contexts."""


def conversions_of(functions: Mapping[str, DefinedFunction], scope: NameScope) -> dict[str, Conversion]:
    """The functions of ``functions/`` that convert one value, which every context has from root."""
    return {
        name: Conversion(
            name=name,
            parameter=each.parameters[0][1],
            result=each.result,
            expression=Expression(text=each.text),
            body=each.body,
            scope=scope,
        )
        for name, each in functions.items()
        if each.converts
    }
