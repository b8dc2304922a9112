"""Why a policy detected something, and why it did not, found out by the reference implementation of detection.

`explain_lack` says what a single literal lacked. `explain_detection` shows how every condition of a detection was met;
`explain_miss` finds the nearest thing to a match, the conditions that failed in it, and what their literals lacked. The
text for people is `situ.explain.match_report`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import assert_never

from situ.policies.model import (
    IT,
    Absence,
    Cause,
    ConditionLiteral,
    ConditionPart,
    Detection,
    Disjunction,
    Observation,
    Relation,
    RelationKind,
    RelationLiteral,
    SequenceLiteral,
    Side,
    is_negative,
    literals_of,
)
from situ.policies.reference import (
    Bindings,
    HeldAbsence,
    MetLiteral,
    Occurrence,
    OccurrenceSet,
    PolicyMatch,
    against,
    bindings_agree,
    consistent,
    detection_of,
    holds,
    known_instances,
    matches,
    occurrences_of,
    refutation,
    supported,
)

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a literal lacked, to be met beside what the other clauses were met by: the nearest occurrence of it, and in which
# respect it did not fit; if it did not occur at all, which of its sides was not seen, did not satisfy its constraints,
# or made the condition untrue.


class LackReason(Enum):
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

    literal: ConditionLiteral
    why: LackReason
    relation: Relation | None = None
    occurrence: Occurrence | None = None
    seen: tuple[Observation, ...] = ()
    alias: str = ""
    identity: str = ""
    apart: int = 0


def explain_lack(
    happened: OccurrenceSet, literal: ConditionLiteral, beside: Iterable[MetLiteral], bindings: Bindings, at: int
) -> Lack:
    """Why a positive literal was not met by something that fits these bindings, near that time."""
    beside = tuple(beside)
    occurrences = happened.positive(literal)
    fitting = [each for each in occurrences if bindings_agree(each.bindings, bindings)]
    if fitting:
        nearest = min(fitting, key=lambda each: abs(_time(each, at) - at))
        met = MetLiteral(literal, nearest)
        alone = consistent(happened.policy, (*_without_parts(beside), met))
        if alone and not consistent(happened.policy, (*beside, met)):
            return Lack(literal, LackReason.OTHER_OCCURRENCE, occurrence=nearest)
        return Lack(literal, LackReason.OTHER_TIME, occurrence=nearest, apart=abs(_time(nearest, at) - at))
    if isinstance(literal, SequenceLiteral):
        return _lacking_in_sequence(happened, literal, bindings, at)
    return _lacking_in_relation(happened, literal, literal.relation, bindings, at)


def _without_parts(beside: Iterable[MetLiteral]) -> Iterable[MetLiteral]:
    for met in beside:
        yield MetLiteral(met.literal, Occurrence(met.occurrence.bindings, met.occurrence.time))


def _time(occurrence: Occurrence, otherwise: int) -> int:
    return otherwise if occurrence.time is None else occurrence.time


def _lacking_in_sequence(happened: OccurrenceSet, then: SequenceLiteral, bindings: Bindings, at: int) -> Lack:
    first, second = (
        []
        if part.negated
        else [each for each in happened.picked(part.relation) if bindings_agree(each.bindings, bindings)]
        for part in (then.first, then.second)
    )
    if not then.first.negated and not first:
        below = _lacking_in_relation(happened, then, then.first.relation, bindings, at)
        return below if below.why is not LackReason.UNTRUE else _nearest(below, LackReason.FIRST)
    if not then.second.negated and not second:
        below = _lacking_in_relation(happened, then, then.second.relation, bindings, at)
        return below if below.why is not LackReason.UNTRUE else _nearest(below, LackReason.SECOND)
    if then.first.negated or then.second.negated:
        there = min(first or second, key=lambda each: abs(_time(each, at) - at))
        return _broken(happened, then, _alone(then, _time(there, at)), there.bindings)
    one, other = min(
        ((one, other) for one in first for other in second),
        key=lambda pair: (
            not bindings_agree(pair[0].bindings, pair[1].bindings),
            not _in_order(then, _time(pair[0], at), _time(pair[1], at)),
            abs(_time(pair[0], at) - _time(pair[1], at)),
        ),
    )
    start, end = _time(one, at), _time(other, at)
    if _in_order(then, start, end) and bindings_agree(one.bindings, other.bindings):
        return _broken(happened, then, _between(then, start, end), {**one.bindings, **other.bindings})
    return Lack(then, LackReason.ORDER, occurrence=other, apart=end - start)


def _in_order(then: SequenceLiteral, start: int, end: int) -> bool:
    return start + then.gaps < end <= start + then.within


Spans = Iterable[tuple[Relation, int, int]]
"""What should have been absent, from when to when."""


def _alone(then: SequenceLiteral, time: int) -> Spans:
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


def _between(then: SequenceLiteral, start: int, end: int) -> Spans:
    for gap in then.between:
        yield gap.absent.relation, start + 1, start + gap.within if gap.within else end - 1
        start += gap.within


def _broken(happened: OccurrenceSet, then: SequenceLiteral, spans: Spans, bindings: Bindings) -> Lack:
    """What came although it should have been absent."""
    spans = tuple(spans)
    for relation, start, end in spans:
        if (occurrence := next(happened.between(relation, start, end, bindings), None)) is not None:
            return Lack(then, LackReason.BROKEN, relation=relation, occurrence=occurrence)
    return Lack(then, LackReason.BROKEN, relation=spans[-1][0])


def _nearest(lack: Lack, why: LackReason) -> Lack:
    return Lack(lack.literal, why, relation=lack.relation, seen=lack.seen, alias=lack.alias, identity=lack.identity)


def _lacking_in_relation(
    happened: OccurrenceSet, literal: ConditionLiteral, relation: Relation, bindings: Bindings, at: int
) -> Lack:
    if any(bindings_agree(each.bindings, bindings) for each in happened.any(relation)):
        return Lack(literal, LackReason.SPENT, relation=relation)
    for side in relation.sides:
        if relation.kind is RelationKind.CONSTRAINT and side.is_identity and side.alias in bindings:
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
            literal, LackReason.OTHER_IDENTITY, relation=relation, occurrence=occurrence, alias=alias, identity=identity
        )
    seen = tuple(
        min(found, key=lambda each: abs(each.time - at))
        for side in relation.sides
        if side.event and (found := _observed(happened, side, bindings.get(side.alias)))
    )
    if relation.kind is RelationKind.CORRELATION and abs(seen[0].time - seen[1].time) > happened.policy.window:
        return Lack(literal, LackReason.APART, relation=relation, seen=seen, apart=abs(seen[0].time - seen[1].time))
    return Lack(literal, LackReason.UNTRUE, relation=relation, seen=seen)


def _reach(happened: OccurrenceSet) -> int:
    return 2 * happened.policy.window


def _conflict(occurrence: Occurrence, bindings: Bindings, alias: str) -> bool:
    return occurrence.bindings[alias] != bindings.get(alias, occurrence.bindings[alias])


def _observed(happened: OccurrenceSet, side: Side, identity: str | None) -> list[Observation]:
    return [each for each, _ in happened.observed(side) if identity is None or each.identity == identity]


def _lacking_in_side(happened: OccurrenceSet, side: Side, identity: str | None) -> LackReason | None:
    """Why nobody, or not this identity, could stand on a side; None if somebody could."""
    alias = happened.policy.alias(side.alias)
    instances = known_instances(happened.ontology, happened.instances, alias.concept)
    if side.event:
        if _observed(happened, side, identity):
            return None
        concept = happened.ontology.concepts[alias.concept]
        said = [
            each.identity
            for each in happened.observations
            if each.attribute == side.event and each.concept in (concept.members or (concept.name,))
        ]
        return LackReason.CONSTRAINT if (said if identity is None else identity in said) else LackReason.UNSEEN
    candidates = instances if identity is None else {identity} & instances.keys()
    if not candidates:
        return LackReason.UNKNOWN
    return None if any(holds(alias.constraint, {IT: instances[each]}) for each in candidates) else LackReason.CONSTRAINT


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Detections and misses. What was detected is not decided by the reference, but by facts: what was told, how far the
# policy has decided, and which events it did not look at, because they were late, hidden from it or dead letters.

_MOST_ATTEMPTS = 20_000
"""How many combinations are looked at to find the nearest one."""


@dataclass(frozen=True, slots=True)
class ExplainedAbsence:
    """A negative literal that held: in which time nothing was to refute it, and what came close.

    What came close refutes this literal, but not together with the others that are judged with it.
    """

    literal: ConditionLiteral
    start: int
    end: int
    close: tuple[Occurrence, ...]


@dataclass(frozen=True, slots=True)
class ExplainedCondition:
    """How a condition was met: by occurrences of literals, and by what was absent; of an ``or``, of one branch."""

    part: ConditionPart
    met: tuple[MetLiteral, ...] = ()
    absent: tuple[ExplainedAbsence, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainedDetection:
    """A detection, what its events said, and how each condition was met."""

    detection: Detection
    said: Mapping[Cause, tuple[Observation, ...]]
    conditions: tuple[ExplainedCondition, ...]


@dataclass(frozen=True, slots=True)
class FailedCondition:
    """A condition that was not met: a counterexample, one occurrence a negative literal, and what its others lacked."""

    place: int
    part: ConditionPart
    refuted: tuple[tuple[ConditionLiteral, Occurrence], ...] = ()
    lacks: tuple[Lack, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedDetection:
    """A detection as it was told, or would be."""

    id: str
    bindings: tuple[tuple[str, str], ...]
    time: int


class UnreadReason(Enum):
    """Why a policy did not look at an event."""

    LATE = "late"
    HIDDEN = "hidden"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadEvent:
    """An event that a policy did not look at: what it would have said, or for a dead letter what is wrong with it."""

    why: UnreadReason
    cause: Cause
    time: int
    said: Observation | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionFacts:
    """What came of detection itself. ``told`` is all that the policy told in the time that counts."""

    told: tuple[ReportedDetection, ...] = ()
    settled: int | None = None
    """How far the policy has decided; None: that is not known, or nothing is."""
    decides: bool = True
    """Whether it is known how far it has decided."""
    waits_for: str = ""
    suspended: bool = False
    unread: tuple[UnreadEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainedMiss:
    """What was asked for, and the nearest thing to it.

    ``detected`` is what was detected after all; then nothing has failed. What is ``undecided`` would be detected if
    nothing more came; what is ``untold`` would have been by the policy and the tables as they are now, and was not.
    ``met`` has the conditions that were met, by their places. Without an ``activation`` nothing is said of those that
    are only about what is absent.
    """

    bindings: Bindings
    at: int
    detected: tuple[ReportedDetection, ...] = ()
    nearest: Bindings = field(default_factory=dict)
    activation: int | None = None
    met: Mapping[int, ExplainedCondition] = field(default_factory=dict)
    failed: tuple[FailedCondition, ...] = ()
    undecided: tuple[ReportedDetection, ...] = ()
    untold: tuple[ReportedDetection, ...] = ()
    facts: DetectionFacts = field(default_factory=DetectionFacts)


@dataclass(frozen=True, slots=True)
class MissingLiteral:
    """A literal that is to happen and for which nothing fits."""

    literal: ConditionLiteral


Item = MetLiteral | HeldAbsence | MissingLiteral
Attempt = tuple[Item, ...]
"""What conditions could be met by."""


def explain_detection(happened: OccurrenceSet, id: str) -> ExplainedDetection | None:
    """Why there is the detection with this id, or with this as the beginning of its id; None if there is none."""
    found: list[tuple[Detection, PolicyMatch]] = []
    for match in matches(happened):
        detection = detection_of(happened.policy, match)
        if detection.id.startswith(id):
            found.append((detection, match))
    if not found:
        return None
    detection, match = min(found, key=lambda each: (each[0].time, each[0].activation))
    return ExplainedDetection(detection, _said(happened, detection.causes), _explained(happened, match))


def _said(happened: OccurrenceSet, causes: Iterable[Cause]) -> dict[Cause, tuple[Observation, ...]]:
    return {cause: tuple(each for each in happened.observations if each.cause == cause) for cause in causes}


def _explained(happened: OccurrenceSet, match: PolicyMatch) -> tuple[ExplainedCondition, ...]:
    return tuple(
        _of_part(happened, part, _items(part, match.way), match.bindings, match.activation)
        for part in happened.policy.conditions
    )


def _items(part: ConditionPart, way: Iterable[Item]) -> tuple[Item, ...]:
    """What was chosen for a condition."""
    own = set(literals_of((part,)))
    found: dict[Absence | ConditionLiteral, Item] = {}
    for each in way:
        about = each.absence if isinstance(each, HeldAbsence) else each.literal
        if (about.literals[0] if isinstance(about, Absence) else about) in own:
            found.setdefault(about, each)
    return tuple(found.values())


def _of_part(
    happened: OccurrenceSet, part: ConditionPart, items: Iterable[Item], bindings: Bindings, activation: int | None
) -> ExplainedCondition:
    window = happened.policy.window
    absent = [
        ExplainedAbsence(
            literal,
            activation - window if isinstance(literal, RelationLiteral) else activation,
            activation + (window if isinstance(literal, RelationLiteral) else literal.within),
            tuple(against(happened, literal, bindings, activation)),
        )
        for each in items
        if isinstance(each, HeldAbsence) and activation is not None
        for literal in each.absence.literals
    ]
    return ExplainedCondition(part, tuple(each for each in items if isinstance(each, MetLiteral)), tuple(absent))


# ── misses ──


def explain_miss(
    happened: OccurrenceSet, bindings: Bindings, at: int, facts: DetectionFacts | None = None
) -> ExplainedMiss:
    """Why these identities were not detected around that time, or what was detected.

    ``happened`` is what the policy looked at. Without ``facts`` what the reference finds counts as detected.
    """
    policy = happened.policy
    reports = {
        detection.id: ReportedDetection(id=detection.id, bindings=detection.bindings, time=detection.time)
        for match in matches(happened)
        if bindings_agree(bindings, match.bindings) and _near(happened, match.activation, at)
        for detection in [detection_of(policy, match)]
    }
    meant = tuple(sorted(reports.values(), key=lambda each: each.time))
    if facts is None:
        facts = DetectionFacts(told=meant)
    told = tuple(
        each
        for each in facts.told
        if bindings_agree(bindings, dict(each.bindings)) and _told_near(happened, each.time, at)
    )
    if told:
        return ExplainedMiss(bindings, at, told, facts=facts)
    if meant:
        undecided = tuple(each for each in meant if _is_undecided(each, facts))
        untold = tuple(each for each in meant if each not in undecided)
        return ExplainedMiss(bindings, at, undecided=undecided, untold=untold, facts=facts)
    attempts = islice(_attempts(happened, policy.conditions, bindings, at), _MOST_ATTEMPTS)
    attempt = min(attempts, key=lambda each: _distance(happened, each, at))
    nearest, activation = _bindings(attempt), _activation(attempt)
    met: dict[int, ExplainedCondition] = {}
    failed: list[FailedCondition] = []
    for place, part in enumerate(policy.conditions):
        items = _items(part, attempt)
        if activation is None and all(isinstance(each, HeldAbsence) for each in items):
            continue
        if any(_fails(happened, each, nearest, activation) for each in items):
            failed.append(_failed(happened, place, part, attempt, bindings, activation, at))
        else:
            met[place] = _of_part(happened, part, items, nearest, activation)
    return ExplainedMiss(bindings, at, (), {**bindings, **nearest}, activation, met, tuple(failed), facts=facts)


def _is_undecided(report: ReportedDetection, facts: DetectionFacts) -> bool:
    return facts.decides and not facts.suspended and (facts.settled is None or report.time >= facts.settled)


def _told_near(happened: OccurrenceSet, time: int, at: int) -> bool:
    """The same of when it was told: up to a window after its activation."""
    return at - 2 * happened.policy.window <= time <= at + 2 * happened.policy.window


def _near(happened: OccurrenceSet, activation: int, at: int) -> bool:
    """Whether somebody who asks about that time may mean what was activated then: it is reported later, if at all."""
    return at - 2 * happened.policy.window <= activation <= at + happened.policy.window


def _attempts(
    happened: OccurrenceSet, conditions: tuple[ConditionPart, ...], bindings: Bindings, at: int, attempt: Attempt = ()
) -> Iterator[Attempt]:
    """Ways to meet conditions near that time, with gaps where there is nothing that fits."""
    if not conditions:
        if supported(occurrences_of(_picked(attempt))):
            yield attempt
        return
    part, *others = conditions
    rest = tuple(others)
    match part:
        case Absence():
            yield from _attempts(happened, rest, bindings, at, (*attempt, HeldAbsence(part)))
        case Disjunction(branches=branches, absent=absent):
            for branch in branches:
                yield from _attempts(happened, (*branch, *rest), bindings, at, attempt)
            if absent:
                held = tuple(HeldAbsence(each, part) for each in absent)
                yield from _attempts(happened, rest, bindings, at, (*attempt, *held))
        case RelationLiteral() | SequenceLiteral():
            picked = [each for each in attempt if isinstance(each, MetLiteral)]
            for occurrence in happened.positive(part):
                if occurrence.time is not None and not _near(happened, occurrence.time, at):
                    continue
                met = MetLiteral(part, occurrence)
                if bindings_agree(bindings, occurrence.bindings) and consistent(happened.policy, (*picked, met)):
                    yield from _attempts(happened, rest, bindings, at, (*attempt, met))
            yield from _attempts(happened, rest, bindings, at, (*attempt, MissingLiteral(part)))
        case _:
            assert_never(part)


def _distance(happened: OccurrenceSet, attempt: Attempt, at: int) -> tuple[int, int]:
    """How far it is from a match: what failed, then time."""
    activation = _activation(attempt)
    if activation is None:
        return len(attempt) + len(happened.policy.conditions), 0
    bindings = _bindings(attempt)
    return sum(_fails(happened, each, bindings, activation) for each in attempt), abs(activation - at)


def _fails(happened: OccurrenceSet, item: Item, bindings: Bindings, activation: int | None) -> bool:
    match item:
        case MissingLiteral():
            return True
        case HeldAbsence(absence=absence):
            return activation is None or refutation(happened, absence.literals, bindings, activation) is not None
        case MetLiteral():
            return False
        case _:
            assert_never(item)


def _picked(attempt: Attempt) -> tuple[MetLiteral, ...]:
    return tuple(each for each in attempt if isinstance(each, MetLiteral))


def _activation(attempt: Attempt) -> int | None:
    return max((each.time for each in occurrences_of(_picked(attempt)) if each.time is not None), default=None)


def _bindings(attempt: Attempt) -> dict[str, str]:
    """Of an attempt itself: who is asked about does not limit what refutes it."""
    found: dict[str, str] = {}
    for occurrence in occurrences_of(_picked(attempt)):
        found.update(occurrence.bindings)
    return found


def _failed(
    happened: OccurrenceSet,
    place: int,
    part: ConditionPart,
    attempt: Attempt,
    asked: Bindings,
    activation: int | None,
    at: int,
) -> FailedCondition:
    """Of an ``or``, what is the matter with each of its branches."""
    bindings, beside = _bindings(attempt), _picked(attempt)
    picked = {each.literal for each in beside}
    refuted: dict[tuple[ConditionLiteral, int], tuple[ConditionLiteral, Occurrence]] = {}
    for absence in _absences(part) if activation is not None else ():
        counter = refutation(happened, absence.literals, bindings, activation or 0)
        for literal, occurrence in zip(absence.literals, counter or (), strict=False):
            refuted.setdefault((literal, id(occurrence)), (literal, occurrence))
    lacking_ones = [each for each in literals_of((part,)) if not is_negative(each) and each not in picked]
    when = at if activation is None else activation
    return FailedCondition(
        place,
        part,
        tuple(refuted.values()),
        tuple(
            explain_lack(happened, each, beside, {**asked, **bindings}, when) for each in dict.fromkeys(lacking_ones)
        ),
    )


def _absences(part: ConditionPart) -> Iterator[Absence]:
    match part:
        case Absence():
            yield part
        case Disjunction(branches=branches, absent=absent):
            for branch in branches:
                for each in branch:
                    yield from _absences(each)
            yield from absent
        case RelationLiteral() | SequenceLiteral():
            pass
