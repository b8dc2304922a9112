"""The worked examples of matching: M and P, the five by five, and the formula that does not work."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from situ.quality.match.satisfaction import (
    Satisfaction,
    capability_of,
    check,
    is_dominated,
    match,
    reasons,
)
from situ.quality.model.declarations import BUILT_IN, Capability, Expectation, Mode, Need, Profile, QualityProperty
from tests.oracles.quality_match import is_covered, is_fully_covered

RATE, CONFIDENCE = BUILT_IN["rate"], BUILT_IN["confidence"]


def expect(id: str, publishers: int = 1, **needs: tuple[QualityProperty, float, float]) -> Expectation:
    made = {about.id: Need(about=about, lb=lb, ub=ub) for about, lb, ub in needs.values()}
    return Expectation(id=id, subscription="monitor/temperature", needs=made, publishers=publishers)


def provide(publisher: str, **values: tuple[QualityProperty, float, float, float]) -> Profile:
    made = {about.id: Capability(about=about, lb=lb, ub=ub, cv=cv) for about, lb, ub, cv in values.values()}
    return Profile(publisher=publisher, type="temperatureEvent", capabilities=made)


M1 = expect("M1", rate=(RATE, 5, 10), confidence=(CONFIDENCE, 75, 95))
M2 = expect("M2", rate=(RATE, 30, 45), confidence=(CONFIDENCE, 50, 60))


def mode(name: str, rate: float, confidence: float, cost: float) -> Mode:
    return Mode(name=name, values={"rate": rate, "confidence": confidence}, cost=cost)


class TestW1:
    """M and P."""

    def test_as_ranges_both_are_satisfiable(self) -> None:
        ranges = provide("P", rate=(RATE, 2, 60, 2), confidence=(CONFIDENCE, 80, 90, 90))
        rate, confidence = ranges.capabilities["rate"], ranges.capabilities["confidence"]
        assert is_dominated(M1.needs["confidence"], confidence)
        assert not is_dominated(M1.needs["rate"], rate)
        assert is_fully_covered(M1.needs["rate"], rate)
        assert check(M1, ranges) is Satisfaction.SATISFIABLE
        assert check(M2, ranges) is Satisfaction.SATISFIABLE

    def test_as_modes_all_needs_are_met_by_the_same_mode(self) -> None:
        modes = (mode("eco", 2, 90, 1), mode("mid", 10, 88, 2), mode("fast", 60, 80, 8))
        moded = {"rate": RATE, "confidence": CONFIDENCE}
        profile = Profile(publisher="P", type="temperatureEvent", modes=modes, mode="eco", moded=moded)
        met = {X.id: [each.name for each in modes if X.is_met_by(each.values)] for X in (M1, M2)}
        assert met == {"M1": ["mid", "fast"], "M2": ["fast"]}
        assert check(M1, profile) is check(M2, profile) is Satisfaction.SATISFIABLE
        # Each is covered by some mode, and by no mode both.
        both = expect("both", rate=(RATE, 30, 60), confidence=(CONFIDENCE, 85, 95))
        hulls = [capability_of(profile, id) for id in ("rate", "confidence")]
        needs = [both.needs[id] for id in ("rate", "confidence")]
        assert all(hull is not None and is_covered(need, hull) for need, hull in zip(needs, hulls, strict=True))
        assert check(both, profile) is Satisfaction.UNSATISFIED


A, B = (QualityProperty(name=name, lo=0, hi=10, maximise=False) for name in "ab")
PROFILES = {
    name: provide(name, a=(A, *a), b=(B, *b))
    for name, a, b in (
        ("P1", (1, 6, 3), (5, 9, 6)),
        ("P2", (4, 10, 6), (1, 5, 2)),
        ("P3", (5, 10, 7), (6, 9, 7)),
        ("P4", (4, 9, 8), (2, 9, 5)),
        ("P5", (3, 9, 5), (6, 9, 8)),
    )
}
EXPECTATIONS = {
    name: expect(name, a=(A, *a), b=(B, *b))
    for name, a, b in (
        ("X1", (1, 2), (4, 6)),
        ("X2", (5, 7), (1, 3)),
        ("X3", (2, 4), (5, 7)),
        ("X4", (1, 2), (1, 3)),
        ("X5", (3, 5), (1, 3)),
    )
}
FOUND: Mapping[str, tuple[Satisfaction, tuple[str, ...], tuple[str, ...]]] = {
    "X1": (Satisfaction.SATISFIABLE, (), ("P1",)),
    "X2": (Satisfaction.SATISFIED, ("P2",), ("P4",)),
    "X3": (Satisfaction.SATISFIED, ("P1",), ("P2", "P4", "P5")),
    "X4": (Satisfaction.UNSATISFIED, (), ()),
    "X5": (Satisfaction.SATISFIABLE, (), ("P2", "P4")),
}


def printed(need: Need, capability: Capability) -> bool:
    """ "Covered" as the formula has it that does not work."""
    return capability.lb <= need.lb or capability.ub >= need.ub


class TestW2:
    """Five publishers, five expectations."""

    @pytest.mark.parametrize("name", EXPECTATIONS)
    def test_states_and_candidates(self, name: str) -> None:
        found = match(EXPECTATIONS[name], PROFILES.values())
        ids = [tuple(id.partition("/")[0] for id in each) for each in (found.now, found.able)]
        assert (found.state, *ids) == FOUND[name]

    def test_each_property_of_x4_is_covered_by_somebody(self) -> None:
        X4 = EXPECTATIONS["X4"]  # noqa: N806 - as the example calls it
        covered = {
            id: {name for name, each in PROFILES.items() if is_covered(need, each.capabilities[id])}
            for id, need in X4.needs.items()
        }
        assert covered == {"a": {"P1"}, "b": {"P2", "P4"}}

    def test_by_the_printed_formula_everybody_covers_x4(self) -> None:
        for profile in PROFILES.values():
            assert all(printed(need, profile.capabilities[id]) for id, need in EXPECTATIONS["X4"].needs.items())

    def test_the_printed_formula_is_too_weak_and_too_strong(self) -> None:
        many = QualityProperty(name="many")
        wanted = Need(about=many, lb=5, ub=10)
        little, enclosed, better = (
            Capability(about=many, lb=lb, ub=ub, cv=lb) for lb, ub in ((0, 1), (6, 8), (20, 30))
        )
        assert printed(wanted, little)
        assert not is_covered(wanted, little)
        assert not printed(wanted, enclosed)
        assert is_covered(wanted, enclosed)
        assert is_fully_covered(wanted, better)
        slow = Capability(about=A, lb=6, ub=10, cv=6)
        assert printed(Need(about=A, lb=1, ub=5), slow)
        assert not is_covered(Need(about=A, lb=1, ub=5), slow)


class TestStates:
    def test_a_satisfiable_profile_does_not_lower_what_another_satisfies(self) -> None:
        good, could = (provide(name, rate=(RATE, 0, 60, cv)) for name, cv in (("P", 10), ("Q", 1)))
        asked = expect("E", rate=(RATE, 5, 10))
        assert match(asked, [good, could]).state is match(asked, [could, good]).state is Satisfaction.SATISFIED

    def test_a_profile_needs_all_properties(self) -> None:
        only = provide("P", rate=(RATE, 0, 60, 60))
        assert check(M1, only) is Satisfaction.UNSATISFIED

    def test_an_empty_need_is_satisfied_by_anybody_and_by_nobody_not(self) -> None:
        nothing = expect("E")
        assert match(nothing, [provide("P")]).state is Satisfaction.SATISFIED
        assert match(nothing, []).state is Satisfaction.UNSATISFIED

    @pytest.mark.parametrize(
        ("values", "state"),
        [
            ((10, 10), Satisfaction.SATISFIED),
            ((10, 1), Satisfaction.SATISFIABLE),
            ((1, 1), Satisfaction.SATISFIABLE),
            ((10,), Satisfaction.UNSATISFIED),
            ((), Satisfaction.UNSATISFIED),
        ],
    )
    def test_several_publishers_have_to_satisfy_it_each_by_itself(
        self, values: tuple[float, ...], state: Satisfaction
    ) -> None:
        profiles = [provide(f"P{place}", rate=(RATE, 0, 60, cv)) for place, cv in enumerate(values)]
        assert match(expect("E", 2, rate=(RATE, 5, 10)), profiles).state is state

    def test_two_profiles_of_one_publisher_are_one_publisher(self) -> None:
        one = provide("P", rate=(RATE, 0, 60, 10))
        other = Profile(publisher="P", type="coldEvent", capabilities=one.capabilities)
        found = match(expect("E", 2, rate=(RATE, 5, 10)), [one, other])
        assert (found.state, len(found.now)) == (Satisfaction.UNSATISFIED, 2)


class TestReasons:
    def told(self, expectation: Expectation, *profiles: Profile) -> list[tuple[str, float | None, float | None]]:
        return [(each.about.id, each.current, each.reachable) for each in reasons(expectation, profiles)]

    def test_without_a_profile_everything_is_missing(self) -> None:
        assert self.told(M1) == [("confidence", None, None), ("rate", None, None)]

    def test_fewer_missing_properties_are_closer_than_smaller_shortfalls(self) -> None:
        all_of_it = provide("Q", rate=(RATE, 0, 1, 0), confidence=(CONFIDENCE, 0, 1, 0))
        half = provide("P", rate=(RATE, 4, 4, 4))
        assert self.told(M1, half, all_of_it) == [("confidence", 0, 1), ("rate", 0, 1)]

    def test_then_fewer_shortfalls_then_smaller_ones_then_the_id(self) -> None:
        one_short = provide("R", rate=(RATE, 0, 1, 0), confidence=(CONFIDENCE, 80, 80, 80))
        two_short = provide("P", rate=(RATE, 4, 4, 4), confidence=(CONFIDENCE, 70, 70, 70))
        assert self.told(M1, two_short, one_short) == [("rate", 0, 1)]
        nearer = provide("S", rate=(RATE, 0, 7, 4), confidence=(CONFIDENCE, 80, 80, 80))
        assert self.told(M1, one_short, nearer) == [("rate", 4, 7)]
        twin = provide("Q", rate=(RATE, 0, 9, 4), confidence=(CONFIDENCE, 80, 80, 80))
        assert self.told(M1, nearer, twin) == [("rate", 4, 9)]

    def test_of_modes_the_hull_is_told(self) -> None:
        modes = (mode("eco", 2, 90, 1), mode("fast", 60, 70, 8))
        moded = {"rate": RATE, "confidence": CONFIDENCE}
        profile = Profile(publisher="P", type="temperatureEvent", modes=modes, mode="eco", moded=moded)
        assert self.told(M1, profile) == [("rate", 2, 60)]
