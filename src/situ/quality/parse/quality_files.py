"""Reads ``quality/*.yaml``: all that is declared about quality, or everything that is wrong with it, each at its place.

`read_property`, `read_action` and `read_strategy` read single entries, `load_quality` all documents together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from types import MappingProxyType
from typing import cast, get_args

import msgspec

from situ.lang.catalogue import (
    ABOUT_NOTHING,
    BAD_NAME,
    BAD_SCALE,
    BUILT_IN_CHANGED,
    DECLARED_TWICE,
    EMPTY_NEED,
    HOP_UNFIT,
    NOBODY_COVERS,
    NOT_THERE_YET,
    UNKNOWN_ADAPTATION,
    UNKNOWN_STRATEGY,
    UNKNOWN_UNIT,
)
from situ.lang.documents import Document, Fields, Node, Reader, ScalarNode, is_nothing, to_data
from situ.lang.problems import Location, Problems, SituError, nearest
from situ.lang.records import replace
from situ.lang.units import Units, UnknownUnit
from situ.quality.match.satisfaction import Satisfaction, match, reasons
from situ.quality.model.costs import FREE, Cost, read_formula
from situ.quality.model.declarations import (
    BUILT_IN,
    BUILT_IN_ACTIONS,
    DEFAULT,
    NO_QUALITY,
    STRATEGIES,
    Determined,
    Direction,
    Exceed,
    Expectation,
    Hop,
    Profile,
    PublisherAction,
    Quality,
    QualityEnvironment,
    QualityProperty,
    Strategy,
    known_properties,
)
from situ.quality.parse.declarations import (
    EXPECTATION_KEYS,
    IMPRECISION,
    PROFILE_KEYS,
    PropertyReader,
    read_expectation,
    read_profile,
)
from situ.quality.parse.values import Values, read_cost, read_double, read_end

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``properties:``, each checked by itself.

PROPERTY_KEYS = ("range", "levels", "unit", "improve", "determined_by", "hop", "exceed", "scale", "quantum")
IMPROVE = ("maximise", "minimise")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_NAMES = "Use letters, digits, `_` and `-`, a letter first, at most 64."
_FREE = ("trust",)
"""Built in, and measured by nobody: its levels are the project's."""


def read_property(read: Reader, key: ScalarNode, node: Node, units: Units) -> QualityProperty | None:
    """A property; None if something is wrong with it, which is said."""
    fields = read.fields(node, optional=PROPERTY_KEYS)
    if fields is None:
        return None
    if not NAME.fullmatch(key.text):
        reason = "it has other characters, or too many"
        read.problems.add(BAD_NAME(key.location, name=key.text, what="a property", reason=reason, remedy=_NAMES))
        return None
    built_in = BUILT_IN.get(key.text)
    # What a project does not say of a built-in property stays.
    base = built_in or QualityProperty(name=key.text)
    domain = _domain(read, fields, key, base)
    unit = _unit(read, fields, units, base.unit)
    if domain is None or unit is None:
        return None
    levels, lo, hi = domain
    made = QualityProperty(
        name=key.text,
        lo=lo,
        hi=hi,
        unit="" if levels else unit,
        levels=levels,
        maximise=fields.choice("improve", IMPROVE, IMPROVE[not base.maximise]) == "maximise",
        determined_by=cast(Determined, fields.choice("determined_by", get_args(Determined), base.determined_by)),
        hop=cast(Hop, fields.choice("hop", get_args(Hop), base.hop)),
        exceed=cast(Exceed, fields.choice("exceed", get_args(Exceed), base.exceed)),
        scale=read_double(read, fields.node("scale"), least=0) or base.scale,
        quantum=read_double(read, fields.node("quantum"), least=0),
    )
    return made if _is_right(read, key, fields, made) else None


def _domain(
    read: Reader, fields: Fields, key: ScalarNode, base: QualityProperty
) -> tuple[tuple[str, ...], float, float] | None:
    levels, span = fields.node("levels"), fields.node("range")
    if levels is not None and span is not None:
        read.problems.add(BAD_SCALE(key.location, name=key.text, what="has both a range and levels"))
        return None
    if levels is not None:
        names = tuple(each.text for each in fields.scalars("levels"))
        if len(names) < 2 or len(set(names)) < len(names):
            read.problems.add(
                BAD_SCALE(levels.location, name=key.text, what="has too few levels, or one of them twice")
            )
            return None
        return names, 0.0, float(len(names) - 1)
    if span is not None:
        return _range(read, fields, key, span)
    if key.text in BUILT_IN:
        return base.levels, base.lo, base.hi
    read.problems.add(BAD_SCALE(key.location, name=key.text, what="has neither a range nor levels"))
    return None


def _range(read: Reader, fields: Fields, key: ScalarNode, node: Node) -> tuple[tuple[str, ...], float, float] | None:
    items = fields.items("range")
    if len(items) == 2:
        lo, hi = read_end(read, items[0], -math.inf), read_end(read, items[1], math.inf)
        if lo is None or hi is None:
            return None
        if lo < hi and lo < math.inf and hi > -math.inf:
            return (), lo, hi
    read.problems.add(BAD_SCALE(node.location, name=key.text, what="has no range that goes from one number to another"))
    return None


def _unit(read: Reader, fields: Fields, units: Units, default: str) -> str | None:
    scalar = fields.scalar("unit")
    if scalar is None:
        return default
    try:
        return str(units.parse(scalar.text)) if scalar.text else ""
    except UnknownUnit as error:
        read.problems.add(UNKNOWN_UNIT(scalar.location, unit=scalar.text, nearest=error.nearest))
        return None


def _is_right(read: Reader, key: ScalarNode, fields: Fields, made: QualityProperty) -> bool:
    place = (fields.node("hop") or key).location
    if reason := hop_unfit(made):
        read.problems.add(HOP_UNFIT(place, name=made.name, hop=made.hop, reason=reason))
        return False
    built_in = BUILT_IN.get(made.name)
    if built_in is None or made.name in _FREE or _scale(made) == _scale(built_in):
        return True
    read.problems.add(BUILT_IN_CHANGED(key.location, name=made.name, scale=_shown(built_in)))
    return False


def hop_unfit(about: QualityProperty) -> str:
    """Why a hop rule does not fit the domain; empty, if it does. Every rule has to keep what is better better."""
    if about.hop in ("same", "worst"):
        return ""
    if about.levels:
        return "levels are no numbers"
    if about.hop == "add":
        return "more of it is better" if about.maximise else ""
    if not about.maximise:
        return "less of it is better"
    return "" if about.lo >= 0 else "it goes below 0"


def _scale(about: QualityProperty) -> tuple[object, ...]:
    return about.lo, about.hi, about.unit, about.levels, about.maximise


def _shown(about: QualityProperty) -> str:
    span = " < ".join(about.levels) if about.levels else f"{about.lo:g} to {about.hi:g} {about.unit}".strip()
    return f"{span}, {'more' if about.maximise else 'less'} is better"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``actions:`` and ``strategy:``.

ACTION_KEYS = ("property", "direction", "action", "sequence", "cost")
STRATEGY_KEYS = ("name", "lambda", "budget", "protect")


def read_action(read: Reader, around: QualityEnvironment, node: Node) -> PublisherAction | None:
    """An action; None if something is wrong with it, which is said."""
    before = len(read.problems)
    alternatives = {"action", "sequence"}
    mapping = read.mapping(node)
    if mapping is None:
        return None
    of = "sequence" if "sequence" in mapping else "action"
    other = tuple(alternatives - {of}) if of == "sequence" else ()
    fields = read.fields(node, required=("property", "direction", of), optional=("cost", *other))
    if fields is None:
        return None
    about = _property(read, around, fields.scalar("property"))
    direction = cast(Direction, fields.choice("direction", get_args(Direction), "up"))
    names = fields.scalars("sequence") if of == "sequence" else _one(fields.scalar("action"))
    if about is not None:
        for name in names:
            _check_action(read, about, direction, name)
    cost = FREE if about is None else _cost(read, around, about, fields)
    if of == "sequence" and not names:
        read.wrong(mapping, "a sequence of at least one action")
    if about is None or cost is None or len(read.problems) > before:
        return None
    steps = tuple(each.text for each in names) if of == "sequence" else ()
    shown = " then ".join(each.text for each in names)
    return PublisherAction(property=about.id, direction=direction, action=shown, cost=cost, steps=steps)


def _one(scalar: ScalarNode | None) -> tuple[ScalarNode, ...]:
    return () if scalar is None else (scalar,)


def _property(read: Reader, around: QualityEnvironment, key: ScalarNode | None) -> QualityProperty | None:
    """Actions are about a property as such, not of a single attribute."""
    if key is None:
        return None
    if key.text == IMPRECISION:
        return around.properties[IMPRECISION]
    return PropertyReader(read, around).property(key)


def _check_action(read: Reader, about: QualityProperty, direction: Direction, name: ScalarNode) -> None:
    known = [each for each in BUILT_IN_ACTIONS if _fits(each, about, direction)]
    if name.text not in known:
        shown = f" that moves `{about.id}` {direction}"
        problem = UNKNOWN_ADAPTATION(
            name.location, name=name.text, direction=shown, nearest=nearest(name.text, known), known=tuple(known)
        )
        read.problems.add(problem)


def _fits(action: str, about: QualityProperty, direction: Direction) -> bool:
    match action:
        case "adaptPublisher":
            return about.determined_by != "middleware"
        case "thin":
            return about.name == "rate" and direction == "down"
        case "suppress":
            return about.name == IMPRECISION and direction == "up"
        case _:
            return True


def _cost(read: Reader, around: QualityEnvironment, about: QualityProperty, fields: Fields) -> Cost | None:
    values = Values(read, around.types.units)
    node = fields.node("cost")
    if isinstance(node, ScalarNode) and isinstance(node.value, str) and not about.levels:
        return _formula(read, node)
    return read_cost(values, about, node, about.lo, about.hi)


def _formula(read: Reader, node: ScalarNode) -> Cost | None:
    """A formula of a target that may be anywhere: where it has no value the action is not affordable."""
    try:
        return read_formula(node.text, node.location, node.locate)
    except SituError as error:
        read.problems.extend(error.problems)
        return None


def read_strategy(read: Reader, around: QualityEnvironment, key: ScalarNode, node: Node) -> Strategy | None:
    """The strategy for events of a type, or by default; None if something is wrong with it, which is said."""
    before = len(read.problems)
    if key.text != DEFAULT and around.types.event(key.text) is None:
        similar = nearest(key.text, (*around.types.events, DEFAULT))
        remedy = "A strategy is that for an event type, or `default`."
        problem = ABOUT_NOTHING(key.location, what="event type", name=key.text, nearest=similar, remedy=remedy)
        read.problems.add(problem)
    if isinstance(node, ScalarNode):
        name = read.scalar(node)
        _check_strategy(read, around, name)
        return Strategy(name=name.text) if name is not None and len(read.problems) == before else None
    mapping = read.mapping(node)
    if mapping is None:
        return None
    named = mapping.get("name")
    own = isinstance(named, ScalarNode) and named.text not in STRATEGIES
    others = tuple(key.text for key, _ in mapping.entries if key.text not in STRATEGY_KEYS) if own else ()
    fields = read.fields(node, required=("name",), optional=(*STRATEGY_KEYS, *others))
    if fields is None:
        return None
    _check_strategy(read, around, fields.scalar("name"))
    weight, budget = (read_double(read, fields.node(name), least=0) for name in ("lambda", "budget"))
    protect = fields.boolean("protect", default=True)
    if len(read.problems) > before:
        return None
    return Strategy(
        name=fields.text("name", ""),
        weight=1.0 if weight is None else weight,
        budget=budget,
        protect=protect,
        options=MappingProxyType({key.text: to_data(below) for key, below in mapping.entries if key.text in others}),
    )


def _check_strategy(read: Reader, around: QualityEnvironment, name: ScalarNode | None) -> None:
    if name is not None and name.text not in around.strategies:
        known = tuple(around.strategies)
        problem = UNKNOWN_STRATEGY(name.location, name=name.text, nearest=nearest(name.text, known), known=known)
        read.problems.add(problem)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# All files. Any file may hold any of the keys. Expectations keep the order in which they are written, file by file: it
# ranks those of one subscription that are worth the same.

KEYS = ("properties", "expectations", "profiles", "actions", "strategy")


def load_quality(documents: Iterable[Document], around: QualityEnvironment, problems: Problems) -> Quality:
    """Read and check what all these documents declare together; what is wrong is reported and left out."""
    loading = _QualityLoader(Reader(problems), around)
    found = [fields for each in documents if (fields := loading.document(each)) is not None]
    for fields in found:
        loading.properties_of(fields)
    # Properties first, whatever file they are in: all others are about them.
    known = known_properties(loading.properties)
    loading.around = replace(around, properties=known, faulty=loading.faulty)
    for fields in found:
        loading.others_of(fields)
    if not (found or loading.properties):
        return NO_QUALITY
    quality = Quality(
        properties=MappingProxyType(loading.properties),
        expectations=MappingProxyType(loading.expectations),
        profiles=MappingProxyType(loading.profiles),
        actions=tuple(loading.actions),
        strategies=MappingProxyType(loading.strategies),
    )
    loading.warn()
    return quality


class _QualityLoader(msgspec.Struct):
    read: Reader
    around: QualityEnvironment
    properties: dict[str, QualityProperty] = msgspec.field(default_factory=dict)
    expectations: dict[str, Expectation] = msgspec.field(default_factory=dict)
    profiles: dict[str, Profile] = msgspec.field(default_factory=dict)
    actions: list[PublisherAction] = msgspec.field(default_factory=list)
    strategies: dict[str, Strategy] = msgspec.field(default_factory=dict)
    faulty: set[str] = msgspec.field(default_factory=set)
    """Properties that are declared, and not right."""
    _places: dict[tuple[str, str], Location] = msgspec.field(default_factory=dict)

    def document(self, document: Document) -> Fields | None:
        if document.root is not None and is_nothing(document.root):
            self.read.problems.extend(document.problems)
            return None
        return self.read.document(document, optional=KEYS)

    def properties_of(self, fields: Fields) -> None:
        for key, node in _entries(fields, "properties"):
            if self._is_new("The property", key):
                found = read_property(self.read, key, node, self.around.types.units)
                if found is None:
                    self.faulty.add(key.text)
                else:
                    self.properties[key.text] = found

    def others_of(self, fields: Fields) -> None:
        for node in _items(fields, "expectations"):
            self._alternatives(node)
        for node in _items(fields, "profiles"):
            self._profile(node)
        for node in _items(fields, "actions"):
            action = read_action(self.read, self.around, node)
            if action is not None:
                self.actions.append(action)
        for key, node in _entries(fields, "strategy"):
            strategy = read_strategy(self.read, self.around, key, node)
            if self._is_new("The strategy for", key) and strategy is not None:
                self.strategies[key.text] = strategy

    # ── expectations ──

    def _alternatives(self, node: Node) -> None:
        """One expectation, or several of one subscription."""
        mapping = self.read.mapping(node)
        if mapping is None:
            return
        if "any_of" in mapping:
            fields = self.read.fields(node, required=("subscription", "any_of"))
            each = () if fields is None else fields.items("any_of")
            bodies = [self.read.fields(below, required=("id",), optional=EXPECTATION_KEYS) for below in each]
        else:
            fields = self.read.fields(node, required=("subscription", "id"), optional=EXPECTATION_KEYS)
            bodies = [fields]
        subscription = None if fields is None else fields.scalar("subscription")
        if subscription is None:
            return
        self._check_subscription(subscription)
        for body in bodies:
            if body is not None:
                self._expectation(body, subscription.text)

    def _expectation(self, fields: Fields, subscription: str) -> None:
        found = read_expectation(self.read, self.around, fields, subscription)
        id = fields.node("id")
        if isinstance(id, ScalarNode) and "/" in id.text:
            reason = "names with `/` are those that clients give"
            problem = BAD_NAME(id.location, name=id.text, what="an expectation", reason=reason, remedy="Leave it out.")
            self.read.problems.add(problem)
        elif isinstance(id, ScalarNode) and self._is_new("The expectation", id) and found is not None:
            self.expectations[found.id] = found

    def _check_subscription(self, subscription: ScalarNode) -> None:
        known = self.around.subscriptions
        client, _, name = subscription.text.partition("/")
        if not client or not name or "/" in name:
            self.read.wrong(subscription, "a subscription as `client/name`")
        elif subscription.text not in known:
            similar = nearest(subscription.text, known)
            problem = NOT_THERE_YET(subscription.location, what="subscription", name=subscription.text, nearest=similar)
            self.read.problems.add(problem)

    # ── profiles ──

    def _profile(self, node: Node) -> None:
        optional = PROFILE_KEYS
        fields = self.read.fields(node, required=("publisher", "type"), optional=optional)
        publisher = None if fields is None else fields.scalar("publisher")
        type = None if fields is None else fields.scalar("type")
        if fields is None or publisher is None or type is None:
            return
        if publisher.text not in self.around.clients:
            similar = nearest(publisher.text, self.around.clients)
            problem = NOT_THERE_YET(publisher.location, what="client", name=publisher.text, nearest=similar)
            self.read.problems.add(problem)
        self._check_type(publisher.text, type)
        found = read_profile(self.read, self.around, fields, publisher.text, type.text)
        key = replace(type, text=f"{publisher.text}/{type.text}")
        if self._is_new("The profile", key) and found is not None:
            self.profiles[found.id] = found

    def _check_type(self, publisher: str, type: ScalarNode) -> None:
        types = self.around.types_for(publisher)
        if types.event(type.text) is None:
            remedy = "A profile is about an event type that its publisher has a name for."
            problem = ABOUT_NOTHING(
                type.location,
                what="event type",
                name=type.text,
                nearest=nearest(type.text, types.events),
                remedy=remedy,
            )
            self.read.problems.add(problem)

    # ── all of it ──

    def warn(self) -> None:
        """What is allowed, and probably not meant."""
        for each in self.expectations.values() if not self.read.problems.errors else ():
            place = self._places["The expectation", each.id]
            if not each.needs:
                self.read.problems.add(EMPTY_NEED(place, id=each.id))
            elif self.profiles:
                self._warn_of_uncovered(each, place)

    def _warn_of_uncovered(self, expectation: Expectation, place: Location) -> None:
        types = self.around.types_of(expectation.subscription)
        relevant = [each for each in self.profiles.values() if not types or self.around.below(each.type, types)]
        if match(expectation, relevant).state is Satisfaction.UNSATISFIED:
            short = reasons(expectation, relevant)
            shown = ", ".join(_shortfall(expectation, each.about.id, each.reachable) for each in short)
            shown = shown or f"fewer than {expectation.publishers} publishers have one"
            self.read.problems.add(NOBODY_COVERS(place, id=expectation.id, reasons=shown))

    def _is_new(self, what: str, key: ScalarNode) -> bool:
        first = self._places.setdefault((what, key.text), key.location)
        if first == key.location:
            return True
        self.read.problems.add(DECLARED_TWICE(key.location, what=what, name=key.text, first=str(first)))
        return False


def _shortfall(expectation: Expectation, id: str, reachable: float | None) -> str:
    need = expectation.needs[id]
    best = "nobody has it" if reachable is None else f"the closest reaches {need.about.shown(reachable)}"
    return f"`{id}` {need.about.shown(need.floor)}, {best}"


def _entries(fields: Fields, key: str) -> tuple[tuple[ScalarNode, Node], ...]:
    """A section that is there without content is empty: someone is about to write it."""
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.entries(key)


def _items(fields: Fields, key: str) -> tuple[Node, ...]:
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.items(key)
