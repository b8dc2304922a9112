"""Why a policy detected something, and why it did not, found out by the reference.

Of a detection: what each of its events said, and how every clause was met. Of a miss: the nearest thing to a match, the
clauses that failed in it, and for each of their literals what was lacking. Everything is data; how it reads is
:mod:`situ.situation.meaning.tell_match`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from situ.situation.meaning.detection import Cause, Detection, Observation
from situ.situation.meaning.explain_lack import Lack, lacking
from situ.situation.meaning.occurrences import Bindings, Happened, Occurrence, agree
from situ.situation.meaning.reference import (
    HELD,
    Match,
    Met,
    against,
    consistent,
    detection_of,
    matches,
    negative,
    positive,
    refutation,
)
from situ.situation.policies.policy import Clause, Is, Literal

_MOST_ATTEMPTS = 20_000
"""How many combinations are looked at to find the nearest one."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A negative literal of a clause that held: in which time nothing was to refute it, and what came close.

    What came close refutes this literal, but not together with the others of its clause.
    """

    literal: Literal
    start: int
    end: int
    close: tuple[Occurrence, ...]


@dataclass(frozen=True, slots=True)
class Explained:
    """How a clause was met: by an occurrence of a literal, or by what was absent."""

    clause: Clause
    literal: Literal | None = None
    occurrence: Occurrence | None = None
    absent: tuple[Absent, ...] = ()


@dataclass(frozen=True, slots=True)
class WhyDetected:
    """A detection, what its events said, and how each clause was met."""

    detection: Detection
    said: Mapping[Cause, tuple[Observation, ...]]
    clauses: tuple[Explained, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A clause that was not met: a counterexample, one occurrence a negative literal, or what its others lacked."""

    place: int
    clause: Clause
    refuted: tuple[tuple[Literal, Occurrence], ...] = ()
    lacks: tuple[Lack, ...] = ()


@dataclass(frozen=True, slots=True)
class WhyMissed:
    """What was asked for, and the nearest thing to it.

    ``detected`` is what was detected after all; then nothing has failed. ``met`` has the clauses that were met, by
    their places. Without an ``activation`` nothing is said of clauses that are only about what is absent.
    """

    bindings: Bindings
    at: int
    detected: tuple[Detection, ...] = ()
    nearest: Bindings = field(default_factory=dict)
    activation: int | None = None
    met: Mapping[int, Explained] = field(default_factory=dict)
    failed: tuple[Failed, ...] = ()


def explain_detection(happened: Happened, id: str) -> WhyDetected | None:
    """Why there is the detection with this id, or with this as the beginning of its id; None if there is none."""
    found: list[tuple[Detection, Match]] = []
    for match in matches(happened):
        detection = detection_of(happened.policy, match)
        if detection.id.startswith(id):
            found.append((detection, match))
    if not found:
        return None
    detection, match = min(found, key=lambda each: (each[0].time, each[0].activation))
    return WhyDetected(detection, _said(happened, detection.causes), _explained(happened, match))


def _said(happened: Happened, causes: Iterable[Cause]) -> dict[Cause, tuple[Observation, ...]]:
    return {cause: tuple(each for each in happened.observations if each.cause == cause) for cause in causes}


def _explained(happened: Happened, match: Match) -> tuple[Explained, ...]:
    return tuple(
        _held(happened, clause, match.bindings, match.activation)
        if met is HELD
        else Explained(clause, met.literal, met.occurrence)
        for clause, met in zip(happened.policy.clauses, match.clauses, strict=True)
    )


def _held(happened: Happened, clause: Clause, bindings: Bindings, activation: int) -> Explained:
    window = happened.policy.window
    return Explained(
        clause,
        absent=tuple(
            Absent(
                literal,
                activation - window if isinstance(literal, Is) else activation,
                activation + (window if isinstance(literal, Is) else literal.within),
                tuple(against(happened, literal, bindings, activation)),
            )
            for literal in negative(clause)
        ),
    )


# ── misses ──


def explain_miss(happened: Happened, bindings: Bindings, at: int) -> WhyMissed:
    """Why these identities were not detected around that time, or what was detected."""
    policy = happened.policy
    detected = {
        detection.id: detection
        for match in matches(happened)
        if agree(bindings, match.bindings) and _near(happened, match.activation, at)
        for detection in [detection_of(policy, match)]
    }
    if detected:
        return WhyMissed(bindings, at, tuple(sorted(detected.values(), key=lambda each: each.time)))
    attempts = islice(_attempts(happened, bindings, at), _MOST_ATTEMPTS)
    chosen = min(attempts, key=lambda each: _distance(happened, each, at))
    nearest, activation = _bindings(chosen), _activation(chosen)
    met: dict[int, Explained] = {}
    failed: list[Failed] = []
    for place, (clause, choice) in enumerate(zip(policy.clauses, chosen, strict=True)):
        if choice is not None and choice.occurrence is not None:
            met[place] = Explained(clause, choice.literal, choice.occurrence)
        elif choice is HELD and activation is not None and not _refuted(happened, clause, nearest, activation):
            met[place] = _held(happened, clause, nearest, activation)
        elif positive(clause) or activation is not None:
            failed.append(_failed(happened, place, clause, chosen, bindings, activation, at))
    return WhyMissed(bindings, at, (), {**bindings, **nearest}, activation, met, tuple(failed))


def _near(happened: Happened, activation: int, at: int) -> bool:
    """Whether somebody who asks about that time may mean what was activated then: it is reported later, if at all."""
    return at - 2 * happened.policy.window <= activation <= at + happened.policy.window


Attempt = tuple[Met | None, ...]
"""For each clause what it could be met by; None: nothing."""


def _attempts(happened: Happened, bindings: Bindings, at: int, chosen: Attempt = ()) -> Iterator[Attempt]:
    """Combinations of occurrences near that time, with gaps where clauses have none that fits."""
    clauses = happened.policy.clauses
    if len(chosen) == len(clauses):
        yield chosen
        return
    clause = clauses[len(chosen)]
    for literal in positive(clause):
        for occurrence in happened.positive(literal):
            if occurrence.time is not None and not _near(happened, occurrence.time, at):
                continue
            met = Met(literal, occurrence)
            if agree(bindings, occurrence.bindings) and consistent(happened.policy, (*filter(None, chosen), met)):
                yield from _attempts(happened, bindings, at, (*chosen, met))
    yield from _attempts(happened, bindings, at, (*chosen, HELD if negative(clause) else None))


def _distance(happened: Happened, chosen: Attempt, at: int) -> tuple[int, int]:
    """How far it is from a match: clauses that failed, then time."""
    activation = _activation(chosen)
    if activation is None:
        return len(chosen), 0
    bindings = _bindings(chosen)
    failed = sum(
        choice is None or (choice is HELD and _refuted(happened, clause, bindings, activation))
        for clause, choice in zip(happened.policy.clauses, chosen, strict=True)
    )
    return failed, abs(activation - at)


def _activation(chosen: Attempt) -> int | None:
    occurrences = [each.occurrence for each in chosen if each is not None and each.occurrence is not None]
    return max((each.time for each in occurrences if each.time is not None), default=None)


def _bindings(chosen: Attempt) -> dict[str, str]:
    """Of an attempt itself: who is asked about does not limit what refutes it."""
    found: dict[str, str] = {}
    for each in chosen:
        if each is not None and each.occurrence is not None:
            found.update(each.occurrence.bindings)
    return found


def _refuted(happened: Happened, clause: Clause, bindings: Bindings, activation: int) -> bool:
    return refutation(happened, negative(clause), bindings, activation) is not None


def _failed(
    happened: Happened,
    place: int,
    clause: Clause,
    chosen: Attempt,
    asked: Bindings,
    activation: int | None,
    at: int,
) -> Failed:
    literals, bindings = negative(clause), _bindings(chosen)
    counter = refutation(happened, literals, bindings, activation) if literals and activation is not None else None
    beside = tuple(each for each in chosen if each is not None)
    return Failed(
        place,
        clause,
        tuple(zip(literals, counter, strict=True)) if counter else (),
        tuple(
            lacking(happened, literal, beside, {**asked, **bindings}, at if activation is None else activation)
            for literal in positive(clause)
        ),
    )
