"""Detection over an archive of the root log: the security policy over sightings, as `situ replay --over` does it.

The archive is written by the code that writes it in a run, from columns instead of messages, which is what makes 20
million events in a minute. Each variant is a process of its own, bound to as many cores as it says: Spark has one
master for a process, and with one core only, Java with its garbage collector and Python share it. What is measured is
the batch, without the start of Java. All variants have to find the same, and over the first events what the steps of an
engine find, message by message.

Without the harness: ``python -m benchmarks.archive_backfill FOLDER EVENTS`` writes the archive into the folder, runs
with one core and with two, and prints what each took.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Taken, Variant, Verdict
from benchmarks.situation_events import ONTOLOGY, Building

if TYPE_CHECKING:
    from situ.model import Deployment

SECOND = 1_000_000
BEGIN = 1_767_225_600 * SECOND
PEOPLE, SEGMENT, SAMPLE = 3_000, 200_000, 60_000
_INSTANT = pa.timestamp("us", tz="UTC")
_POLICY = """\
policy alone
window 5 s
hold 5 s
concepts
  person A (status = 'guest')
  person B (status = 'employee')
  room R (security = 'restricted')
conditions
  A is inside R
  A is not within 5 m of B or B is not inside R
actions
  note it
"""
_FILES = {
    "types/t.yaml": "events:\n  Sighting: {who: string, at: Point m}\n",
    "ontology.yaml": ONTOLOGY,
    "sources/s.yaml": """\
pull:
  persons: {csv: people.csv, columns: {id: string, status: string}, concept: person, key: id}
  rooms: {csv: rooms.csv, columns: {id: string, security: string, area: Box m}, concept: room, key: id}
push:
  seen: {event: Sighting, concept: person, id: who, attribute: position, value: at}
""",
    "policies/alone.dpl": _POLICY,
    "actions.yaml": 'actions:\n  note it: [{log: "{A}"}]\n',
}


class Sightings(Building):
    """Events of people on their way, as columns of an archive."""

    def table(self, start: int, count: int) -> pa.Table:
        events = np.arange(start, start + count)
        seconds, places = np.divmod(events, self.people)
        who = self._order[places]
        _, x, y = self._where(who, seconds)
        times = pa.array(BEGIN + seconds * SECOND + self._phases[places])
        names, ids = self._names.take(pa.array(who)), pa.array(events).cast(pa.string())
        point = pa.StructArray.from_arrays([pa.array(x), pa.array(y)], ["x", "y"])
        instants = pc.strftime(times.cast(_INSTANT), format="%Y-%m-%dT%H:%M:%SZ")
        line = pc.binary_join_element_wise(
            '{"specversion":"1.0","id":"', ids, '","source":"camera/1","type":"Sighting","time":"', instants,
            '","situkey":"camera.1.', pa.array(events + 1).cast(pa.string()), '","data":{"who":"', names,
            '","at":{"x":', pa.array(x).cast(pa.string()), ',"y":', pa.array(y).cast(pa.string()), "}}}", "",
        )  # fmt: skip
        messages = events // 100
        firsts = pa.array(messages * 100 + 1).cast(pa.string())
        headers = pc.binary_join_element_wise(
            '{"Situ-Client":"camera","Situ-Context":"root","Situ-Key":"camera.1.', firsts, '","Situ-Count":"100"}', ""
        )
        return pa.table(
            {
                "pos": pa.array((messages + 1) * 65_536 + events % 100),
                "id": ids,
                "source": pa.repeat("camera/1", count),
                "time": times.cast(_INSTANT),
                "received": times.cast(_INSTANT),
                "stored": times.cast(_INSTANT),
                "client": pa.repeat("camera", count),
                "incarnation": pa.repeat(1, count),
                "number": pa.array(events + 1),
                "context": pa.repeat("root", count),
                "ad": pa.nulls(count, pa.string()),
                "confidence": pa.nulls(count, pa.float64()),
                "data": pa.StructArray.from_arrays([names, point], ["who", "at"]),
                "line": line.cast(pa.binary()),
                "subject": pa.repeat("situ.main.root.r1.Sighting", count),
                "headers": headers,
            }
        )


def write(folder: Path, events: int) -> int:
    """A project, and its archive with so many events; the bytes of the archive."""
    from situ.archive.format import ArchiveDescription, ArchivedSegment, PartTable
    from situ.archive.parquet import ParquetArchive
    from situ.storage.state_folder import StateFolder

    building = Sightings(PEOPLE)
    for name, text in _FILES.items():
        _put(folder / "plant" / name, text)
    persons = "".join(f"person {n},{'guest' if n % 3 else 'employee'}\n" for n in range(PEOPLE))
    _put(folder / "plant" / "people.csv", f"id,status\n{persons}")
    rooms = "".join(_room(number) for number in range(building.rooms))
    _put(folder / "plant" / "rooms.csv", f"id,security,area\n{rooms}")
    _put(folder / "plant" / "situ.yaml", "name: plant\n")
    archive = ParquetArchive(StateFolder(str(folder / "archive")))
    archive.begin(ArchiveDescription(project="plant", zone="main"))
    for number, start in enumerate(range(0, events, SEGMENT), 1):
        table = building.table(start, min(SEGMENT, events - start))
        times, places = table["stored"].cast(pa.int64()), table["pos"]
        day = datetime.fromtimestamp(times[0].as_py() / SECOND, UTC).date().isoformat()
        segment = ArchivedSegment(
            number=number,
            first=places[0].as_py() // 65_536,
            last=places[-1].as_py() // 65_536,
            begin=times[0].as_py(),
            end=times[-1].as_py(),
            events=table.num_rows,
            mark=str(number),
            parts=(),
        )
        archive.append(segment, [PartTable(type="Sighting", day=day, generation=1, table=table)])
    return sum(each.stat().st_size for each in (folder / "archive").rglob("*.parquet"))


def _room(number: int) -> str:
    x, y = 30.0 * (number % 100), 30.0 * (number // 100)
    area = {"x1": x, "y1": y, "x2": x + 30.0, "y2": y + 30.0}
    return (
        f'room {number},{"open" if number % 5 else "restricted"},"{json.dumps(area).replace(chr(34), chr(34) * 2)}"\n'
    )


def _put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


# ── running ───────────────────────────────────────────────────────────────────────────────────────


def replayed(folder: Path, cores: int) -> Mapping[str, Any]:
    """What a process with so many cores says of its replay, and how much memory all its processes had at most."""
    command = [sys.executable, "-m", "benchmarks.archive_backfill", "--worker", str(folder), str(cores)]
    with (
        (folder / f"worker-{cores}.log").open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        peak, cpu = _used(process)
        assert process.stdout is not None
        text = process.stdout.read()
    assert process.returncode == 0, (folder / f"worker-{cores}.log").read_text()[-4000:]
    return {**json.loads(text.splitlines()[-1]), "peak": peak, "cpu": cpu}


def _used(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """The most that a process and its children had in memory together, where what workers share counts in each; and
    the seconds of CPU that they used, but for the last moment of each."""
    import psutil

    peak, me = 0, psutil.Process(process.pid)
    seconds: dict[int, float] = {}
    while process.poll() is None:
        found = 0
        for each in (me, *_children(me)):
            try:
                found += each.memory_info().rss
                times = each.cpu_times()
                seconds[each.pid] = times.user + times.system
            except psutil.Error:
                continue
        peak = max(peak, found)
        time.sleep(0.2)
    return peak, sum(seconds.values())


def _children(process: Any) -> list[Any]:
    import psutil

    try:
        found: list[Any] = process.children(recursive=True)
        return found
    except psutil.Error:
        return []


def work(folder: Path, cores: int) -> Mapping[str, Any]:
    """In a process of its own, with all its children on so many cores: the replay."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    from situ.app.history import HistoryQuery, replay_history
    from situ.app.replay import ReplayedSituation

    deployment = _deployment(folder, cores)
    found: list[str] = []

    def told(each: ReplayedSituation) -> None:
        found.append(f"{each.id} {each.bindings} {each.start} {each.last} {each.end} {each.detections}")

    query = HistoryQuery(place=str(folder / "archive"), policies=deployment.policies)
    outcome = replay_history(folder / "plant", deployment, query, told)
    return {
        "events": outcome.events,
        "seconds": outcome.seconds,
        "situations": len(found),
        "digest": hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest(),
    }


def _deployment(folder: Path, cores: int) -> Deployment:
    from situ.lang.records import replace
    from situ.settings.kinds import plain
    from situ.testing.fixtures import load_project

    deployment = load_project(folder / "plant").deployment
    spark = replace(deployment.settings.spark, master=plain(f"local[{cores}]"))
    return replace(deployment, settings=replace(deployment.settings, spark=spark))


def check_sample(folder: Path, events: int) -> int:
    """Hold a batch over an archive of so many events against the steps of an engine; how many situations there were."""
    from situ.app.replay import replay_policies
    from situ.archive.history import with_archive
    from situ.archive.parquet import ParquetArchive
    from situ.bus.memory import MemoryBus
    from situ.event.instants import instant_at
    from situ.storage.state_folder import StateFolder

    write(folder, events)
    archive = ParquetArchive(StateFolder(str(folder / "archive")))
    deployment = _deployment(folder, 2)

    async def stream() -> list[str]:
        bus = MemoryBus()
        await bus.prepare(deployment.settings)
        past = with_archive(bus, archive)
        last = archive.segments()[-1]
        until = instant_at(last.end + 3600 * SECOND)
        done = await replay_policies(
            past, folder / "plant", deployment, tuple(deployment.policies.values()), instant_at(BEGIN), until
        )
        assert not done.tally.late_events
        return [
            f"{each.id} {each.bindings} {each.start} {each.last} {each.end} {each.detections}"
            for each in done.situations
        ]

    streamed = asyncio.run(stream())
    batch = replayed(folder, 2)
    assert batch["digest"] == hashlib.sha256("\n".join(sorted(streamed)).encode()).hexdigest(), "not the same found"
    assert batch["events"] == events
    return len(streamed)


# ── the scenario ──────────────────────────────────────────────────────────────────────────────────


def _variants(bench: Bench) -> list[Variant]:
    events = bench.some(20_000_000, 20_000)
    folder = bench.folder("archive")
    size = write(folder, events)
    answers: set[str] = set()
    if not bench.quick:
        assert check_sample(bench.folder("sample"), SAMPLE)

    def run(cores: int) -> Taken:
        found = replayed(folder, cores)
        assert found["events"] == events
        answers.add(found["digest"])
        assert len(answers) == 1, "different situations were found"
        figures = {
            "MB in memory at most": found["peak"] / 1e6,
            "µs of CPU an event, Java's start included": 1e6 * found["cpu"] / events,
            "bytes an event in the archive": size / events,
        }
        return Taken(value=events / found["seconds"], figures=figures)

    cores = (2,) if bench.quick else (1, 2)
    return [Variant(name=f"{n} {'core' if n == 1 else 'cores'}", work=lambda n=n: run(n)) for n in cores]


def _judge(medians: dict[str, float]) -> list[Verdict]:
    if "1 core" not in medians:
        return []
    ratio = medians["2 cores"] / medians["1 core"]
    return [Verdict(what="2 cores against 1", value=ratio, goal="≥ 1.7", met=ratio >= 1.7)]


SCENARIOS = [
    Scenario(
        name="archive-backfill",
        title="Detection over the archive, as a batch",
        unit="events/s",
        about="The security policy over twenty million archived sightings of 3,000 people, by `situ replay --over`: "
        "columns of Parquet to the kernel, without the start of Java, each variant bound to its cores on "
        "Linux. All find the same situations, and over the first 60,000 events those that an engine finds message by "
        "message.",
        variants=_variants,
        judge=_judge,
        repetitions=3,
        warm=False,
    )
]


def main(arguments: Sequence[str]) -> None:
    if arguments[0] == "--worker":
        print(json.dumps(work(Path(arguments[1]), int(arguments[2]))))
        return
    folder, events = Path(arguments[0]), int(arguments[1])
    begin = time.perf_counter()
    if not (folder / "archive").exists():
        size = write(folder, events)
        print(f"written in {time.perf_counter() - begin:.1f} s, {size / events:.1f} bytes an event", flush=True)
    for cores in map(int, arguments[2:] or ("1", "2")):
        found = replayed(folder, cores)
        rate = found["events"] / found["seconds"]
        print(f"local[{cores}]: {rate:,.0f} events/s, {found['peak'] / 1e6:,.0f} MB at most, {found}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
