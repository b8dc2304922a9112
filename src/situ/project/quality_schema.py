"""The JSON Schema of ``quality/*.yaml``, and the forms that all schemas of a project's files are made of.

A schema describes the form alone, as the loader accepts it; what the values mean is checked by `situ.quality.parse`.
"""

from __future__ import annotations

from typing import Any, get_args

from situ.quality.model.declarations import BUILT_IN_ACTIONS, Determined, Direction, Exceed, Hop, Keep
from situ.quality.parse.declarations import (
    AGGREGATE_KEYS,
    CAPABILITY_KEYS,
    ELSE,
    EXPECTATION_KEYS,
    FUNCTIONS,
    MODE_KEYS,
    NEED_KEYS,
    PROFILE_KEYS,
    SOURCES,
)
from situ.quality.parse.quality_files import ACTION_KEYS, IMPROVE, KEYS, PROPERTY_KEYS, STRATEGY_KEYS

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Forms for all schemas.

TEXT = {"type": "string"}
BOOLEAN = {"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": r"\$\{"}]}


def object_form(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    form: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**form, "required": list(required)} if required else form


def named_form(pattern: str, value: dict[str, Any], about: str) -> dict[str, Any]:
    """A mapping whose keys the writer chooses; it may be empty, and even absent behind its key."""
    form = {"type": ["object", "null"], "description": about, "propertyNames": {"pattern": pattern}}
    return {**form, "additionalProperties": value}


def text_form(description: str) -> dict[str, Any]:
    return {**TEXT, "description": description}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The schema of ``quality/*.yaml``.

_PROPERTY = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"
_PROPERTY_OF = r"^[A-Za-z][A-Za-z0-9_-]{0,63}( of .+)?$"
_ID = "^[A-Za-z0-9_-]{1,64}$"
_SUBSCRIPTION = "^[^/]+/[^/]+$"
_NUMBER = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"\$\{"}]}
_VALUE = {"type": ["number", "string"], "examples": [5, "10/min", "200 ms", "medium"]}
_DURATION = {**TEXT, "examples": ["60 s", "5 min"]}


def quality_schema() -> dict[str, Any]:
    sections = {
        "properties": named_form(_PROPERTY, _property(), "scales of the project's own, by name"),
        "expectations": _list(_expectations(), "what subscriptions need"),
        "profiles": _list(_profile(), "what publishers can do"),
        "actions": _list(_action(), "ways to move a property, and what they cost"),
        "strategy": named_form("^.+$", _strategy(), "how it is decided, by event type; `default` for all others"),
    }
    return object_form({key: sections[key] for key in KEYS})


def _list(item: dict[str, Any], description: str) -> dict[str, Any]:
    return {"type": ["array", "null"], "items": item, "description": description}


def _choice(names: tuple[str, ...], description: str) -> dict[str, Any]:
    return {"enum": list(names), "description": description}


def _described(form: dict[str, Any], description: str) -> dict[str, Any]:
    return {**form, "description": description}


def _property() -> dict[str, Any]:
    ends = {"type": ["number", "string", "null"]}
    fields = {
        "range": {
            "type": "array",
            "items": ends,
            "minItems": 2,
            "maxItems": 2,
            "description": "from, to; null: no end",
        },
        "levels": {"type": "array", "items": TEXT, "minItems": 2, "description": "names in ascending order"},
        "unit": text_form("of the numbers"),
        "improve": _choice(IMPROVE, "which direction is better; more, if absent"),
        "determined_by": _choice(get_args(Determined), "who can change it"),
        "hop": _choice(get_args(Hop), "what a link between routers does to it"),
        "exceed": _choice(get_args(Exceed), "what becomes of more than is wanted"),
        "scale": _described(_NUMBER, "by which shortfalls are divided to be compared; the width of the range"),
        "quantum": _described(_NUMBER, "to whose multiples values are rounded between routers"),
    }
    return object_form({key: fields[key] for key in PROPERTY_KEYS})


def _bounds() -> dict[str, dict[str, Any]]:
    return {
        "lb": _described(_VALUE, "lower bound, also where less is better; the end of the scale, if absent"),
        "ub": _described(_VALUE, "upper bound"),
        "unit": text_form("of plain numbers here; that of the property, if absent"),
        "of": text_form("the attribute that an imprecision is of"),
    }


def _need() -> dict[str, Any]:
    fields = {
        **_bounds(),
        "each": _described(BOOLEAN, "single events below the floor are dropped (confidence, freshness)"),
        "missing": _choice(("drop", "keep"), "what becomes, with `each`, of events that do not say"),
        "per": text_form("the attribute that, with the source, tells apart what is thinned or suppressed"),
        "across": _described(BOOLEAN, "sources are thinned together"),
        "keep": _choice(get_args(Keep), "which event of a window is kept"),
        "max_silence": _described(_DURATION, "after which one event gets through in any case"),
        "per_key": named_form("^.+$", _VALUE, "smaller bounds of single keys"),
    }
    return object_form({key: fields[key] for key in NEED_KEYS})


def _expectations() -> dict[str, Any]:
    aggregate = {
        "fn": _choice(FUNCTIONS, "the function"),
        "of": text_form("of this attribute"),
        "window": _described(_DURATION, "over so much event time"),
        "every": _described(_DURATION, "so often, at least a 3600th of the window; a sixth of it, if absent"),
    }
    fields = {
        "id": {**text_form("its name, unique in the zone"), "pattern": _ID},
        "need": named_form(_PROPERTY_OF, _need(), "by property: what is good enough"),
        "utility": _described(_NUMBER, "what it is worth; 1, if absent"),
        "sources": _choice(SOURCES, "whether only publishers that satisfy it are heard"),
        "else": _choice(ELSE, "what is heard while nobody satisfies it"),
        "from": {"type": "integer", "minimum": 1, "description": "how many publishers have to satisfy it"},
        "aggregate": _described(
            object_form({key: aggregate[key] for key in AGGREGATE_KEYS}, ("fn", "of", "window")), "one event for many"
        ),
    }
    subscription = {**text_form("whose it is, as client/name"), "pattern": _SUBSCRIPTION}
    own = {key: fields[key] for key in EXPECTATION_KEYS}
    alternatives = {
        "type": "array",
        "items": object_form(own, ("id",)),
        "description": "several of one subscription, keys as below; the satisfied one that is worth most is in force",
    }
    one_or_several = {"oneOf": [{"required": ["id"]}, {"required": ["any_of"]}]}
    form = object_form({"subscription": subscription, "any_of": alternatives, **own}, ("subscription",))
    return {**form, **one_or_several}


def _cost() -> dict[str, Any]:
    points = {"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2}, "minItems": 1}
    return {
        "description": "a number, an expression of `x`, {points: [[x, cost], …]} or {level: cost, …}",
        "anyOf": [
            {"type": "number", "minimum": 0},
            {**TEXT, "examples": ["0.1 * x"]},
            object_form({"points": points}, ("points",)),
            {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
        ],
    }


def _profile() -> dict[str, Any]:
    capability = {**_bounds(), "cv": _described(_VALUE, "the value that is operated at now"), "cost": _cost()}
    mode = {
        "name": text_form("what it is called"),
        "values": named_form(_PROPERTY_OF, _VALUE, "by property: what holds in it"),
        "cost": _described(_NUMBER, "of operating in it"),
    }
    fields = {
        "publisher": text_form("the client"),
        "type": text_form("the event type, as the client calls it"),
        "capabilities": named_form(
            _PROPERTY_OF,
            object_form({key: capability[key] for key in CAPABILITY_KEYS}, ("cv",)),
            "by property: what can be had, each free of the others",
        ),
        "modes": _list(
            object_form({key: mode[key] for key in MODE_KEYS}, ("name", "values")),
            "values that can only be had together; one of them holds",
        ),
        "mode": text_form("the current one"),
    }
    return object_form({key: fields[key] for key in PROFILE_KEYS}, ("publisher", "type"))


def _action() -> dict[str, Any]:
    actions = {"enum": list(BUILT_IN_ACTIONS)}
    fields = {
        "property": text_form("what it moves"),
        "direction": _choice(get_args(Direction), "where to"),
        "action": _described(actions, "what is done"),
        "sequence": {"type": "array", "items": actions, "minItems": 1, "description": "several, one after the other"},
        "cost": _cost(),
    }
    return object_form({key: fields[key] for key in ACTION_KEYS}, ("property", "direction"))


def _strategy() -> dict[str, Any]:
    fields = {
        "name": text_form("`pareto`, `cheapest`, `utility`, `fairness`, or one that is installed"),
        "lambda": _described(_NUMBER, "what a unit of cost counts against a unit of utility"),
        "budget": _described(_NUMBER, "the most that all that is in force by advice may cost"),
        "protect": _described(BOOLEAN, "nobody loses what it has; true, if absent"),
    }
    known = object_form({key: fields[key] for key in STRATEGY_KEYS}, ("name",))
    return {"anyOf": [TEXT, {**known, "additionalProperties": True}]}
