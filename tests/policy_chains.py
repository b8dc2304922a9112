"""Chains of policies, generated: the first reads what publishers say, the others read what those before them publish.

A chain is a project folder; events are in the order they arrive, none later than its lateness allows. What must come of
them is worked out by the reference, policy after policy, from all events at once. Everything is deterministic by seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from situ.event.instants import microseconds
from situ.event.message import split_lines
from situ.event.row import Row
from situ.lang.types.scalars import read_timestamp
from situ.model import Deployment
from situ.policies import lifecycle
from situ.policies.enrichment.observations import observe
from situ.policies.model import InstancesByConcept
from situ.policies.reference import detect
from situ.project.check import check_folder
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.situation_events import situation_messages
from tests.project_files import write

START, SECOND = 1_790_000_000_000_000, 1_000_000
FOREVER = 10_000 * SECOND
INSTANCES: InstancesByConcept = {
    "place": {name: {"limit": limit} for name, limit in (("low", 2.0), ("high", 6.0))},
    "thing": {},
}
FILES = {
    "types/all.yaml": "events:\n  Reading: {who: string, value: double}\n  Smoke: {who: string, value: double}\n"
    "  Hot: {who: string, value: double}\n  Fire: {who: string, value: double}\n  Out: {who: string}\n",
    "ontology.yaml": """
        concepts:
          thing: {id: string, temp: double, smoke: double, hot: double, fire: double, alarm: string}
          place: {id: string, limit: double}
        relationships:
          warmer: {between: [thing.temp, place.limit], function: ">"}
          smoky: {between: [thing.smoke, place.limit], function: ">"}
          hotter: {between: [thing.hot, place.limit], function: ">"}
          burning: {between: [thing.fire, place.limit], function: ">"}
        """,
    "places.csv": "nr,limit\nlow,2\nhigh,6\n",
    "actions.yaml": """
        actions:
          say hot: [{publish: Hot, data: {who: "{A}", value: 7}}]
          say fire: [{publish: Fire, data: {who: "{A}", value: 7}}]
          say out: [{publish: Out, data: {who: "{A}"}}]
        """,
    "clients/all.yaml": "clients:\n  meter: {advertisements: {read: {type: Reading}, smoke: {type: Smoke}}}\n",
}
RAW = {"Reading": "read", "Smoke": "smoked"}
CONDITIONS = {
    "first": (
        "A is warmer R",
        "A is warmer R followed-by within 3 s A is smoky S",
        "A is warmer R followed-by within 2 s A is not smoky S",
    ),
    "second": (
        "A is hotter R",
        "A.alarm = 'first'",
        "A is hotter R followed-by within 2 s A is not warmer S",
        "A is smoky S followed-by within 4 s A is hotter R",
        "A is smoky S followed-by within 3 s A is not hotter R",
    ),
    "third": (
        "A is burning R",
        "A.alarm = 'second'",
        "A is warmer S followed-by within 5 s A is burning R",
        "A is smoky S followed-by within 4 s A is not burning R",
        "A is hotter S followed-by within 5 s A is burning R",
    ),
}
ACTIONS = {"first": "say hot", "second": "say fire", "third": "say out"}
Told = tuple[str, str, str, int]
"""An event of a policy: who published it, its type, its id and its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An event: as the reference takes it, and when it arrives."""

    type: str
    id: str
    source: str
    time: int
    data: Mapping[str, Any]
    received: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    seed: int
    files: Mapping[str, str]
    events: tuple[Said, ...]
    """In the order they arrive."""

    def deployment(self, folder: Path) -> Deployment:
        write(folder, dict(self.files))
        checked = check_folder(folder)
        assert checked.deployment is not None, [str(each) for each in checked.problems]
        return checked.deployment


def generate(seed: int, *, count: int = 40, idle: str = "") -> Chain:
    """A chain of three, and events of some things over a minute or so."""
    dice = random.Random(seed)
    lateness = dice.choice([0.5, 1, 3])
    files = {**FILES, "situ.yaml": _settings(dice, lateness, idle), "sources/all.yaml": _sources()}
    files |= {f"policies/{name}.dpl": _policy(dice, name) for name in CONDITIONS}
    events = []
    for number in range(count):
        type = dice.choice(["Reading", "Reading", "Smoke"])
        # No two at the same instant: of what comes apart then, the first opens a situation.
        time = START + dice.randrange(60 * 1000) * 1000 + number
        data = {"who": dice.choice("ab"), "value": float(dice.randrange(10))}
        received = time + int(dice.random() * 0.9 * lateness * SECOND)
        events.append(Said(type=type, id=f"e{number}", source="meter", time=time, data=data, received=received))
    events.sort(key=lambda each: each.received)
    return Chain(seed=seed, files=files, events=tuple(events))


def _settings(dice: random.Random, lateness: float, idle: str) -> str:
    idle = idle or dice.choice(["2 s", "1 h"])
    return f"name: chain\nengine: edge\ndefaults: {{lateness: {round(lateness * 1000)} ms, idle: {idle}}}\n"


def _sources() -> str:
    def push(event: str, attribute: str, id: str = "who", value: str = "value") -> str:
        return f"{{event: {event}, concept: thing, id: {id}, attribute: {attribute}, value: {value}}}"

    lines = {
        "read": push("Reading", "temp"),
        "smoked": push("Smoke", "smoke"),
        "hot": push("Hot", "hot"),
        "fire": push("Fire", "fire"),
        "alarmed": push("situ.situation.opened", "alarm", "bindings.A", "policy"),
    }
    places = (
        "{csv: places.csv, columns: {nr: string, limit: double}, concept: place, key: nr, attributes: {limit: limit}}"
    )
    return f"pull:\n  places: {places}\npush:\n" + "".join(f"  {name}: {text}\n" for name, text in lines.items())


def _policy(dice: random.Random, name: str) -> str:
    condition = dice.choice(CONDITIONS[name])
    aliases = [f"  place {alias} (id = '{dice.choice(['low', 'high'])}')" for alias in "RS" if f" {alias}" in condition]
    when = dice.choice(["actions", "actions on every detection"])
    return "\n".join(
        [
            f"policy {name}",
            f"window {dice.choice([5, 6])} s",
            f"hold {dice.choice([1, 4, 9])} s",
            "concepts",
            "  thing A",
            *aliases,
            "conditions",
            f"  {condition}",
            when,
            f"  {ACTIONS[name]}\n",
        ]
    )


END = START + 5_000 * SECOND
LAST = tuple(
    Said(type=type, id=f"last {type}", source="meter", time=END, data={"who": "nobody", "value": 0.0}) for type in RAW
)
"""Events that nothing comes of, and that tell how far both sources are."""


# ── by the reference ──


def expected(deployment: Deployment, events: Iterable[Said]) -> list[Told]:
    """All that the policies publish, each after those that it reads, from all events at once."""
    detecting, known = DetectionPlan.of(deployment), list(events)
    found: list[Told] = []
    for name in CONDITIONS:
        watch = detecting.watches[name]
        said = list(observe(known, detecting.push, deployment.types))
        detected = detect(watch.policy, deployment.ontology, said, INSTANCES)
        _, told = lifecycle.step({}, detected, START + FOREVER, watch.policy.hold)
        progress, _ = DetectionProgress().adopted(detecting, None)
        progress, messages = situation_messages(told, detecting, None, progress, {}, INSTANCES)
        published = [event for message in messages for event in published_in(message.body)]
        known += published
        found += [told_of(name, each) for each in published]
    return sorted(found)


def published_in(body: bytes) -> Iterator[Said]:
    for line in split_lines(body):
        read = json.loads(line)
        time = microseconds(read_timestamp(read["time"]))
        yield Said(type=read["type"], id=read["id"], source=read["source"], time=time, data=read["data"])


def told_of(policy: str, event: Said | Row) -> Told:
    return policy, event.type, event.id, event.time


def row_of(event: Said, client: str, seq: int, received: int, pos: int, incarnation: int = 1) -> Row:
    """An event as it is in the log."""
    data = json.dumps(event.data).encode()
    return Row(
        pos,
        client,
        incarnation,
        seq,
        "root",
        received,
        event.id,
        event.source,
        event.type,
        event.time,
        "",
        None,
        "",
        data,
    )
