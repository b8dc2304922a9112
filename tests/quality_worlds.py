"""Generated expectations and profiles: few values on small scales, so that equal bounds and ties are common."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from situ.quality.model.costs import FREE, ConstantCost, Cost, LevelCost, PiecewiseCost, read_formula
from situ.quality.model.declarations import Capability, Expectation, Mode, Need, Profile, QualityProperty

PROPERTIES = (
    QualityProperty(name="speed", lo=0, unit="1/min"),
    QualityProperty(name="delay", lo=0, unit="ms", maximise=False, hop="add"),
    QualityProperty(name="share", lo=0, hi=1, hop="multiply"),
    QualityProperty(name="care", levels=("none", "low", "medium", "high"), lo=0, hi=3),
    QualityProperty(name="harm", levels=("good", "fair", "bad"), lo=0, hi=2, maximise=False),
    QualityProperty(name="drift", maximise=False),
)
KNOWN: Mapping[str, QualityProperty] = {each.name: each for each in PROPERTIES}


@dataclass(frozen=True, slots=True)
class Matched:
    """An expectation, and all profiles that are relevant to it."""

    seed: int
    expectation: Expectation
    profiles: tuple[Profile, ...]


def value(dice: random.Random, about: QualityProperty) -> float:
    if about.levels:
        return float(dice.randrange(len(about.levels)))
    if about.hi == 1:
        return dice.choice((0.0, 0.25, 0.5, 0.75, 1.0))
    ends = [end for end in (about.lo, about.hi) if math.isinf(end)]
    return dice.choice([float(dice.randrange(6))] * 9 + ends)


def finite(dice: random.Random, about: QualityProperty) -> float:
    found = value(dice, about)
    return found if math.isfinite(found) else float(dice.randrange(6))


def span(dice: random.Random, about: QualityProperty) -> tuple[float, float]:
    lb, ub = sorted((value(dice, about), value(dice, about)))
    return (lb, lb) if dice.random() < 0.2 else (lb, ub)


def some(dice: random.Random, least: int, most: int) -> list[QualityProperty]:
    return dice.sample(PROPERTIES, dice.randint(least, min(most, len(PROPERTIES))))


def make_need(dice: random.Random, about: QualityProperty) -> Need:
    lb, ub = span(dice, about)
    return Need(about=about, lb=lb, ub=ub)


def make_expectation(dice: random.Random, id: str = "E", most: int = 3) -> Expectation:
    needs = {each.id: make_need(dice, each) for each in some(dice, 0 if dice.random() < 0.05 else 1, most)}
    return Expectation(
        id=id,
        subscription=f"client-{dice.randrange(3)}/sub",
        needs=needs,
        utility=float(dice.randrange(5)),
        publishers=dice.choice((1, 1, 1, 1, 2, 3)),
    )


def make_cost(dice: random.Random, about: QualityProperty, lb: float, ub: float) -> Cost:
    if about.levels:
        return LevelCost(tuple((float(each), float(dice.randrange(9))) for each in range(len(about.levels))))
    if not (math.isfinite(lb) and math.isfinite(ub)):
        return ConstantCost(float(dice.randrange(1, 9)))
    if dice.random() < 0.3:
        return read_formula("0.5 * x + 6" if about.maximise else "7 - x")
    if dice.random() < 0.5:
        places = sorted({lb, ub, (lb + ub) / 2})
        return PiecewiseCost(tuple((place, float(dice.randrange(9))) for place in places))
    return FREE


def make_capability(dice: random.Random, about: QualityProperty) -> Capability:
    lb, ub = sorted((value(dice, about), value(dice, about)))
    between = [each for each in (value(dice, about) for _ in range(6)) if lb <= each <= ub]
    return Capability(
        about=about, lb=lb, ub=ub, cv=dice.choice([*between, lb, ub]), cost=make_cost(dice, about, lb, ub)
    )


def make_profile(dice: random.Random, publisher: str = "P", type: str = "T") -> Profile:
    chosen = some(dice, 1, 5)
    moded = {each.id: each for each in chosen[: dice.randrange(len(chosen) + 1)]} if dice.random() < 0.4 else {}
    modes = tuple(
        Mode(
            name=f"mode-{place}",
            values={id: finite(dice, each) for id, each in moded.items()},
            cost=float(dice.randrange(5)),
        )
        for place in range(dice.randint(1, 4) if moded else 0)
    )
    return Profile(
        publisher=publisher,
        type=type,
        capabilities={each.id: make_capability(dice, each) for each in chosen if each.id not in moded},
        modes=modes,
        mode=dice.choice(modes).name if modes else "",
        moded=moded,
    )


def make_matched(seed: int) -> Matched:
    dice = random.Random(seed)
    profiles = {
        (publisher, type): make_profile(dice, publisher, type)
        for publisher, type in ((f"P{dice.randrange(4)}", f"T{dice.randrange(3)}") for _ in range(dice.randrange(7)))
    }
    return Matched(seed, make_expectation(dice), tuple(profiles.values()))


def matched(cases: int, start: int = 0) -> Iterator[Matched]:
    return (make_matched(start + seed) for seed in range(cases))
