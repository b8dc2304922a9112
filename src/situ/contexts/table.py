"""The canonical JSON form of a context: what deployment snapshots hold.

Only what the context declares itself, in the words of its file, each list in the order that counts. Types have the form
of tables of types. Reading it back is :func:`situ.interpretation.load.contexts_from_json`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, assert_never

from situ.interpretation.function_checks import print_conversion
from situ.interpretation.model import (
    Context,
    Conversion,
    Direction,
    FromDefault,
    FromExpression,
    FromPath,
    Lookup,
    MappedTo,
    Missing,
    Origin,
    Path,
    State,
)
from situ.interpretation.patterns import print_pattern
from situ.quantities import format_duration
from situ.types.encode import encode
from situ.types.model import Struct, Type, plain
from situ.types.syntax import ROOT_PREFIX, format_head
from situ.types.table import Types


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


def _mapping(mapping: MappedTo, context: Context) -> dict[str, Any]:
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
    if each.missing is not Missing.ERROR:
        result["missing"] = _missing(each)
    if each.nulls:
        result["nulls"] = "call"
    if each.lossy:
        result["lossy"] = True
    if each.inverse:
        result["inverse"] = each.inverse
    return result


def _missing(each: Conversion) -> Any:
    if each.missing is Missing.DEFAULT:
        return {"default": encode(each.result.type, each.default)}
    return f"hold {format_duration(each.hold)}" if each.missing is Missing.HOLD else each.missing.value


def _lookup(lookup: Lookup) -> dict[str, Any]:
    result: dict[str, Any] = {"source": lookup.source, "key": {column: key.text for column, key in lookup.keys}}
    return {**result, "as_of": lookup.as_of} if lookup.as_of else result


def _state(state: State) -> dict[str, Any]:
    result: dict[str, Any] = {
        "event": state.event.name,
        "key": state.key.text,
        "keep": {name: each.text for name, each in state.keep},
        "ttl": format_duration(state.ttl),
        "max_keys": state.max_keys,
    }
    return {**result, "history": format_duration(state.history)} if state.history else result
