"""States kept while profiles and expectations come, change and go are those of matching against all profiles."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest

from situ.quality.match import match_index as standing_module
from situ.quality.match.match_index import MatchIndex
from situ.quality.match.point_matrix import PropertyColumns, floors_of
from situ.quality.match.pools import ProfileMatrix, Skyline
from situ.quality.match.satisfaction import QualityMatch, Satisfaction, match
from situ.quality.model.allocation_problem import slope
from situ.quality.model.declarations import Expectation, Profile
from tests.offered import PROPERTIES, make_expectation, make_profile, witness
from tests.oracles.quality_match import match_by_enumeration
from tests.volume import cases

NORMAL, LONG = 1_250, 20_000
"""Cases: expectations whose state is compared after a change."""


@dataclass(slots=True)
class World:
    """What there is, as plain data."""

    profiles: dict[str, tuple[Profile, str]] = field(default_factory=dict)
    expectations: dict[str, tuple[Expectation, frozenset[str]]] = field(default_factory=dict)

    def relevant(self, id: str) -> list[Profile]:
        pools = self.expectations[id][1]
        return [profile for profile, pool in self.profiles.values() if pool in pools]

    def matched(self) -> dict[str, QualityMatch]:
        return {id: match(each, self.relevant(id)) for id, (each, _) in self.expectations.items()}


def make_change(dice: random.Random, world: World, standing: MatchIndex) -> frozenset[str]:
    """Something happens, to the world and to what is kept of it."""
    pools = [f"pool{number}" for number in range(3)]
    publisher, id = f"p{dice.randrange(8)}", f"x{dice.randrange(12)}"
    profile = make_profile(dice, publisher, dice.choice("tu"))
    relevant = frozenset(each for each in pools if dice.random() < 0.5)
    what = dice.choice("profile profile pool drop expectation expectation withdraw many".split())
    if what == "profile" or (what in ("pool", "drop") and not world.profiles):
        pool = world.profiles[profile.id][1] if profile.id in world.profiles else dice.choice(pools)
        world.profiles[profile.id] = (profile, pool)
        return standing.put_profile(profile, pool)
    if what == "pool":
        known = dice.choice(sorted(world.profiles))
        world.profiles[known] = (world.profiles[known][0], dice.choice(pools))
        return standing.put_profile(*world.profiles[known])
    if what == "drop":
        gone = dice.choice([*sorted(world.profiles), "nobody/t"])
        world.profiles.pop(gone, None)
        return standing.drop_profile(gone)
    if what == "withdraw":
        world.expectations.pop(id, None)
        return standing.drop_expectation(id)
    if what == "expectation":
        world.expectations[id] = (make_expectation(dice, id, several=0.2), relevant)
        return standing.put_expectation(*world.expectations[id])
    profiles = [(make_profile(dice, f"p{dice.randrange(8)}"), dice.choice(pools)) for _ in range(dice.randrange(5))]
    expectations = [
        (make_expectation(dice, f"x{dice.randrange(12)}", several=0.2), relevant) for _ in range(dice.randrange(5))
    ]
    world.profiles |= {each.id: (each, pool) for each, pool in profiles}
    world.expectations |= {each.id: (each, pools) for each, pools in expectations}
    return standing.put_many(profiles, expectations)


def assert_stands(world: World, standing: MatchIndex, matched: dict[str, QualityMatch]) -> None:
    assert standing.states() == {id: each.state for id, each in matched.items()}
    for id, each in matched.items():
        assert standing.match(id) == each
        assert standing.relevant(id) == tuple(sorted(profile.id for profile in world.relevant(id)))
        found = witness(standing, id)
        if world.expectations[id][0].publishers == 1 and each.state is not Satisfaction.UNSATISFIED:
            assert found in (each.now if each.state is Satisfaction.SATISFIED else each.able)
        else:
            assert found is None


@cases(NORMAL, LONG)
def test_kept_states_are_those_of_matching_against_all_profiles(cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[Satisfaction] = Counter()
    seed = 0
    while seen.total() < cases:
        dice = random.Random(seed)
        monkeypatch.setattr(standing_module, "_FEW", dice.choice((0, 16)))
        world, standing = World(), MatchIndex()
        before = world.matched()
        for _ in range(25):
            changed = make_change(dice, world, standing)
            after = world.matched()
            assert_stands(world, standing, after)
            different = {id for id, each in after.items() if id not in before or before[id].state is not each.state}
            assert changed == different, seed
            seen.update(each.state for each in after.values())
            before = after
        seed += 1
    assert min(seen.values()) > cases / 20, seen


@cases(NORMAL, LONG)
def test_two_skylines_say_what_all_profiles_say_and_neither_is_enough(cases: int) -> None:
    wrong = Counter[str]()
    for seed in range(cases):
        dice = random.Random(seed)
        profiles = [
            make_profile(dice, f"p{number}", properties=PROPERTIES[: dice.randint(2, 3)])
            for number in range(dice.randint(0, 6))
        ]
        now, able = Skyline(PropertyColumns()), Skyline(PropertyColumns())
        for profile in profiles:
            now.put((profile.id, 0), profile.current())
            for place, point in enumerate(profile.reach()):
                able.put((profile.id, place), point)
        by_id = {profile.id: profile for profile in profiles}
        expectation = make_expectation(dice, "x", properties=PROPERTIES[:2])
        satisfied = any(expectation.is_met_by(by_id[id].current()) for id, _ in now.members.keys)
        reached = any(expectation.is_met_by(by_id[id].reach()[place]) for id, place in able.members.keys)
        state = match_by_enumeration(expectation, profiles).state
        assert state is (
            Satisfaction.SATISFIED if satisfied else Satisfaction.SATISFIABLE if reached else Satisfaction.UNSATISFIED
        ), seed
        wrong["by reach alone"] += state is Satisfaction.SATISFIED and not any(
            expectation.is_met_by(by_id[id].current()) for id, _ in able.members.keys
        )
        wrong["by current values alone"] += state is Satisfaction.SATISFIABLE and not any(
            expectation.is_met_by(point) for id, _ in now.members.keys for point in by_id[id].reach()
        )
    assert min(wrong["by reach alone"], wrong["by current values alone"]) > cases / 500, wrong


@cases(50, 200)
def test_profiles_of_pools_that_are_not_relevant_change_nothing(cases: int) -> None:
    tried = 0
    for seed in range(cases):
        dice = random.Random(seed)
        standing = MatchIndex()
        standing.put_many(
            [(make_profile(dice, f"p{number}"), "mine") for number in range(4)],
            [(make_expectation(dice, f"x{number}", several=0.2), frozenset({"mine"})) for number in range(10)],
        )
        states = standing.states()
        for number in range(4):
            other = make_profile(dice, f"q{number}")
            assert standing.put_profile(other, "theirs") == frozenset()
            tried += any(
                match(make_expectation(dice, "y"), [other]).state is not Satisfaction.UNSATISFIED for _ in range(5)
            )
        assert standing.states() == states
    assert tried > cases / 2


def test_what_many_ask_and_provide_is_what_each_asks_and_provides() -> None:
    for seed in range(500):
        dice = random.Random(seed)
        profiles = [make_profile(dice, f"p{number}") for number in range(dice.randrange(6))]
        asking = [make_expectation(dice, f"x{number}") for number in range(dice.randrange(6))]
        columns = PropertyColumns()
        places = sorted(dice.sample(range(len(profiles)), len(profiles) // 2))
        found = ProfileMatrix({each.id: each for each in profiles}).of(places, columns)
        chosen = sorted(dice.sample(range(len(asking)), len(asking) // 2))
        (floors,) = floors_of(asking).of(chosen, columns)
        given = [profiles[place] for place in places]
        assert found.keys == [(each.id, place) for each in given for place in range(len(each.reach()))], seed
        for matrix, points in (
            (found.now, [each.current() for each in given]),
            (found.best, [point for each in given for point in each.reach()]),
            (floors, [asking[place].asked for place in chosen]),
        ):
            assert columns.widened(matrix).tolist() == columns.matrix(points).tolist(), seed
        costs = [{id: slope(each)[0] for id, each in one.capabilities.items()} for one in given]
        assert np.array_equal(columns.widened(found.rises), columns.matrix(costs), equal_nan=True), seed
        assert found.dearest == max((slope(each)[1] for one in given for each in one.capabilities.values()), default=1)
