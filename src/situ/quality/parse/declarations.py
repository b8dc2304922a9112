"""Reads one expectation or one capability profile, of a file or of a client, or says all that is wrong with it.

`read_needs` reads the needs of an expectation, `read_expectation` the whole, `read_profile` a profile with its modes.
The ``*_KEYS`` are the keys that each may have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

import msgspec

from situ.lang.catalogue import (
    BAD_ATTRIBUTE,
    BAD_MODES,
    BAD_NAME,
    CURRENT_OUTSIDE,
    NEED_OPTION_UNFIT,
    NOT_PUBLISHERS,
    OUTSIDE_DOMAIN,
    TOO_MANY,
    UNKNOWN_PROPERTY,
    UNSUPPORTED_COMPOSITE,
)
from situ.lang.documents import Fields, Node, Reader, ScalarNode
from situ.lang.problems import nearest
from situ.lang.types.model import Attribute
from situ.lang.units import NO_UNIT
from situ.quality.model.declarations import (
    Aggregate,
    Capability,
    Expectation,
    Keep,
    Mode,
    Need,
    Profile,
    QualityEnvironment,
    QualityProperty,
    numeric,
)
from situ.quality.model.json_form import property_of
from situ.quality.parse.values import Values, read_cost, read_double, read_microseconds, read_plain_cost

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Needs: property, bounds and options, each where it fits.

NEED_KEYS = ("lb", "ub", "unit", "of", "each", "missing", "per", "across", "keep", "max_silence", "per_key")
MOST_PROPERTIES = 100
"""Of one need, profile or mode."""
OF = " of "
IMPRECISION = "imprecision"

_EACH = ("confidence", "freshness")
_FITS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "each": ("`confidence` and `freshness`", _EACH),
        "missing": ("`confidence` and `freshness`, beside `each: true`", _EACH),
        "per": ("`rate` and `imprecision`", ("rate", IMPRECISION)),
        "across": ("`rate`", ("rate",)),
        "keep": ("`rate`", ("rate",)),
        "max_silence": ("`imprecision`", (IMPRECISION,)),
        "per_key": ("`imprecision`", (IMPRECISION,)),
    }
)
"""Option → the properties that it goes with, in words and by name."""


class PropertyReader(msgspec.Struct, frozen=True):
    """Reads which property is meant. ``types`` are the event types that its attributes are looked for in."""

    read: Reader
    around: QualityEnvironment
    types: tuple[str, ...] = ()

    def property(self, key: ScalarNode, fields: Fields | None = None) -> QualityProperty | None:
        """The property of a key, ``rate`` or ``imprecision of power``; the attribute can stand under ``of:``, too."""
        name, _, attribute = key.text.partition(OF)
        if name in self.around.faulty:
            return None
        found = self.around.properties.get(name)
        if found is None:
            known = tuple(self.around.properties)
            similar = nearest(name, known)
            self.read.problems.add(UNKNOWN_PROPERTY(key.location, name=name, nearest=similar, known=known))
            return None
        of = fields.scalar("of") if fields is not None else None
        written = attribute.strip() or (of.text if of is not None else "")
        if name != IMPRECISION:
            if written:
                remedy = f"Only `{IMPRECISION}` is of an attribute: leave it out."
                self._bad(of or key, f"`{name}` is no property of a single attribute", remedy)
                return None
            return found
        return self._of_attribute(of or key, written)

    def _of_attribute(self, place: ScalarNode, name: str) -> QualityProperty | None:
        if not name:
            self._bad(place, "An imprecision is that of an attribute", "Say of which: `of: temperature`.")
            return None
        there = list(self.around.attributes(name, self.types))
        if not there:
            events = ", ".join(f"`{each}`" for each in self.types) or "any event type"
            known = sorted({each.name for each in self._all_attributes()})
            remedy = f"There are {', '.join(f'`{each}`' for each in nearest(name, known) or known[:9])}."
            self._bad(place, f"There is no attribute `{name}` of {events} in root", remedy if known else "Declare it.")
            return None
        units = {each.unit.difference for each in numeric(there)}
        if len(units) != 1:
            what = "is a number of one unit in one event type, and of another or none in another"
            what = "is no number" if not units else what
            self._bad(place, f"`{name}` {what}", "Imprecision needs numbers of one unit.")
            return None
        unit = units.pop()
        return property_of(f"{IMPRECISION}{OF}{name}", self.around.properties, "" if unit == NO_UNIT else str(unit))

    def _all_attributes(self) -> list[Attribute]:
        names = self.types or tuple(self.around.types.events)
        events = (self.around.types.event(each) for each in names)
        return [each for event in events if event is not None for each in numeric(event.attributes)]

    def _bad(self, place: ScalarNode, what: str, remedy: str) -> None:
        self.read.problems.add(BAD_ATTRIBUTE(place.location, what=what, remedy=remedy))


Entries = tuple[tuple[ScalarNode, Node], ...]


def not_too_many(read: Reader, entries: Entries) -> Entries:
    """What is said of properties; of more than anybody has, nothing is looked at, and that is said."""
    if len(entries) <= MOST_PROPERTIES:
        return entries
    first = entries[MOST_PROPERTIES][0]
    read.problems.add(TOO_MANY(first.location, count=len(entries), what="properties", most=MOST_PROPERTIES))
    return ()


def read_needs(named: PropertyReader, values: Values, entries: Entries) -> dict[str, Need] | None:
    """All needs of an expectation by the ids of their properties; None if something is wrong with one of them."""
    found: dict[str, Need] = {}
    wrong = len(entries) > MOST_PROPERTIES
    for key, node in not_too_many(named.read, entries):
        need = _need(named, values, key, node)
        if need is not None and need.about.id in found:
            named.read.wrong(key, f"each property once, and `{need.about.id}` is there already")
            need = None
        if need is None:
            wrong = True
        else:
            found[need.about.id] = need
    return None if wrong else found


def _need(named: PropertyReader, values: Values, key: ScalarNode, node: Node) -> Need | None:
    read = named.read
    before = len(read.problems)
    fields = read.fields(node, optional=NEED_KEYS)
    about = named.property(key, fields)
    if about is None or fields is None:
        return None
    values = values.in_unit(fields)
    bounds = values.bounds(about, fields)
    _check_fit(read, about, fields)
    silence = read_microseconds(read, fields.node("max_silence"))
    per_key = _per_key(values, about, fields, bounds[1]) if bounds is not None else {}
    each = fields.boolean("each", default=False)
    missing = fields.choice("missing", ("drop", "keep"), "drop")
    per = fields.text("per", "")
    across = fields.boolean("across", default=False)
    keep = fields.choice("keep", get_args(Keep), "first")
    if bounds is None or len(read.problems) > before:
        return None
    return Need(
        about=about,
        lb=bounds[0],
        ub=bounds[1],
        each=each,
        keep_missing=missing == "keep",
        per=per,
        across=across,
        keep=cast(Keep, keep),
        max_silence=silence,
        per_key=MappingProxyType(per_key),
    )


def _check_fit(read: Reader, about: QualityProperty, fields: Fields) -> None:
    for option, (shown, names) in _FITS.items():
        place = fields.mapping.key(option)
        if place is not None and about.name not in names:
            read.problems.add(NEED_OPTION_UNFIT(place.location, option=option, name=about.id, fits=shown))
    missing = fields.mapping.key("missing")
    if missing is not None and about.name in _EACH and not fields.boolean("each", default=False):
        read.problems.add(NEED_OPTION_UNFIT(missing.location, option="missing", name=about.id, fits="`each: true`"))


def _per_key(values: Values, about: QualityProperty, fields: Fields, most: float) -> dict[str, float]:
    """Smaller bounds of single keys: a larger one would tell less than was asked for."""
    found = {}
    for key, node in fields.entries("per_key") if "per_key" in fields else ():
        bound = values.value(about, node)
        if bound is not None and bound > most:
            lo, hi = (f"{each:g} {about.unit}".strip() for each in (about.lo, most))
            problem = OUTSIDE_DOMAIN(
                node.location, value=f"{bound:g}", name=f"{about.id} of {key.text}", lo=lo, hi=hi, nearest=()
            )
            values.read.problems.add(problem)
        elif bound is not None:
            found[key.text] = bound
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Expectations.

OPTION_KEYS = ("utility", "sources", "else", "from", "aggregate")
EXPECTATION_KEYS = ("id", "need", *OPTION_KEYS)
AGGREGATE_KEYS = ("fn", "of", "window", "every")
SOURCES = ("any", "selected")
ELSE = ("any", "nothing")
FUNCTIONS = ("avg", "min", "max", "sum")
ID = re.compile(r"[A-Za-z0-9_-]{1,64}(?:/[A-Za-z0-9_-]{1,64})?")
MOST_PUBLISHERS = 1000
_IDS = "Use letters, digits, `_` and `-`, at most 64."
_PARTS = 6
"""How often an aggregate is told within its window, if nobody says."""
_MOST_PARTS = 3_600
"""How often it is at most: each event is worked through so often."""


def read_expectation(read: Reader, around: QualityEnvironment, fields: Fields, subscription: str) -> Expectation | None:
    """An expectation of a subscription ``client/name``; None if something is wrong with it, which is said."""
    before = len(read.problems)
    id = fields.scalar("id")
    if id is not None and not ID.fullmatch(id.text):
        reason = "it has other characters, or too many"
        problem = BAD_NAME(id.location, name=id.text, what="an expectation", reason=reason, remedy=_IDS)
        read.problems.add(problem)
    parts = read_parts(read, around, fields, subscription)
    if id is None or len(read.problems) > before:
        return None
    return Expectation(id=id.text, subscription=subscription, **{"needs": MappingProxyType({}), **parts})


def read_parts(read: Reader, around: QualityEnvironment, fields: Fields, subscription: str) -> dict[str, Any]:
    """The fields of an expectation that are written here, by name: what an update changes."""
    id = fields.text("id") or "this expectation" if isinstance(fields.node("id"), ScalarNode) else "this expectation"
    types = around.types_of(subscription)
    named, values = PropertyReader(read, around, types), Values(read, around.types.units)
    found: dict[str, Any] = {}
    if "need" in fields:
        found["needs"] = MappingProxyType(read_needs(named, values, _entries(fields)) or {})
    if "utility" in fields:
        found["utility"] = read_double(read, fields.node("utility"), least=0)
    if "sources" in fields:
        found["selected"] = fields.choice("sources", SOURCES, SOURCES[0]) == "selected"
    if "else" in fields:
        found["otherwise_nothing"] = fields.choice("else", ELSE, ELSE[0]) == "nothing"
        if found["otherwise_nothing"] and fields.node("sources") is not None and not found["selected"]:
            place = cast(ScalarNode, fields.mapping.key("else")).location
            read.problems.add(NEED_OPTION_UNFIT(place, option="else", name=id, fits="`sources: selected`"))
    if (node := fields.node("from")) is not None:
        found["publishers"] = _publishers(read, id, node)
    if (node := fields.node("aggregate")) is not None:
        found["aggregate"] = _aggregate(named, node)
    return found


def _entries(fields: Fields) -> tuple[tuple[ScalarNode, Node], ...]:
    node = fields.node("need")
    nothing = isinstance(node, ScalarNode) and node.value is None
    return () if nothing else fields.entries("need")


def _publishers(read: Reader, id: str, node: Node) -> int:
    value = node.value if isinstance(node, ScalarNode) else None
    if type(value) is int and 1 <= value <= MOST_PUBLISHERS:
        return value
    shown = f"`{node.text}` publishers" if isinstance(node, ScalarNode) else "publishers of several kinds"
    read.problems.add(UNSUPPORTED_COMPOSITE(node.location, id=id, what=shown, most=MOST_PUBLISHERS))
    return 1


def _aggregate(named: PropertyReader, node: Node) -> Aggregate | None:
    read = named.read
    fields = read.fields(node, required=("fn", "of", "window"), optional=("every",))
    if fields is None:
        return None
    function = fields.choice("fn", FUNCTIONS)
    attribute = fields.scalar("of")
    window = read_microseconds(read, fields.node("window"))
    every = read_microseconds(read, fields.node("every"))
    if attribute is not None and not numeric(named.around.attributes(attribute.text, named.types)):
        what = f"There is no number `{attribute.text}` of which `{function}` could be taken"
        remedy = "Name an attribute of the event types that is a number."
        read.problems.add(BAD_ATTRIBUTE(attribute.location, what=what, remedy=remedy))
    if every is not None and window is not None and every * _MOST_PARTS < window:
        read.wrong(fields.node("every") or node, f"no less than a {_MOST_PARTS}th of the window")
        return None
    if function is None or attribute is None or window is None:
        return None
    return Aggregate(
        function=cast(Literal["avg", "min", "max", "sum"], function),
        attribute=attribute.text,
        window=window,
        every=every or max(1, window // _PARTS),
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Capability profiles.

PROFILE_KEYS = ("publisher", "type", "capabilities", "modes", "mode")
CAPABILITY_KEYS = ("lb", "ub", "cv", "unit", "of", "cost")
MOST_MODES = 100
"""Each is weighed against each, and against all that anybody expects."""
MODE_KEYS = ("name", "values", "cost")


def read_profile(read: Reader, around: QualityEnvironment, fields: Fields, publisher: str, type: str) -> Profile | None:
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


def read_capabilities(read: Reader, around: QualityEnvironment, fields: Fields, type: str) -> dict[str, Capability]:
    """The free capabilities that are right, by the ids of their properties."""
    found: dict[str, Capability] = {}
    named = PropertyReader(read, around, (type,))
    for key, node in not_too_many(read, _capability_entries(fields, "capabilities")):
        capability = _capability(named, key, node)
        if capability is not None and capability.about.id in found:
            read.wrong(key, f"each property once, and `{capability.about.id}` is there already")
        elif capability is not None:
            found[capability.about.id] = capability
    return found


def _capability(named: PropertyReader, key: ScalarNode, node: Node) -> Capability | None:
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


def _declarable(named: PropertyReader, key: ScalarNode, fields: Fields | None = None) -> QualityProperty | None:
    about = named.property(key, fields)
    if about is not None and about.determined_by == "middleware":
        named.read.problems.add(NOT_PUBLISHERS(key.location, name=about.id))
        return None
    return about


# ── modes ──


def _modes(
    read: Reader, around: QualityEnvironment, fields: Fields, type: str
) -> tuple[dict[str, QualityProperty], tuple[Mode, ...]]:
    named = PropertyReader(read, around, (type,))
    moded: dict[str, QualityProperty] = {}
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


def _values(named: PropertyReader, body: Fields) -> tuple[dict[str, QualityProperty], dict[str, float]]:
    reading = Values(named.read, named.around.types.units)
    properties: dict[str, QualityProperty] = {}
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
    read: Reader, fields: Fields, capabilities: Mapping[str, Capability], moded: Mapping[str, QualityProperty]
) -> None:
    for key, _ in _capability_entries(fields, "capabilities"):
        if key.text in capabilities and key.text in moded:
            what = f"`{key.text}` is in `capabilities:` and in `modes:`"
            _bad(read, key, what, "What the mode determines is not free: keep it in `modes:` alone.")


def _capability_entries(fields: Fields, name: str) -> tuple[tuple[ScalarNode, Node], ...]:
    node = fields.node(name)
    nothing = node is None or (isinstance(node, ScalarNode) and node.value is None)
    return () if nothing else fields.entries(name)


def _bad(read: Reader, node: Node, what: str, remedy: str) -> None:
    read.problems.add(BAD_MODES(node.location, what=what, remedy=remedy))
