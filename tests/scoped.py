"""A guarded building in two sites, whose events are not for everybody; and detection over it, step by step, in memory.

East and west are in one group. Of what readers in the east say, only sightings left of 8 m get out of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from situ.event.instants import microseconds
from situ.event.lines import decode_line, encode_row, put_parts, stamped_line, without_parts
from situ.event.message import split_lines
from situ.event.row import Row
from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.lang.types.scalars import read_timestamp
from situ.model import Deployment
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.model import InstancesByConcept
from situ.project.check import check_folder
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.situation_events import PolicyMessage, cause_positions, situation_messages
from situ.stages.detect.step import States, decide, work_rows
from situ.stages.plan import Plan, compile_plan
from situ.stages.stamp import OWN
from tests.guarded import FILES
from tests.project_files import write

T, SECOND = 1_790_000_000_000_000, 1_000_000


def inside(name: str, more: str = "") -> str:
    """A policy that is met whenever somebody is in the laboratory."""
    conditions = "concepts\n  person A\n  room R (security = 'restricted')\nconditions\n  A is inside R\n"
    return f"policy {name}\nwindow 1 s\nhold 2 s\n{conditions}{more}actions\n  raise alarm\n"


SCOPES = """
version: 1
dimensions:
  site:
    mode: closed
    scopes:
      group: {}
      east:  { in: [group], output: "type IS Sighting AND at.x < 8 [m]" }
      west:  { in: [group] }
      other: {}
  floor: { scopes: { ground: {}, first: {} } }
clients:
  reader-e:  { site: [east], floor: [ground] }
  reader-w:  { site: [west] }
  at-east:   { site: [east] }
  at-group:  { site: [group] }
  at-other:  { site: [other] }
  presence:  { site: [east] }
  everywhere: { site: [group] }
  again:     { site: [east] }
  counted:   { site: [east] }
  unaccompanied-guest: { site: [east] }
policies:
  presence:   { reads: { site: east, rest: any },  publishes: { site: any, rest: any } }
  everywhere: { reads: { site: group, rest: any }, publishes: { site: any, rest: any } }
  again:      { reads: { site: east, rest: any },  publishes: { site: any, rest: any } }
  counted:    { reads: { site: east, rest: any },  publishes: { site: any, rest: any } }
  unaccompanied-guest: { reads: { site: east, rest: any }, publishes: { site: any, rest: any } }
grants:
  - { to: presence,   dimension: site, may: [broadcast] }
  - { to: everywhere, dimension: site, may: [broadcast] }
  - { to: again,      dimension: site, may: [broadcast] }
  - { to: counted,    dimension: site, may: [broadcast] }
  - { to: unaccompanied-guest, dimension: site, may: [broadcast] }
  - { to: persons,    dimension: site, may: [broadcast] }
  - { to: rooms,      dimension: site, may: [broadcast] }
  - { to: boss,       dimension: site, may: [admin] }
releases:
  - { policy: counted, dimensions: [site], keep: [text, status], by: boss }
"""
CLIENTS = """
clients:
  reader-e: {scopes: {site: east, rest: any}, advertisements: {seen: {type: Sighting}}}
  reader-w: {scopes: {site: west, rest: any}, advertisements: {seen: {type: Sighting}}}
  at-east:  {scopes: {site: east, rest: any}, subscriptions: {all: {types: [situ.situation], durable: true}}}
  at-group: {scopes: {site: group, rest: any}, subscriptions: {all: {types: [situ.situation], durable: true}}}
  at-other: {scopes: {site: other, rest: any}, subscriptions: {all: {types: [situ.situation], durable: true}}}
"""
POLICIES = {
    "presence": inside("presence"),
    "everywhere": inside("everywhere"),
    "counted": inside("counted"),
    "again": "policy again\nwindow 3 s\nlateness 2 s\nconcepts\n  person A\n"
    "conditions\n  A.alarm = 'presence'\nactions\n  say so\n",
}
EVENTS = "alarmed: {event: situ.situation.opened, concept: person, id: bindings.A, attribute: alarm, value: policy}"
PROJECT = {
    **FILES,
    "situ.yaml": "name: guarded\nengine: edge\ndefaults: {lateness: 100 ms, idle: 300 ms}\n",
    "ontology.yaml": FILES["ontology.yaml"]
    .replace("status: string,", "status: string, alarm: string,")
    .replace("relationships:", 'relationships:\n          flagged: {between: [person.alarm, room.id], function: "="}'),
    "sources/building.yaml": FILES["sources/building.yaml"].replace("csv:", "scopes: {rest: any}\n            csv:"),
    "sources/situations.yaml": f"push:\n  {EVENTS}\n",
    "policies/unaccompanied-guest.dpl": FILES["policies/unaccompanied-guest.dpl"].replace("5 s", "1 s"),
    **{f"policies/{name}.dpl": text for name, text in POLICIES.items()},
    "actions.yaml": FILES["actions.yaml"] + "\n          say so: [{publish: GuestAlone, data: {text: '{A} again'}}]\n",
    "clients/people.yaml": CLIENTS,
    "people.csv": FILES["people.csv"] + "g3,guest\n",
    "scopes.yaml": SCOPES,
}
EAST, WEST, GROUP, OTHER = (TagSet.of({"site": name}, rest=True) for name in ("east", "west", "group", "other"))
KNOWN: InstancesByConcept = {
    "person": {who: {"id": who, "status": "guest"} for who in ("g1", "g2", "g3")},
    "room": {
        "lab": {"id": "lab", "security": "restricted", "area": {"x1": 0.0, "y1": 0.0, "x2": 10.0, "y2": 10.0}},
    },
}


def project(folder: Path, only: tuple[str, ...] = (), **files: str) -> Deployment:
    """What the folder declares with these files in place of others; of policies only those, if any are named."""
    named = {f"policies/{name}.dpl" for name in only}
    kept = {name: text for name, text in PROJECT.items() if not only or "policies/" not in name or name in named}
    write(folder, {**kept, **files})
    checked = check_folder(folder)
    assert checked.deployment is not None, [str(each) for each in checked.problems]
    return checked.deployment


class Flow:
    """Events in, what policies publish out, and back in: as engines do it, with everything at hand."""

    def __init__(self, deployment: Deployment, epoch: int = 1) -> None:
        self.plan: Plan
        self.log: dict[int, Row] = {}
        self.published: list[PolicyMessage] = []
        self.late: dict[int, list[str]] = {}
        self.causes: dict[str, tuple[int, ...]] = {}
        """Where those of each detection are, by its id."""
        self.progress = DetectionProgress()
        self.states: States = {}
        self._numbers: dict[str, int] = {}
        self._known: dict[int, Any] = {}
        self.use(deployment, epoch)

    def use(self, deployment: Deployment, epoch: int) -> None:
        """Another version is in force."""
        before = getattr(self, "plan", None)
        former = before.detecting if before is not None else None
        self.plan = compile_plan(replace(deployment, epoch=epoch), before)
        if self.plan.seeing is not None:
            self._known[epoch] = self.plan.seeing.graph
            self.plan.seeing.load = self._known.get
        self.progress, told = self.progress.adopted(self.plan.detecting, former)
        self._tell(told, former)

    def see(self, reader: str, who: str, x: float, time: int = T, received: int = 0) -> Row:
        """Somebody is seen; what follows from that is not decided yet."""
        data = {"who": who, "at": {"x": x, "y": 5.0}}
        made = _row(reader, "Sighting", data, time)
        made.recv = received or time
        (row,) = self._taken([made])
        self._step([row], row.recv)
        return row

    def wait(self, seconds: float = 10, since: int = T) -> list[Row]:
        """Time goes by, and all that follows is decided; what policies published is given, as the log has it."""
        before = set(self.log)
        clock = since + int(seconds * SECOND)
        for _ in range(4):  # what they published is for other policies to decide about
            self._step([], clock)
        return [row for pos, row in self.log.items() if pos not in before]

    def again(self) -> None:
        """As a process that goes on where another was: all that is remembered went through its stored form."""
        stored = json.loads(json.dumps(self.progress.as_json()))
        self.progress = DetectionProgress.from_json(stored)
        kernels = {name: self.plan.detecting.kernel(name) for name in self.states}
        loaded = {name: kernels[name].load(kernels[name].save(state)) for name, state in self.states.items()}
        self.states = {name: state for name, state in loaded.items() if state is not None}

    def sees(self, row: Row, tags: TagSet) -> bool:
        assert self.plan.seeing is not None
        return self.plan.seeing.sees(self.plan.seeing.look(row), tags)

    def _step(self, rows: list[Row], clock: int) -> None:
        plan = self.plan
        assert plan.meeting is not None
        knowledge = InstanceColumns(plan.detecting.ontology)
        worked = work_rows(plan.detecting, plan.reading, self.progress, self.states, rows, clock, knowledge, KNOWN)
        found = decide(plan.detecting, worked, plan.meeting.counted(worked.found, self.log))
        self.progress, self.states = found.progress, found.states
        self.late.update(found.late)
        self._tell(found.told, None)

    def _tell(self, told: Any, former: Any) -> None:
        assert all(position in self.log for position in cause_positions(told))
        self.causes |= {each.detection: each.situation.positions for each in told if each.detection}
        detecting, meeting = self.plan.detecting, self.plan.meeting
        self.progress, published = situation_messages(
            told, detecting, former, self.progress, self.log, KNOWN, meeting=meeting
        )
        self.published += published
        for message in published:
            body, parts = without_parts(message.body)
            rows = [_read(message, line) for line in split_lines(body)]
            for number, row in enumerate(rows):
                row.seq, row.ad = message.first + number, OWN
            put_parts(rows, parts, message.first)
            stamped = self._taken(rows)
            self._step(stamped, max(row.time for row in stamped))

    def _taken(self, rows: list[Row]) -> list[Row]:
        """Stamped and in the log, from where they are read again."""
        good = [row for row in self.plan.stamp.each(rows) if isinstance(row, Row)]
        assert len(good) == len(rows)
        if self.plan.seeing is not None:
            self.plan.seeing.stamp(good)
        taken = []
        for row in good:
            if not row.seq:
                self._numbers[row.client] = row.seq = self._numbers.get(row.client, 0) + 1
            row.pos = (len(self.log) + 1) * 65536
            self.log[row.pos] = decode_line(stamped_line(row, encode_row(row)), pos=row.pos)
            assert self.log[row.pos] == row
            taken.append(row)
        return taken


def _row(client: str, type: str, data: Mapping[str, Any], time: int, **more: Any) -> Row:
    text = json.dumps(data, separators=(",", ":")).encode()
    return Row(0, client, 1, 0, "root", time, f"{client}-{time}", client, type, time, "", None, "", text)


def _read(message: PolicyMessage, line: bytes) -> Row:
    read = json.loads(line)
    time = microseconds(read_timestamp(read["time"]))
    row = _row(message.policy, read["type"], read["data"], time)
    row.id = read["id"]
    row.ext = f'"released":"{read["released"]}"' if "released" in read else ""
    return row
