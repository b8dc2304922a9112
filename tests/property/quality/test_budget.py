"""A budget is for all that is in force by advice, not for each plan anew.

The reference knows what each publisher did by itself and what it has been brought to since, and adds that up. Whatever
is registered, taken back, followed and fallen back to: the sum stays within the budget, and nobody is declined for a
budget that would have held what it asks for.
"""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from situ.quality.allocation.strategies import BUILT_IN_STRATEGIES
from situ.quality.model.costs import PiecewiseCost
from situ.quality.model.declarations import BUILT_IN, Mode, Profile, Quality, Strategy
from situ.quality.negotiation.feedback import Advice
from situ.quality.negotiation.inputs_and_effects import (
    Answered,
    Came,
    Providing,
    Registering,
    Relevance,
    Revising,
    Revoking,
)
from tests.negotiating import Host, can, expects
from tests.volume import cases

FLOORS = (5.0, 10.0, 20.0, 30.0, 40.0)
MOST = 64.0
COSTS = {"eco": 1.0, "mid": 4.0, "fast": 16.0}
RATES = {"eco": 2.0, "mid": 20.0, "fast": 60.0}


class World:
    """Publishers of several types, each with what it does by itself and what a unit costs it."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.types = ("a", "b")[: chance.randint(1, 2)]
        self.publishers = {f"p{number}": chance.choice(self.types) for number in range(chance.randint(1, 4))}
        self.in_modes = {each for each in self.publishers if chance.random() < 0.25}
        self.own = {each: chance.choice((0.0, 2.0, 5.0)) for each in self.publishers}
        self.asked: dict[str, float] = {}
        """Publisher → the rate that it was last advised to have."""
        self.price = {each: chance.choice((0.25, 0.5, 1.0, 2.0)) for each in self.publishers}
        names = tuple(BUILT_IN_STRATEGIES)
        self.strategies = {
            "default": Strategy(name=chance.choice(names), budget=float(chance.choice((0, 5, 10, 25, 60))), weight=0.0)
        }
        if len(self.types) > 1 and chance.random() < 0.5:
            budget = float(chance.choice((1, 7, 20)))
            self.strategies["b"] = Strategy(name=chance.choice(names), budget=budget, weight=0.0)
        self.subscriptions = {f"desk/{number}": chance.choice(self.types) for number in range(8)}
        pools = {f"{each}/{type}": type for each, type in self.publishers.items()}
        relevant = {each: frozenset({type}) for each, type in self.subscriptions.items()}
        self.host = Host(
            quality=Quality(strategies=self.strategies),
            relevance=Relevance(pools=pools, relevant=relevant),
            on_advice=lambda host, advice: self.follow(host, advice),
        ).start()
        for each in self.publishers:
            self.host.give(Came(client=each))
            self.host.call(Providing, client=each, profile=self.profile(each))

    def profile(self, publisher: str) -> Profile:
        type = self.publishers[publisher]
        if publisher in self.in_modes:
            modes = tuple(Mode(name=name, values={"rate": RATES[name]}, cost=COSTS[name]) for name in COSTS)
            moded = {"rate": BUILT_IN["rate"]}
            return Profile(publisher=publisher, type=type, modes=modes, mode="eco", moded=moded)
        cost = PiecewiseCost(points=((0.0, 0.0), (MOST, self.price[publisher] * MOST)))
        rate = can("rate", 0, MOST, self.own[publisher], cost)
        return Profile(publisher=publisher, type=type, capabilities={"rate": rate})

    def follow(self, host: Host, advice: Advice) -> None:
        """Publishers do as they are told."""
        client = advice.profile.partition("/")[0]
        if advice.kind == "withdraw":
            return
        if advice.kind == "raise":
            host.later(Answered(client=client, advice=advice.id, verdict="accepted"))
        values = {id: float(value) for id, value in advice.values.items()}
        self.asked[client] = values.get("rate", 0.0)
        host.later(Revising(ticket=0, client=client, id=advice.profile, values=values, mode=advice.mode or None))

    def happen(self, number: int) -> None:
        chance, host = self.chance, self.host
        match chance.choices(("register", "revoke", "own", "time", "again"), (6, 3, 1, 4, 1))[0]:
            case "register":
                subscription = chance.choice(sorted(self.subscriptions))
                wanted = expects(f"desk/e{number}", subscription, rate=(chance.choice(FLOORS), MOST))
                host.give(Registering(ticket=0, client="desk", expectation=wanted))
            case "revoke" if host.state.expectations:
                host.give(Revoking(ticket=0, client="desk", id=chance.choice(sorted(host.state.expectations))))
            case "own":
                free = sorted(self.publishers.keys() - self.in_modes)
                if free:
                    self.change(chance.choice(free), chance.choice((0.0, 1.0, 4.0, 7.0)))
            case "again":
                host.start_again()
            case _:
                host.pass_time(chance.choice((0.5, 2.0, 61.0, 200.0)))

    def change(self, publisher: str, rate: float) -> None:
        """A publisher does something else by itself."""
        id = f"{publisher}/{self.publishers[publisher]}"
        now = self.host.state.profiles[id].profile.capabilities["rate"].cv
        if now < self.asked.get(publisher, 0.0) <= rate:
            return  # who comes to do at least what it was advised to is taken to follow that
        taken = self.host.call(Revising, client=publisher, id=id, values={"rate": rate})
        assert isinstance(taken, Profile), taken
        self.own[publisher] = rate

    # ── the reference ──

    def cost(self, publisher: str, rate: float, mode: str) -> Fraction:
        """What a publisher is brought to costs more than what it did by itself."""
        if publisher in self.in_modes:
            return Fraction(COSTS[mode]) - Fraction(COSTS["eco"])
        return Fraction(self.price[publisher]) * (
            Fraction(max(rate, self.own[publisher])) - Fraction(self.own[publisher])
        )

    def in_force(self, type: str) -> Fraction:
        """All that was asked of publishers whose type has the same strategy, followed or still to be followed."""
        total = Fraction(0)
        for each, own_type in self.publishers.items():
            if self.strategy(own_type) != self.strategy(type):
                continue
            known = self.host.state.profiles[f"{each}/{own_type}"]
            asked = list(known.ledger.claims.values())
            if each in self.in_modes:
                modes = [claim.mode for claim in asked if claim.mode] or [known.profile.mode]
                total += max(self.cost(each, 0, mode) for mode in (*modes, known.profile.mode))
            else:
                rates = [claim.values["rate"] for claim in asked if "rate" in claim.values]
                total += self.cost(each, max((*rates, known.profile.capabilities["rate"].cv)), "")
        return total

    def strategy(self, type: str) -> Strategy:
        return self.strategies.get(type, self.strategies["default"])

    def cheapest(self, floor: float, type: str) -> Fraction | None:
        """The least that it takes to have this rate of one more publisher than have it."""
        found = []
        for each, own_type in self.publishers.items():
            if own_type != type:
                continue
            known = self.host.state.profiles[f"{each}/{own_type}"]
            if each in self.in_modes:
                now = COSTS[known.profile.mode]
                found += [Fraction(COSTS[name] - now) for name, rate in RATES.items() if rate >= floor]
            elif known.effective is not None and known.effective.capabilities["rate"].best >= floor:
                now = known.profile.capabilities["rate"].cv
                asked = [claim.values.get("rate", 0.0) for claim in known.ledger.claims.values()]
                found.append(
                    Fraction(self.price[each]) * max(Fraction(floor) - Fraction(max((now, *asked))), Fraction(0))
                )
        return min(found, default=None)


def check(world: World, seed: int) -> None:
    for type in world.types:
        budget = world.strategy(type).budget
        assert budget is not None
        before = world.in_force(type)
        assert before <= Fraction(budget), (seed, type, before, budget)


SHOWN = (86, 124, 195, 209, 271, 420, 447, 532, 672)
"""Worlds in which a publisher did less by itself than before, or a plan paid with what nobody was to save."""


@cases(12, 60)
@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_what_is_in_force_stays_within_the_budget(start: int, cases: int) -> None:
    for seed in (*range(start, cases, 4), *SHOWN[start::4]):
        world = World(seed)
        for number in range(30):
            own = dict(world.own)
            world.happen(number)
            if own == world.own:  # what a publisher changes by itself may make what is in force dearer
                check(world, seed)
            else:
                world.host.pass_time(700)


@cases(15, 60)
def test_nobody_is_declined_for_a_budget_that_is_enough(cases: int) -> None:
    declined = 0
    for seed in range(cases):
        world = World(seed)
        for number in range(30):
            world.happen(number)
        world.host.pass_time(1000)
        for id in world.host.state.declined:
            held = world.host.state.expectations[id]
            if held.refusal is None or held.refusal.why != "budget":
                continue
            declined += 1
            type = world.subscriptions[held.expectation.subscription]
            extra = world.cheapest(held.expectation.needs["rate"].floor, type)
            budget = world.strategy(type).budget
            assert budget is not None
            assert extra is not None
            assert world.in_force(type) + extra > Fraction(budget), (seed, id)
    assert declined > cases / 3


@pytest.mark.parametrize("name", BUILT_IN_STRATEGIES)
def test_needs_one_after_the_other_share_one_budget(name: str) -> None:
    """Each needs ten more than the one before, and each by itself would be within the budget."""
    cost = PiecewiseCost(points=((0.0, 0.0), (60.0, 60.0)))
    profile = Profile(publisher="p", type="a", capabilities={"rate": can("rate", 0, 60, 0, cost)})
    subscriptions = [f"desk/{number}" for number in range(4)]
    host = Host(
        quality=Quality(strategies={"default": Strategy(name=name, budget=10.0, weight=0.0)}),
        relevance=Relevance(pools={"p/a": "a"}, relevant={each: frozenset({"a"}) for each in subscriptions}),
    ).start()

    def follow(host: Host, advice: Advice) -> None:
        if advice.kind == "raise":
            host.later(Answered(client="p", advice=advice.id, verdict="accepted"))
        values = {id: float(value) for id, value in advice.values.items()}
        host.later(Revising(ticket=0, client="p", id="p/a", values=values))

    host.on_advice = follow
    host.call(Providing, client="p", profile=profile)
    granted = []
    for number, each in enumerate(subscriptions):
        host.call(
            Registering, client="desk", expectation=expects(f"desk/e{number}", each, rate=(10.0 * (number + 1), 60.0))
        )
        host.pass_time(5)
        granted.append(host.last(f"desk/e{number}").state == "satisfied")
    assert granted == [True, False, False, False]
    assert host.state.profiles["p/a"].profile.capabilities["rate"].cv == 10.0


def test_what_somebody_gives_back_goes_to_who_waits_elsewhere() -> None:
    """A budget joins all: who waits for it may have nothing else to do with who had it."""
    cost = PiecewiseCost(points=((0.0, 0.0), (60.0, 60.0)))
    host = Host(
        quality=Quality(strategies={"default": Strategy(budget=10.0)}),
        relevance=Relevance(
            pools={"p/a": "a", "q/b": "b"}, relevant={"desk/a": frozenset({"a"}), "desk/b": frozenset({"b"})}
        ),
    ).start()
    for publisher, type in (("p", "a"), ("q", "b")):
        profile = Profile(publisher=publisher, type=type, capabilities={"rate": can("rate", 0, 60, 0, cost)})
        host.call(Providing, client=publisher, profile=profile)
    host.call(Registering, client="desk", expectation=expects("desk/one", "desk/a", rate=(10, 60)))
    host.call(Registering, client="desk", expectation=expects("desk/two", "desk/b", rate=(8, 60)))
    assert [each.profile for each in host.of(Advice)] == ["p/a"]
    assert host.last("desk/two").why == "declined"
    host.call(Revoking, client="desk", id="desk/one")
    host.pass_time(200)
    assert ("q/b", "raise") in [(each.profile, each.kind) for each in host.of(Advice)]


# ── what is dearer, cheaper or not needed any more ──


def linear(publisher: str, own: float, price: float = 1.0) -> Profile:
    cost = PiecewiseCost(points=((0.0, 0.0), (60.0, 60.0 * price)))
    return Profile(publisher=publisher, type="a", capabilities={"rate": can("rate", 0, 60, own, cost)})


def sharing(name: str, *profiles: Profile) -> Host:
    """A budget of 10; all publishers are there for all, and do nothing about advice."""
    subscriptions = ("desk/1", "desk/2")
    host = Host(
        quality=Quality(strategies={"default": Strategy(name=name, budget=10.0, weight=0.0)}),
        relevance=Relevance(
            pools={each.id: "a" for each in profiles}, relevant={each: frozenset({"a"}) for each in subscriptions}
        ),
    ).start()
    for each in profiles:
        host.call(Providing, client=each.publisher, profile=each)
    return host


def revise(host: Host, publisher: str, rate: float) -> None:
    taken = host.call(Revising, client=publisher, id=f"{publisher}/a", values={"rate": rate})
    assert isinstance(taken, Profile), taken


@pytest.mark.parametrize("name", BUILT_IN_STRATEGIES)
def test_who_does_less_by_itself_is_not_advised_beyond_the_budget(name: str) -> None:
    host = sharing(name, linear("p", own=7, price=2))
    host.call(Registering, client="desk", expectation=expects("desk/e", "desk/1", rate=(10, 60)))
    revise(host, "p", 10.0)
    host.pass_time(5)
    assert host.last("desk/e").state == "satisfied"
    told = len(host.of(Advice))
    revise(host, "p", 0.0)  # to do 10 costs 20 more than that
    host.pass_time(1000)
    assert [each.kind for each in host.of(Advice)[told:]] == []
    assert host.last("desk/e").why == "declined"
    revise(host, "p", 6.0)  # and 8 more than that
    host.pass_time(5)
    assert [(each.kind, dict(each.values)) for each in host.of(Advice)[told:]][:1] == [("raise", {"rate": 10.0})]


@pytest.mark.parametrize("name", BUILT_IN_STRATEGIES)
@pytest.mark.parametrize(("rate", "asked"), [(13.0, []), (10.0, [("q/a", {"rate": 10.0})])])
def test_nothing_is_paid_with_what_nobody_is_to_save(name: str, rate: float, asked: list[object]) -> None:
    """A publisher that could be in a cheaper mode, which no expectation needs, stays where it is."""
    modes = (Mode(name="eco", values={"rate": 2.0}, cost=1.0), Mode(name="mid", values={"rate": 5.0}, cost=4.0))
    moded = {"rate": BUILT_IN["rate"]}
    host = sharing(name, Profile(publisher="p", type="a", modes=modes, mode="mid", moded=moded), linear("q", own=0))
    host.call(Registering, client="desk", expectation=expects("desk/e", "desk/1", rate=(rate, 60)))
    assert [(each.profile, dict(each.values)) for each in host.of(Advice)] == asked
    assert host.last("desk/e").why == ("adapting" if asked else "declined")


@pytest.mark.parametrize("name", BUILT_IN_STRATEGIES)
def test_nothing_is_paid_with_what_a_better_value_would_save(name: str) -> None:
    """The same where a value that no expectation needs is cheaper than the current one."""
    falling = PiecewiseCost(points=((0.0, 4.0), (5.0, 4.0), (6.0, 1.0), (7.0, 60.0)))
    host = sharing(
        name,
        Profile(publisher="p", type="a", capabilities={"rate": can("rate", 0, 7, 5, falling)}),
        linear("q", own=0),
    )
    host.call(Registering, client="desk", expectation=expects("desk/e", "desk/1", rate=(13, 60)))
    assert host.of(Advice) == []
    assert host.last("desk/e").why == "declined"


@pytest.mark.parametrize("name", BUILT_IN_STRATEGIES)
def test_what_is_still_to_be_done_for_who_needs_it_no_more_counts_or_is_taken_back(name: str) -> None:
    host = sharing(name, linear("p", own=0), linear("q", own=0, price=2))
    host.call(Registering, client="desk", expectation=expects("desk/e1", "desk/1", rate=(10, 60)))
    assert [each.profile for each in host.of(Advice)] == ["p/a"]
    revise(host, "q", 10.0)
    host.pass_time(2)
    assert host.last("desk/e1").state == "satisfied"
    host.call(Registering, client="desk", expectation=expects("desk/e2", "desk/2", rate=(15, 60)))
    asked = {each.profile: each.kind for each in host.of(Advice)}
    assert [id for id, kind in asked.items() if kind == "raise"] in (["p/a"], ["q/a"])
