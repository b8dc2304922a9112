"""A project that looks up in tables, run by the command: what is sent and replayed, and what is said of tables."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.conftest import PATIENCE, Situ
from tests.e2e.runs import running

FILES = {
    "situ.yaml": "name: building\nengine: edge\n",
    "types/all.yaml": "types: {PersonId(string): {}}\nevents: {Sighting: {who: PersonId, at: Point m}}\n",
    "contexts/readers.yaml": """\
context: readers
types: {TagId(string): {}}
events:
  Read: {tag: TagId, at: Point m}
maps:
  - in: Read -> Sighting
    attributes: {who: tag}
rules:
  in: [TagId -> tag_to_person]
functions:
  tag_to_person: {signature: TagId -> PersonId, lookup: {b: {source: badges, key: {tag: value}}}, value: b.person}
""",
    "contexts/desk.yaml": """\
context: desk
events:
  Arrival: {name: optional string, at: Point m}
maps:
  - out: Sighting -> Arrival
    attributes: {name: who}
rules:
  out: [PersonId -> name_of]
functions:
  name_of:
    {signature: PersonId -> string, lookup: {p: {source: people, key: {nr: value}}}, missing: null, value: p.name}
""",
    "sources/all.yaml": """\
pull:
  badges: {csv: data/badges.csv, columns: {tag: string, person: PersonId}, key: tag}
  people: {csv: data/people.csv, columns: {nr: string, name: string}, key: nr}
""",
    "clients/all.yaml": """\
clients:
  door: {context: readers, advertisements: {reads: {type: Read}}}
  desk: {context: desk, subscriptions: {a: {types: [Arrival], where: "name LIKE 'A%'", durable: true}}}
""",
    "data/badges.csv": "tag,person\nt1,p1\nt2,p2\n",
    "data/people.csv": "nr,name\np1,Ann\np2,Bob\n",
}


def until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.1)


def test_a_run_that_looks_up(situ: Situ, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    people = tmp_path / "data/people.csv"

    def replayed() -> list[str]:
        ran = situ("replay", "--out", "-", cwd=tmp_path)
        return [json.loads(line)["event"]["data"]["name"] for line in ran.out.splitlines()]

    with running(tmp_path) as run:
        reads = "".join(json.dumps({"tag": tag, "at": {"x": 1, "y": 2}}) + "\n" for tag in ("t1", "t2", "t3"))
        ran = situ("publish", "Read", "--client", "door", "--file", "-", cwd=tmp_path, stdin=reads.encode())
        assert ran.code == 1
        assert "error INT705: `who` cannot be converted" in ran.err
        assert replayed() == ["Ann"]
        # The past is told with the tables of today.
        people.write_text("nr,name\np1,Anna\np2,Abe\n")
        assert replayed() == ["Anna", "Abe"]
        people.rename(tmp_path / "gone.csv")
        until(lambda: bool(situ("status", "--json", cwd=tmp_path).data["troubles"]))
        ran = situ("status", cwd=tmp_path)
        assert "edge: S201 The source `people` cannot be read again; what was read " in ran.out
        ran = situ("replay", cwd=tmp_path)
        assert ran.code == 1
        assert "error S111: The source `people` cannot be read: no such file or directory (data/people.csv)." in ran.err
        assert run.stop() == 0
    ran = situ("run", "--for", "1 s", cwd=tmp_path)
    assert ran.code != 0
    assert "error S111: The source `people` cannot be read: no such file or directory (data/people.csv)." in ran.err
