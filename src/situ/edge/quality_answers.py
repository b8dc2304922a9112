"""How quality stands, for whoever asks: a client about what is its own, those who may know everything about all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from situ.catalogue import NOT_NEGOTIATED
from situ.errors import SituError, nearest
from situ.overlay.quality_messages import AskQuality
from situ.quality.expectation import Need
from situ.quality.explain_state import explain_expectation, explain_publisher
from situ.quality.explained_text import as_text, publisher_as_text
from situ.quality.feedback import StateChange
from situ.quality.json_form import shape_as_json
from situ.quality.matching import capability_of
from situ.quality.property import Property
from situ.quality.state import Held, Known, State
from situ.quality.telling import look, usage_of

Json = dict[str, Any]
Answer = tuple[Json, str]
"""As JSON, and in words."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What can be said of one state."""

    state: State
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Subscription and reason → events that shaping dropped."""

    def to_client(self, client: str, asked: AskQuality) -> Answer:
        """What a client may know: its own expectations and profiles, and nobody else's names."""
        if asked.publisher:
            return self._to_publisher(client, asked.about)
        mine = self.state.expectations.of(client)
        wanted = [id for id in mine if not asked.about or id in (asked.about, f"{client}/{asked.about}")]
        if asked.about and not wanted:
            raise _unknown("expectation", asked.about, [id.removeprefix(f"{client}/") for id in mine])
        if asked.explain and asked.about:
            return self._explained(wanted[0], named=False)
        return {"states": [self._told(id, anew=bool(asked.about)).as_json() for id in wanted]}, ""

    def _told(self, id: str, *, anew: bool) -> StateChange:
        """What its client was told last, under the same number, if it was told anything; else as it is now. Of what
        rests nobody is told anything: it has no number, by which whoever catches up knows it for nothing new."""
        held = self.state.expectations[id]
        if held.told is not None and not anew:
            return held.told
        found = look(self.state, id)
        return found if held.active else replace(found, number=0)

    def _to_publisher(self, client: str, type: str) -> Answer:
        mine = {each.profile.type: each for each in self.state.profiles.of(client).values()}
        if type and type not in mine:
            raise _unknown("profile", type, mine)
        advice = (each for known in mine.values() for each in known.course.to_be_heard(known.profile))
        body: Json = {"advice": [each.as_json() for each in advice]}
        if type:
            body["usage"] = usage_of(self.state, mine[type]).as_json()
        return body, ""

    # ── to those who may know everything ──

    def to_operator(self, asked: Mapping[str, Any]) -> Answer:
        """The table; or why what is ``about`` an expectation is so, or a publisher, if ``publisher`` is true."""
        about = str(asked.get("about", ""))
        if not about:
            return self.table(), ""
        if asked.get("publisher"):
            return self._explained_publisher(about)
        if about not in self.state.expectations:
            raise _unknown("expectation", about, self.state.expectations)
        return self._explained(about, named=True)

    def _explained(self, id: str, *, named: bool) -> Answer:
        subscription = self.state.expectations[id].expectation.subscription
        prefix = f"{subscription} "
        drops = {key.removeprefix(prefix): count for key, count in self.dropped.items() if key.startswith(prefix)}
        found = explain_expectation(self.state, id, named=named, drops=drops)
        return found.as_json(), as_text(found)

    def _explained_publisher(self, publisher: str) -> Answer:
        found = explain_publisher(self.state, publisher)
        if not found:
            known = {each.profile.publisher for each in self.state.profiles.values()}
            raise _unknown("publisher with a profile", publisher, known)
        return {"profiles": [each.as_json() for each in found]}, publisher_as_text(publisher, found)

    def table(self) -> Json:
        """Who expects what, who can do what, what holds and why not."""
        return {
            "expectations": [self._expectation(each) for _, each in sorted(self.state.expectations.items())],
            "profiles": [self._profile(each) for _, each in sorted(self.state.profiles.items())],
            "shapes": {id: shape_as_json(each) for id, each in sorted(self.state.shapes.items())},
        }

    def _expectation(self, held: Held) -> Json:
        expectation = held.expectation
        now = look(self.state, expectation.id)
        by = self.state.standing.candidates(expectation.id)[0] if held.active else ()
        return {
            "id": expectation.id,
            "subscription": expectation.subscription,
            "utility": expectation.utility,
            "need": {id: _need(each) for id, each in sorted(expectation.needs.items())},
            "state": "suspended" if expectation.suspended else "away" if held.away else now.state,
            "why": now.why if held.active else "",
            "reasons": [each.as_json() for each in now.reasons],
            "absent": now.absent,
            "in_force": now.in_force == expectation.id,
            "by": list(by),
        }

    def _profile(self, known: Known) -> Json:
        usage, advice = usage_of(self.state, known), known.course.open
        return {
            "id": known.profile.id,
            "mode": known.profile.mode,
            "values": {id: self._values(known, id) for id in sorted(known.profile.properties)},
            "state": "away" if known.away else "irrelevant" if known.effective is None else "there",
            "expectations": usage.expectations,
            "frozen": known.course.is_frozen,
            "violated": sorted(known.violated),
            "advice": None if advice is None else {"id": advice.id, "status": advice.status},
        }

    def _values(self, known: Known, id: str) -> Json:
        declared = capability_of(known.profile, id)
        assert declared is not None, "it is one of its properties"
        about = declared.about
        effective = None if known.effective is None else capability_of(known.effective, id)
        measured = known.estimate.measured.get(id)
        return {
            "unit": about.unit,
            "lb": _written(about, declared.lb),
            "ub": _written(about, declared.ub),
            "declared": about.written(declared.cv),
            "measured": None if measured is None else about.written(measured),
            "effective": None if effective is None else about.written(effective.cv),
        }


def _need(need: Need) -> Mapping[str, Any]:
    about = need.about
    return {"unit": about.unit, "lb": _written(about, need.lb), "ub": _written(about, need.ub)}


def _written(about: Property, value: float) -> float | str | None:
    """None: at the end of the domain, and that has no number."""
    return None if value in (float("inf"), float("-inf")) else about.written(value)


def _unknown(what: str, name: str, known: Iterable[str]) -> SituError:
    return SituError(NOT_NEGOTIATED(what=what, name=name, nearest=nearest(name, tuple(known))))
