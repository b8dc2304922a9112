"""What a literal lacked, to be met beside what the other clauses were met by.

The nearest occurrence of it, and in which respect it did not fit; if it did not occur at all, which of its sides was
not seen, did not satisfy its constraints, or made the condition untrue.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from situ.situation.meaning.detection import Observation
from situ.situation.meaning.occurrences import Bindings, Happened, Occurrence, agree, holds, known
from situ.situation.meaning.reference import Met, consistent
from situ.situation.policies.policy import IT, Kind, Literal, Relation, Side, Then


class Why(Enum):
    """In which respect something was lacking."""

    OTHER_TIME = "it occurred, but too far away in time"
    OTHER_IDENTITY = "it occurred for others"
    OTHER_OCCURRENCE = "it occurred, but a sequence beside it is about another time that the same was seen"
    UNSEEN = "no event said anything about a side of it"
    UNKNOWN = "no pull source knows the other side of it"
    CONSTRAINT = "a side of it does not satisfy the constraints of its alias"
    APART = "both sides were seen, but further apart than a window"
    SPENT = "both sides were seen, but one of the events was spent on another pair"
    UNTRUE = "its sides were seen, but the condition was not true"
    FIRST = "what should have come first did not occur"
    SECOND = "what should have followed did not occur"
    ORDER = "both occurred, but not one after the other in time"
    BROKEN = "what should have been absent occurred"


@dataclass(frozen=True, slots=True)
class Lack:
    """What a literal lacked.

    ``occurrence`` is the nearest one of it, or of the part of it that spoilt the rest; ``seen`` are the nearest
    observations where the condition was not true; ``alias`` and ``identity`` whom it is about; ``apart`` is by how much
    a time was missed.
    """

    literal: Literal
    why: Why
    relation: Relation | None = None
    occurrence: Occurrence | None = None
    seen: tuple[Observation, ...] = ()
    alias: str = ""
    identity: str = ""
    apart: int = 0


def lacking(happened: Happened, literal: Literal, beside: Iterable[Met], bindings: Bindings, at: int) -> Lack:
    """Why a positive literal was not met by something that fits these bindings, near that time."""
    beside = tuple(beside)
    occurrences = happened.positive(literal)
    fitting = [each for each in occurrences if agree(each.bindings, bindings)]
    if fitting:
        nearest = min(fitting, key=lambda each: abs(_time(each, at) - at))
        met = Met(literal, nearest)
        alone = consistent(happened.policy, (*_without_parts(beside), met))
        if alone and not consistent(happened.policy, (*beside, met)):
            return Lack(literal, Why.OTHER_OCCURRENCE, occurrence=nearest)
        return Lack(literal, Why.OTHER_TIME, occurrence=nearest, apart=abs(_time(nearest, at) - at))
    if isinstance(literal, Then):
        return _lacking_in_sequence(happened, literal, bindings, at)
    return _lacking_in_relation(happened, literal, literal.relation, bindings, at)


def _without_parts(beside: Iterable[Met]) -> Iterable[Met]:
    for met in beside:
        yield Met(met.literal, Occurrence(met.occurrence.bindings, met.occurrence.time))


def _time(occurrence: Occurrence, otherwise: int) -> int:
    return otherwise if occurrence.time is None else occurrence.time


def _lacking_in_sequence(happened: Happened, then: Then, bindings: Bindings, at: int) -> Lack:
    first, second = (
        [] if part.negated else [each for each in happened.picked(part.relation) if agree(each.bindings, bindings)]
        for part in (then.first, then.second)
    )
    if not then.first.negated and not first:
        below = _lacking_in_relation(happened, then, then.first.relation, bindings, at)
        return below if below.why is not Why.UNTRUE else _nearest(below, Why.FIRST)
    if not then.second.negated and not second:
        below = _lacking_in_relation(happened, then, then.second.relation, bindings, at)
        return below if below.why is not Why.UNTRUE else _nearest(below, Why.SECOND)
    if then.first.negated or then.second.negated:
        there = min(first or second, key=lambda each: abs(_time(each, at) - at))
        return _broken(happened, then, _alone(then, _time(there, at)), there.bindings)
    one, other = min(
        ((one, other) for one in first for other in second),
        key=lambda pair: (
            not agree(pair[0].bindings, pair[1].bindings),
            not _in_order(then, _time(pair[0], at), _time(pair[1], at)),
            abs(_time(pair[0], at) - _time(pair[1], at)),
        ),
    )
    start, end = _time(one, at), _time(other, at)
    if _in_order(then, start, end) and agree(one.bindings, other.bindings):
        return _broken(happened, then, _between(then, start, end), {**one.bindings, **other.bindings})
    return Lack(then, Why.ORDER, occurrence=other, apart=end - start)


def _in_order(then: Then, start: int, end: int) -> bool:
    return start + then.gaps < end <= start + then.within


Spans = Iterable[tuple[Relation, int, int]]
"""What should have been absent, from when to when."""


def _alone(then: Then, time: int) -> Spans:
    """Of a sequence one side of which is to be absent, the other having been at that time."""
    gaps = [(gap.absent.relation, gap.within) for gap in then.between]
    if then.second.negated:
        for relation, within in [*gaps, (then.second.relation, then.within)]:
            yield relation, time + 1, time + within
            time += within
    else:
        for relation, within in reversed([(then.first.relation, then.within), *gaps]):
            yield relation, time - within, time - 1
            time -= within


def _between(then: Then, start: int, end: int) -> Spans:
    for gap in then.between:
        yield gap.absent.relation, start + 1, start + gap.within if gap.within else end - 1
        start += gap.within


def _broken(happened: Happened, then: Then, spans: Spans, bindings: Bindings) -> Lack:
    """What came although it should have been absent."""
    spans = tuple(spans)
    for relation, start, end in spans:
        if (occurrence := next(happened.between(relation, start, end, bindings), None)) is not None:
            return Lack(then, Why.BROKEN, relation=relation, occurrence=occurrence)
    return Lack(then, Why.BROKEN, relation=spans[-1][0])


def _nearest(lack: Lack, why: Why) -> Lack:
    return Lack(lack.literal, why, relation=lack.relation, seen=lack.seen, alias=lack.alias, identity=lack.identity)


def _lacking_in_relation(happened: Happened, literal: Literal, relation: Relation, bindings: Bindings, at: int) -> Lack:
    if any(agree(each.bindings, bindings) for each in happened.any(relation)):
        return Lack(literal, Why.SPENT, relation=relation)
    for side in relation.sides:
        if relation.kind is Kind.CONSTRAINT and side.is_identity and side.alias in bindings:
            continue  # whoever is named need not be known
        why = _lacking_in_side(happened, side, bindings.get(side.alias))
        if why is not None:
            return Lack(literal, why, relation=relation, alias=side.alias, identity=bindings.get(side.alias, ""))
    others = [
        each for each in happened.picked(relation) if each.time is None or abs(each.time - at) <= _reach(happened)
    ]
    conflicting = [(alias, each) for each in others for alias in each.bindings if _conflict(each, bindings, alias)]
    if conflicting:
        fewest = min(conflicting, key=lambda each: sum(_conflict(each[1], bindings, a) for a in each[1].bindings))
        alias, occurrence = fewest
        identity = bindings[alias]
        return Lack(
            literal, Why.OTHER_IDENTITY, relation=relation, occurrence=occurrence, alias=alias, identity=identity
        )
    seen = tuple(
        min(found, key=lambda each: abs(each.time - at))
        for side in relation.sides
        if side.event and (found := _observed(happened, side, bindings.get(side.alias)))
    )
    if relation.kind is Kind.CORRELATION and abs(seen[0].time - seen[1].time) > happened.policy.window:
        return Lack(literal, Why.APART, relation=relation, seen=seen, apart=abs(seen[0].time - seen[1].time))
    return Lack(literal, Why.UNTRUE, relation=relation, seen=seen)


def _reach(happened: Happened) -> int:
    return 2 * happened.policy.window


def _conflict(occurrence: Occurrence, bindings: Bindings, alias: str) -> bool:
    return occurrence.bindings[alias] != bindings.get(alias, occurrence.bindings[alias])


def _observed(happened: Happened, side: Side, identity: str | None) -> list[Observation]:
    return [each for each, _ in happened.observed(side) if identity is None or each.identity == identity]


def _lacking_in_side(happened: Happened, side: Side, identity: str | None) -> Why | None:
    """Why nobody, or not this identity, could stand on a side; None if somebody could."""
    alias = happened.policy.alias(side.alias)
    instances = known(happened.ontology, happened.instances, alias.concept)
    if side.event:
        if _observed(happened, side, identity):
            return None
        concept = happened.ontology.concepts[alias.concept]
        said = [
            each.identity
            for each in happened.observations
            if each.attribute == side.event and each.concept in (concept.members or (concept.name,))
        ]
        return Why.CONSTRAINT if (said if identity is None else identity in said) else Why.UNSEEN
    candidates = instances if identity is None else {identity} & instances.keys()
    if not candidates:
        return Why.UNKNOWN
    return None if any(holds(alias.constraint, {IT: instances[each]}) for each in candidates) else Why.CONSTRAINT
