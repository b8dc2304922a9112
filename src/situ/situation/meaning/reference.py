"""What a policy means: the slow, obvious semantics that every engine must equal.

A *match* meets all conditions: of each ``or`` one branch is chosen; of everything that is to happen an occurrence is
picked; and what is to be absent holds because it cannot be refuted. Every choice and every combination of occurrences
is tried. :mod:`situ.situation.meaning.occurrences` says what occurred.

Two places where the time of a report is more than the latest occurrence:

- What is absent can be judged only when nothing more can refute it: a window after the activation, or as long as its
  own sequence looks ahead.
- If it is one branch of an ``or`` beside others, one of these may still be met until a window after the activation, and
  would then be the one that is chosen. So it is never judged before that, however short its sequences are.

What is reported before some instant therefore depends on events before that instant only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import assert_never

from situ.situation.domain.ontology import Ontology
from situ.situation.meaning.detection import Cause, Detection, Instances, Observation, in_order
from situ.situation.meaning.occurrences import Bindings, Happened, Occurrence, agree, supported
from situ.situation.policies.policy import Absence, Choice, Is, Literal, Part, Policy, Then

NOTHING_KEPT: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Met:
    """A literal that is to happen, and the occurrence that was picked for it."""

    literal: Literal
    occurrence: Occurrence


@dataclass(frozen=True, slots=True)
class Held:
    """What is to be absent; ``choice`` is the ``or`` it was chosen in, if other branches have something to happen."""

    absence: Absence
    choice: Choice | None = None


Way = tuple[Met | Held, ...]
"""How conditions are met: for each ``or`` by the parts of one branch."""


@dataclass(frozen=True, slots=True)
class Match:
    """One way to meet all conditions of a policy."""

    way: Way
    bindings: Bindings
    causes: frozenset[Cause]
    activation: int
    time: int


def detect(
    policy: Policy,
    ontology: Ontology,
    observations: Iterable[Observation],
    instances: Instances,
    *,
    keep: Mapping[str, int] = NOTHING_KEPT,
    until: int | None = None,
) -> list[Detection]:
    """All detections that are reported before ``until``, in the order they are; None: all that there are."""
    found: dict[str, Detection] = {}
    for match in matches(Happened(policy, ontology, observations, instances, keep)):
        detection = detection_of(policy, match)
        first = found.setdefault(detection.id, detection)
        if (detection.time, detection.activation) < (first.time, first.activation):
            found[detection.id] = detection
    return in_order(each for each in found.values() if until is None or each.time < until)


def detection_of(policy: Policy, match: Match) -> Detection:
    """What is reported of a match. Several matches may give the same detection."""
    return Detection(
        policy=policy.name,
        bindings=tuple(sorted(match.bindings.items())),
        causes=tuple(sorted(match.causes)),
        time=match.time,
        activation=match.activation,
    )


def matches(happened: Happened) -> Iterator[Match]:
    """Every way to meet all conditions."""
    policy = happened.policy
    for way in ways(happened, policy.conditions):
        picked = occurrences_of(way)
        times = [each.time for each in picked if each.time is not None]
        if not times or not supported(picked):
            continue
        bindings = {alias: identity for each in picked for alias, identity in each.bindings.items()}
        held = [each for each in way if isinstance(each, Held)]
        if any(each.choice is not None and could_be_picked(happened, each.choice, way) for each in held):
            continue
        if any(refutation(happened, each.absence.literals, bindings, max(times)) is not None for each in held):
            continue
        causes = frozenset(cause for each in picked for cause in each.causes)
        wait = max((wait_for(policy, each) for each in held), default=0)
        yield Match(way, bindings, causes, max(times), max(times) + wait)


def ways(happened: Happened, conditions: tuple[Part, ...], way: Way = ()) -> Iterator[Way]:
    """Every choice of branches and combination of occurrences that can stand beside each other."""
    if not conditions:
        yield way
        return
    part, *others = conditions
    rest = tuple(others)
    match part:
        case Absence():
            yield from ways(happened, rest, (*way, Held(part)))
        case Choice(branches=branches, absent=absent):
            for branch in branches:
                yield from ways(happened, (*branch, *rest), way)
            if absent:
                yield from ways(happened, rest, (*way, *(Held(each, part) for each in absent)))
        case Is() | Then():
            for occurrence in happened.positive(part):
                met = Met(part, occurrence)
                if consistent(happened.policy, (*way, met)):
                    yield from ways(happened, rest, (*way, met))
        case _:
            assert_never(part)


def occurrences_of(way: Iterable[Met | Held]) -> list[Occurrence]:
    return [each.occurrence for each in way if isinstance(each, Met)]


def consistent(policy: Policy, way: Iterable[Met | Held]) -> bool:
    """Whether bindings agree, all is inside a window, and what is written once is one occurrence."""
    bindings: dict[str, str] = {}
    times: list[int] = []
    steps: dict[Is, Occurrence] = {}
    for occurrence in occurrences_of(way):
        if not agree(occurrence.bindings, bindings):
            return False
        bindings.update(occurrence.bindings)
        if occurrence.time is not None:
            times.append(occurrence.time)
        if any(steps.setdefault(step, part) != part for step, part in occurrence.parts):
            return False
    return not times or max(times) - min(times) <= policy.window


def could_be_picked(happened: Happened, choice: Choice, way: Way) -> bool:
    """Whether a branch of an ``or`` could be met by what happened alone, beside what the rest is met by."""
    return any(
        supported(occurrences_of(longer)) and not any(isinstance(each, Held) for each in longer[len(way) :])
        for branch in choice.branches
        for longer in ways(happened, branch, way)
    )


def refutation(
    happened: Happened, literals: tuple[Literal, ...], bindings: Bindings, activation: int
) -> tuple[Occurrence, ...] | None:
    """A counterexample: an occurrence against each of these literals, all agreeing; None if there is none."""
    found = counterexamples(happened, literals, bindings, activation)
    return next((each for each in found if supported(each, bindings)), None)


def counterexamples(
    happened: Happened, literals: tuple[Literal, ...], bindings: Bindings, activation: int
) -> Iterator[tuple[Occurrence, ...]]:
    if not literals:
        yield ()
        return
    for occurrence in against(happened, literals[0], bindings, activation):
        more = {**bindings, **occurrence.bindings}
        for rest in counterexamples(happened, literals[1:], more, activation):
            yield (occurrence, *rest)


def against(happened: Happened, literal: Literal, bindings: Bindings, activation: int) -> Iterator[Occurrence]:
    """What refutes a negative literal for a match with these bindings that was activated then."""
    window = happened.policy.window
    if isinstance(literal, Is):
        yield from happened.between(literal.relation, activation - window, activation + window, bindings)
    else:
        for side in (literal.first, literal.second):
            yield from happened.between(side.relation, activation, activation + literal.within, bindings)


def wait_for(policy: Policy, held: Held) -> int:
    """How long after the activation it is settled that something is absent."""
    ahead = [each.within if isinstance(each, Then) else policy.window for each in held.absence.literals]
    return max(*ahead, policy.window) if held.choice is not None else max(ahead)
