"""``quality/*.yaml`` → all that is declared about quality, or everything that is wrong with it, each at its place.

Any file may hold any of the keys. Expectations keep the order in which they are written, file by file: it ranks those
of one subscription that are worth the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from situ.catalogue import ABOUT_NOTHING, BAD_NAME, DECLARED_TWICE, EMPTY_NEED, NOBODY_COVERS, NOT_THERE_YET
from situ.documents import Document, Fields, Node, Reader, Scalar
from situ.errors import Location, Problems, nearest
from situ.quality.around import Around
from situ.quality.declared import NO_QUALITY, Action, Quality, Strategy, known_properties
from situ.quality.expectation import Expectation
from situ.quality.matching import State, match, reasons
from situ.quality.profile import Profile
from situ.quality.property import Property
from situ.quality.read_action import read_action, read_strategy
from situ.quality.read_expectation import EXPECTATION_KEYS, read_expectation
from situ.quality.read_profile import PROFILE_KEYS, read_profile
from situ.quality.read_property import read_property
from situ.types.declare import is_nothing

KEYS = ("properties", "expectations", "profiles", "actions", "strategy")


def load_quality(documents: Iterable[Document], around: Around, problems: Problems) -> Quality:
    """Read and check what all these documents declare together; what is wrong is reported and left out."""
    loading = _Loading(Reader(problems), around)
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


@dataclass(slots=True)
class _Loading:
    read: Reader
    around: Around
    properties: dict[str, Property] = field(default_factory=dict)
    expectations: dict[str, Expectation] = field(default_factory=dict)
    profiles: dict[str, Profile] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    strategies: dict[str, Strategy] = field(default_factory=dict)
    faulty: set[str] = field(default_factory=set)
    """Properties that are declared, and not right."""
    _places: dict[tuple[str, str], Location] = field(default_factory=dict)

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
        if isinstance(id, Scalar) and "/" in id.text:
            reason = "names with `/` are those that clients give"
            problem = BAD_NAME(id.location, name=id.text, what="an expectation", reason=reason, remedy="Leave it out.")
            self.read.problems.add(problem)
        elif isinstance(id, Scalar) and self._is_new("The expectation", id) and found is not None:
            self.expectations[found.id] = found

    def _check_subscription(self, subscription: Scalar) -> None:
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

    def _check_type(self, publisher: str, type: Scalar) -> None:
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
        if match(expectation, relevant).state is State.UNSATISFIED:
            short = reasons(expectation, relevant)
            shown = ", ".join(_shortfall(expectation, each.about.id, each.reachable) for each in short)
            shown = shown or f"fewer than {expectation.publishers} publishers have one"
            self.read.problems.add(NOBODY_COVERS(place, id=expectation.id, reasons=shown))

    def _is_new(self, what: str, key: Scalar) -> bool:
        first = self._places.setdefault((what, key.text), key.location)
        if first == key.location:
            return True
        self.read.problems.add(DECLARED_TWICE(key.location, what=what, name=key.text, first=str(first)))
        return False


def _shortfall(expectation: Expectation, id: str, reachable: float | None) -> str:
    need = expectation.needs[id]
    best = "nobody has it" if reachable is None else f"the closest reaches {need.about.shown(reachable)}"
    return f"`{id}` {need.about.shown(need.floor)}, {best}"


def _entries(fields: Fields, key: str) -> tuple[tuple[Scalar, Node], ...]:
    """A section that is there without content is empty: someone is about to write it."""
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.entries(key)


def _items(fields: Fields, key: str) -> tuple[Node, ...]:
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.items(key)
