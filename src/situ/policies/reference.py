"""The reference semantics of policies: slow, obvious, and what every engine must equal.

`OccurrenceSet` says what occurred, `detect` finds all matches of it and their detections. The kernel must find the same
and shares nothing with this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby, product
from types import MappingProxyType
from typing import Any, assert_never

from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.tree import Node
from situ.lang.records import replace
from situ.policies.language.syntax import ConsumptionMode
from situ.policies.model import (
    IT,
    LEFT,
    RIGHT,
    Absence,
    Cause,
    ConditionLiteral,
    ConditionPart,
    Detection,
    Disjunction,
    InstancesByConcept,
    Observation,
    Policy,
    Relation,
    RelationKind,
    RelationLiteral,
    SequenceLiteral,
    Side,
    sort_detections,
)
from situ.policies.ontology.model import Ontology

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Observations and occurrences by definition. An *observation* is what an event says of one attribute of one instance.
# An *occurrence* is a binding of aliases for which a relation, or one followed by another, was seen to hold: when, and
# because of which events. Everything is computed for all events at once, by looking at every candidate.

Bindings = Mapping[str, str]
"""Alias → identity."""
Instance = Mapping[str, Any]
"""What is known of one instance: attribute → value."""
_Seen = tuple[Observation, Instance]
"""An observation, and the observed instance as tests see it."""
_Kept = dict[str, list[_Seen]]
"""By side: what no later event has been paired with yet."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A relation or a sequence held for these identities.

    ``time`` is None if it holds at any time: nothing in it comes from events. ``parts`` are the occurrences that a
    sequence was made of, each with the step that it is of. ``named`` are aliases whose identity no table knows, but is
    all that is asked for: something else has to bind them.
    """

    bindings: Bindings
    time: int | None
    causes: frozenset[Cause] = frozenset()
    parts: tuple[tuple[RelationLiteral, Occurrence], ...] = ()
    named: frozenset[str] = frozenset()


def bindings_agree(first: Bindings, second: Bindings) -> bool:
    """Whether no alias is bound to two identities."""
    return all(second.get(alias, identity) == identity for alias, identity in first.items())


def supported(occurrences: Iterable[Occurrence], bound: Iterable[str] = ()) -> bool:
    """Whether identities that are only named are bound by what happened, or were before."""
    given = tuple(occurrences)
    seen = {alias for each in given if each.time is not None for alias in each.bindings} | set(bound)
    return all(each.named <= seen for each in given)


def holds(condition: Node | None, values: Mapping[str, Instance]) -> bool:
    """Whether a condition is true. Unknown and failed are not."""
    if condition is None:
        return True
    try:
        return interpret(condition, values) is True
    except FAILURES:
        return False


def known_instances(ontology: Ontology, instances: InstancesByConcept, concept: str) -> dict[str, dict[str, Any]]:
    """What pull sources know of the instances of a concept, those of its members included.

    Of an identity that several of these concepts know, the attributes are put together; where they have the same one,
    the concept itself goes first, then its members in their order.
    """
    found: dict[str, dict[str, Any]] = {}
    for member in reversed(ontology.concepts[concept].members or (concept,)):
        for identity, attributes in instances.get(member, {}).items():
            said = {name: value for name, value in attributes.items() if value is not None}
            found.setdefault(identity, {"id": identity}).update(said)
    return found


def with_kept(observations: Iterable[Observation], keep: Mapping[str, int], window: int) -> list[Observation]:
    """The observations, and those through push sources that keep the last value again after each window.

    Until the value is replaced, or older than its source lets it become.
    """
    seen = sorted(observations, key=_order)
    repeated = []
    for place, observation in enumerate(seen):
        replaced = next((later.time for later in seen[place + 1 :] if _replaces(later, observation)), None)
        for k in range(1, keep.get(observation.push, 0) // window + 1):
            time = observation.time + k * window
            if replaced is not None and replaced <= time:
                break
            cause = Cause(observation.cause.source, f"{observation.cause.id}+{k}")
            repeated.append(replace(observation, time=time, cause=cause))
    return sorted([*seen, *repeated], key=_order)


def _replaces(later: Observation, observation: Observation) -> bool:
    return (later.push, later.identity, later.attribute) == (
        observation.push,
        observation.identity,
        observation.attribute,
    )


def _order(observation: Observation) -> tuple[int, str, str, str, str]:
    """Events by time, those of one time by id and source; what one event says, by push source and identity."""
    cause = observation.cause
    return observation.time, cause.id, cause.source, observation.push, observation.identity


class OccurrenceSet:
    """All occurrences of the relations and sequences of a policy, in the order of time."""

    def __init__(
        self,
        policy: Policy,
        ontology: Ontology,
        observations: Iterable[Observation],
        instances: InstancesByConcept,
        keep: Mapping[str, int],
    ) -> None:
        self.policy = policy
        self.ontology = ontology
        self.instances = instances
        self.observations = with_kept(observations, keep, policy.window)
        self.picked = cache(self._picked)
        self.any = cache(self._any)
        self.sequence = cache(self._sequence)
        self._instances = cache(self._of_alias)

    def _picked(self, relation: Relation) -> list[Occurrence]:
        """The occurrences of a relation that is to hold: consumption decides which pairs of events count."""
        if relation.kind is RelationKind.CORRELATION and self.policy.consumption is not ConsumptionMode.ALL:
            return _sorted(self._consumed(relation))
        return self.any(relation)

    def _any(self, relation: Relation) -> list[Occurrence]:
        """The occurrences of a relation that is not to hold: absence asks whether any pair of events exists."""
        match relation.kind:
            case RelationKind.CONSTRAINT:
                return _sorted(self._timeless(relation))
            case RelationKind.QUERY:
                return _sorted(self._queried(relation))
            case RelationKind.CORRELATION:
                return _sorted(self._paired(relation))

    def _sequence(self, then: SequenceLiteral) -> list[Occurrence]:
        """The occurrences of a sequence, at least one side of which is to hold."""
        if then.second.negated:
            return _sorted(self._not_followed(then))
        if then.first.negated:
            return _sorted(self._not_preceded(then))
        return _sorted(self._followed(then))

    def positive(self, literal: RelationLiteral | SequenceLiteral) -> list[Occurrence]:
        return self.picked(literal.relation) if isinstance(literal, RelationLiteral) else self.sequence(literal)

    # ── observations ──

    def _of_alias(self, alias: str) -> dict[str, dict[str, Any]]:
        """The instances that pull sources know and the constraint of the alias lets through."""
        declared = self.policy.alias(alias)
        found = known_instances(self.ontology, self.instances, declared.concept)
        return {identity: each for identity, each in found.items() if holds(declared.constraint, {IT: each})}

    def observed(self, side: Side) -> list[_Seen]:
        """The observations of an event-based side, each with the instance as tests see it."""
        declared = self.policy.alias(side.alias)
        concept = self.ontology.concepts[declared.concept]
        found = known_instances(self.ontology, self.instances, declared.concept)
        seen: list[_Seen] = []
        for observation in self.observations:
            if observation.attribute != side.event or observation.concept not in (concept.members or (concept.name,)):
                continue
            instance = found.get(observation.identity, {"id": observation.identity})
            if holds(declared.constraint, {IT: instance}):
                seen.append((observation, {**instance, side.event: observation.value}))
        return seen

    # ── occurrences of relations ──

    def _timeless(self, relation: Relation) -> Iterator[Occurrence]:
        named = {side.alias: self._named(side) for side in relation.sides}
        candidates = [{**self._instances(side.alias), **named[side.alias]}.items() for side in relation.sides]
        for chosen in product(*candidates):
            bindings = _bound(relation, [identity for identity, _ in chosen])
            if bindings is not None and _tested(relation, [instance for _, instance in chosen]):
                only_named = {alias for alias, identity in bindings.items() if identity in named[alias]}
                yield Occurrence(bindings, None, named=frozenset(only_named))

    def _named(self, side: Side) -> dict[str, Instance]:
        """Identities that events speak of and no table knows, where the identity is all that is asked for."""
        declared = self.policy.alias(side.alias)
        concept = self.ontology.concepts[declared.concept]
        if not side.is_identity:
            return {}
        seen = {each.identity for each in self.observations if each.concept in (concept.members or (concept.name,))}
        unknown = seen - known_instances(self.ontology, self.instances, declared.concept).keys()
        return {each: {"id": each} for each in sorted(unknown) if holds(declared.constraint, {IT: {"id": each}})}

    def _queried(self, relation: Relation) -> Iterator[Occurrence]:
        [event_based] = [side for side in relation.sides if side.event]
        for observation, observed in self.observed(event_based):
            candidates = [
                [(observation.identity, observed)] if side is event_based else self._instances(side.alias).items()
                for side in relation.sides
            ]
            for chosen in product(*candidates):
                bindings = _bound(relation, [identity for identity, _ in chosen])
                if bindings is not None and _tested(relation, [instance for _, instance in chosen]):
                    yield Occurrence(bindings, observation.time, frozenset([observation.cause]))

    def _paired(self, relation: Relation) -> Iterator[Occurrence]:
        left, right = relation.sides
        for one, other in product(self.observed(left), self.observed(right)):
            pair = self._pair(relation, one, other)
            if pair is not None:
                yield pair

    def _pair(self, relation: Relation, left: _Seen, right: _Seen) -> Occurrence | None:
        one, other = left[0], right[0]
        if one.cause == other.cause or abs(one.time - other.time) > self.policy.window:
            return None
        bindings = _bound(relation, [one.identity, other.identity])
        if bindings is None or not _tested(relation, [left[1], right[1]]):
            return None
        return Occurrence(bindings, max(one.time, other.time), frozenset([one.cause, other.cause]))

    def _consumed(self, relation: Relation) -> Iterator[Occurrence]:
        """Pairs of events each of which is spent once, events coming one after the other in the order of time."""
        recent = self.policy.consumption is ConsumptionMode.RECENT
        kept: _Kept = {LEFT: [], RIGHT: []}
        for event in _events(self.observed(relation.sides[0]), self.observed(relation.sides[1])):
            found = self._first_fitting(relation, event, {side: kept[side][::-1] for side in kept} if recent else kept)
            if found is None:
                for side, seen in event:
                    kept[side].append(seen)
                continue
            pair, (side, (partner, _)) = found
            yield pair
            if recent:
                kept[side] = [each for each in kept[side] if each[0].identity != partner.identity]
            for each_side in kept:
                kept[each_side] = [each for each in kept[each_side] if each[0].cause != partner.cause]

    def _first_fitting(
        self, relation: Relation, event: list[tuple[str, _Seen]], kept: _Kept
    ) -> tuple[Occurrence, tuple[str, _Seen]] | None:
        """The first pair of what an event observes with what is kept of the other side, and its partner there."""
        for side, new in event:
            other = RIGHT if side == LEFT else LEFT
            for partner in kept[other]:
                pair = self._pair(relation, new, partner) if side == LEFT else self._pair(relation, partner, new)
                if pair is not None:
                    return pair, (other, partner)
        return None

    # ── occurrences of sequences ──

    def _followed(self, then: SequenceLiteral) -> Iterator[Occurrence]:
        """One after the other; nothing that is to be absent between them, and the second after all that takes time."""
        first, second = then.first, then.second
        for one, other in product(self.picked(first.relation), self.picked(second.relation)):
            if not bindings_agree(one.bindings, other.bindings):
                continue
            bindings = {**one.bindings, **other.bindings}
            since, broken = _at(one), False
            for gap in then.between:
                until = since + gap.within if gap.within else _at(other) - 1
                broken = broken or any(self.between(gap.absent.relation, since + 1, until, bindings))
                since += gap.within
            if not broken and since < _at(other) <= _at(one) + then.within:
                parts = ((first, one), (second, other))
                yield Occurrence(bindings, other.time, one.causes | other.causes, parts)

    def _not_followed(self, then: SequenceLiteral) -> Iterator[Occurrence]:
        """What is to be absent one after the other, each for its time."""
        absent = [*((gap.absent, gap.within) for gap in then.between), (then.second, then.within)]
        for one in self.picked(then.first.relation):
            since, broken = _at(one), False
            for part, within in absent:
                broken = broken or any(self.between(part.relation, since + 1, since + within, one.bindings))
                since += within
            if not broken:
                yield Occurrence(one.bindings, since, one.causes, ((then.first, one),))

    def _not_preceded(self, then: SequenceLiteral) -> Iterator[Occurrence]:
        """The same backwards."""
        absent = [(then.first, then.within), *((gap.absent, gap.within) for gap in then.between)]
        for other in self.picked(then.second.relation):
            until, broken = _at(other), False
            for part, within in reversed(absent):
                broken = broken or any(self.between(part.relation, until - within, until - 1, other.bindings))
                until -= within
            if not broken:
                yield Occurrence(other.bindings, other.time, other.causes, ((then.second, other),))

    def between(self, relation: Relation, start: int, end: int, bindings: Bindings) -> Iterator[Occurrence]:
        """Those of any pairs of events, from start to end, both included, that agree with bindings."""
        for each in self.any(relation):
            if (each.time is None or start <= each.time <= end) and bindings_agree(each.bindings, bindings):
                yield each


def _events(left: Iterable[_Seen], right: Iterable[_Seen]) -> Iterator[list[tuple[str, _Seen]]]:
    """What each event observes, the left side first; events in their order."""
    both = [(LEFT, seen) for seen in left] + [(RIGHT, seen) for seen in right]
    both.sort(key=lambda each: (_order(each[1][0])[:3], each[0], _order(each[1][0])))
    for _, event in groupby(both, key=lambda each: each[1][0].cause):
        yield list(event)


def _at(occurrence: Occurrence) -> int:
    """When a part of a sequence was: constraints, which hold at any time, are never one."""
    assert occurrence.time is not None
    return occurrence.time


def _bound(relation: Relation, identities: list[str]) -> Bindings | None:
    """The binding of a relation's aliases; None if that would bind an alias twice."""
    bindings = dict(zip(relation.aliases, identities, strict=True))
    return bindings if list(map(bindings.get, relation.aliases)) == identities else None


def _tested(relation: Relation, instances: list[Instance]) -> bool:
    return holds(relation.test, dict(zip((LEFT, RIGHT), instances, strict=False)))


def _sorted(occurrences: Iterable[Occurrence]) -> list[Occurrence]:
    return sorted(
        occurrences,
        key=lambda each: (each.time is not None, each.time or 0, sorted(each.bindings.items()), sorted(each.causes)),
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Matches. A *match* meets all conditions: of each ``or`` one branch is chosen; of everything that is to happen an
# occurrence is picked; and what is to be absent holds because it cannot be refuted. Every choice and every combination
# of occurrences is tried.
#
# Two places where the time of a report is more than the latest occurrence:
#
# - What is absent can be judged only when nothing more can refute it: a window after the activation, or as long as its
#   own sequence looks ahead.
# - If it is one branch of an ``or`` beside others, one of these may still be met until a window after the activation,
#   and would then be the one that is chosen. So it is never judged before that, however short its sequences are.
#
# What is reported before some instant therefore depends on events before that instant only.

NOTHING_KEPT: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class MetLiteral:
    """A literal that is to happen, and the occurrence that was picked for it."""

    literal: ConditionLiteral
    occurrence: Occurrence


@dataclass(frozen=True, slots=True)
class HeldAbsence:
    """What is to be absent; ``choice`` is the ``or`` it was chosen in, if other branches have something to happen."""

    absence: Absence
    choice: Disjunction | None = None


ChosenParts = tuple[MetLiteral | HeldAbsence, ...]
"""How conditions are met: for each ``or`` by the parts of one branch."""


@dataclass(frozen=True, slots=True)
class PolicyMatch:
    """One way to meet all conditions of a policy."""

    way: ChosenParts
    bindings: Bindings
    causes: frozenset[Cause]
    activation: int
    time: int


def detect(
    policy: Policy,
    ontology: Ontology,
    observations: Iterable[Observation],
    instances: InstancesByConcept,
    *,
    keep: Mapping[str, int] = NOTHING_KEPT,
    until: int | None = None,
) -> list[Detection]:
    """All detections that are reported before ``until``, in the order they are; None: all that there are."""
    found: dict[str, Detection] = {}
    for match in matches(OccurrenceSet(policy, ontology, observations, instances, keep)):
        detection = detection_of(policy, match)
        first = found.setdefault(detection.id, detection)
        if (detection.time, detection.activation) < (first.time, first.activation):
            found[detection.id] = detection
    return sort_detections(each for each in found.values() if until is None or each.time < until)


def detection_of(policy: Policy, match: PolicyMatch) -> Detection:
    """What is reported of a match. Several matches may give the same detection."""
    return Detection(
        policy=policy.name,
        bindings=tuple(sorted(match.bindings.items())),
        causes=tuple(sorted(match.causes)),
        time=match.time,
        activation=match.activation,
    )


def matches(happened: OccurrenceSet) -> Iterator[PolicyMatch]:
    """Every way to meet all conditions."""
    policy = happened.policy
    for way in choose_parts(happened, policy.conditions):
        picked = occurrences_of(way)
        times = [each.time for each in picked if each.time is not None]
        if not times or not supported(picked):
            continue
        bindings = {alias: identity for each in picked for alias, identity in each.bindings.items()}
        held = [each for each in way if isinstance(each, HeldAbsence)]
        if any(each.choice is not None and could_be_picked(happened, each.choice, way) for each in held):
            continue
        if any(refutation(happened, each.absence.literals, bindings, max(times)) is not None for each in held):
            continue
        causes = frozenset(cause for each in picked for cause in each.causes)
        wait = max((wait_for(policy, each) for each in held), default=0)
        yield PolicyMatch(way, bindings, causes, max(times), max(times) + wait)


def choose_parts(
    happened: OccurrenceSet, conditions: tuple[ConditionPart, ...], way: ChosenParts = ()
) -> Iterator[ChosenParts]:
    """Every choice of branches and combination of occurrences that can stand beside each other."""
    if not conditions:
        yield way
        return
    part, *others = conditions
    rest = tuple(others)
    match part:
        case Absence():
            yield from choose_parts(happened, rest, (*way, HeldAbsence(part)))
        case Disjunction(branches=branches, absent=absent):
            for branch in branches:
                yield from choose_parts(happened, (*branch, *rest), way)
            if absent:
                yield from choose_parts(happened, rest, (*way, *(HeldAbsence(each, part) for each in absent)))
        case RelationLiteral() | SequenceLiteral():
            for occurrence in happened.positive(part):
                met = MetLiteral(part, occurrence)
                if consistent(happened.policy, (*way, met)):
                    yield from choose_parts(happened, rest, (*way, met))
        case _:
            assert_never(part)


def occurrences_of(way: Iterable[MetLiteral | HeldAbsence]) -> list[Occurrence]:
    return [each.occurrence for each in way if isinstance(each, MetLiteral)]


def consistent(policy: Policy, way: Iterable[MetLiteral | HeldAbsence]) -> bool:
    """Whether bindings agree, all is inside a window, and what is written once is one occurrence."""
    bindings: dict[str, str] = {}
    times: list[int] = []
    steps: dict[RelationLiteral, Occurrence] = {}
    for occurrence in occurrences_of(way):
        if not bindings_agree(occurrence.bindings, bindings):
            return False
        bindings.update(occurrence.bindings)
        if occurrence.time is not None:
            times.append(occurrence.time)
        if any(steps.setdefault(step, part) != part for step, part in occurrence.parts):
            return False
    return not times or max(times) - min(times) <= policy.window


def could_be_picked(happened: OccurrenceSet, choice: Disjunction, way: ChosenParts) -> bool:
    """Whether a branch of an ``or`` could be met by what happened alone, beside what the rest is met by."""
    return any(
        supported(occurrences_of(longer)) and not any(isinstance(each, HeldAbsence) for each in longer[len(way) :])
        for branch in choice.branches
        for longer in choose_parts(happened, branch, way)
    )


def refutation(
    happened: OccurrenceSet, literals: tuple[ConditionLiteral, ...], bindings: Bindings, activation: int
) -> tuple[Occurrence, ...] | None:
    """A counterexample: an occurrence against each of these literals, all agreeing; None if there is none."""
    found = counterexamples(happened, literals, bindings, activation)
    return next((each for each in found if supported(each, bindings)), None)


def counterexamples(
    happened: OccurrenceSet, literals: tuple[ConditionLiteral, ...], bindings: Bindings, activation: int
) -> Iterator[tuple[Occurrence, ...]]:
    if not literals:
        yield ()
        return
    for occurrence in against(happened, literals[0], bindings, activation):
        more = {**bindings, **occurrence.bindings}
        for rest in counterexamples(happened, literals[1:], more, activation):
            yield (occurrence, *rest)


def against(
    happened: OccurrenceSet, literal: ConditionLiteral, bindings: Bindings, activation: int
) -> Iterator[Occurrence]:
    """What refutes a negative literal for a match with these bindings that was activated then."""
    window = happened.policy.window
    if isinstance(literal, RelationLiteral):
        yield from happened.between(literal.relation, activation - window, activation + window, bindings)
    else:
        for side in (literal.first, literal.second):
            yield from happened.between(side.relation, activation, activation + literal.within, bindings)


def wait_for(policy: Policy, held: HeldAbsence) -> int:
    """How long after the activation it is settled that something is absent."""
    ahead = [each.within if isinstance(each, SequenceLiteral) else policy.window for each in held.absence.literals]
    return max(*ahead, policy.window) if held.choice is not None else max(ahead)
