"""A changed context beside the one that somebody uses: it extends that one and overrides what is other.

What was taken out is overridden, too, where that can be said: a rule by ``keep``. Where it cannot, there is no fork.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from situ.interpretation.model import KEEP, Context, Direction
from situ.interpretation.patterns import print_pattern

Body = Mapping[str, Any]


class Unforkable(Exception):
    """The change is none that a context below the old one could make; the text says why."""


def fork_of(id: str, taken: Collection[str]) -> str:
    """The name of the next fork of a context: ``us.v2``, or if there is one ``us.v3``."""
    number = 2
    while f"{id}.v{number}" in taken:
        number += 1
    return f"{id}.v{number}"


def fork(before: Body, after: Body, old: Context, new: Context) -> dict[str, Any]:
    """What a context below the old one declares to be as the new one, given by what both declare and are."""
    if before.get("extends") != after.get("extends"):
        raise Unforkable("it extends another context than before")
    result: dict[str, Any] = {"extends": old.id}
    types = _types(after, old, new)
    if types:
        result["types"] = types
        if events := [name for name in after.get("events", ()) if name in types]:
            result["events"] = events
    if units := {name: kind for name, kind in after.get("units", {}).items() if name not in before.get("units", {})}:
        result["units"] = units
    if after.get("derive"):
        result["derive"] = True
    if maps := _maps(before, after, whole=bool(types)):
        result["maps"] = maps
    rules = {way.value: found for way in Direction if (found := _rules(before, after, way, old, whole=bool(types)))}
    if rules:
        result["rules"] = rules
    known = {each["name"]: each for each in before.get("functions", ())}
    if functions := [each for each in after.get("functions", ()) if known.get(each["name"]) != each]:
        result["functions"] = functions
    return result


def _types(after: Body, old: Context, new: Context) -> dict[str, Any]:
    """Those that are other than before, also because of what is in them."""
    return {name: body for name, body in after.get("types", {}).items() if old.types.get(name) != new.types.get(name)}


def _maps(before: Body, after: Body, *, whole: bool) -> list[Any]:
    """If types changed, all of them: those of the old context lead to the old types."""
    sources = [_source(each) for each in after.get("maps", ())]
    if any(_source(each) not in sources for each in before.get("maps", ())):
        raise Unforkable("it has a mapping less, and what is inherited stays")
    return [each for each in after.get("maps", ()) if whole or each not in before.get("maps", ())]


def _source(mapping: Mapping[str, Any]) -> tuple[str, str]:
    direction = "in" if "in" in mapping else "out"
    return direction, str(mapping[direction]).partition(" -> ")[0]


def _rules(before: Body, after: Body, direction: Direction, old: Context, *, whole: bool) -> list[str]:
    was = before.get("rules", {}).get(direction.value, [])
    now = after.get("rules", {}).get(direction.value, [])
    patterns = {rule.rpartition(" -> ")[0] for rule in now}
    gone = [pattern for rule in was if (pattern := rule.rpartition(" -> ")[0]) not in patterns]
    return [
        *(rule for rule in now if whole or rule not in was),
        *(f"{pattern} -> {_further_up(pattern, direction, old)}" for pattern in gone),
    ]


def _further_up(pattern: str, direction: Direction, context: Context) -> str:
    """The function that the pattern has without the context's own rule."""
    types = context.types_of(direction)
    for above in list(context.chain)[1:]:
        found = [rule for rule in above.rules if rule.direction is direction]
        for rule in sorted(found, key=lambda rule: -rule.order):
            if print_pattern(rule.pattern, types) == pattern:
                return rule.function
    return KEEP
