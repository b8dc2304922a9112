"""Situations: detections of a policy with equal bindings, as long as they keep coming.

The first opens a situation, later ones continue it, and it is closed when none came for the time it is held. What
happens to situations is told in *transitions*, in the order of their times. Those before the watermark are told, each
once; so it makes no difference in which portions detections come, as long as each comes with the first watermark that
is beyond its time. Those of the instant of the watermark itself may come sooner; of several of them with equal bindings
that come apart, the first opens the situation.

One state is about one policy. It holds the open situations and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from situ.situation.meaning.detection import Cause, Detection, in_order
from situ.situation.policies.policy import Policy

FORMAT = 1
POLICY_CHANGED = "policy changed"
POLICY_REMOVED = "policy removed"
POLICY_STOPPED = "policy stopped"
POLICY_SUSPENDED = "policy suspended"


Bindings = tuple[tuple[str, str], ...]


class Stage(StrEnum):
    """What happened to a situation."""

    OPENED = "opened"
    CONTINUED = "continued"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """An open situation: from the time of its first detection to that of its last."""

    id: str
    policy: str
    bindings: Bindings
    start: int
    last: int
    detections: int
    causes: tuple[Cause, ...]
    """Of the last detection."""
    positions: tuple[int, ...] = ()
    """Where these are in the root log, if that is known."""
    parts: str = ""
    """Where there are scopes: the stamps of what all of its detections so far come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """What is told of a situation, as it is afterwards. ``end`` and ``reason`` are of closed ones."""

    id: str
    """Of the event that tells it."""
    stage: Stage
    situation: Situation
    time: int
    detection: str = ""
    """Of the detection that opened or continued it."""
    end: int | None = None
    reason: str = ""


Open = Mapping[Bindings, Situation]
"""The open situations of a policy, by their bindings."""


def step(
    state: Open, detections: Iterable[Detection], watermark: int | None, hold: int
) -> tuple[dict[Bindings, Situation], list[Transition]]:
    """What new detections, and time that has gone by, do to the situations of a policy."""
    current = dict(state)
    told: list[Transition] = []
    for detection in in_order(detections):
        before = current.get(detection.bindings)
        if before is not None and detection.time > before.last + hold:
            told.append(_closed(before, before.last + hold))
            before = None
        current[detection.bindings], transition = _detected(before, detection)
        told.append(transition)
    for bindings, situation in list(current.items()):
        if watermark is not None and watermark > situation.last + hold:
            told.append(_closed(current.pop(bindings), situation.last + hold))
    return current, sorted(told, key=_order)


def close(state: Open, reason: str, at: int | None, hold: int) -> list[Transition]:
    """All situations of a policy end because of something else than silence, at that instant or before."""
    told = []
    for situation in state.values():
        end = situation.last + hold
        told.append(_closed(situation, end if at is None else max(situation.last, min(at, end)), reason))
    return sorted(told, key=_order)


def carry_over(
    state: Open, former: Policy, policy: Policy, at: int | None
) -> tuple[dict[Bindings, Situation], list[Transition]]:
    """The situations of a policy that has been altered.

    Those go on whose identities are still ones of the same concepts under the same aliases; the others are closed.
    """
    concepts = {alias.name: alias.concept for alias in policy.aliases}
    same = {alias.name for alias in former.aliases if concepts.get(alias.name) == alias.concept}
    kept = {bindings: each for bindings, each in state.items() if same.issuperset(alias for alias, _ in bindings)}
    gone = {bindings: each for bindings, each in state.items() if bindings not in kept}
    return kept, close(gone, POLICY_CHANGED, at, former.hold)


def _detected(before: Situation | None, detection: Detection) -> tuple[Situation, Transition]:
    found = detection.id
    if before is None:
        situation = Situation(
            id=found,
            policy=detection.policy,
            bindings=detection.bindings,
            start=detection.time,
            last=detection.time,
            detections=1,
            causes=detection.causes,
            positions=detection.positions,
        )
        stage, id = Stage.OPENED, f"{situation.id}.opened"
    else:
        last, count = max(before.last, detection.time), before.detections + 1
        situation = replace(before, last=last, detections=count, causes=detection.causes, positions=detection.positions)
        stage, id = Stage.CONTINUED, f"{situation.id}.c-{found}"
    return situation, Transition(id=id, stage=stage, situation=situation, time=detection.time, detection=found)


def _closed(situation: Situation, end: int, reason: str = "") -> Transition:
    return Transition(
        id=f"{situation.id}.closed", stage=Stage.CLOSED, situation=situation, time=end, end=end, reason=reason
    )


_STAGES = list(Stage)


def _order(transition: Transition) -> tuple[int, int, str]:
    return transition.time, _STAGES.index(transition.stage), transition.id


def open_as_json(state: Open) -> dict[str, Any]:
    """As it is stored."""
    situations = [
        {
            "id": each.id,
            "policy": each.policy,
            "bindings": dict(each.bindings),
            "start": each.start,
            "last": each.last,
            "detections": each.detections,
            "causes": [list(cause) for cause in each.causes],
            "positions": list(each.positions),
            **({"parts": each.parts} if each.parts else {}),
        }
        for _, each in sorted(state.items())
    ]
    return {"version": FORMAT, "open": situations}


def open_from_json(stored: Mapping[str, Any]) -> dict[Bindings, Situation]:
    if stored.get("version") != FORMAT:
        raise ValueError(f"situations are stored in version {FORMAT} of their form, this is {stored.get('version')}")
    found = [
        Situation(
            id=each["id"],
            policy=each["policy"],
            bindings=tuple(sorted(each["bindings"].items())),
            start=each["start"],
            last=each["last"],
            detections=each["detections"],
            causes=tuple(Cause(*cause) for cause in each["causes"]),
            positions=tuple(each["positions"]),
            parts=each.get("parts", ""),
        )
        for each in stored["open"]
    ]
    return {each.bindings: each for each in found}
