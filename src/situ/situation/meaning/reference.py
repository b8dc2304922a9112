"""What a policy means: the slow, obvious semantics that every engine must equal.

A *match* meets every clause: by an occurrence of one of its positive literals, or because its negative literals cannot
all be refuted at once. Every combination of occurrences is tried. :mod:`situ.situation.meaning.occurrences` says what
occurred.

Two places where the time of a report is more than the latest occurrence:

- A clause held by what is absent can be judged only when nothing more can refute it: a window after the activation, or
  as long as its own sequence looks ahead.
- If such a clause has positive literals as well, one of them may still be met until a window after the activation, and
  would then be the way the clause is met. So it is never judged before that, however short its sequences are.

What is reported before some instant therefore depends on events before that instant only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from situ.situation.domain.ontology import Ontology
from situ.situation.meaning.detection import Cause, Detection, Instances, Observation, in_order
from situ.situation.meaning.occurrences import Bindings, Happened, Occurrence, agree
from situ.situation.policies.policy import Clause, Is, Literal, Policy, Relation, Then

NOTHING_KEPT: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Met:
    """How a clause was met: by an occurrence of a literal, or, without either, by what did not happen."""

    literal: Literal | None = None
    occurrence: Occurrence | None = None


HELD = Met()


@dataclass(frozen=True, slots=True)
class Match:
    """One way to meet all clauses of a policy, a :class:`Met` for each."""

    clauses: tuple[Met, ...]
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
    """Every way to meet all clauses."""
    policy = happened.policy
    for chosen in choices(happened, policy.clauses, ()):
        picked = [met.occurrence for met in chosen if met.occurrence is not None]
        times = [each.time for each in picked if each.time is not None]
        if not times:
            continue
        bindings = {alias: identity for each in picked for alias, identity in each.bindings.items()}
        held = [clause for clause, met in zip(policy.clauses, chosen, strict=True) if met is HELD]
        if any(could_be_picked(happened, clause, chosen) for clause in held):
            continue
        if any(refutation(happened, negative(clause), bindings, max(times)) is not None for clause in held):
            continue
        causes = frozenset(cause for each in picked for cause in each.causes)
        wait = max((_wait(policy, clause) for clause in held), default=0)
        yield Match(chosen, bindings, causes, max(times), max(times) + wait)


def choices(happened: Happened, clauses: tuple[Clause, ...], chosen: tuple[Met, ...]) -> Iterator[tuple[Met, ...]]:
    """Every combination of occurrences, one for each clause, that can stand beside each other."""
    if not clauses:
        yield chosen
        return
    for literal in positive(clauses[0]):
        for occurrence in happened.positive(literal):
            met = Met(literal, occurrence)
            if consistent(happened.policy, (*chosen, met)):
                yield from choices(happened, clauses[1:], (*chosen, met))
    if negative(clauses[0]):
        yield from choices(happened, clauses[1:], (*chosen, HELD))


def consistent(policy: Policy, chosen: Iterable[Met]) -> bool:
    """Whether bindings agree, all is inside a window, and sequences that share a relation share its occurrence."""
    bindings: dict[str, str] = {}
    times: list[int] = []
    shared: dict[Relation, set[tuple[int | None, frozenset[Cause]]]] = {}
    for met in chosen:
        if met.occurrence is None:
            continue
        if not agree(met.occurrence.bindings, bindings):
            return False
        bindings.update(met.occurrence.bindings)
        if met.occurrence.time is not None:
            times.append(met.occurrence.time)
        for relation, parts in _parts(met.occurrence).items():
            if shared.setdefault(relation, parts) != parts:
                return False
    return not times or max(times) - min(times) <= policy.window


def _parts(occurrence: Occurrence) -> dict[Relation, set[tuple[int | None, frozenset[Cause]]]]:
    """Which occurrences of each of its relations a sequence was made of."""
    found: dict[Relation, set[tuple[int | None, frozenset[Cause]]]] = {}
    for relation, part in occurrence.parts:
        found.setdefault(relation, set()).add((part.time, part.causes))
    return found


def could_be_picked(happened: Happened, clause: Clause, chosen: tuple[Met, ...]) -> bool:
    """Whether some positive literal of a clause could be met beside what the other clauses are met by."""
    return any(
        consistent(happened.policy, (*chosen, Met(literal, occurrence)))
        for literal in positive(clause)
        for occurrence in happened.positive(literal)
    )


def refutation(
    happened: Happened, literals: tuple[Literal, ...], bindings: Bindings, activation: int
) -> tuple[Occurrence, ...] | None:
    """A counterexample: an occurrence against each of these literals, all agreeing; None if there is none."""
    if not literals:
        return ()
    for occurrence in against(happened, literals[0], bindings, activation):
        rest = refutation(happened, literals[1:], {**bindings, **occurrence.bindings}, activation)
        if rest is not None:
            return (occurrence, *rest)
    return None


def against(happened: Happened, literal: Literal, bindings: Bindings, activation: int) -> Iterator[Occurrence]:
    """What refutes a negative literal for a match with these bindings that was activated then."""
    window = happened.policy.window
    if isinstance(literal, Is):
        yield from happened.between(literal.relation, activation - window, activation + window, bindings)
    else:
        for side in (literal.first, literal.second):
            yield from happened.between(side.relation, activation, activation + literal.within, bindings)


def is_negative(literal: Literal) -> bool:
    """Whether a literal says only what must be absent, and so never occurs itself."""
    return literal.negated if isinstance(literal, Is) else literal.first.negated and literal.second.negated


def positive(clause: Clause) -> tuple[Literal, ...]:
    return tuple(literal for literal in clause if not is_negative(literal))


def negative(clause: Clause) -> tuple[Literal, ...]:
    return tuple(literal for literal in clause if is_negative(literal))


def _wait(policy: Policy, clause: Clause) -> int:
    """How long after the activation a clause held by absence is settled."""
    ahead = [literal.within if isinstance(literal, Then) else policy.window for literal in negative(clause)]
    return max(*ahead, policy.window) if positive(clause) else max(ahead)
