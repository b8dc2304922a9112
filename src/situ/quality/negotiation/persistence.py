"""What of the negotiator outlives a restart: its state as JSON under keys, and how it is taken up again.

`follow_levels` adapts what is remembered when the levels of a property change. `values_to_store` says what a step has
to write down, `restore_values` puts it back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from situ.lang.records import replace
from situ.quality.measurement.estimator import Estimate
from situ.quality.model.allocation_problem import Target
from situ.quality.model.declarations import Expectation, Profile, QualityProperty
from situ.quality.model.json_form import expectation_as_json, expectation_from_json, profile_as_json, profile_from_json
from situ.quality.model.shapes import shape_as_json, shape_from_json
from situ.quality.negotiation.advice import AdviceCourse, Ledger, OpenAdvice
from situ.quality.negotiation.feedback import StateChange, Usage, feedback_from_json
from situ.quality.negotiation.inputs_and_effects import NotifyClient
from situ.quality.negotiation.state import (
    ExpectationDecision,
    ExpectationRecord,
    NegotiatorState,
    ProfileRecord,
    StepWork,
)

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Levels that have other places. What is said of a profile names levels; what is remembered of advice and claims has
# their places. When a project inserts or drops levels these are others, and what names a level that is no more says
# nothing.

Levels = Mapping[str, Sequence[str]]
"""Property → its levels in their order; of those that have levels."""


def levels_of(profile: Profile) -> dict[str, tuple[str, ...]]:
    abouts = {id: each.about for id, each in profile.capabilities.items()} | dict(profile.moded)
    return {id: about.levels for id, about in abouts.items() if about.levels}


def follow_levels(known: ProfileRecord, before: Levels) -> None:
    """A profile is read with the levels of now; what was remembered had these ones."""
    after = levels_of(known.profile)
    moves = {
        id: {float(place): float(after[id].index(name)) for place, name in enumerate(names) if name in after[id]}
        for id, names in before.items()
        if id in after and tuple(names) != after[id]
    }
    if moves:
        _LevelMapping(moves).move(known)


class _LevelMapping:
    """Property → old place → new one."""

    def __init__(self, moves: Mapping[str, Mapping[float, float]]) -> None:
        self._moves = moves

    def move(self, known: ProfileRecord) -> None:
        ledger, course = known.ledger, known.course
        ledger.replace(self._values(ledger.baseline), {id: self._target(each) for id, each in ledger.claims.items()})
        course.limits, course.unproven = self._values(course.limits), self._values(course.unproven)
        course.asked = None if course.asked is None else self._target(course.asked)
        course.open = None if course.open is None else self._advice(course.open)
        course.relaxed = [moved for each in course.relaxed if (moved := self._advice(each)) is not None]

    def _values(self, values: Mapping[str, float]) -> dict[str, float]:
        found = {id: self._moves[id].get(value) if id in self._moves else value for id, value in values.items()}
        return {id: value for id, value in found.items() if value is not None}

    def _target(self, target: Target) -> Target:
        return replace(target, values=MappingProxyType(self._values(target.values)))

    def _advice(self, advice: OpenAdvice) -> OpenAdvice | None:
        moved = replace(advice, target=self._target(advice.target))
        return moved if moved.target else None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Keys and values. Everything of one expectation or profile is under one key, and all that a step changes is written at
# once; so whatever is found is what there was between two steps. Properties are those that are declared when it is
# read.

TOLD = "told"
"""What the last step told and did, and the number of the last message."""
GONE = "gone"
HERE = "here"
"""Precedes the name of a client that is here."""
PRESENCE = "presence"
"""Says that it is kept who is here. Releases before kept who had left, and took everybody else to be here."""
PRESENCE_FORM = 1


def values_to_store(state: NegotiatorState, work: StepWork) -> dict[str, Any]:
    """What a step has to write down."""
    found: dict[str, Any] = {}
    for key in sorted(work.keep):
        kind, _, id = key.partition("/")
        found[key] = _VALUES[kind](state, id)
    told, unshaped = tuple(work.tells), tuple(sorted(id for id, shape in work.shaped.items() if shape is None))
    # What the step before told has been told when this one begins, so it can be forgotten with the next writing.
    if told or unshaped or (found and (state.told or state.unshaped)):
        state.told, state.unshaped = told, unshaped
        messages = [notify_as_json(each) for each in told]
        found[TOLD] = {"number": state.number, "messages": messages, "unshaped": list(unshaped)}
    return found


def _expectation(state: NegotiatorState, id: str) -> Any:
    held = state.expectations.get(id)
    if held is None:
        return None
    return {
        "expectation": expectation_as_json(held.expectation),
        "declared": held.declared,
        "told": None if held.told is None else held.told.as_json(),
        "told_at": held.told_at,
        "violated": held.violated,
        "decided": None if held.decided is None else held.decided.as_json(),
    }


def _profile(state: NegotiatorState, id: str) -> Any:
    known = state.profiles.get(id)
    if known is None:
        return None
    return {
        "profile": profile_as_json(known.profile),
        "declared": known.declared,
        "ledger": known.ledger.as_json(),
        "course": known.course.as_json(),
        "estimate": known.estimate.as_json(),
        "violated": sorted(known.violated),
        "told": None if known.told is None else known.told.as_json(),
        "told_at": known.told_at,
        "levels": levels_of(known.profile),
    }


def _declaration(state: NegotiatorState, id: str) -> Any:
    return state.declarations.get(id)


def _shape(state: NegotiatorState, id: str) -> Any:
    return shape_as_json(state.shapes[id]) if id in state.shapes else None


def _gone(state: NegotiatorState, id: str) -> Any:
    return sorted(state.gone) or None


def _here(state: NegotiatorState, id: str) -> Any:
    """How somebody is here that something is declared for: others are known by what they registered."""
    return "connected" if id in state.here else "heard" if id in state.heard else None


def _presence(state: NegotiatorState, id: str) -> Any:
    return PRESENCE_FORM


def declared_for(state: NegotiatorState) -> set[str]:
    """Clients that the project declares something for."""
    known: list[ExpectationRecord | ProfileRecord] = [*state.expectations.values(), *state.profiles.values()]
    return {each.client for each in known if each.declared}


_VALUES: Mapping[str, Callable[[NegotiatorState, str], Any]] = {
    "expectation": _expectation,
    "profile": _profile,
    "declaration": _declaration,
    "shape": _shape,
    GONE: _gone,
    HERE: _here,
    PRESENCE: _presence,
}


def notify_as_json(tell: NotifyClient) -> dict[str, Any]:
    return {"client": tell.client, "kind": tell.kind, "id": tell.id, "message": tell.message.as_json()}


def _tell(value: Mapping[str, Any]) -> NotifyClient:
    return NotifyClient(**{**value, "message": feedback_from_json(value["message"])})


# ── taking it up again ──


def restore_values(
    state: NegotiatorState, kept: Mapping[str, Any], properties: Mapping[str, QualityProperty]
) -> list[tuple[str, ExpectationRecord]]:
    """Put back what was kept; gives those expectations that mean nothing any more, with what was known of them."""
    lost = []
    for key in sorted(kept):
        kind, _, id = key.partition("/")
        value = kept[key]
        match kind:
            case "expectation":
                held = expectation_record_from_json(value, properties)
                if held is None:
                    lost.append((id, expectation_record_without_needs(value)))
                else:
                    state.expectations[id] = held
                    state.order = max(state.order, held.expectation.order)
            case "profile":
                known = profile_record_from_json(value, properties)
                if known is not None:
                    state.profiles[id] = known
            case "declaration":
                state.declarations[id] = value
            case "shape":
                state.shapes[id] = shape_from_json(value)
            case "here":
                (state.here if value == "connected" else state.heard).add(id)
            case _:
                _take_up_other(state, key, value)
    state.noted = state.here | state.heard
    if PRESENCE not in kept:
        state.here = declared_for(state) - state.gone
    for profile, known in state.profiles.items():
        for each in [each for each in known.ledger.claims if each not in state.expectations]:
            known.ledger.release(each)
        for each in known.ledger.claims:
            state.claimed.setdefault(each, set()).add(profile)
    return lost


def _take_up_other(state: NegotiatorState, key: str, value: Any) -> None:
    if key == TOLD:
        state.number = value["number"]
        state.told = tuple(_tell(each) for each in value["messages"])
        state.unshaped = tuple(value["unshaped"])
    elif key == GONE:
        state.gone = set(value)


def expectation_record_from_json(
    value: Mapping[str, Any], properties: Mapping[str, QualityProperty]
) -> ExpectationRecord | None:
    """None, if it is about a property that there is no more, or that has become another."""
    expectation = read_expectation(value["expectation"], properties)
    return None if expectation is None else _held(value, expectation)


def expectation_record_without_needs(value: Mapping[str, Any]) -> ExpectationRecord:
    return _held(value, expectation_from_json({**value["expectation"], "need": {}}))


def _held(value: Mapping[str, Any], expectation: Expectation) -> ExpectationRecord:
    told = None if value["told"] is None else StateChange.from_json(value["told"])
    return ExpectationRecord(
        expectation=expectation,
        declared=value["declared"],
        told=told,
        told_at=value["told_at"],
        violated=value["violated"],
        decided=ExpectationDecision.from_json(value["decided"]) if value.get("decided") else None,
    )


def profile_record_from_json(
    value: Mapping[str, Any], properties: Mapping[str, QualityProperty]
) -> ProfileRecord | None:
    profile = read_profile(value["profile"], properties)
    if profile is None:
        return None
    known = ProfileRecord(
        profile=profile,
        declared=value["declared"],
        ledger=Ledger.from_json(value["ledger"]),
        course=AdviceCourse.from_json(value["course"]),
        estimate=Estimate.from_json(value["estimate"]),
        violated=set(value["violated"]),
        told=None if value["told"] is None else Usage.from_json(value["told"]),
        told_at=value["told_at"],
    )
    follow_levels(known, value.get("levels", {}))
    return known


def read_expectation(value: Any, properties: Mapping[str, QualityProperty]) -> Expectation | None:
    try:
        return expectation_from_json(value, properties)
    except ValueError:
        return None


def read_profile(value: Any, properties: Mapping[str, QualityProperty]) -> Profile | None:
    try:
        return profile_from_json(value, properties)
    except ValueError:
        return None
