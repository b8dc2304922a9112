"""Why a policy detected something, and why it did not, found out by the reference.

Of a detection: what each of its events said, and how every condition was met. Of a miss: the nearest thing to a match,
the conditions that failed in it, and for each of their literals what was lacking. Everything is data; how it reads is
:mod:`situ.situation.meaning.tell_match`.

What was detected is no matter of the reference, but of facts: what was told, how far the policy has decided, and which
events it did not look at, because they were late, hidden from it or dead letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import assert_never

from situ.situation.meaning.detection import Cause, Detection, Observation
from situ.situation.meaning.explain_lack import Lack, lacking
from situ.situation.meaning.occurrences import Bindings, Happened, Occurrence, agree, supported
from situ.situation.meaning.reference import (
    Held,
    Match,
    Met,
    against,
    consistent,
    detection_of,
    matches,
    occurrences_of,
    refutation,
)
from situ.situation.policies.policy import Absence, Choice, Is, Literal, Part, Then, is_negative, literals_of

_MOST_ATTEMPTS = 20_000
"""How many combinations are looked at to find the nearest one."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A negative literal that held: in which time nothing was to refute it, and what came close.

    What came close refutes this literal, but not together with the others that are judged with it.
    """

    literal: Literal
    start: int
    end: int
    close: tuple[Occurrence, ...]


@dataclass(frozen=True, slots=True)
class Explained:
    """How a condition was met: by occurrences of literals, and by what was absent; of an ``or``, of one branch."""

    part: Part
    met: tuple[Met, ...] = ()
    absent: tuple[Absent, ...] = ()


@dataclass(frozen=True, slots=True)
class WhyDetected:
    """A detection, what its events said, and how each condition was met."""

    detection: Detection
    said: Mapping[Cause, tuple[Observation, ...]]
    conditions: tuple[Explained, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A condition that was not met: a counterexample, one occurrence a negative literal, and what its others lacked."""

    place: int
    part: Part
    refuted: tuple[tuple[Literal, Occurrence], ...] = ()
    lacks: tuple[Lack, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A detection as it was told, or would be."""

    id: str
    bindings: tuple[tuple[str, str], ...]
    time: int


class Aside(Enum):
    """Why a policy did not look at an event."""

    LATE = "late"
    HIDDEN = "hidden"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """An event that a policy did not look at: what it would have said, or for a dead letter what is wrong with it."""

    why: Aside
    cause: Cause
    time: int
    said: Observation | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What came of detection itself. ``told`` is all that the policy told in the time that counts."""

    told: tuple[Report, ...] = ()
    settled: int | None = None
    """How far the policy has decided; None: that is not known, or nothing is."""
    decides: bool = True
    """Whether it is known how far it has decided."""
    waits_for: str = ""
    suspended: bool = False
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True)
class WhyMissed:
    """What was asked for, and the nearest thing to it.

    ``detected`` is what was detected after all; then nothing has failed. What is ``undecided`` would be detected if
    nothing more came; what is ``untold`` would have been by the policy and the tables as they are now, and was not.
    ``met`` has the conditions that were met, by their places. Without an ``activation`` nothing is said of those that
    are only about what is absent.
    """

    bindings: Bindings
    at: int
    detected: tuple[Report, ...] = ()
    nearest: Bindings = field(default_factory=dict)
    activation: int | None = None
    met: Mapping[int, Explained] = field(default_factory=dict)
    failed: tuple[Failed, ...] = ()
    undecided: tuple[Report, ...] = ()
    untold: tuple[Report, ...] = ()
    facts: Facts = field(default_factory=Facts)


@dataclass(frozen=True, slots=True)
class Missing:
    """A literal that is to happen and for which nothing fits."""

    literal: Literal


Item = Met | Held | Missing
Attempt = tuple[Item, ...]
"""What conditions could be met by."""


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
        _of_part(happened, part, _items(part, match.way), match.bindings, match.activation)
        for part in happened.policy.conditions
    )


def _items(part: Part, way: Iterable[Item]) -> tuple[Item, ...]:
    """What was chosen for a condition."""
    own = set(literals_of((part,)))
    found: dict[Absence | Literal, Item] = {}
    for each in way:
        about = each.absence if isinstance(each, Held) else each.literal
        if (about.literals[0] if isinstance(about, Absence) else about) in own:
            found.setdefault(about, each)
    return tuple(found.values())


def _of_part(
    happened: Happened, part: Part, items: Iterable[Item], bindings: Bindings, activation: int | None
) -> Explained:
    window = happened.policy.window
    absent = [
        Absent(
            literal,
            activation - window if isinstance(literal, Is) else activation,
            activation + (window if isinstance(literal, Is) else literal.within),
            tuple(against(happened, literal, bindings, activation)),
        )
        for each in items
        if isinstance(each, Held) and activation is not None
        for literal in each.absence.literals
    ]
    return Explained(part, tuple(each for each in items if isinstance(each, Met)), tuple(absent))


# ── misses ──


def explain_miss(happened: Happened, bindings: Bindings, at: int, facts: Facts | None = None) -> WhyMissed:
    """Why these identities were not detected around that time, or what was detected.

    ``happened`` is what the policy looked at. Without ``facts`` what the reference finds counts as detected.
    """
    policy = happened.policy
    reports = {
        detection.id: Report(id=detection.id, bindings=detection.bindings, time=detection.time)
        for match in matches(happened)
        if agree(bindings, match.bindings) and _near(happened, match.activation, at)
        for detection in [detection_of(policy, match)]
    }
    meant = tuple(sorted(reports.values(), key=lambda each: each.time))
    if facts is None:
        facts = Facts(told=meant)
    told = tuple(
        each for each in facts.told if agree(bindings, dict(each.bindings)) and _told_near(happened, each.time, at)
    )
    if told:
        return WhyMissed(bindings, at, told, facts=facts)
    if meant:
        undecided = tuple(each for each in meant if _is_undecided(each, facts))
        untold = tuple(each for each in meant if each not in undecided)
        return WhyMissed(bindings, at, undecided=undecided, untold=untold, facts=facts)
    attempts = islice(_attempts(happened, policy.conditions, bindings, at), _MOST_ATTEMPTS)
    attempt = min(attempts, key=lambda each: _distance(happened, each, at))
    nearest, activation = _bindings(attempt), _activation(attempt)
    met: dict[int, Explained] = {}
    failed: list[Failed] = []
    for place, part in enumerate(policy.conditions):
        items = _items(part, attempt)
        if activation is None and all(isinstance(each, Held) for each in items):
            continue
        if any(_fails(happened, each, nearest, activation) for each in items):
            failed.append(_failed(happened, place, part, attempt, bindings, activation, at))
        else:
            met[place] = _of_part(happened, part, items, nearest, activation)
    return WhyMissed(bindings, at, (), {**bindings, **nearest}, activation, met, tuple(failed), facts=facts)


def _is_undecided(report: Report, facts: Facts) -> bool:
    return facts.decides and not facts.suspended and (facts.settled is None or report.time >= facts.settled)


def _told_near(happened: Happened, time: int, at: int) -> bool:
    """The same of when it was told: up to a window after its activation."""
    return at - 2 * happened.policy.window <= time <= at + 2 * happened.policy.window


def _near(happened: Happened, activation: int, at: int) -> bool:
    """Whether somebody who asks about that time may mean what was activated then: it is reported later, if at all."""
    return at - 2 * happened.policy.window <= activation <= at + happened.policy.window


def _attempts(
    happened: Happened, conditions: tuple[Part, ...], bindings: Bindings, at: int, attempt: Attempt = ()
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
            yield from _attempts(happened, rest, bindings, at, (*attempt, Held(part)))
        case Choice(branches=branches, absent=absent):
            for branch in branches:
                yield from _attempts(happened, (*branch, *rest), bindings, at, attempt)
            if absent:
                held = tuple(Held(each, part) for each in absent)
                yield from _attempts(happened, rest, bindings, at, (*attempt, *held))
        case Is() | Then():
            picked = [each for each in attempt if isinstance(each, Met)]
            for occurrence in happened.positive(part):
                if occurrence.time is not None and not _near(happened, occurrence.time, at):
                    continue
                met = Met(part, occurrence)
                if agree(bindings, occurrence.bindings) and consistent(happened.policy, (*picked, met)):
                    yield from _attempts(happened, rest, bindings, at, (*attempt, met))
            yield from _attempts(happened, rest, bindings, at, (*attempt, Missing(part)))
        case _:
            assert_never(part)


def _distance(happened: Happened, attempt: Attempt, at: int) -> tuple[int, int]:
    """How far it is from a match: what failed, then time."""
    activation = _activation(attempt)
    if activation is None:
        return len(attempt) + len(happened.policy.conditions), 0
    bindings = _bindings(attempt)
    return sum(_fails(happened, each, bindings, activation) for each in attempt), abs(activation - at)


def _fails(happened: Happened, item: Item, bindings: Bindings, activation: int | None) -> bool:
    match item:
        case Missing():
            return True
        case Held(absence=absence):
            return activation is None or refutation(happened, absence.literals, bindings, activation) is not None
        case Met():
            return False
        case _:
            assert_never(item)


def _picked(attempt: Attempt) -> tuple[Met, ...]:
    return tuple(each for each in attempt if isinstance(each, Met))


def _activation(attempt: Attempt) -> int | None:
    return max((each.time for each in occurrences_of(_picked(attempt)) if each.time is not None), default=None)


def _bindings(attempt: Attempt) -> dict[str, str]:
    """Of an attempt itself: who is asked about does not limit what refutes it."""
    found: dict[str, str] = {}
    for occurrence in occurrences_of(_picked(attempt)):
        found.update(occurrence.bindings)
    return found


def _failed(
    happened: Happened,
    place: int,
    part: Part,
    attempt: Attempt,
    asked: Bindings,
    activation: int | None,
    at: int,
) -> Failed:
    """Of an ``or``, what is the matter with each of its branches."""
    bindings, beside = _bindings(attempt), _picked(attempt)
    picked = {each.literal for each in beside}
    refuted: dict[tuple[Literal, int], tuple[Literal, Occurrence]] = {}
    for absence in _absences(part) if activation is not None else ():
        counter = refutation(happened, absence.literals, bindings, activation or 0)
        for literal, occurrence in zip(absence.literals, counter or (), strict=False):
            refuted.setdefault((literal, id(occurrence)), (literal, occurrence))
    lacking_ones = [each for each in literals_of((part,)) if not is_negative(each) and each not in picked]
    when = at if activation is None else activation
    return Failed(
        place,
        part,
        tuple(refuted.values()),
        tuple(lacking(happened, each, beside, {**asked, **bindings}, when) for each in dict.fromkeys(lacking_ones)),
    )


def _absences(part: Part) -> Iterator[Absence]:
    match part:
        case Absence():
            yield part
        case Choice(branches=branches, absent=absent):
            for branch in branches:
                for each in branch:
                    yield from _absences(each)
            yield from absent
        case Is() | Then():
            pass
