"""What engines measured comes in: who does otherwise than it says, and who did as it was advised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from situ.quality.causes import Cause
from situ.quality.deploying import heard
from situ.quality.estimator import ADDED, Move
from situ.quality.gathered import LONGEST, WINDOW
from situ.quality.inputs import Measured
from situ.quality.matching import capability_of
from situ.quality.panes import Pane
from situ.quality.shape import Shape
from situ.quality.state import Known, State
from situ.quality.work import Work


def measured(state: State, work: Work, given: Measured) -> None:
    panes = tuple(_not_ahead(given.panes, round(work.now * 1_000_000)))
    state.gathered.add(panes)
    latest = (each.last for each in panes if each.last is not None)
    state.mark = max(given.until, *latest, state.mark if state.mark is not None else given.until)
    by_profile: dict[str, list[Pane]] = {}
    for pane in panes:
        by_profile.setdefault(pane.profile, []).append(pane)
        if pane.events and pane.last is not None:
            heard(state, work, pane.publisher, pane.last)
    for id, known in state.profiles.items():
        if known.effective is not None:
            known.estimate.hear(by_profile.get(id, ()))
            moves = known.estimate.observe(known.profile, state.gathered, given.until)
            _confirm(work, known)
            if moves:
                _correct(state, work, known, moves)
            elif known.course.is_late(work.now, state.mark):
                state.set_alarm(("course", id), work.now)
    state.gathered.prune(given.until - LONGEST - WINDOW)
    _loosen(state, work)


def _not_ahead(panes: Iterable[Pane], now: int) -> Iterator[Pane]:
    """Panes as somebody saw them whose clock is right: no event is later than now, whatever its publisher says, and
    what is further ahead than any window is long would not be looked at before it is forgotten."""
    for pane in panes:
        if pane.start <= now + LONGEST:
            yield pane if pane.last is None or pane.last <= now else replace(pane, last=now)


def _correct(state: State, work: Work, known: Known, moves: tuple[Move, ...]) -> None:
    id = known.profile.id
    before, known.violated = known.violated, known.estimate.violations(known.profile)
    if known.violated != before:
        work.usage.add(id)
    for move in moves:
        work.causes.add(state, Cause(what=f"was measured to have {_shown(known, move)}", profile=id))
        if not move.worse:
            continue
        work.violating.add(id)
        work.usage.add(id)
        if move.property in known.course.unproven:
            # It said that it had done as advised, and has not.
            known.course.limits[move.property] = move.after
            known.course.unproven = {}
            known.course.come_to_nothing(work.now)
    work.profiles.add(id)
    work.keep_profile(id)


def _shown(known: Known, move: Move) -> str:
    capability = capability_of(known.profile, move.property)
    about = ADDED[move.property] if capability is None else capability.about
    return f"{move.property} {about.shown(move.after)}"


def _confirm(work: Work, known: Known) -> None:
    """Somebody does what it said it does on advice."""
    course = known.course
    if course.unproven and course.unproven.keys() & known.estimate.confirmed:
        course.unproven = {id: each for id, each in course.unproven.items() if id not in known.estimate.confirmed}
        if not course.unproven:
            course.failures = 0
        work.keep_profile(known.profile.id)


def _loosen(state: State, work: Work) -> None:
    """Where events no longer come evenly, one of each slot may be too few: such subscriptions are looked at again."""
    for subscription, shape in state.shapes.items():
        if _has_slots(shape) and subscription in state.in_force:
            expectation = state.expectations[state.in_force[subscription]].expectation
            if expectation.needs["rate"].floor > 0:
                work.subscriptions.add(subscription)


def _has_slots(shape: Shape) -> bool:
    return shape.thin is not None and shape.thin.limits[-1].form == "slot"
