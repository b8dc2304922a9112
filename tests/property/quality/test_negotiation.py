"""Any sequence of calls: what stands, what is claimed, shaped and told is what the rules predict, also after a kill.

Publishers of generated worlds follow advice, refuse it, ignore it, or say yes and do nothing; clients register, change,
suspend and revoke, leave and come back. Some dozen sequences in every run, many thousand in `make soak`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from situ.lang.records import replace
from situ.quality.match.satisfaction import Satisfaction as Standing
from situ.quality.match.satisfaction import match
from situ.quality.measurement.panes import Pane
from situ.quality.model.declarations import BUILT_IN, Mode, Profile, Quality, Strategy
from situ.quality.negotiation.decide import is_pending
from situ.quality.negotiation.feedback import Advice, StateChange
from situ.quality.negotiation.inputs_and_effects import (
    Answered,
    Came,
    Gone,
    Input,
    Measured,
    Providing,
    Registering,
    Relevance,
    Resuming,
    Retracting,
    Revising,
    Revoking,
    Suspending,
    Updating,
)
from situ.quality.negotiation.notify import state_of
from tests.negotiating import Host, Killed, can, expects, need
from tests.volume import cases

NORMAL, LONG = 25, 2_000
SUBSCRIPTIONS = ("desk/a", "desk/b", "hall/a")
IDS = ("desk/1", "desk/2", "desk/3", "hall/1", "hall/2")
PUBLISHERS = ("p", "q", "r")
STRATEGIES = ("pareto", "pareto", "pareto", "cheapest", "utility", "fairness")
OWN = (1.0, 2.0, 3.0)
"""What publishers do by themselves is less than what anybody asks for, so that the two are never mistaken."""
FLOORS = (2.0, 5.0, 10.0, 30.0)


@dataclass
class World:
    """Who is there, and how its publishers behave."""

    random: random.Random
    relevance: Relevance
    quality: Quality
    profiles: dict[str, Profile]
    manners: dict[str, str]
    here: tuple[str, ...]
    """Publishers that are connected at the beginning."""
    own: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Profile → what it does by itself: its rate, or its mode."""


def make_world(seed: int) -> World:
    chance = random.Random(seed)
    pools = {f"{each}/t": chance.choice(("one", "two")) for each in PUBLISHERS}
    relevant = {each: frozenset(chance.sample(("one", "two"), chance.randint(1, 2))) for each in SUBSCRIPTIONS}
    strategy = Strategy(name=chance.choice(STRATEGIES))
    profiles = {f"{each}/t": _profile(chance, each) for each in PUBLISHERS}
    declared = {id: profiles[id] for id in profiles if chance.random() < 0.3}
    wanted = {"M": expects("M", "hall/a", rate=(chance.choice(FLOORS), 60))} if chance.random() < 0.4 else {}
    quality = Quality(strategies={"default": strategy}, profiles=declared, expectations=wanted)
    manners = {each: chance.choice(("follows", "follows", "refuses", "ignores", "pretends")) for each in PUBLISHERS}
    here = tuple(each for each in PUBLISHERS if random.Random(f"{seed} {each}").random() < 0.7)
    return World(chance, Relevance(pools=pools, relevant=relevant), quality, profiles, manners, here)


def _profile(chance: random.Random, publisher: str) -> Profile:
    trust = can("trust", 0, chance.randint(1, 3), 0)
    if chance.random() < 0.6:
        capabilities = {"rate": can("rate", 0, chance.choice((20, 60)), chance.choice(OWN)), "trust": trust}
        return Profile(publisher=publisher, type="t", capabilities=capabilities)
    modes = tuple(
        Mode(name=name, values={"rate": rate, "confidence": confidence}, cost=cost)
        for name, rate, confidence, cost in (("eco", 2, 90, 1), ("mid", 10, 85, 2), ("fast", 60, 60, 5))
    )
    moded = {"rate": BUILT_IN["rate"], "confidence": BUILT_IN["confidence"]}
    return Profile(publisher=publisher, type="t", capabilities={"trust": trust}, modes=modes, mode="eco", moded=moded)


# ── what happens ──

Do = Callable[[Host], None]


def script(world: World, length: int, measuring: int = 2) -> Iterator[Do]:
    """Things to do; ``measuring`` is how much of it is measuring."""
    chance = world.random
    for number in range(length):
        yield chance.choices(
            (_register, _update, _suspend, _resume, _revoke, _provide, _revise, _leave, Passing, _measure),
            (8, 3, 2, 2, 3, 6, 3, 1, 6, measuring),
        )[0](world, chance, number)


def _call(make: Callable[..., Input], **values: Any) -> Do:
    def do(host: Host) -> None:
        host.give(make(ticket=0, **values))

    return do


def _needs(chance: random.Random) -> dict[str, Any]:
    floor = chance.choice(FLOORS)
    found = {"rate": need("rate", floor, chance.choice((floor, floor + 5, 60)))}
    if chance.random() < 0.3:
        found["trust"] = need("trust", chance.randint(0, 2), 3)
    if chance.random() < 0.3:
        found["confidence"] = need("confidence", chance.choice((55, 80)), 100)
    return found


def _register(world: World, chance: random.Random, number: int) -> Do:
    id = chance.choice(IDS)
    client = id.partition("/")[0]
    subscription = chance.choice([each for each in SUBSCRIPTIONS if each.startswith(client)])
    wanted = expects(
        id,
        subscription,
        needs=_needs(chance),
        utility=chance.choice((1.0, 5.0)),
        selected=chance.random() < 0.2,
        publishers=2 if chance.random() < 0.15 else 1,
    )
    return _call(Registering, client=client, expectation=wanted)


def _update(world: World, chance: random.Random, number: int) -> Do:
    id, needs = chance.choice((*IDS, "M")), _needs(chance)
    client = id.partition("/")[0] if id != "M" else "hall"
    # What clients ask for has a version, so that they can ask again.
    return _call(Updating, client=client, id=id, changes={"needs": needs}, version=100 + number)


def _simple(make: Callable[..., Input]) -> Callable[[World, random.Random, int], Do]:
    def of(world: World, chance: random.Random, number: int) -> Do:
        id = chance.choice(IDS)
        return _call(make, client=id.partition("/")[0], id=id)

    return of


_suspend, _resume, _revoke = _simple(Suspending), _simple(Resuming), _simple(Revoking)


def _provide(world: World, chance: random.Random, number: int) -> Do:
    publisher = chance.choice(PUBLISHERS)
    profile = world.profiles[f"{publisher}/t"]
    if chance.random() < 0.2:
        return _call(Retracting, client=publisher, id=profile.id)
    return _call(Providing, client=publisher, profile=profile)


def _revise(world: World, chance: random.Random, number: int) -> Do:
    publisher, value = chance.choice(PUBLISHERS), chance.choice(OWN)
    id = f"{publisher}/t"
    values = {"rate": value} if "rate" in world.profiles[id].capabilities else {}
    mode = None if values else "eco"
    return _call(Revising, client=publisher, id=id, values=values, mode=mode, version=100 + number)


def _leave(world: World, chance: random.Random, number: int) -> Do:
    client = chance.choice((*PUBLISHERS, "desk", "hall"))
    given: Input = chance.choice((Gone(client=client), Came(client=client)))
    if chance.random() < 0.2:
        # Some subscribe, others no longer do: what is declared for a subscription waits for it.
        there = chance.sample(SUBSCRIPTIONS, chance.choice((2, 3, 3)))
        relevant = {each: world.relevance.relevant[each] for each in SUBSCRIPTIONS if each in there}
        return lambda host: host.deploy(relevance=replace(world.relevance, relevant=relevant))
    return lambda host: host.give(given)


class Passing:
    """Time passes; the rest of it, when it was interrupted."""

    def __init__(self, world: World, chance: random.Random, number: int) -> None:  # noqa: ARG002 - as all the others
        self.seconds = chance.choice((0.2, 1.5, 6.0, 61.0, 700.0))
        self.end: float | None = None

    def __call__(self, host: Host) -> None:
        if self.end is None:
            self.end = host.now + self.seconds
        host.pass_time(max(self.end - host.now, 0.0))


def _measure(world: World, chance: random.Random, number: int) -> Do:
    """Five minutes of events at some rate, the last of them now."""
    publisher, rate = chance.choice(PUBLISHERS), chance.choice((1, 2, 6, 20))
    start = (number + 1) * 1_000_000_000
    panes = tuple(
        Pane(
            publisher=publisher,
            type="t",
            start=start + 10_000_000 * place,
            events=rate,
            last=start + 10_000_000 * place,
        )
        for place in range(30)
    )
    given = Measured(panes=panes, until=start + 300_000_000)
    return lambda host: host.give(given)


def behave(world: World) -> Callable[[Host, Advice], None]:
    """What publishers do about advice, each as is its manner."""

    def do(host: Host, advice: Advice) -> None:
        client = advice.profile.partition("/")[0]
        manner = world.manners[client]
        if advice.kind == "withdraw" or manner == "ignores":
            return
        if advice.kind == "raise":
            verdict = "refused" if manner == "refuses" else "accepted"
            values = {"rate": 4.0} if manner == "refuses" else {}
            host.later(Answered(client=client, advice=advice.id, verdict=verdict, values=values))
        if manner == "follows":
            about = world.profiles[advice.profile].capabilities
            values = {
                id: about[id].about.levels.index(value) if isinstance(value, str) else value
                for id, value in advice.values.items()
            }
            version = 1_000_000 + advice.number
            mode = advice.mode or None
            host.later(Revising(ticket=0, client=client, id=advice.profile, values=values, mode=mode, version=version))

    return do


def host_of(world: World) -> Host:
    host = Host(quality=world.quality, relevance=world.relevance, on_advice=behave(world)).start()
    for each in world.here:
        host.give(Came(client=each))
    return host


# ── what has to hold ──


def check(host: Host, seed: object) -> None:
    state = host.state
    for held in state.expectations.values():
        if held.active:
            relevant = state.relevance.relevant[held.expectation.subscription]
            profiles = [
                found
                for id, known in state.profiles.items()
                if (found := state.as_matched(known)) is not None and state.relevance.pools[id] in relevant
            ]
            matched = match(held.expectation, profiles)
            assert state.standing.state(held.expectation.id) is matched.state, seed
            under_way = matched.state is Standing.SATISFIABLE and is_pending(state, held)
            declined = held.expectation.id in state.declined
            assert under_way + declined == (matched.state is Standing.SATISFIABLE), seed
        else:
            assert held.expectation.id not in state.declined, seed
            assert held.expectation.id not in state.claimed, seed
    for id, known in state.profiles.items():
        there = known.client in state.here or known.client in state.heard
        assert known.away == (known.declared and not there), seed
        assert (id in state.absent.get(state.relevance.pools[id], ())) == known.away, seed
        assert known.course.open is None or known.client in state.here or not known.declared, seed
    _check_ledgers(host, seed)
    for subscription in SUBSCRIPTIONS:
        best = next((e for e in state.alternatives(subscription) if is_satisfied(host, e.expectation.id)), None)
        assert state.in_force.get(subscription) == (None if best is None else best.expectation.id), seed
        _check_shape(host, subscription, seed)
    assert host.shapes == state.shapes, seed


def is_satisfied(host: Host, id: str) -> bool:
    return host.state.standing.state(id) is Standing.SATISFIED


def _check_ledgers(host: Host, seed: object) -> None:
    state = host.state
    claimed: dict[str, set[str]] = {}
    for id, known in state.profiles.items():
        for each, target in known.ledger.claims.items():
            claimed.setdefault(each, set()).add(id)
            assert state.expectations[each].active, seed
            assert target.values.keys() <= known.ledger.baseline.keys(), seed
            assert not target.mode or known.ledger.mode, seed
        for name, value in known.ledger.target(known.profile, state.meets).values.items():
            about = known.profile.capabilities[name].about
            wanted = [each.values[name] for each in known.ledger.claims.values() if name in each.values]
            best = max(about.goodness(each) for each in (known.ledger.baseline[name], *wanted))
            assert about.goodness(value) == best, seed
    assert claimed == {id: each for id, each in state.claimed.items() if each}, seed


def _check_shape(host: Host, subscription: str, seed: object) -> None:
    state = host.state
    shape = state.shapes.get(subscription)
    id = state.in_force.get(subscription)
    if id is None:
        assert shape is None, seed
        return
    expectation = state.expectations[id].expectation
    profiles = [
        each for pool in state.relevance.relevant[subscription] for each in state.in_pool.get(pool, {}).values()
    ]
    goal = expectation.needs["rate"].goal
    rates = [rate for each in profiles if (rate := each.current().get("rate")) is not None]
    thinned = shape is not None and shape.thin is not None
    assert thinned == any(rate > goal for rate in rates), seed
    if thinned:
        assert shape is not None
        assert shape.thin is not None
        assert shape.thin.limits[-1].events == goal, seed
    satisfying = {each.publisher for each in profiles if expectation.is_met_by(each.current())}
    sources = None if shape is None else shape.sources
    assert sources == (frozenset(satisfying) if expectation.selected else None), seed


def wait_until_told(host: Host) -> None:
    """Until nobody has something to be told who was told something less than a second ago."""
    while any(kind == "tell" for kind, _ in host.state.times):
        host.pass_time(1.0)


def check_told(host: Host, seed: object) -> None:
    """After a while everybody knows how things stand, and nothing is told twice."""
    for id, held in host.state.expectations.items():
        if held.active:
            told = host.last(id)
            assert (told.state == "satisfied") == is_satisfied(host, id), seed
            # Reasons, and how many are absent, change without being told while nothing follows from them.
            now = replace(state_of(host.state, held), number=0, absent=0)
            assert replace(told, number=0, since=0.0, reasons=(), absent=0) == now, seed


def check_restored(host: Host, world: World, seed: object) -> None:
    """With nobody left who wants anything, publishers do what they did by themselves."""
    host.deploy(relevance=replace(world.relevance, relevant={}))
    for each in PUBLISHERS:
        host.give(Came(client=each))
    host.pass_time(200.0)
    for id, known in host.state.profiles.items():
        assert not known.ledger.claims, seed
        assert not known.ledger, (seed, known)
        assert known.course.open is None, seed
        if "rate" in known.profile.capabilities:
            assert known.profile.capabilities["rate"].cv in OWN, (seed, id)
        else:
            assert known.profile.mode == "eco", (seed, id)
    assert host.shapes == {}, seed


@cases(NORMAL, LONG)
def test_any_sequence_of_calls(cases: int) -> None:
    told = raised = relaxed = 0
    for seed in range(cases):
        world = make_world(seed)
        host = host_of(world)
        for do in script(world, 40):
            do(host)
            check(host, seed)
        wait_until_told(host)
        check(host, seed)
        check_told(host, seed)
        check_restored(host, world, seed)
        told += len(host.of(StateChange))
        raised += sum(each.kind == "raise" for each in host.of(Advice))
        relaxed += sum(each.kind == "relax" for each in host.of(Advice))
    assert told > 3 * cases
    assert raised > cases
    assert relaxed > cases / 10


# ── killed ──


def run(world: World, length: int, kill_at: int | None) -> tuple[Host, bool]:
    """Do it all; whoever is killed starts again with what was kept, and clients try again what was not answered.

    Nothing is measured: what engines measured before a kill is not known after it, and windows begin afresh.
    """
    host, killed = host_of(world), False
    host.lives = kill_at
    for do in script(world, length, measuring=0):
        try:
            do(host)
        except Killed:
            killed, host.lives = True, None
            for given in host.start_again():
                host.give(given)
            if isinstance(do, Passing):
                do(host)
    host.lives = None
    host.pass_time(5.0)
    return host, killed


def story(host: Host) -> dict[str, list[Any]]:
    """What each client heard, in order; advice is known by its place."""
    found: dict[str, list[Any]] = {}
    places: dict[str, str] = {}
    for each in host.heard:
        if isinstance(each, Advice):
            place = places.setdefault(each.id, f"{each.profile}, {len(places)}")
            found.setdefault(each.profile, []).append(replace(each, number=0, id=place))
        elif isinstance(each, StateChange):
            found.setdefault(each.id, []).append(replace(each, number=0))
    return found


@cases(15, LONG)
def test_killed_at_any_point(cases: int) -> None:
    kills = 0
    for seed in range(cases):
        whole, _ = run(make_world(seed), 25, None)
        kill_at = random.Random(seed).randrange(80)
        broken, killed = run(make_world(seed), 25, kill_at)
        kills += killed
        assert story(broken) == story(whole), (seed, kill_at)
        assert broken.shapes == whole.shapes, (seed, kill_at)
        assert broken.state.in_force == whole.state.in_force, (seed, kill_at)
    assert kills > cases / 2
