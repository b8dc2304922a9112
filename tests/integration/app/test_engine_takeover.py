"""Engines follow each other in one process, many times: the edge engine itself, and the batches of Spark without Spark.

Batches are worked by the functions that Spark's tasks run; what Spark writes down for each is written by this test. So
both kinds of engine can be cut off at any step, a hundred times in the time in which Spark would start once. What is
told, and what reaches a durable group, is what policies mean; see also ``tests/faults/test_engine_switches.py``.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from situ.app import takeover
from situ.app.takeover import take_over
from situ.bus.nats import open_bus
from situ.edge.engine import EdgeEngine
from situ.event.instants import print_instant
from situ.event.message import EventKey, join_lines
from situ.event.row import Row
from situ.routing.model import Subscription
from situ.spark import checkpoint as recovery
from situ.spark.checkpoint import BatchEnds, Offset, last_batch, read_offset
from situ.spark.detect_query import SparkDetection
from situ.spark.partitions import Batches
from situ.spark.source import DetectReader, SourceOptions
from situ.spark.takeover import finish_events
from situ.storage.state_folder import StateFolder, open_folder
from tests.faults.test_engine_switches import EDGE, PROJECT, SPARK, World, check_same
from tests.faults.test_situations import PATIENT
from tests.zone import Zone, event, zone

WITHIN = 120.0


class Killed(BaseException):
    """The process ends here."""


class LocalSpark:
    """The two queries of Spark, batch by batch; ``step`` is called between any two steps, and may raise."""

    def __init__(self, at: Zone, folder: Path, buckets: int, step: Callable[[str], None]) -> None:
        self._bus, self._names, self._step = at.bus, at.names, step
        settings = at.deployment.settings
        self._checkpoints = open_folder(settings.spark.checkpoints.value, folder)
        self._events, self._detect = self._checkpoints / "events", self._checkpoints / "detect"
        self._options = SourceOptions(at.address, "IN", "rows", self._events, 2, 1000, folder)
        self._finish = lambda: finish_events(at.address, self._events)
        self._detection = SparkDetection(
            None,
            at.address,
            settings,
            self._checkpoints,
            events=self._events,
            folder=folder,
            partitions=buckets,
            on_step=step,
        )
        recovery.adopt_log(at.bus, at.names, self._events)
        last = at.bus.state(at.names.root_stream).last
        if last_batch(self._events, "offsets") == last_batch(self._events, "commits"):
            BatchEnds(self._events).add(last)
        self._detection._prepare(last)
        for checkpoint in (self._events, self._detect):
            checkpoint.write("metadata", b'{"id": "x"}')

    def events(self) -> bool:
        """A batch of events; whether there was one."""
        batches = Batches(self._options)
        try:
            return self._batch(
                self._events, lambda begin: batches.next(begin, ReadMaxRows(1000)), lambda _: self._finish()
            )
        finally:
            batches.close()

    def detect(self) -> bool:
        reader = DetectReader(self._detection._options())
        try:
            return self._batch(
                self._detect,
                lambda begin: Offset.from_json(reader.latestOffset(begin.as_json(), ReadMaxRows(1000))),
                lambda number: self._detection._batch(None, number),
                Offset.from_json(reader.initialOffset()),
            )
        finally:
            reader.stop()

    def _batch(
        self,
        checkpoint: StateFolder,
        end_of: Callable[[Offset], Offset],
        work: Callable[[int], object],
        first: Offset | None = None,
    ) -> bool:
        begun, done = last_batch(checkpoint, "offsets"), last_batch(checkpoint, "commits")
        number = begun if begun is not None and begun != done else (done + 1 if done is not None else 0)
        if begun is None or begun == done:
            begin = read_offset(checkpoint, number - 1) if number else first or Offset()
            end = end_of(begin)
            if end == begin:
                return False
            (checkpoint / "offsets").write(str(number), f"v1\n{{}}\n{json.dumps(end.as_json())}\n".encode())
            self._step("begun")
        work(number)
        self._step("worked")
        (checkpoint / "commits").write(str(number), b"v1\n{}\n")
        return True


class Turns:
    """Engines that follow each other and are killed by chance; the client sends what was not acknowledged again."""

    def __init__(self, at: Zone, folder: Path, world: World, seed: int) -> None:
        self.at, self.folder, self.world = at, folder, world
        self.chance = random.Random(seed)
        self.messages = self._made()
        self.sent = 0
        """Messages that were acknowledged."""
        self.kills = 0
        self._until_kill = 0

    def _made(self) -> list[tuple[EventKey, list[bytes]]]:
        lines = [
            json.dumps(
                {
                    "specversion": "1.0",
                    "id": each.id,
                    "source": each.source,
                    "type": each.type,
                    "time": print_instant(each.time),
                    "data": each.data,
                }
            ).encode()
            for each in self.world.events()
        ]
        found, start = [], 0
        while start < len(lines):
            size = self.chance.randrange(1, 6)
            found.append((EventKey("reader", 1, start + 1), lines[start : start + size]))
            start += size
        return found

    def step(self, _: str = "") -> None:
        self._until_kill -= 1
        if self._until_kill == 0:
            self.kills += 1
            raise Killed

    def take(self, kind: str, *, last: bool = False) -> None:
        """One engine's turn; the last one works until all is told."""
        self._until_kill = 0 if last else self.chance.randrange(1, 16)
        with suppress(Killed):
            if kind == SPARK:
                self._spark(last=last)
            else:
                asyncio.run(self._edge(last=last))
        if last:
            assert self.sent == len(self.messages)

    async def _over(self, kind: str, bus: object) -> None:
        settings = self.at.deployment.settings
        if self._until_kill == 1:  # everything is handed over, and nobody is told
            note, takeover._note = takeover._note, lambda *_: self.step()
            try:
                await take_over(kind, bus, self.folder, settings, self.at.address)  # type: ignore[arg-type]
            finally:
                takeover._note = note
        await take_over(kind, bus, self.folder, settings, self.at.address)  # type: ignore[arg-type]

    def _spark(self, *, last: bool) -> None:
        async def over() -> None:
            async with await open_bus(self.at.address, name="over") as bus:
                await self._over(SPARK, bus)

        asyncio.run(over())
        spark = LocalSpark(self.at, self.folder, self.chance.choice((1, 2, 3)), self.step)
        deadline = time.monotonic() + WITHIN
        while True:
            for _ in range(self.chance.randrange(8)):
                if self.sent < len(self.messages):
                    self.at.store(*self.messages[self.sent])
                    self.sent += 1
                    self.step()
            worked = [spark.events(), spark.detect()]
            self.step()
            if last and self.sent == len(self.messages) and not any(worked) and not self.missing():
                return
            assert time.monotonic() < deadline, sorted(self.missing())[:5]

    async def _edge(self, *, last: bool) -> None:
        async with await open_bus(self.at.address, name="edge") as bus:
            await self._over(EDGE, bus)
            engine = EdgeEngine(bus, self.folder)
            await engine.start()
            deadline = time.monotonic() + WITHIN
            try:
                while not last or self.sent < len(self.messages) or self.missing() or self._undelivered(engine):
                    if self.sent < len(self.messages):
                        some = self.messages[self.sent : self.sent + self.chance.randrange(1, 8)]
                        futures = [
                            await engine.take(key, len(lines), join_lines(lines), time.time_ns() // 1000)
                            for key, lines in some
                        ]
                        self.step()  # some are stored, and the client does not know it
                        for future in futures:
                            assert await future == ()
                            self.sent += 1
                    self.step()
                    await asyncio.sleep(self.chance.choice((0, 0.001, 0.02)))
                    assert time.monotonic() < deadline, sorted(self.missing())[:5]
                await engine.stop()
            except Killed:
                if self.chance.random() < 0.3:
                    await engine.stop()
                    raise
                for task in engine._tasks:
                    task.cancel()
                await asyncio.gather(*engine._tasks, return_exceptions=True)
                await engine._stack.aclose()
                raise

    def _undelivered(self, engine: EdgeEngine) -> bool:
        return engine._cursor.root != self.at.bus.state(self.at.names.root_stream).last

    def missing(self) -> set[tuple[str, str]]:
        meant = self.world.meant
        wanted = {(each.situation.policy, each.id) for each in meant.told} | {
            (one.source, one.id) for one in meant.acted
        }
        return wanted - {(row.source, row.id) for row in self.at.root()}


def check(turns: Turns) -> None:
    """The root log and the queue of the durable subscription have each event once."""
    at, world = turns.at, turns.world
    root = at.root()
    keys = Counter((row.client, row.incarnation, row.seq) for row in root)
    assert keys.most_common(1)[0][1] == 1, keys.most_common(3)
    check_same(Counter(row.id for row in root if row.type == "Sighting"), Counter(e.id for e in world.events()), "root")
    wanted = Counter((each.situation.policy, each.id) for each in world.meant.told)
    wanted += Counter((each.source, each.id) for each in world.meant.acted)
    own = [row for row in root if row.client in world.policies and row.time < world.until]
    check_same(Counter((row.source, row.id) for row in own), wanted, "the root log")
    incarnations = {row.incarnation for row in own}
    assert len(incarnations) == 1, "policies are the same clients whoever works them"
    assert not at.dead()
    (queued,) = at.delivered().values()
    check_same(keyed(queued), keyed([row for row in root if row.type != "Sighting"]), "the queue")


def keyed(rows: list[Row]) -> Counter[str]:
    """What a client tells apart: it takes each key once."""
    return Counter({row.key for row in rows})


def follow_each_other(folder: Path, seed: int, *, count: int, most: int) -> Turns:
    wish = Subscription(
        client="desk",
        name="all",
        types=("situ.situation", "situ.action", "GuestAlone", "Entry", "Alert", "Evacuation"),
        durable=True,
    )
    files = {name: text for name, text in PROJECT.items() if name != "types/building.yaml"} | {"clients/all.yaml": ""}
    with zone(folder, [wish], types=PROJECT["types/building.yaml"], situ=PATIENT, more=files) as at:
        (folder / "project" / ".situ").mkdir()
        world = World(folder / "project", seed, count, coda=0, least=0)
        turns = Turns(at, folder / "project", world, seed)
        kinds = [EDGE, SPARK]
        while turns.sent < len(turns.messages) * 0.9 and turns.kills < most:
            turns.take(turns.chance.choice(kinds))
        turns.take(turns.chance.choice(kinds), last=True)
        check(turns)
        return turns


@pytest.mark.parametrize("seed", range(3))
def test_engines_that_are_cut_off_anywhere_and_follow_each_other_tell_what_policies_mean(
    tmp_path: Path, seed: int
) -> None:
    turns = follow_each_other(tmp_path, seed, count=250, most=30)
    assert turns.kills > 5


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 120))
def test_engines_that_are_cut_off_anywhere_tell_what_policies_mean_at_length(tmp_path: Path, seed: int) -> None:
    follow_each_other(tmp_path, seed, count=1500, most=80)


# ── positions in the logs ──

STATUS = {
    "types/all.yaml": """
version: 1
types:
  Position: {x: double m, y: double m}
events:
  Status: {product: string, pos: Position}
  TruckPosition: {truck: string, lat: double deg, lon: double deg}
""",
    "contexts/us.yaml": """
version: 1
context: us
extends: root
types:
  LatLon: {lat: double deg, lon: double deg}
events:
  Where: {product: string, pos: LatLon}
maps: [out: Status -> Where]
rules:
  out: [Position -> to_latlon]
functions:
  to_latlon:
    signature: Position -> LatLon
    key: event.source
    state: {ref: {event: TruckPosition, key: truck, keep: {lat: lat, lon: lon}, history: 1 h, ttl: 24 h, max_keys: 9}}
    missing: hold 1 h
    expr: struct(ref.lat + value.y / 100000 AS lat, ref.lon + value.x / 100000 AS lon)
""",
    "clients/all.yaml": """
version: 1
clients:
  t7: {advertisements: {where: {type: TruckPosition}, what: {type: Status}}}
  t8: {advertisements: {what: {type: Status}}}
  desk: {context: us}
""",
}


def _at(minute: int) -> str:
    return f"2026-11-01T08:{minute:02}:00Z"


def status(number: int) -> dict[str, object]:
    return event(
        f"s{number}", "Status", {"product": f"p{number}", "pos": {"x": 1.0, "y": 1.0}}, source="t7", time=_at(1)
    )


def on_edge(at: Zone, folder: Path, *messages: tuple[EventKey, list[bytes]]) -> None:
    """Have the edge engine go on, take these messages, and stop."""

    async def work() -> None:
        async with await open_bus(at.address, name="edge") as bus:
            await take_over(EDGE, bus, folder, at.deployment.settings, at.address)
            engine = EdgeEngine(bus, folder)
            await engine.start()
            for key, lines in messages:
                await (await engine.take(key, len(lines), join_lines(lines), time.time_ns() // 1000))
            await engine.stop()

    asyncio.run(work())


def on_spark(at: Zone, folder: Path, *messages: tuple[EventKey, list[bytes]]) -> None:
    """Have Spark go on, with these messages in the ingress stream, each in a batch of its own."""

    async def over() -> None:
        async with await open_bus(at.address, name="over") as bus:
            await take_over(SPARK, bus, folder, at.deployment.settings, at.address)

    asyncio.run(over())
    spark = LocalSpark(at, folder, 1, lambda step: None)
    for key, lines in messages:
        at.store(key, lines)
        while spark.events():
            pass


def test_deliveries_of_two_engines_are_not_taken_for_repeats_of_each_other(tmp_path: Path) -> None:
    wish = Subscription(client="desk", name="all", types=("Status",), durable=True)
    with zone(tmp_path, [wish], types=STATUS["types/all.yaml"], more=STATUS) as at:
        folder = tmp_path / "project"
        (folder / ".situ").mkdir()
        # One event a message: the n-th of each engine is the n-th message of the log that it delivers from.
        sent = [(EventKey("t7", 1, n + 1), [json.dumps(status(n)).encode()]) for n in range(6)]
        on_edge(at, folder, *sent[:3])
        on_spark(at, folder, *sent[3:])
        (delivered,) = at.delivered().values()
        assert keyed(delivered) == Counter(str(key) for key, _ in sent)


def test_what_waits_on_spark_is_found_in_the_root_log_by_the_edge(tmp_path: Path) -> None:
    wish = Subscription(client="desk", name="all", types=("Where",), durable=True, context="us")
    with zone(tmp_path, [wish], types=STATUS["types/all.yaml"], more=STATUS) as at:
        folder = tmp_path / "project"
        (folder / ".situ").mkdir()
        # Garbage never reaches the root log, so positions in the ingress stream are ahead of those in the root log.
        garbage = [(EventKey("t8", 1, n + 1), [b'{"specversion": "1.0"}']) for n in range(5)]
        waiting = (EventKey("t7", 1, 1), [json.dumps(status(1)).encode()])
        on_spark(at, folder, *garbage, waiting)
        assert not at.delivered()
        place = event("here", "TruckPosition", {"truck": "t7", "lat": 46.0, "lon": 9.0}, source="t7", time=_at(0))
        on_edge(at, folder, (EventKey("t7", 1, 2), [json.dumps(place).encode()]))
        (delivered,) = at.delivered().values()
        assert [row.id for row in delivered] == ["s1"]
