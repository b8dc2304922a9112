"""A test of policies: what is given, and which situations are expected of it.

Plain data, checked; how tests are written is :mod:`situ.situation.meaning.load_policy_test`. Times are microseconds;
those that a test gives as durations count from :data:`START`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from situ.errors import Location
from situ.situation.meaning.lifecycle import Stage, Transition
from situ.sources.table import Table

START = (datetime(2000, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenEvent:
    """An event in root terms; ``data`` is a value of its type."""

    type: str
    id: str
    source: str
    time: int
    received: int
    data: Mapping[str, Any]
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A situation. What is None, and an alias that is not named, may be anything."""

    policy: str
    at: int | None = None
    bindings: tuple[tuple[str, str], ...] = ()
    closed: int | None = None
    detections: int | None = None
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTest:
    """Events in the order they arrive, the rows of pull sources, and what is expected of some policies.

    ``clock`` is what the clock says at the end; without it the test goes on until all is settled.
    """

    name: str
    policies: tuple[str, ...]
    events: tuple[GivenEvent, ...] = ()
    pull: Mapping[str, Table] = field(default_factory=dict)
    clock: int | None = None
    expect: tuple[Expected, ...] = ()
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A situation that came of a test; ``closed`` is None while it is open."""

    id: str
    policy: str
    at: int
    bindings: tuple[tuple[str, str], ...]
    closed: int | None
    detections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a verdict: what was expected, what was found, or both."""

    expected: Expected | None
    found: Found | None

    @property
    def passed(self) -> bool:
        return self.expected is not None and self.found is not None and not differences(self.expected, self.found)


def situations(transitions: Iterable[Transition]) -> list[Found]:
    """What became of the situations that these transitions tell of, in the order they opened."""
    last: dict[str, Transition] = {}
    for transition in transitions:
        last[transition.situation.id] = transition
    found = [
        Found(
            id=each.situation.id,
            policy=each.situation.policy,
            at=each.situation.start,
            bindings=each.situation.bindings,
            closed=each.end if each.stage is Stage.CLOSED else None,
            detections=each.situation.detections,
        )
        for each in last.values()
    ]
    return sorted(found, key=lambda each: (each.at, each.policy, each.bindings, each.id))


def compare(expect: Iterable[Expected], found: Iterable[Found]) -> list[Line]:
    """Every expected situation beside one that was found: first those that fit, then those that differ least."""
    left, open_lines = list(found), list(expect)
    lines: list[tuple[Expected, Found | None]] = []
    for most in (0, 1, 2, 3):
        for expected in list(open_lines):
            similar = [each for each in left if each.policy == expected.policy]
            best = min(similar, key=lambda each: len(differences(expected, each)), default=None)
            if best is not None and len(differences(expected, best)) <= most:
                lines.append((expected, best))
                left.remove(best)
                open_lines.remove(expected)
    paired = [Line(expected=each, found=other) for each, other in lines]
    paired += [Line(expected=each, found=None) for each in open_lines]
    paired += [Line(expected=None, found=each) for each in left]
    return sorted(paired, key=_order)


def _order(line: Line) -> tuple[int, str]:
    at = line.found.at if line.found is not None else line.expected.at if line.expected is not None else None
    policy = line.found.policy if line.found is not None else line.expected.policy if line.expected is not None else ""
    return (START if at is None else at), policy


def differences(expected: Expected, found: Found) -> list[str]:
    """In which respects what was found is not what was expected: ``policy``, ``at``, aliases and so on."""
    wrong = ["policy"] if expected.policy != found.policy else []
    if expected.at is not None and expected.at != found.at:
        wrong.append("at")
    bound = dict(found.bindings)
    wrong += [alias for alias, identity in expected.bindings if bound.get(alias) != identity]
    if expected.closed is not None and expected.closed != found.closed:
        wrong.append("closed")
    if expected.detections is not None and expected.detections != found.detections:
        wrong.append("detections")
    return wrong
