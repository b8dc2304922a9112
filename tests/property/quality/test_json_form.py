"""What is declared about quality is the same from JSON, and a file that says the same means the same."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable

import pytest

from situ.lang.documents import parse_json, parse_yaml
from situ.lang.problems import Problems
from situ.lang.records import replace
from situ.lang.types.resolve import load_types
from situ.lang.types.table import Types
from situ.quality.model.costs import read_formula
from situ.quality.model.declarations import (
    BUILT_IN,
    Aggregate,
    Expectation,
    Need,
    Profile,
    PublisherAction,
    Quality,
    QualityEnvironment,
    QualityProperty,
    Strategy,
)
from situ.quality.model.json_form import quality_as_json, quality_from_json
from situ.quality.model.shapes import UNSHAPED, EventFloor, Limit, Shape, Suppress, Thin, shape_as_json, shape_from_json
from situ.quality.parse.quality_files import load_quality
from tests.quality_worlds import KNOWN, make_cost, make_expectation, make_profile
from tests.volume import cases

NORMAL, LONG = 75, 20_000
RATE, FRESHNESS = BUILT_IN["rate"], BUILT_IN["freshness"]
IMPRECISION = replace(BUILT_IN["imprecision"], of="power", unit="W")


def types() -> Types:
    text = "events:\n" + "".join(f"  T{each}: {{power: double W, node: string}}\n" for each in range(3))
    return load_types([parse_yaml(text, "types/a.yaml")], Problems())


TYPES = types()


def with_options(dice: random.Random, expectation: Expectation) -> Expectation:
    """Options, and needs of the built-in properties that have some."""
    needs = dict(expectation.needs)
    if dice.random() < 0.4:
        keep = dice.choice(("first", "last", "best"))
        needs["rate"] = Need(about=RATE, lb=1, ub=5, per="node", across=dice.random() < 0.5, keep=keep)
    if dice.random() < 0.4:
        needs["freshness"] = Need(about=FRESHNESS, lb=0, ub=2.5, each=True, keep_missing=dice.random() < 0.5)
    if dice.random() < 0.4:
        silence = dice.choice((None, 1, 60_000_000))
        needs[IMPRECISION.id] = Need(about=IMPRECISION, lb=0, ub=30, max_silence=silence, per_key={"node7": 5.5})
    aggregate = Aggregate(function="avg", attribute="power", window=60_000_000, every=10_000_001)
    return replace(
        expectation,
        needs=needs,
        selected=dice.random() < 0.3,
        aggregate=dice.choice((None, aggregate)),
    )


def make_quality(seed: int) -> Quality:
    dice = random.Random(seed)
    expectations = [with_options(dice, make_expectation(dice, f"E{dice.randrange(99)}")) for _ in range(4)]
    profiles = [make_profile(dice, f"P{dice.randrange(4)}", f"T{dice.randrange(3)}") for _ in range(4)]
    return Quality(
        properties=KNOWN,
        expectations={each.id: each for each in expectations},
        profiles={each.id: each for each in profiles},
        actions=(
            PublisherAction(property="rate", direction="down", action="thin", cost=read_formula("0.1 * x")),
            PublisherAction(
                property="care", direction="up", action="adaptPublisher", cost=make_cost(dice, KNOWN["care"], 0, 3)
            ),
            PublisherAction(
                property="care", direction="up", action="adaptPublisher then select", steps=("adaptPublisher", "select")
            ),
        ),
        strategies={"default": Strategy(name="utility", weight=2.0, budget=5.0, protect=False)},
    )


@cases(NORMAL, LONG)
def test_quality_is_the_same_from_json(cases: int) -> None:
    for seed in range(cases):
        quality = make_quality(seed)
        text = json.dumps(quality_as_json(quality), allow_nan=False)
        again = quality_from_json(json.loads(text))
        assert again == quality, seed
        assert list(again.expectations) == list(quality.expectations), "their order ranks them"
        assert json.dumps(quality_as_json(again)) == text


@cases(NORMAL, LONG)
def test_a_file_that_says_the_same_means_the_same(cases: int) -> None:
    read = 0
    for seed in range(cases):
        quality = make_quality(seed)
        if not all(map(math.isfinite, numbers(quality))):
            continue
        problems = Problems()
        clients = {f"P{each}": TYPES for each in range(4)}
        subscriptions = {each.subscription: ("T0", "T1", "T2") for each in quality.expectations.values()}
        around = QualityEnvironment(types=TYPES, subscriptions=subscriptions, clients=clients)
        document = parse_json(json.dumps(quality_as_json(quality)), "quality/a.yaml")
        assert load_quality([document], around, problems) == quality, seed
        assert problems.errors == (), seed
        read += 1
    assert read > cases / 10


def numbers(quality: Quality) -> Iterable[float]:
    """What a person would have to write: ends of domains without a number are left out."""
    for expectation in quality.expectations.values():
        for need in expectation.needs.values():
            yield from (end for end, left in ((need.lb, need.about.lo), (need.ub, need.about.hi)) if end != left)
    for profile in quality.profiles.values():
        yield from said_of(profile)


def said_of(profile: Profile) -> Iterable[float]:
    for each in profile.capabilities.values():
        ends: tuple[tuple[float, float], ...] = ((each.lb, each.about.lo), (each.ub, each.about.hi))
        yield from (end for end, left in ends if end != left)
        yield each.cv


def make_shape(seed: int) -> Shape:
    dice = random.Random(seed)

    def perhaps(each: Shape) -> dict[str, object]:
        return {name: getattr(each, name) for name in Shape.__struct_fields__ if dice.random() < 0.5}

    limits = tuple(
        Limit(
            events=dice.randrange(1, 99),
            minutes=dice.randrange(1, 3),
            form=dice.choice(("slot", "quota")),
            since=dice.choice((None, 7)),
            until=dice.choice((None, 9)),
        )
        for _ in range(dice.randrange(1, 4))
    )
    whole = Shape(
        sources=frozenset(dice.sample(("a", "b", "c"), dice.randrange(3))),
        each=(EventFloor(about="confidence", floor=75.0, keep_missing=dice.random() < 0.5),),
        aggregate=Aggregate(function="max", attribute="power", window=60_000_000, every=10_000_000),
        suppress=(
            Suppress(
                attribute="power", delta=0.5, per="node", per_key=(("a", 0.1),), max_silence=dice.choice((None, 5))
            ),
        ),
        thin=Thin(limits=limits, per="node", across=dice.random() < 0.5, keep=dice.choice(("first", "last", "best"))),
    )
    return replace(UNSHAPED, **perhaps(whole))  # type: ignore[arg-type]


@cases(NORMAL, LONG)
def test_shapes_are_the_same_from_json(cases: int) -> None:
    for seed in range(cases):
        shape = make_shape(seed)
        assert shape_from_json(json.loads(json.dumps(shape_as_json(shape)))) == shape, seed
    assert shape_as_json(UNSHAPED) == {}


def test_what_is_no_quality_is_not_read() -> None:
    whole = quality_as_json(make_quality(1))
    for broken in (
        {**whole, "expectations": [{"id": 5}]},
        {**whole, "expectations": [{**whole["expectations"][0], "later": 1}]},
        {**whole, "profiles": [{"publisher": "P"}]},
        {**whole, "properties": {"a": {"range": 5}}},
        {**whole, "actions": [{}]},
        {**whole, "strategy": {"default": 5}},
        [],
    ):
        with pytest.raises(ValueError, match=r"no quality|no expectation|no profile|is none of"):
            quality_from_json(broken)
    for shape in ({"later": 1}, {"thin": {}}, [], {"aggregate": {"fn": "avg"}}):
        with pytest.raises(ValueError, match="no shape"):
            shape_from_json(shape)


def test_a_property_says_all_of_itself() -> None:
    about = QualityProperty(name="a", lo=-1, unit="m", maximise=False, hop="add", exceed="use", scale=2.0, quantum=0.0)
    assert quality_from_json(quality_as_json(Quality(properties={"a": about}))).properties == {"a": about}
