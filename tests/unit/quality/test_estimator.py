"""What is measured against what is declared: when it takes its place, when it gives it back, and what trembles."""

from __future__ import annotations

import pytest

from situ.quality.measurement.estimator import Correction, Estimate, ValueShift, effective_profile
from situ.quality.measurement.panes import LENGTH, Pane, PaneStore, PaneWindow, SequenceRange, Sketch, measure_window
from situ.quality.model.declarations import BUILT_IN, Mode, Profile
from tests.negotiating import can, in_modes, provides

SECOND = 1_000_000
MINUTE = 60 * SECOND
T0 = 1_000 * MINUTE


def panes(rates: list[float], start: int = T0, publisher: str = "reader", **more: object) -> list[Pane]:
    """One pane for each rate per minute, events evenly in it, the last at its end."""
    found = []
    for place, rate in enumerate(rates):
        begin = start + place * LENGTH
        events = round(rate / 6)
        last = begin + LENGTH - 1 if events else None
        found.append(Pane(publisher=publisher, type="badge", start=begin, events=events, last=last, **more))  # type: ignore[arg-type]
    return found


class Watched:
    """A profile whose events are measured pane by pane."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.estimate = Estimate()
        self.gathered = PaneStore()
        self.time = T0
        self.moves: list[tuple[int, ValueShift]] = []

    def run(self, minutes: float, rate: float, **more: object) -> list[ValueShift]:
        found: list[ValueShift] = []
        for _ in range(round(minutes * 6)):
            new = panes([rate], self.time, self.profile.publisher, **more)
            self.gathered.add(new)
            self.estimate.hear(new)
            self.time += LENGTH
            moves = self.estimate.observe(self.profile, self.gathered, self.time)
            self.moves += [(self.time - T0, each) for each in moves]
            found += moves
        return found

    @property
    def rate(self) -> float:
        return self.estimate.corrected.get("rate", self.profile.capabilities["rate"].cv)


def test_who_keeps_its_word_is_not_corrected() -> None:
    watched = Watched(provides("reader", rate=(1, 120, 60)))
    assert watched.run(20, 60) == []
    assert watched.estimate.measured["rate"] == pytest.approx(60)
    assert "rate" in watched.estimate.confirmed


def test_lying_publisher_is_corrected_within_two_windows() -> None:
    watched = Watched(provides("reader", rate=(1, 120, 60)))
    watched.run(5, 30)
    (when, move), *rest = watched.moves
    assert rest == []
    assert (move.property, move.before, move.worse) == ("rate", 60, True)
    assert move.after == pytest.approx(30)
    # The first pane is not measured whole; then two windows.
    assert when == 10 * SECOND + 2 * MINUTE
    assert watched.estimate.violations(watched.profile) == {"rate"}


def test_declaration_returns_after_five_good_windows() -> None:
    watched = Watched(provides("reader", rate=(1, 120, 60)))
    watched.run(5, 30)
    watched.run(2.5, 60)
    assert watched.rate == pytest.approx(60, rel=0.1)
    assert "rate" in watched.estimate.corrected, "what is measured rules still"
    watched.run(3, 60)
    assert "rate" not in watched.estimate.corrected
    assert watched.estimate.violations(watched.profile) == set()
    assert not watched.moves[-1][1].worse


@pytest.mark.parametrize("rates", [(54, 66), (60, 54), (66, 60)])
def test_trembling_within_a_tenth_moves_nothing(rates: tuple[float, float]) -> None:
    watched = Watched(provides("reader", rate=(1, 120, 60)))
    for place in range(120):
        assert watched.run(1 / 6, rates[place % 2]) == []


def test_what_two_windows_do_not_both_show_moves_nothing() -> None:
    watched = Watched(provides("reader", rate=(1, 120, 60)))
    watched.run(5, 60)
    watched.run(0.5, 30)
    watched.run(5, 60)
    assert watched.moves == []


def test_more_than_declared_is_no_violation() -> None:
    watched = Watched(provides("reader", rate=(1, 120, 60)))
    watched.run(4, 120)
    assert [(move.after, move.worse) for _, move in watched.moves] == [(pytest.approx(120), False)]


def test_silence_of_three_gaps_moves_at_once_and_then_rarely() -> None:
    watched = Watched(provides("reader", rate=(1, 120, 6)))
    watched.run(10, 6)
    assert watched.moves == []
    watched.run(30, 0)
    times = [when - 10 * MINUTE for when, _ in watched.moves]
    assert times[0] == 30 * SECOND, "three gaps of ten seconds"
    assert len(times) <= 4, "each time it has been silent three times as long as before"
    assert watched.rate == 0
    assert all(move.worse for _, move in watched.moves)
    count = len(watched.moves)
    watched.run(15, 6)
    assert [move.worse for _, move in watched.moves[count:]] == [False] * (len(watched.moves) - count)
    assert watched.rate == 6
    assert watched.estimate.corrected == {}


def test_few_events_make_windows_long() -> None:
    watched = Watched(provides("reader", rate=(1, 60, 12)))
    watched.run(1.5, 6)
    assert watched.estimate.judged is None
    watched.run(2, 6)
    assert watched.estimate.judged is not None
    assert watched.estimate.measured["rate"] == pytest.approx(6)


def test_who_declares_another_value_is_measured_from_then_on() -> None:
    watched = Watched(provides("reader", rate=(1, 120, 60)))
    watched.run(5, 60)
    before, after = watched.profile, provides("reader", rate=(1, 120, 120))
    watched.estimate.restart(before, after, watched.time)
    watched.profile = after
    watched.run(8, 120)
    assert watched.moves == []


def test_saying_the_same_again_corrects_nothing() -> None:
    watched = Watched(provides("reader", rate=(1, 120, 60)))
    watched.run(5, 30)
    watched.estimate.restart(watched.profile, watched.profile, watched.time)
    assert watched.rate == pytest.approx(30)


def test_middleware_adds_latency() -> None:
    watched = Watched(provides("reader", rate=(1, 120, 60)))
    watched.run(3, 60, latency=Sketch.of([20_000] * 10))
    profile = effective_profile(watched.profile, watched.estimate.correction(), lambda _: True)
    assert profile.capabilities["latency"].cv == pytest.approx(20, rel=0.03)
    assert profile.capabilities["latency"].best == profile.capabilities["latency"].cv
    assert not any(move.worse for _, move in watched.moves)


def test_restart_keeps_what_holds() -> None:
    watched = Watched(provides("reader", rate=(1, 120, 60)))
    watched.run(5, 30)
    again = Estimate.from_json(watched.estimate.as_json())
    assert again.corrected == watched.estimate.corrected
    watched.estimate, watched.gathered = again, PaneStore()
    count = len(watched.moves)
    watched.run(5, 30)
    assert watched.moves[count:] == []


# ── what windows say ──


def window(**values: object) -> PaneWindow:
    pane = Pane(publisher="p", type="t", start=0, events=1_000, last=MINUTE - 1, **values)  # type: ignore[arg-type]
    numbers = tuple(pane.numbers.values())
    return PaneWindow(start=0, end=MINUTE, panes=(pane,), numbers=numbers)


@pytest.mark.parametrize(
    ("found", "name", "value"),
    [
        (window(confidence=80_000.0, confident=1_000), "confidence", 80),
        (window(), "confidence", None),
        (window(latency=Sketch.of([1_000] * 94 + [9_000] * 6)), "latency", 9),
        (window(freshness=Sketch.of([-5] * 100)), "freshness", 0),
        (window(freshness=Sketch.of([2_000_000] * 100)), "freshness", 2),
        (window(numbers={1: SequenceRange(1, 100, 90)}), "completeness", 0.9),
        (window(numbers={1: SequenceRange(1, 100, 90), 2: SequenceRange(1, 50, 30)}), "completeness", 0.8),
        (window(), "completeness", 0.5),
        (window(accepted=200, delivered=150), "reliability", 0.75),
        (window(), "reliability", None),
        (window(disordered=2), "order", 0),
        (window(disordered=1, disordered_across=500), "order", 1),
        (window(disordered=1, disordered_across=1), "order", 2),
        (window(), "trust", None),
    ],
)
def test_readings(found: PaneWindow, name: str, value: float | None) -> None:
    measured = measure_window(found, [name], declared_rate=2_000).get(name)
    assert measured == (None if value is None else pytest.approx(value, rel=0.03))


def test_numbers_are_counted_over_all_types_of_a_publisher() -> None:
    gathered = PaneStore()
    for type, numbers in (("a", SequenceRange(1, 99, 50)), ("b", SequenceRange(2, 100, 50))):
        gathered.add([Pane(publisher="p", type=type, start=T0, events=30, numbers={1: numbers})])
    found = gathered.window("p/a", T0 - MINUTE, T0 + LENGTH)
    assert found is not None
    assert measure_window(found, ["completeness"], None) == {"completeness": 1.0}


# ── effective profiles ──


def test_effective_profiles() -> None:
    profile = provides("p", rate=(2, 60, 10), confidence=(80, 80, 80))

    def rate(correction: Correction, improvable: bool = True) -> tuple[float, float, float]:
        found = effective_profile(profile, correction, lambda _: improvable).capabilities["rate"]
        return found.lb, found.cv, found.ub

    assert effective_profile(profile, Correction(), lambda _: True) is profile
    assert rate(Correction(measured={"rate": 5})) == (2, 5, 60)
    assert rate(Correction(measured={"rate": 1})) == (1, 1, 60), "the range is widened"
    assert rate(Correction(measured={"rate": 90})) == (2, 90, 90)
    assert rate(Correction(limits={"rate": 20})) == (2, 10, 20)
    assert rate(Correction(limits={"rate": 5})) == (2, 10, 10), "what it does it can do"
    assert rate(Correction(frozen=True)) == (2, 10, 10)
    assert rate(Correction(), improvable=False) == (2, 10, 10)


def test_effective_profiles_of_less_is_better() -> None:
    profile = Profile(publisher="p", type="t", capabilities={"freshness": can("freshness", 1, 10, 5)})

    def fresh(correction: Correction) -> tuple[float, float, float]:
        found = effective_profile(profile, correction, lambda _: True).capabilities["freshness"]
        return found.lb, found.cv, found.ub

    assert fresh(Correction(measured={"freshness": 12})) == (1, 12, 12)
    assert fresh(Correction(limits={"freshness": 3})) == (3, 5, 10)
    assert fresh(Correction(frozen=True)) == (5, 5, 10)


def test_effective_modes() -> None:
    slow, fast = (Mode(name=name, values={"rate": rate}) for name, rate in (("slow", 2), ("fast", 60)))
    profile = in_modes("p", "slow", slow, fast)
    barred = effective_profile(profile, Correction(barred=frozenset({"fast", "slow"})), lambda _: True)
    assert [each.name for each in barred.modes] == ["slow"], "the current one is there whatever was said"
    assert [each.name for each in effective_profile(profile, Correction(frozen=True), lambda _: True).modes] == ["slow"]
    measured = effective_profile(profile, Correction(measured={"rate": 1}), lambda _: True)
    assert measured.current() == {"rate": 1}
    assert [point["rate"] for point in measured.reach()] == [1, 60]


def test_property_of_every_measure_is_built_in() -> None:
    measured = measure_window(window(confident=1, accepted=1, numbers={1: SequenceRange(1, 1, 1)}), BUILT_IN, 1.0)
    assert set(measured) <= set(BUILT_IN)
