"""Generated properties, profiles and expectations: few values, so that ties, gaps and exact fits are common."""

from __future__ import annotations

import random

from situ.quality.match.match_index import MatchIndex
from situ.quality.model.costs import ConstantCost, Cost, PiecewiseCost
from situ.quality.model.declarations import Capability, Expectation, Mode, Need, Profile, QualityProperty

PROPERTIES = (
    QualityProperty(name="rate", lo=0, hi=10, hop="worst", quantum=0),
    QualityProperty(name="latency", lo=0, hi=10, maximise=False, hop="add", quantum=0),
    QualityProperty(name="share", lo=0, hi=10, hop="multiply", quantum=0),
    QualityProperty(name="trust", levels=("none", "low", "high"), lo=0, hi=2, quantum=0),
    QualityProperty(name="drift", lo=0, hi=10, maximise=False, quantum=0),
)
"""One for every rule of hops, both directions, levels."""


def value_of(dice: random.Random, about: QualityProperty) -> float:
    return float(dice.randint(int(about.lo), int(about.hi)))


def some(dice: random.Random, properties: tuple[QualityProperty, ...], least: int) -> list[QualityProperty]:
    count = dice.choice([least, min(2, len(properties)), len(properties), dice.randint(least, len(properties))])
    return dice.sample(properties, count)


def make_cost(dice: random.Random, about: QualityProperty, lb: float, ub: float) -> Cost:
    if about.levels or dice.random() < 0.5 or lb == ub:
        return ConstantCost(float(dice.randint(0, 2)))
    inner = sorted({lb, ub, *(dice.uniform(lb, ub) for _ in range(dice.randint(0, 2)))})
    costs = [float(dice.randint(0, 4)) for _ in inner]
    if dice.random() < 0.7:
        costs.sort(reverse=not about.maximise)
    return PiecewiseCost(tuple(zip(inner, costs, strict=True)))


def make_capability(dice: random.Random, about: QualityProperty) -> Capability:
    lb, cv, ub = sorted(value_of(dice, about) for _ in range(3))
    return Capability(about=about, lb=lb, ub=ub, cv=cv, cost=make_cost(dice, about, lb, ub))


def make_profile(
    dice: random.Random,
    publisher: str,
    type: str = "t",
    *,
    properties: tuple[QualityProperty, ...] = PROPERTIES,
    modes: float = 0.3,
    version: int = 1,
) -> Profile:
    """Some properties, in three of ten cases some of them in modes."""
    had = some(dice, properties, 0)
    moded = {each.id: each for each in had if dice.random() < 0.6} if had and dice.random() < modes else {}
    made = tuple(
        Mode(
            name=f"m{number}",
            values={id: value_of(dice, about) for id, about in moded.items()},
            cost=float(dice.randint(0, 3)),
        )
        for number in range(dice.randint(1, 3) if moded else 0)
    )
    return Profile(
        publisher=publisher,
        type=type,
        capabilities={each.id: make_capability(dice, each) for each in had if each.id not in moded},
        modes=made,
        mode=dice.choice(made).name if made else "",
        moded=moded if made else {},
        version=version,
    )


def make_expectation(
    dice: random.Random,
    id: str,
    *,
    properties: tuple[QualityProperty, ...] = PROPERTIES,
    several: float = 0.0,
    order: int = 0,
) -> Expectation:
    needs = {}
    for about in some(dice, properties, 0):
        lb, ub = sorted(value_of(dice, about) for _ in range(2))
        needs[about.id] = Need(about=about, lb=lb, ub=ub)
    return Expectation(
        id=id,
        subscription=f"{id}/s",
        needs=needs,
        publishers=dice.randint(2, 3) if dice.random() < several else 1,
        order=order,
    )


def witness(index: MatchIndex, id: str) -> str | None:
    """The profile that makes the state of an expectation so; none where it is unsatisfied or takes several."""
    number = int(index._witnesses[index._numbers[id]])
    return index._publishing[number] if number >= 0 else None
