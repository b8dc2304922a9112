"""The life cycle of situations: detections open, continue and close them; and what is said of them.

`step`, `close` and `carry_over` give the transitions of a policy's situations, `situation_data` the data of their
events, `situation_sentence` one sentence for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from situ.event.instants import print_instant
from situ.event.row import Row
from situ.lang.records import replace
from situ.lang.types.table import CLOSED, CONTINUED, OPENED
from situ.policies.logic_tree import duration_text, part_text
from situ.policies.model import Absence, Cause, ConditionPart, Detection, Policy, RelationLiteral, sort_detections

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A situation is detections of a policy with equal bindings, as long as they keep coming. The first opens it, later ones
# continue it, and it is closed when none came for the time it is held. What happens to situations is told in
# *transitions*, in the order of their times. Those before the watermark are told, each once; so it makes no difference
# in which portions detections come, as long as each comes with the first watermark that is beyond its time. Those of
# the instant of the watermark itself may come sooner; of several of them with equal bindings that come apart, the first
# opens the situation.
#
# One state is about one policy. It holds the open situations and nothing else.

FORMAT = 1
POLICY_CHANGED = "policy changed"
POLICY_REMOVED = "policy removed"
POLICY_STOPPED = "policy stopped"
POLICY_SUSPENDED = "policy suspended"


SortedBindings = tuple[tuple[str, str], ...]


class SituationPhase(StrEnum):
    """What happened to a situation."""

    OPENED = "opened"
    CONTINUED = "continued"
    CLOSED = "closed"


class OpenSituation(msgspec.Struct, frozen=True, kw_only=True):
    """An open situation: from the time of its first detection to that of its last."""

    id: str
    policy: str
    bindings: SortedBindings
    start: int
    last: int
    detections: int
    causes: tuple[Cause, ...]
    """Of the last detection."""
    positions: tuple[int, ...] = ()
    """Where these are in the root log, if that is known."""
    parts: str = ""
    """Where there are scopes: the stamps of what all of its detections so far come from."""


class SituationTransition(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of a situation, as it is afterwards. ``end`` and ``reason`` are of closed ones."""

    id: str
    """Of the event that tells it."""
    stage: SituationPhase
    situation: OpenSituation
    time: int
    detection: str = ""
    """Of the detection that opened or continued it."""
    end: int | None = None
    reason: str = ""


OpenSituations = Mapping[SortedBindings, OpenSituation]
"""The open situations of a policy, by their bindings."""


def step(
    state: OpenSituations, detections: Iterable[Detection], watermark: int | None, hold: int
) -> tuple[dict[SortedBindings, OpenSituation], list[SituationTransition]]:
    """What new detections, and time that has gone by, do to the situations of a policy."""
    current = dict(state)
    told: list[SituationTransition] = []
    for detection in sort_detections(detections):
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


def close(state: OpenSituations, reason: str, at: int | None, hold: int) -> list[SituationTransition]:
    """All situations of a policy end because of something else than silence, at that instant or before."""
    told = []
    for situation in state.values():
        end = situation.last + hold
        told.append(_closed(situation, end if at is None else max(situation.last, min(at, end)), reason))
    return sorted(told, key=_order)


def carry_over(
    state: OpenSituations, former: Policy, policy: Policy, at: int | None
) -> tuple[dict[SortedBindings, OpenSituation], list[SituationTransition]]:
    """The situations of a policy that has been altered.

    Those go on whose identities are still ones of the same concepts under the same aliases; the others are closed.
    """
    concepts = {alias.name: alias.concept for alias in policy.aliases}
    same = {alias.name for alias in former.aliases if concepts.get(alias.name) == alias.concept}
    kept = {bindings: each for bindings, each in state.items() if same.issuperset(alias for alias, _ in bindings)}
    gone = {bindings: each for bindings, each in state.items() if bindings not in kept}
    return kept, close(gone, POLICY_CHANGED, at, former.hold)


def _detected(before: OpenSituation | None, detection: Detection) -> tuple[OpenSituation, SituationTransition]:
    found = detection.id
    if before is None:
        situation = OpenSituation(
            id=found,
            policy=detection.policy,
            bindings=detection.bindings,
            start=detection.time,
            last=detection.time,
            detections=1,
            causes=detection.causes,
            positions=detection.positions,
        )
        stage, id = SituationPhase.OPENED, f"{situation.id}.opened"
    else:
        last, count = max(before.last, detection.time), before.detections + 1
        situation = replace(before, last=last, detections=count, causes=detection.causes, positions=detection.positions)
        stage, id = SituationPhase.CONTINUED, f"{situation.id}.c-{found}"
    return situation, SituationTransition(id=id, stage=stage, situation=situation, time=detection.time, detection=found)


def _closed(situation: OpenSituation, end: int, reason: str = "") -> SituationTransition:
    return SituationTransition(
        id=f"{situation.id}.closed", stage=SituationPhase.CLOSED, situation=situation, time=end, end=end, reason=reason
    )


_STAGES = list(SituationPhase)


def _order(transition: SituationTransition) -> tuple[int, int, str]:
    return transition.time, _STAGES.index(transition.stage), transition.id


def open_as_json(state: OpenSituations) -> dict[str, Any]:
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


def open_from_json(stored: Mapping[str, Any]) -> dict[SortedBindings, OpenSituation]:
    if stored.get("version") != FORMAT:
        raise ValueError(f"situations are stored in version {FORMAT} of their form, this is {stored.get('version')}")
    found = [
        OpenSituation(
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What Situ says of a situation: the data of its events, and one sentence for people.

SITUATION_TYPES = {
    SituationPhase.OPENED: OPENED.name,
    SituationPhase.CONTINUED: CONTINUED.name,
    SituationPhase.CLOSED: CLOSED.name,
}
_MOST_VALUES = 100
"""Values of one causing event that are told; an event can be large."""
_WORD = re.compile(r"'[^']*'|[A-Za-z_][A-Za-z0-9_]*")


def situation_data(transition: SituationTransition, policy: Policy, causes: Iterable[Row]) -> bytes:
    """The data of the event that tells a transition, as canonical text of its type."""
    situation = transition.situation
    concepts = {alias.name: alias.concept for alias in policy.aliases}
    data = {
        "situation": situation.id,
        "policy": situation.policy,
        "start": print_instant(situation.start),
        "last": print_instant(situation.last),
        "end": None if transition.end is None else print_instant(transition.end),
        "reason": transition.reason or None,
        "detection": transition.detection or None,
        "text": situation_sentence(policy, situation.bindings, transition),
        "bindings": [
            {"alias": alias, "concept": concepts.get(alias, ""), "id": identity}
            for alias, identity in situation.bindings
        ],
        "causes": [_cause(row) for row in causes],
    }
    return msgspec.json.encode({name: value for name, value in data.items() if value is not None})


def _cause(row: Row) -> dict[str, Any]:
    values = list(_values((), msgspec.json.decode(row.data)))[:_MOST_VALUES]
    return {
        "id": row.id,
        "source": row.source,
        "type": row.type,
        "time": print_instant(row.time),
        "pos": row.pos,
        "values": values,
    }


def _values(path: tuple[str, ...], value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _values((*path, name), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _values(path, inner)
    elif isinstance(value, bool):
        yield {"path": ".".join(path), "text": "true" if value else "false"}
    elif isinstance(value, int | float):
        yield {"path": ".".join(path), "number": float(value)}
    elif value is not None:
        yield {"path": ".".join(path), "text": value}


def situation_sentence(
    policy: Policy, bindings: Iterable[tuple[str, str]], transition: SituationTransition | None = None
) -> str:
    """``A 17 is inside R r4; within 5 s no B was: A 17 is within 5 m of B and B is inside R r4``."""
    bound = dict(bindings)
    said = "; ".join(_met(part, policy, bound) for part in policy.conditions)
    if transition is None or transition.stage is SituationPhase.OPENED:
        return said
    if transition.stage is SituationPhase.CONTINUED:
        return f"still: {said}"
    lasted = duration_text(transition.situation.last - transition.situation.start)
    why = f" ({transition.reason})" if transition.reason else ""
    return f"over after {lasted}{why}: {said}"


def _met(part: ConditionPart, policy: Policy, bound: Mapping[str, str]) -> str:
    """How a condition was met, as far as that follows from which aliases are bound."""
    absent = part.literals if isinstance(part, Absence) else ()
    relations = [literal.relation for literal in absent if isinstance(literal, RelationLiteral)]
    free = sorted({alias for each in relations for alias in each.aliases} - bound.keys())
    if free and len(relations) == len(absent):
        what = " and ".join(_named(each.text, bound) for each in relations)
        return f"within {duration_text(policy.window)} there was no {' and no '.join(free)} with: {what}"
    return _named(part_text(part, policy.window), bound)


def _named(text: str, bound: Mapping[str, str]) -> str:
    """The text with the identity behind each alias that is bound; what is quoted is left alone."""
    return _WORD.sub(lambda word: f"{word[0]} {bound[word[0]]}" if word[0] in bound else word[0], text)
