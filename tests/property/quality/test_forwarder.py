"""Routers on generated trees: each says what one that knows all profiles would say, and the messages end."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from situ.lang.records import replace
from situ.quality.match.satisfaction import Satisfaction, match
from situ.quality.model.allocation_problem import Target, point_at
from situ.quality.model.declarations import Expectation, QualityProperty
from situ.quality.overlay.forwarder import AdviceWanted, OfferMessage, ProfileProvided, ProfileWithdrawn
from situ.quality.overlay.offers import MOST_OFFERS, least_extra_cost
from tests.offered import PROPERTIES, make_expectation, make_profile
from tests.routers import Forest, make_figures
from tests.volume import cases

NORMAL, LONG = 20, 1_000
POOLS = ("red", "blue")
Asked = dict[str, list[tuple[Expectation, frozenset[str]]]]


def make_tree(
    dice: random.Random, properties: tuple[QualityProperty, ...], *, most: int
) -> tuple[Forest, list[tuple[str, str]]]:
    """Routers, and how they are linked."""
    forest = Forest(dice)
    names = [f"r{number}" for number in range(dice.randint(1, 7))]
    for name in names:
        forest.add(name, most=most)
    tree = [(name, dice.choice(names[:place])) for place, name in enumerate(names) if place]
    for one, other in tree:
        forest.link(one, other, (make_figures(dice, properties), make_figures(dice, properties)))
        if dice.random() < 0.5:
            forest.deliver()
    forest.deliver()
    return forest, tree


def make_asked(dice: random.Random, forest: Forest, properties: tuple[QualityProperty, ...]) -> Asked:
    asked: Asked = {}
    for name, standing in forest.standings.items():
        asked[name] = [
            (make_expectation(dice, f"{name}x{number}", properties=properties), frozenset(dice.sample(POOLS, place)))
            for number, place in enumerate((1, 1, 1, 2, 2))
        ]
        standing.put_many(expectations=asked[name])
    return asked


def make_change(
    dice: random.Random, forest: Forest, tree: list[tuple[str, str]], properties: tuple[QualityProperty, ...]
) -> int:
    """Something happens somewhere; nothing is delivered yet, or a little. How many changes it was."""
    home = dice.choice(sorted(forest.routers))
    publisher = f"{home}p{dice.randrange(3)}"
    what = dice.choice("profile profile profile withdraw figures anew flap tear".split())
    if what in ("figures", "anew", "flap", "tear") and not tree:
        what = "profile"
    if what == "profile":
        profile = make_profile(dice, publisher, properties=properties, version=dice.randrange(99))
        forest.give(home, ProfileProvided(profile=profile, pool=dice.choice(POOLS)))
    elif what == "withdraw":
        forest.give(home, ProfileWithdrawn(profile=f"{publisher}/t"))
    elif what in ("figures", "anew", "flap"):
        one, other = dice.choice(tree)
        if what == "flap":
            forest.unlink(one, other)
        figures = make_figures(dice, properties), make_figures(dice, properties)
        forest.link(one, other, figures, anew=what == "anew")
        return 1 if what == "figures" else 4
    else:
        place = dice.randrange(len(tree))
        one, other = tree[place]
        forest.unlink(one, other)
        settled = dice.random() < 0.5
        if settled:
            forest.deliver()
        there = dice.choice([each for each in sorted(forest.routers) if not _connected(forest, one, each)])
        tree[place] = (one, there)
        forest.link(one, there, (make_figures(dice, properties), make_figures(dice, properties)))
        # What both ends said of the lost link may otherwise meet behind the new one.
        return 2 if settled else 4
    return 1


def _connected(forest: Forest, one: str, other: str) -> bool:
    seen, waiting = {one}, [one]
    while waiting:
        for there in forest.neighbours(waiting.pop()):
            if there not in seen:
                seen.add(there)
                waiting.append(there)
    return other in seen


def assert_all_know(forest: Forest, asked: Asked, *, costs: bool) -> Counter[Satisfaction]:
    seen: Counter[Satisfaction] = Counter()
    for name, expectations in asked.items():
        everything = list(forest.everything(name))
        known = forest.routers[name].known().values()
        for expectation, pools in expectations:
            composed = [profile for _, profile, pool in everything if pool in pools]
            state = match(expectation, composed).state
            assert forest.standings[name].state(expectation.id) is state
            seen[state] += 1
            if costs and state is Satisfaction.SATISFIABLE:
                least = min(least_extra_cost(expectation, each) for each in composed)
                found = min(least_extra_cost(expectation, each) for each, pool in known if pool in pools)
                assert found == pytest.approx(least, abs=1e-9)
    return seen


@cases(NORMAL, LONG)
def test_every_router_says_what_one_that_knows_all_would_say(cases: int) -> None:
    seen: Counter[Satisfaction] = Counter()
    for seed in range(cases):
        dice = random.Random(seed)
        properties = PROPERTIES[: dice.randint(2, 5)]
        most = dice.choice((0, 1, MOST_OFFERS))
        forest, tree = make_tree(dice, properties, most=most)
        asked = make_asked(dice, forest, properties)
        for _ in range(8):
            forest.sent.clear()
            changes = sum(make_change(dice, forest, tree, properties) for _ in range(dice.choice((1, 1, 3))))
            forest.deliver()
            assert max(forest.sent.values(), default=0) <= changes, seed
            seen += assert_all_know(forest, asked, costs=most == MOST_OFFERS)
    assert min(seen.values()) > cases, seen


@cases(NORMAL, LONG)
def test_a_change_goes_over_every_link_at_most_once_and_away_from_where_it_happened(cases: int) -> None:
    silent = 0
    for seed in range(cases):
        dice = random.Random(seed)
        forest, _ = make_tree(dice, PROPERTIES[:3], most=MOST_OFFERS)
        for _ in range(8):
            home = dice.choice(sorted(forest.routers))
            profile = make_profile(dice, f"{home}p{dice.randrange(2)}", properties=PROPERTIES[:3])
            forest.sent.clear()
            forest.give(home, ProfileProvided(profile=profile, pool=dice.choice(POOLS)))
            forest.deliver()
            assert all(count == 1 for count in forest.sent.values()), seed
            assert not any((there, here) in forest.sent for here, there in forest.sent), seed
            silent += not forest.sent and len(forest.routers) > 1
    assert silent > cases / 10, "some changes concern nobody else"


@cases(NORMAL, LONG)
def test_with_rounding_no_router_is_more_optimistic_and_small_changes_stay_at_home(cases: int) -> None:
    calm = tuple(replace(each, quantum=None if each.levels else 2.0) for each in PROPERTIES[:4])
    worse, silent = 0, 0
    for seed in range(cases):
        dice = random.Random(seed)
        forest, tree = make_tree(dice, calm, most=MOST_OFFERS)
        asked = make_asked(dice, forest, calm)
        for _ in range(6):
            make_change(dice, forest, tree, calm)
            forest.deliver()
        for name, expectations in asked.items():
            for expectation, pools in expectations:
                found, exact = forest.standings[name].state(expectation.id), _exact(forest, name, expectation, pools)
                assert found <= exact, seed
                worse += found < exact
        silent += _tremble(dice, forest)
    assert worse > cases / 20
    assert silent > cases / 10


def _exact(forest: Forest, name: str, expectation: Expectation, pools: frozenset[str]) -> Satisfaction:
    """What one would say that rounds nothing: as if every property had a quantum of 0."""
    exact = Forest(forest.dice, figures=forest.figures)
    for router in forest.routers.values():
        exact.add(router.name, most=router.most)
        for pool, profiles in router.own.items():
            for profile in profiles.values():
                capabilities = {
                    id: replace(each, about=replace(each.about, quantum=0)) for id, each in profile.capabilities.items()
                }
                moded = {id: replace(each, quantum=0) for id, each in profile.moded.items()}
                exact.give(
                    router.name,
                    ProfileProvided(profile=replace(profile, capabilities=capabilities, moded=moded), pool=pool),
                )
    return exact.central(name, expectation, pools)


def _tremble(dice: random.Random, forest: Forest) -> bool:
    """A current value moves a little, within a step of rounding; whether it is there and nobody heard of it."""
    for name, router in sorted(forest.routers.items()):
        for pool, profiles in sorted(router.own.items()):
            for profile in profiles.values():
                for id, each in profile.capabilities.items():
                    if each.about.maximise and not each.about.levels and each.lb <= each.cv + 0.5 <= each.ub:
                        moved = replace(each, cv=each.cv + 0.5) if each.cv % 2 == 0 else each
                        forest.sent.clear()
                        capabilities = {**profile.capabilities, id: moved}
                        forest.give(
                            name, ProfileProvided(profile=replace(profile, capabilities=capabilities), pool=pool)
                        )
                        forest.deliver()
                        return moved is not each and not forest.sent
    return False


@cases(NORMAL, LONG)
def test_advice_goes_back_to_the_publisher_and_is_enough_when_it_arrives(cases: int) -> None:
    adapted = 0
    for seed in range(cases):
        dice = random.Random(seed)
        properties = PROPERTIES[: dice.randint(2, 4)]
        forest, tree = make_tree(dice, properties, most=MOST_OFFERS)
        for _ in range(12):
            make_change(dice, forest, tree, properties)
        forest.deliver()
        for name, (id, (profile, pool)) in [
            (name, each) for name, router in forest.routers.items() for each in sorted(router.known().items())
        ]:
            expectation = make_expectation(dice, "x", properties=properties)
            if profile.modes or match(expectation, [profile]).state is not Satisfaction.SATISFIABLE:
                continue
            short = {
                need_id: need.floor
                for need_id, need in expectation.needs.items()
                if not need.about.at_least(profile.capabilities[need_id].cv, need.floor)
            }
            forest.adapted.clear()
            forest.advise(name, AdviceWanted(profile=id, target=Target(values=short)))
            ((home, advice),) = forest.adapted
            chosen = forest.routers[home].own[pool][advice.profile]
            assert all(
                chosen.capabilities[each].lb <= value <= chosen.capabilities[each].ub
                for each, value in advice.target.values.items()
            )
            capabilities = {
                each: replace(
                    capability, cv=capability.about.better(advice.target.values.get(each, capability.cv), capability.cv)
                )
                for each, capability in chosen.capabilities.items()
            }
            forest.give(home, ProfileProvided(profile=replace(chosen, capabilities=capabilities), pool=pool))
            forest.deliver()
            assert expectation.is_met_by(point_at(forest.routers[home].own[pool][advice.profile], Target()))
            assert forest.central(name, expectation, frozenset({pool})) is Satisfaction.SATISFIED
            assert not forest.impossible
            adapted += home != name
            break
    assert adapted > cases / 8


def test_nobody_behind_a_router_learns_who_publishes() -> None:
    for seed in range(30):
        dice = random.Random(seed)
        forest, _ = make_tree(dice, PROPERTIES, most=MOST_OFFERS)
        for name in forest.routers:
            profile = make_profile(dice, f"secret-{name}", properties=PROPERTIES, version=77)
            forest.give(name, ProfileProvided(profile=profile, pool="red"))
        messages = []
        while any(forest.way.values()):
            messages += [message for way in forest.way.values() for message in way]
            forest.deliver(1)
        for message in messages:
            assert isinstance(message, OfferMessage)
            assert "secret" not in repr(message)
            assert "version=77" not in repr(message)
            assert message.pools
