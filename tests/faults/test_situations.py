"""Situations are told once each, and as policies mean them, though the run is killed, policies change or all is silent.

Persons walk about in a guarded building, in the past and faster than the clock; what is late does not depend on how
long anything takes, since much lateness is granted. The last sighting is long after the others, so that all is decided.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from situ.cli.registry import registry_of, roll_out
from situ.event.instants import print_instant
from situ.event.lines import decode_line, stored_lines
from situ.event.row import Row
from situ.policies import lifecycle
from situ.policies.lifecycle import SituationTransition
from situ.policies.model import Cause, Observation
from situ.policies.reference import detect
from situ.project.check import check_folder
from situ.registry.object_files import policy_document
from tests.edge_zone import edge_zone
from tests.faults.deployed import Deployed, deployed, wait_for
from tests.faults.traffic import Program
from tests.guarded import FILES

PATIENT = "defaults: {lateness: 60 s, idle: 10 min, install_timeout: 60 s}\n"
SETTLED, SILENT = 1.0, 20.0
"""Seconds without anything new after which nothing more is told: when all is told, and when something is missing."""
LONG = 60.0
"""Seconds that any one thing may take that policies have to tell."""
START = 1_790_000_000_000_000
BOX = {"y1": 0.0, "y2": 10.0}
LAB = {"id": "lab", "security": "restricted", "area": {"x1": 0.0, "x2": 10.0, **BOX}}
HALL = {"id": "hall", "security": "open", "area": {"x1": 20.0, "x2": 40.0, **BOX}}
STATUS = {"g1": "guest", "g2": "guest", "e1": "employee", "e2": "employee"}
INSTANCES: dict[str, dict[str, dict[str, Any]]] = {
    "person": {who: {"id": who, "status": status} for who, status in STATUS.items()},
    "room": {"lab": LAB, "hall": HALL},
}

MEETING = """policy meeting
window 2 s
concepts
  person A (status = 'guest')
  person B (status = 'employee')
conditions
  A is within 4 m of B
actions
  raise alarm of two
"""
"""Two sightings of two persons, each of which counts once."""
STRAYING = """policy straying
window 30 s
concepts
  person A
  room   R (security = 'restricted')
  room   S (security = 'open')
conditions
  A is inside R followed-by within 10 s A is inside S
actions on every detection
  raise alarm of one
"""
ACTIONS = """
actions:
  raise alarm: {publish: GuestAlone, data: {text: "{A} alone in {R.id}", status: "{A.status}"}}
  raise alarm of two: {publish: GuestAlone, data: {text: "{A} met {B}"}}
  raise alarm of one: {log: "{A} strays"}
  write down: {log: "somebody is somewhere"}
"""
GUARDED = {
    **{name: text for name, text in FILES.items() if name != "situ.yaml"},
    "policies/meeting.dpl": MEETING,
    "policies/straying.dpl": STRAYING,
    "actions.yaml": ACTIONS,
}
ACTS = {"unaccompanied-guest": ("GuestAlone", ("opened",)), "meeting": ("GuestAlone", ("opened",))} | {
    "straying": ("situ.action", ("opened", "continued"))
}
"""What the actions of each policy come to, and when."""

Seen = tuple[int, str, float, float]
"""A sighting: time, who, where."""


def walks(seed: int, count: int) -> list[Seen]:
    """Persons who walk about, and one whom nobody knows, long after them."""
    chance = random.Random(seed)
    places = {who: (chance.uniform(-5, 45), chance.uniform(-5, 15)) for who in STATUS}
    found = []
    for number in range(count):
        who = chance.choice(list(places))
        x, y = places[who]
        places[who] = (min(max(x + chance.uniform(-9, 9), -5), 45), min(max(y + chance.uniform(-3, 3), -5), 15))
        found.append((START + number * 230_000 + chance.randrange(400_000), who, *places[who]))
    return [*found, (found[-1][0] + 3_600_000_000, "nobody", -90.0, -90.0)]


def meant(folder: Path, sightings: Iterable[Seen]) -> list[SituationTransition]:
    """What policies of a folder tell of these sightings, by definition."""
    deployment = check_folder(folder).deployment
    assert deployment is not None
    observations = [
        Observation(
            push="seen",
            concept="person",
            identity=who,
            attribute="position",
            value={"x": x, "y": y},
            time=time,
            cause=Cause("reader", f"s{number}"),
        )
        for number, (time, who, x, y) in enumerate(sightings)
    ]
    told: list[SituationTransition] = []
    for policy in deployment.policies.values():
        found = detect(policy, deployment.ontology, observations, INSTANCES)
        told += lifecycle.step({}, found, 1 << 60, policy.hold)[1]
    return told


class Sightings(Program):
    """A program that publishes sightings, and goes on whatever becomes of the run."""

    def __init__(self, folder: Path, sightings: Iterable[Seen], rate: float, part: str = "s") -> None:
        """Their ids begin with the name of the part, of which there may be several."""
        self._output, events = folder.parent / f"reader.{part}.stored", folder.parent / f"sightings.{part}.jsonl"
        events.write_text(
            "".join(
                json.dumps(
                    {
                        "type": "Sighting",
                        "id": f"{part}{number}",
                        "time": print_instant(time),
                        "data": {"who": who, "at": {"x": x, "y": y}},
                    }
                )
                + "\n"
                for number, (time, who, x, y) in enumerate(sightings)
            )
        )
        super().__init__("pour", folder, "reader", events, rate, self._output, log=folder.parent / "reader.log")

    @property
    def ready(self) -> bool:
        self.check()
        return self._output.exists()


def told_in(rows: Iterable[Row], *policies: str) -> list[Row]:
    """What tells of situations, of these policies or of all."""
    return [row for row in rows if row.type.startswith("situ.situation.") and (not policies or row.client in policies)]


def about(row: Row) -> tuple[str, str, str, tuple[tuple[str, str], ...]]:
    """Which policy tells what of which situation."""
    data = json.loads(row.data)
    bindings = tuple(sorted((each["alias"], each["id"]) for each in data["bindings"]))
    return row.client, row.id, row.type.rpartition(".")[2], bindings


def expected(told: Iterable[SituationTransition]) -> set[tuple[str, str, str, tuple[tuple[str, str], ...]]]:
    return {(each.situation.policy, each.id, each.stage.value, each.situation.bindings) for each in told}


def check_told(at: Deployed, wanted: list[SituationTransition], policies: Iterable[str] = ACTS) -> None:
    """The root log has each event that tells of situations, and each that actions come to, once."""
    rows = [row for row in at.root() if row.client in policies]
    keys, ids = (Counter(each) for each in (map(key_of, rows), ((row.source, row.id) for row in rows)))
    assert keys.most_common(1)[0][1] == 1, f"more than once: {keys.most_common(5)}"
    assert ids.most_common(1)[0][1] == 1, f"more than once: {ids.most_common(5)}"
    found, meaning = {about(row) for row in told_in(rows)}, expected(wanted)
    assert not (missing := meaning - found), f"{len(missing)} of {len(meaning)} are missing: {sorted(missing)[:5]}"
    assert not (extra := found - meaning), f"{len(extra)} too many: {sorted(extra)[:5]}"
    acted = Counter(row.client for row in rows if row.type == ACTS[row.client][0])
    due = Counter(each.situation.policy for each in wanted if each.stage in ACTS[each.situation.policy][1])
    assert acted == due
    assert not at.dead()


def key_of(row: Row) -> tuple[str, int, int]:
    return row.client, row.incarnation, row.seq


def wait_told(at: Deployed, wanted: int) -> None:
    """Wait until as much is told as must be, and a little longer: what comes twice comes late."""
    told, since = -1, 0.0
    while told < 0 or time.monotonic() - since < (SETTLED if told >= wanted else SILENT):
        assert at.alive, at.log[-3000:]
        if (now := len(told_in(at.root(), *ACTS))) != told:
            told, since = now, time.monotonic()
        time.sleep(0.2)


def flow(at: Deployed, *, kills: int, count: int, rate: float, seed: int, between: float) -> None:
    """Let persons walk about, and kill the run meanwhile; what is told is what policies mean."""
    chance = random.Random(seed)
    sightings = walks(seed, count)
    wanted = meant(at.folder, sightings)
    by_policy = Counter(each.situation.policy for each in wanted)
    assert all(by_policy[name] > 20 for name in ACTS), by_policy
    program = Sightings(at.folder, sightings, rate)
    program.start()
    try:
        wait_for(lambda: program.ready, "sightings are published")
        for _ in range(kills):
            time.sleep(chance.uniform(0.2, between))
            at.kill()
            at.start()
            at.ready()
        wait_for(lambda: program.done, "all sightings are stored")
        wait_told(at, len(wanted))
    finally:
        program.kill()
    check_told(at, wanted)


def test_the_edge_tells_each_situation_once_though_it_is_killed(tmp_path: Path) -> None:
    with deployed(tmp_path / "guarded", engine="edge", situ=PATIENT, files=GUARDED) as at:
        flow(at, kills=2, count=600, rate=200, seed=5, between=1.5)
        assert at.stop() == 0


def test_spark_tells_each_situation_once_though_it_is_killed(tmp_path: Path) -> None:
    with deployed(tmp_path / "guarded", engine="spark", situ=PATIENT, files=GUARDED) as at:
        flow(at, kills=1, count=800, rate=250, seed=6, between=4)
        assert at.stop() == 0


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["edge", "spark"])
def test_each_situation_is_told_once_though_the_run_is_killed_ten_times(tmp_path: Path, engine: str) -> None:
    with deployed(tmp_path / "guarded", engine=engine, situ=PATIENT, files=GUARDED) as at:
        flow(at, kills=10, count=6000, rate=60, seed=11, between=6)
        assert at.stop() == 0


# ── changes under load ────────────────────────────────────────────────────────────────────────────

PRESENCE = """policy presence
window 1 s
hold 6 h
concepts
  person A (status = 'guest')
  room   R
conditions
  A is inside R
actions
  write down
"""
"""One that opens a situation for each guest and room, and holds it."""


def put(at: Deployed, verb: str, text: str = "") -> None:
    """Add, alter or remove the policy, as the command line does it."""
    with registry_of(at.folder) as registered:
        registry = registered.registry
        if verb == "remove":
            applied = registry.remove("policy", "presence", who="test")
        else:
            change = registry.add if verb == "add" else registry.alter
            applied = change("policy", "presence", policy_document("presence", text, "presence.dpl"), who="test")
        roll_out(registered, applied.deployment)


class Present:
    """What the policy that comes and goes has told so far."""

    def __init__(self, at: Deployed) -> None:
        self.at = at
        self.opened: dict[str, list[str]] = {}
        """Aliases by situation."""
        self.closed: dict[str, str] = {}
        """Why, by situation."""
        self.continued = 0

    def look(self) -> Present:
        told = [(row.type.rpartition(".")[2], json.loads(row.data)) for row in told_in(self.at.root(), "presence")]
        self.opened = {
            data["situation"]: [each["alias"] for each in data["bindings"]] for stage, data in told if stage == "opened"
        }
        self.closed = {data["situation"]: data.get("reason", "") for stage, data in told if stage == "closed"}
        self.continued = sum(stage == "continued" for stage, _ in told)
        assert len(told) == len(self.opened) + len(self.closed) + self.continued
        return self

    def under(self, alias: str) -> set[str]:
        return {id for id, aliases in self.opened.items() if alias in aliases}


def come_and_go(at: Deployed) -> None:
    """A policy is added, altered so that its situations go on, altered so that they cannot, and removed."""
    present = Present(at)
    put(at, "add", PRESENCE)
    wait_for(lambda: present.look().opened, "the policy that was added has something open", seconds=LONG, every=0.2)
    put(at, "alter", PRESENCE.replace("6 h", "7 h"))
    before = present.look().continued
    wait_for(lambda: present.look().continued > before, "its situations go on", seconds=LONG, every=0.2)
    assert not present.closed
    put(at, "alter", PRESENCE.replace("person A", "person P").replace("A is", "P is"))
    wait_for(
        lambda: present.look().under("P"), "the policy that was altered has something open", seconds=LONG, every=0.2
    )
    former = present.under("A")
    assert {id: present.closed.get(id) for id in former} == dict.fromkeys(former, "policy changed")
    put(at, "remove")
    wait_for(
        lambda: present.look().closed.keys() == present.opened.keys(), "nothing is left open", seconds=LONG, every=0.2
    )
    assert {present.closed[id] for id in present.under("P")} == {"policy removed"}


@pytest.mark.parametrize("engine", ["edge", pytest.param("spark", marks=pytest.mark.soak)])
def test_policies_come_and_go_and_others_miss_and_repeat_nothing(tmp_path: Path, engine: str) -> None:
    with deployed(tmp_path / "guarded", engine=engine, situ=PATIENT, files=GUARDED) as at:
        flow_while_policies_change(at, count=1200, rate=100, seed=7)
        assert at.stop() == 0


def flow_while_policies_change(at: Deployed, *, count: int, rate: float, seed: int) -> None:
    sightings = walks(seed, count)
    wanted = meant(at.folder, sightings)
    program = Sightings(at.folder, sightings, rate)
    program.start()
    try:
        wait_for(lambda: program.ready, "sightings are published")
        come_and_go(at)
        wait_for(lambda: program.done, "all sightings are stored")
        wait_told(at, len(wanted))
    finally:
        program.kill()
    check_told(at, wanted)


# ── silence ───────────────────────────────────────────────────────────────────────────────────────

LATENESS, IDLE, WINDOW, TICK = 500_000, 1_000_000, 1_000_000, 50_000
SLOW = 1_000_000
"""Microseconds that this machine may take on top."""


def test_what_is_absent_is_told_soon_though_nothing_more_comes(tmp_path: Path) -> None:
    async def run() -> None:
        policy = FILES["policies/unaccompanied-guest.dpl"].replace("5 s", "1 s")
        files = {**GUARDED, "policies/unaccompanied-guest.dpl": policy}
        async with (
            edge_zone(tmp_path, situ="defaults: {lateness: 500 ms, idle: 1 s}\n", more=files) as zone,
            zone.connect("reader") as reader,
        ):
            await reader.publish_event("Sighting", {"who": "g1", "at": {"x": 5.0, "y": 5.0}})

            async def came() -> list[Row]:
                messages = await zone.messages(zone.names.root_stream)
                rows = [decode_line(line) for each in messages for line in stored_lines(each)]
                return [row for row in rows if row.type.endswith(("Sighting", ".opened"))]

            while len(rows := await came()) < 2:
                await asyncio.sleep(0.02)
            sighting, situation = rows
            assert situation.time == sighting.time + WINDOW
            assert situation.recv > situation.time + LATENESS, "somebody might still have come"
            assert situation.recv < situation.time + LATENESS + IDLE + TICK + SLOW

    asyncio.run(asyncio.wait_for(run(), 60))
