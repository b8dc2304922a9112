"""Expectations, profiles and whatever is declared about quality as plain JSON, in the words of ``quality/*.yaml``.

Equal declarations give equal values. Reading back checks the form only: what was written was checked before. What
people and clients write is read by :mod:`situ.quality.parse.quality_files`, which has the same words and more ways to
say them. Numbers are in the unit of their property; only properties of attributes say which that is. Values at an end
of the domain without a number are left out, or written as text. Numbers that are equal are written alike: the
digest of a deployment is made from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast, get_args

from situ.lang.json_form import text_of
from situ.lang.records import replace
from situ.quality.model.costs import FREE, ConstantCost, Cost, Formula, LevelCost, PiecewiseCost, read_formula
from situ.quality.model.declarations import (
    BUILT_IN,
    Capability,
    Determined,
    Direction,
    Exceed,
    Expectation,
    Hop,
    Keep,
    Mode,
    Need,
    Profile,
    PublisherAction,
    Quality,
    QualityProperty,
    Strategy,
    known_properties,
)
from situ.quality.model.shapes import aggregate_as_json, aggregate_from_json, duration_as_json, duration_from_json
from situ.quality.model.shapes import shape_as_json as shape_as_json
from situ.quality.model.shapes import shape_from_json as shape_from_json

Json = dict[str, Any]
_OF = " of "
_LARGEST_WHOLE = 2**53


# ── all of it ──


def quality_as_json(quality: Quality) -> Json:
    """Only what there is: nothing declared is an empty value."""
    found: Json = {
        "properties": {name: property_as_json(quality.properties[name]) for name in sorted(quality.properties)},
        "expectations": [expectation_as_json(each) for each in quality.expectations.values()],
        "profiles": [profile_as_json(quality.profiles[id]) for id in sorted(quality.profiles)],
        "actions": [action_as_json(each, quality.known) for each in quality.actions],
        "strategy": {type: _strategy(quality.strategies[type]) for type in sorted(quality.strategies)},
    }
    return {key: value for key, value in found.items() if value}


def quality_from_json(value: Any) -> Quality:
    """What :func:`quality_as_json` gave; ValueError for what it cannot have given."""
    try:
        own = {name: property_from_json(name, body) for name, body in value.get("properties", {}).items()}
        known = known_properties(own)
        expectations = [expectation_from_json(each, known) for each in value.get("expectations", ())]
        profiles = [profile_from_json(each, known) for each in value.get("profiles", ())]
        return Quality(
            properties=MappingProxyType(own),
            expectations=MappingProxyType({each.id: each for each in expectations}),
            profiles=MappingProxyType({each.id: each for each in profiles}),
            actions=tuple(action_from_json(each, known) for each in value.get("actions", ())),
            strategies=MappingProxyType({type: _to_strategy(body) for type, body in value.get("strategy", {}).items()}),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is no quality: {error!r}") from error


# ── properties ──


def property_as_json(about: QualityProperty) -> Json:
    """What is not as by default; a range without an end has ``null`` there."""
    found: Json = {"levels": list(about.levels)} if about.levels else {"range": [_end(about.lo), _end(about.hi)]}
    if about.unit:
        found["unit"] = about.unit
    found |= {"improve": "maximise" if about.maximise else "minimise", "determined_by": about.determined_by}
    found |= {"hop": about.hop, "exceed": about.exceed}
    for key, value in (("scale", about.scale), ("quantum", about.quantum)):
        found |= {key: _number(value)} if value is not None else {}
    return found


def property_from_json(name: str, value: Any) -> QualityProperty:
    _known(value, "levels", "range", "unit", "improve", "determined_by", "hop", "exceed", "scale", "quantum")
    levels = tuple(value.get("levels", ()))
    lo, hi = (0.0, float(len(levels) - 1)) if levels else value["range"]
    return QualityProperty(
        name=name,
        lo=-math.inf if lo is None else float(lo),
        hi=math.inf if hi is None else float(hi),
        unit=value.get("unit", ""),
        levels=levels,
        maximise=_one_of(value["improve"], "maximise", "minimise") == "maximise",
        determined_by=cast(Determined, _one_of(value["determined_by"], *get_args(Determined))),
        hop=cast(Hop, _one_of(value["hop"], *get_args(Hop))),
        exceed=cast(Exceed, _one_of(value["exceed"], *get_args(Exceed))),
        scale=_perhaps(value.get("scale")),
        quantum=_perhaps(value.get("quantum")),
    )


def property_of(id: str, properties: Mapping[str, QualityProperty] = BUILT_IN, unit: str = "") -> QualityProperty:
    """The property of this id; ``unit`` is that of its attribute, if it is of one."""
    name, _, attribute = id.partition(_OF)
    found = properties[name]
    return replace(found, of=attribute, unit=unit or found.unit) if attribute else found


# ── expectations ──


def expectation_as_json(expectation: Expectation) -> Json:
    found: Json = {"id": expectation.id, "subscription": expectation.subscription}
    found["need"] = {id: need_as_json(expectation.needs[id]) for id in sorted(expectation.needs)}
    found["utility"] = _number(expectation.utility)
    found |= {"version": expectation.version} if expectation.version != 1 else {}
    found |= {"order": expectation.order} if expectation.order else {}
    found |= {"suspended": True} if expectation.suspended else {}
    found |= {"sources": "selected"} if expectation.selected else {}
    found |= {"else": "nothing"} if expectation.otherwise_nothing else {}
    found |= {"from": expectation.publishers} if expectation.publishers != 1 else {}
    if expectation.aggregate is not None:
        found["aggregate"] = aggregate_as_json(expectation.aggregate)
    return found


def expectation_from_json(value: Any, properties: Mapping[str, QualityProperty] = BUILT_IN) -> Expectation:
    """The expectation that :func:`expectation_as_json` gave; ValueError for what it cannot have given."""
    keys = ("id", "subscription", "need", "utility", "version", "order", "suspended", "sources", "else", "from")
    try:
        _known(value, *keys, "aggregate")
        needs = {id: need_from_json(id, body, properties) for id, body in value["need"].items()}
        return Expectation(
            id=text_of(value["id"]),
            subscription=text_of(value["subscription"]),
            needs=MappingProxyType(needs),
            utility=float(value.get("utility", 1.0)),
            version=_whole(value.get("version", 1)),
            order=_whole(value.get("order", 0)),
            suspended=value.get("suspended", False) is True,
            selected=_one_of(value.get("sources", "any"), "any", "selected") == "selected",
            otherwise_nothing=_one_of(value.get("else", "any"), "any", "nothing") == "nothing",
            publishers=_whole(value.get("from", 1)),
            aggregate=aggregate_from_json(value["aggregate"]) if "aggregate" in value else None,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is no expectation: {error!r}") from error


def need_as_json(need: Need) -> Json:
    about = need.about
    found = _bounds(about, need.lb, need.ub)
    found |= {"each": True} if need.each else {}
    found |= {"missing": "keep"} if need.keep_missing else {}
    found |= {"per": need.per} if need.per else {}
    found |= {"across": True} if need.across else {}
    found |= {"keep": need.keep} if need.keep != "first" else {}
    found |= {"max_silence": duration_as_json(need.max_silence)} if need.max_silence is not None else {}
    found |= {"per_key": {key: _number(need.per_key[key]) for key in sorted(need.per_key)}} if need.per_key else {}
    return found


def need_from_json(id: str, value: Any, properties: Mapping[str, QualityProperty] = BUILT_IN) -> Need:
    _known(value, "lb", "ub", "unit", "each", "missing", "per", "across", "keep", "max_silence", "per_key")
    about = property_of(id, properties, value.get("unit", ""))
    return Need(
        about=about,
        lb=_to_value(about, value.get("lb"), about.lo),
        ub=_to_value(about, value.get("ub"), about.hi),
        each=value.get("each", False) is True,
        keep_missing=_one_of(value.get("missing", "drop"), "drop", "keep") == "keep",
        per=text_of(value.get("per", "")),
        across=value.get("across", False) is True,
        keep=cast(Keep, _one_of(value.get("keep", "first"), *get_args(Keep))),
        max_silence=duration_from_json(value["max_silence"]) if "max_silence" in value else None,
        per_key=MappingProxyType({key: float(bound) for key, bound in value.get("per_key", {}).items()}),
    )


# ── profiles ──


def profile_as_json(profile: Profile) -> Json:
    found: Json = {"publisher": profile.publisher, "type": profile.type}
    found |= {"version": profile.version} if profile.version != 1 else {}
    if profile.capabilities:
        each = profile.capabilities
        found["capabilities"] = {id: capability_as_json(each[id]) for id in sorted(each)}
    if profile.modes:
        found |= {"mode": profile.mode, "modes": [_mode(profile, each) for each in profile.modes]}
    units = {id: about.unit for id, about in sorted(profile.moded.items()) if about.of and about.unit}
    return found | ({"units": units} if units else {})


def profile_from_json(value: Any, properties: Mapping[str, QualityProperty] = BUILT_IN) -> Profile:
    """The profile that :func:`profile_as_json` gave; ValueError for what it cannot have given."""
    try:
        _known(value, "publisher", "type", "version", "capabilities", "mode", "modes", "units")
        modes, units = value.get("modes", []), value.get("units", {})
        moded = {id: property_of(id, properties, units.get(id, "")) for id in modes[0]["values"]} if modes else {}
        capabilities = value.get("capabilities", {})
        return Profile(
            publisher=text_of(value["publisher"]),
            type=text_of(value["type"]),
            capabilities=MappingProxyType(
                {id: capability_from_json(id, body, properties) for id, body in capabilities.items()}
            ),
            modes=tuple(_to_mode(each, moded) for each in modes),
            mode=text_of(value.get("mode", "")),
            moded=MappingProxyType(moded),
            version=_whole(value.get("version", 1)),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is no profile: {error!r}") from error


def capability_as_json(capability: Capability) -> Json:
    about = capability.about
    found = _bounds(about, capability.lb, capability.ub) | {"cv": _value(about, capability.cv)}
    return found if capability.cost == FREE else found | {"cost": cost_as_json(capability.cost, about)}


def capability_from_json(id: str, value: Any, properties: Mapping[str, QualityProperty] = BUILT_IN) -> Capability:
    _known(value, "lb", "ub", "cv", "unit", "cost")
    about = property_of(id, properties, value.get("unit", ""))
    return Capability(
        about=about,
        lb=_to_value(about, value.get("lb"), about.lo),
        ub=_to_value(about, value.get("ub"), about.hi),
        cv=_to_value(about, value["cv"], about.lo),
        cost=cost_from_json(value.get("cost", 0), about),
    )


def cost_as_json(cost: Cost, about: QualityProperty | None = None) -> Any:
    """``about`` has the names of the levels of a table."""
    match cost:
        case ConstantCost(cost=number):
            return _number(number)
        case PiecewiseCost(points=points):
            return {"points": [[_number(place), _number(each)] for place, each in points]}
        case LevelCost(costs=costs) if about is not None:
            return {about.levels[int(level)]: _number(each) for level, each in costs}
        case Formula():
            return cost.text
    raise ValueError(f"{cost!r} has no form")


def cost_from_json(value: Any, about: QualityProperty | None = None) -> Cost:
    if isinstance(value, str):
        return read_formula(value)
    if isinstance(value, int | float):
        return ConstantCost(float(value)) if value else FREE
    if "points" in value and (about is None or "points" not in about.levels):
        return PiecewiseCost(tuple((float(x), float(cost)) for x, cost in value["points"]))
    if about is None:
        raise TypeError("a table by level, of no property")
    return LevelCost(tuple(sorted((float(about.levels.index(level)), float(cost)) for level, cost in value.items())))


def _mode(profile: Profile, mode: Mode) -> Json:
    values = {id: _value(about, mode.values[id]) for id, about in sorted(profile.moded.items())}
    return {"name": mode.name, "values": values, "cost": _number(mode.cost)}


def _to_mode(value: Any, moded: Mapping[str, QualityProperty]) -> Mode:
    _known(value, "name", "values", "cost")
    values = {id: _to_value(about, value["values"][id], about.lo) for id, about in moded.items()}
    return Mode(name=text_of(value["name"]), values=MappingProxyType(values), cost=float(value.get("cost", 0.0)))


# ── actions and strategies ──


def action_as_json(action: PublisherAction, properties: Mapping[str, QualityProperty] = BUILT_IN) -> Json:
    found: Json = {"property": action.property, "direction": action.direction}
    found |= {"sequence": list(action.steps)} if action.steps else {"action": action.action}
    return found if action.cost == FREE else found | {"cost": cost_as_json(action.cost, properties[action.property])}


def action_from_json(value: Any, properties: Mapping[str, QualityProperty] = BUILT_IN) -> PublisherAction:
    _known(value, "property", "direction", "action", "sequence", "cost")
    steps = tuple(text_of(each) for each in value.get("sequence", ()))
    about = property_of(text_of(value["property"]), properties)
    return PublisherAction(
        property=about.id,
        direction=cast(Direction, _one_of(value["direction"], *get_args(Direction))),
        action=" then ".join(steps) if steps else text_of(value["action"]),
        cost=cost_from_json(value.get("cost", 0), about),
        steps=steps,
    )


def _strategy(strategy: Strategy) -> Json | str:
    found: Json = dict(sorted(strategy.options.items()))
    found |= {"lambda": _number(strategy.weight)} if strategy.weight != 1.0 else {}
    found |= {"budget": _number(strategy.budget)} if strategy.budget is not None else {}
    found |= {} if strategy.protect else {"protect": False}
    return {"name": strategy.name, **found} if found else strategy.name


def _to_strategy(value: Any) -> Strategy:
    if isinstance(value, str):
        return Strategy(name=value)
    known = ("name", "lambda", "budget", "protect")
    return Strategy(
        name=text_of(value["name"]),
        weight=float(value.get("lambda", 1.0)),
        budget=_perhaps(value.get("budget")),
        protect=value.get("protect", True) is True,
        options=MappingProxyType({key: each for key, each in value.items() if key not in known}),
    )


# ── values ──


def _bounds(about: QualityProperty, lb: float, ub: float) -> Json:
    found: Json = {"unit": about.unit} if about.of and about.unit else {}
    found |= {"lb": _value(about, lb)} if lb != about.lo else {}
    return found | ({"ub": _value(about, ub)} if ub != about.hi else {})


def _value(about: QualityProperty, value: float) -> float | str:
    if not math.isfinite(value):
        return repr(float(value))
    return about.written(value) if about.levels else _number(value)


def _to_value(about: QualityProperty, value: Any, missing: float) -> float:
    if value is None:
        return missing
    return float(about.levels.index(value)) if about.levels else float(value)


def _end(value: float) -> float | None:
    return _number(value) if math.isfinite(value) else None


def _number(value: float) -> float:
    """As people write it: whole numbers without a point."""
    return int(value) if value == int(value) and abs(value) < _LARGEST_WHOLE else float(value)


def _perhaps(value: Any) -> float | None:
    return None if value is None else float(value)


def _known(body: Any, *keys: str) -> None:
    if not isinstance(body, Mapping) or body.keys() - set(keys):
        raise ValueError(f"this is no quality of this release: {body!r:.80}")


def _one_of(value: Any, *choices: str) -> str:
    if value not in choices:
        raise ValueError(f"{value!r} is none of {', '.join(choices)}")
    return str(value)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value
