"""Any engine may follow any other in a project folder, at any moment, any number of times.

Persons walk about in a guarded building while the run is stopped or killed again and again and goes on with either
engine. Besides the policies about persons there is a chain of three, each of which reads what the one before it
publishes. In the end everything is as policies mean it: in the root log, in `situ situations`, with a durable
subscriber, and in what `situ status` counts; nothing is missing and nothing is there twice.

Time in events runs faster than the clock, and much lateness is granted, so that nothing is late by any delay. Behind
the last sighting that counts come a few more, long after each other: each lets the next policy of the chain decide.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from situ.event.row import Row
from situ.project.check import check_folder
from tests.chains import Meaning, Said, meaning_of
from tests.faults.deployed import PATIENCE, Deployed, deployed, wait_for
from tests.faults.test_situations import ACTIONS, GUARDED, INSTANCES, PATIENT, Seen, Sightings, key_of, walks
from tests.faults.traffic import Program

EDGE, SPARK = "edge", "spark"
KILL, STOP = "killed", "stopped"
MINUTE = 60_000_000
LAB = (5.0, 5.0)


def link(name: str, conditions: str, action: str) -> str:
    """A policy of the chain."""
    return f"policy {name}\nwindow 2 s\nhold 4 s\nconcepts\n{conditions}actions\n  {action}\n"


CHAIN = {
    "types/chain.yaml": "events:\n  Entry: {who: string, level: int}\n  Alert: {who: string, level: int}\n"
    "  Evacuation: {who: string}\n",
    "ontology.yaml": GUARDED["ontology.yaml"].replace("status: string,", "status: string, entry: int, alert: int,"),
    "sources/chain.yaml": "push:\n"
    "  entries: {event: Entry, concept: person, id: who, attribute: entry, value: level}\n"
    "  alerts: {event: Alert, concept: person, id: who, attribute: alert, value: level}\n",
    "policies/first.dpl": link(
        "first",
        "  person A (status = 'guest')\n  room R (security = 'restricted')\nconditions\n  A is inside R\n",
        "tell of entry",
    ),
    "policies/second.dpl": link("second", "  person A\nconditions\n  A.entry >= 1\n", "give alert"),
    "policies/third.dpl": link("third", "  person A\nconditions\n  A.alert >= 2\n", "evacuate"),
    "actions.yaml": f"""{ACTIONS}
  tell of entry: {{publish: Entry, data: {{who: "{{A}}", level: 1}}}}
  give alert: {{publish: Alert, data: {{who: "{{A}}", level: 2}}}}
  evacuate: {{publish: Evacuation, data: {{who: "{{A}}"}}}}
""",
}
PROJECT = {**GUARDED, **CHAIN}
FOLLOWED = ("situ.situation", "GuestAlone", "Entry", "Alert", "Evacuation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An engine is at work for so many seconds, then it is ended; without ``up`` it may still be starting then."""

    engine: str
    seconds: float
    end: str
    up: bool = True


def turns(chance: random.Random, count: int, longest: float) -> list[Turn]:
    """Engines that follow each other, the same one now and then."""
    found = []
    for _ in range(count):
        engine = chance.choice((EDGE, SPARK))
        end, up = chance.choice((KILL, KILL, STOP)), chance.random() < 0.75
        found.append(Turn(engine=engine, seconds=chance.uniform(0, longest), end=end if up else KILL, up=up))
    return found


class Follower(Program):
    """A client with a durable subscription that writes down what it gets."""

    def __init__(self, folder: Path) -> None:
        self.output = folder.parent / "follower.seen"
        self.output.touch()
        log = folder.parent / "follower.log"
        super().__init__("follow", folder, "follower", ",".join(FOLLOWED), self.output, log=log)

    @property
    def ready(self) -> bool:
        self.check()
        return b"ready" in self.output.read_bytes()

    def seen(self, before: int) -> Counter[tuple[str, str]]:
        """Source and id of what came that is about the time before this."""
        lines = (line.split(" ") for line in self.output.read_text().splitlines() if line != "ready")
        return Counter((source, id) for source, id, at in lines if round(float(at) * 1_000_000) < before)


class World:
    """What happens in the building, and what policies mean by it."""

    def __init__(self, folder: Path, seed: int, count: int, coda: int, least: int = 5) -> None:
        """``least`` so much is told of each policy."""
        every = walks(seed, count + coda)[:-1]
        self.until = max(seen[0] for seen in every) + MINUTE
        rungs = [(self.until + number * 10 * MINUTE, "g1", *LAB) for number in range(1, 8)]
        self.main, self.coda = every[:count], [*every[count:], *rungs]
        deployment = check_folder(folder).deployment
        assert deployment is not None, [str(each) for each in check_folder(folder).problems]
        self.policies = tuple(deployment.policies)
        self.meant = meaning_of(deployment, self.events(), INSTANCES).before(self.until)
        by_policy = Counter(each.situation.policy for each in self.meant.told)
        assert all(by_policy[name] >= least for name in self.policies), by_policy

    def events(self) -> Iterable[Said]:
        for part, some in (("s", self.main), ("t", self.coda)):
            for number, (at, who, x, y) in enumerate(some):
                data = {"who": who, "at": {"x": x, "y": y}}
                yield Said(type="Sighting", id=f"{part}{number}", source="reader", time=at, data=data)


def publish(at: Deployed, part: str, sightings: Sequence[Seen], rate: float) -> Sightings:
    program = Sightings(at.folder, sightings, rate, part=part)
    program.start()
    wait_for(lambda: program.ready, f"the {len(sightings)} sightings {part} are published")
    return program


def take_turns(at: Deployed, order: Iterable[Turn]) -> None:
    for turn in order:
        at.start("--engine", turn.engine)
        if turn.up:
            at.ready()
        time.sleep(turn.seconds)
        if turn.end == KILL:
            at.kill()
        else:
            assert at.stop() == 0, at.log[-3000:]


def told(at: Deployed, world: World) -> list[Row]:
    return [row for row in at.root() if row.client in world.policies]


def wait_until_told(at: Deployed, world: World, meant: Meaning) -> None:
    """Wait until the log has all of it, and then until nothing more comes: what comes twice comes late."""
    wanted = {(each.situation.policy, each.id) for each in meant.told} | {(one.source, one.id) for one in meant.acted}
    count, since, missing = -1, time.monotonic(), wanted
    while missing or time.monotonic() - since < 1.5:
        at.check()
        rows = told(at, world)
        if len(rows) != count:
            count, since = len(rows), time.monotonic()
            missing = wanted - {(row.source, row.id) for row in rows}
        limit = time.monotonic() - since < PATIENCE / 3
        assert limit, f"{len(missing)} of {len(wanted)} are missing, as {sorted(missing)[:5]}\n{at.log[-3000:]}"
        time.sleep(0.2)


def check_log(at: Deployed, world: World) -> Counter[tuple[str, str]]:
    """Each event of a policy is in the log once, and they are those that are meant; they are given."""
    root = at.root()
    rows = [row for row in root if row.client in world.policies]
    keys = Counter(map(key_of, root))
    assert keys.most_common(1)[0][1] == 1, f"more than once: {keys.most_common(5)}"
    found = Counter((row.source, row.id) for row in rows if row.time < world.until)
    wanted = Counter((each.situation.policy, each.id) for each in world.meant.told)
    wanted += Counter((each.source, each.id) for each in world.meant.acted)
    check_same(found, wanted, "the root log")
    sightings = Counter(row.id for row in root if row.type == "Sighting")
    check_same(sightings, Counter(each.id for each in world.events()), "the sightings in the root log")
    assert not at.dead()
    types = {row.type for row in rows}
    assert {"situ.situation.opened", "situ.situation.closed", "Entry", "Alert", "Evacuation", "GuestAlone"} <= types
    return Counter((row.source, row.id) for row in rows if row.time < world.until and row.type.startswith(FOLLOWED))


def check_same(found: Counter[Any], wanted: Counter[Any], where: str) -> None:
    missing, extra = wanted - found, found - wanted
    assert not missing, f"{missing.total()} of {wanted.total()} are missing in {where}: {sorted(missing)[:5]}"
    assert not extra, f"{extra.total()} are too many in {where}, as {extra.most_common(5)}"


def check_listed(at: Deployed, world: World) -> None:
    """`situ situations` lists each situation once, and as closed if it is."""
    listed = at.command("situations", "--limit", "1000000")
    begun = {each.situation.id for each in world.meant.told if each.stage == "opened"}
    ended = {each.situation.id for each in world.meant.told if each.stage == "closed"}
    known = Counter(each["id"] for each in listed if each["id"] in begun)
    check_same(known, Counter(begun), "`situ situations`")
    assert {each["id"] for each in listed if each["id"] in begun and each["end"] is None} == begun - ended


def figures(at: Deployed, engine: str) -> dict[str, Any]:
    found: dict[str, Any] = at.command("status")["engines"][engine]
    return found


def at_rest(at: Deployed, engine: str) -> tuple[dict[str, Any], list[Row]]:
    """What a run has counted, and the log, when nothing is under way: both stay as they are for over two batches."""
    deadline = time.monotonic() + PATIENCE
    while True:
        before, known = figures(at, engine), at.root()
        time.sleep(2.5 + 2 * before.get("batch", 0.0))
        now = figures(at, engine)
        rests = not now["waiting"] and not (now.get("size") or {}).get("behind")
        if rests and now["types"] == before["types"] and len(at.root()) == len(known):
            return now, known
        assert time.monotonic() < deadline, f"it does not come to rest: {now}"


def check_counts(at: Deployed, world: World, engine: str, before: dict[str, Any], known: Sequence[Row]) -> None:
    """What a run has counted since then is what the log has got since then; and what is open is."""
    places = {(row.client, row.incarnation, row.seq) for row in known}
    new = [row for row in at.root() if key_of(row) not in places]
    types = Counter(row.type for row in new)
    wait_for(lambda: figures(at, engine)["types"].get("Sighting", 0) >= types["Sighting"], "all is counted")
    time.sleep(1.5)  # a run tells its figures every second
    now = figures(at, engine)
    check_same(Counter(now["types"]) - Counter(before["types"]), types, "what `situ status` counts of types")
    opened = Counter(row.client for row in new if row.type == "situ.situation.opened")
    rows = told(at, world)
    ended = {json.loads(row.data)["situation"] for row in rows if row.type == "situ.situation.closed"}
    for name in world.policies:
        counted, former = now["situations"]["policies"][name], before["situations"]["policies"][name]
        assert counted["opened"] - former["opened"] == opened[name], name
        begun = {
            json.loads(row.data)["situation"]
            for row in rows
            if row.client == name and row.type == "situ.situation.opened"
        }
        assert counted["open"] == len(begun - ended), name
        assert counted["late"] == 0, name


def flow(at: Deployed, order: Sequence[Turn], last: str, *, seed: int, count: int, rate: float) -> None:
    """Let persons walk about while engines follow each other; the last one stays, and persons walk on a little."""
    world = World(at.folder, seed, count, coda=150)
    follower, programs = Follower(at.folder), list[Program]()
    try:
        at.start("--engine", order[0].engine)
        at.ready()
        follower.start()
        wait_for(lambda: follower.ready, "the subscriber is there")
        programs.append(publish(at, "s", world.main, rate))
        time.sleep(order[0].seconds)
        at.kill()
        take_turns(at, order[1:])
        at.start("--engine", last)
        at.ready()
        wait_for(lambda: programs[0].done, "all sightings are stored")
        before, known = at_rest(at, last)
        programs.append(publish(at, "t", world.coda, rate))
        wait_for(lambda: programs[1].done, "the last sightings are stored")
        wait_until_told(at, world, world.meant)
        delivered = check_log(at, world)
        wait_for(lambda: follower.seen(world.until).total() >= delivered.total(), "the subscriber has all of it")
        time.sleep(1)  # what comes twice comes late
        check_same(follower.seen(world.until), delivered, "what the subscriber got")
        check_listed(at, world)
        check_counts(at, world, last, before, known)
        assert at.stop() == 0
    finally:
        for program in (follower, *programs):
            program.kill()


def test_nothing_is_lost_or_told_twice_while_engines_follow_each_other(tmp_path: Path) -> None:
    order = (
        Turn(engine=EDGE, seconds=2.0, end=KILL),
        Turn(engine=SPARK, seconds=4.0, end=KILL),
        Turn(engine=EDGE, seconds=1.0, end=STOP),
        Turn(engine=EDGE, seconds=0.7, end=KILL, up=False),
    )
    with deployed(tmp_path / "guarded", engine=EDGE, situ=PATIENT, files=PROJECT, start=False) as at:
        flow(at, order, EDGE, seed=21, count=500, rate=60)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_or_told_twice_while_engines_follow_each_other_at_random(tmp_path: Path, seed: int) -> None:
    chance = random.Random(100 + seed)
    with deployed(tmp_path / "guarded", engine=EDGE, situ=PATIENT, files=PROJECT, start=False) as at:
        order = turns(chance, 12, 8.0)
        flow(at, order, chance.choice((EDGE, SPARK)), seed=seed, count=6000, rate=30)
