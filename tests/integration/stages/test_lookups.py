"""Lookups through an engine: rows of files and of a database in what is sent, matched, delivered and replayed."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from situ.app.replay import plan_for, replay_in_process, tables_for
from situ.client.client import Client
from situ.client.events import Event
from situ.event.subjects import DEPLOYMENTS
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.project.check import check_folder
from situ.registry.snapshots import TROUBLES, publish_deployment, troubles_of
from situ.routing.model import Subscription
from situ.sources import Table
from situ.spark.checkpoint import read_offset
from situ.spark.engine import QUERY, SparkEngine
from situ.spark.replay import replay
from situ.storage.state_folder import open_folder
from situ.tables.bus_store import FetchedTables, TableStore
from tests.edge_zone import EdgeZone, edge_zone
from tests.integration.spark.test_engine import drained, wait_for
from tests.looked_up_files import CAMERA_ROWS, DATA, TYPES, building, write_readers
from tests.nats_server import nats_server
from tests.postgresql import PostgresqlServer
from tests.project_files import write
from tests.zone import Zone, cut_off, event, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OFFSET = {"dx": 0.0, "dy": 304.8}
AHEAD = {"r": 10.0, "theta": 0.0}
BOTH = {"x": pytest.approx(10.0), "y": pytest.approx(8.048)}
"""Ten feet ahead of the camera, which looks along y: there is what the reader sees 304.8 cm from itself."""


@pytest.fixture(scope="module")
def server(postgresql_server: PostgresqlServer) -> Callable[[], str]:
    """Makes databases on a server of PostgreSQL; gives their addresses."""
    return postgresql_server.new_database


@pytest.fixture
def database(server: Callable[[], str]) -> str:
    address = server()
    execute(address, *CAMERA_ROWS)
    return address


def execute(address: str, *statements: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[call-overload]


@asynccontextmanager
async def in_building(folder: Path, database: str, *clients: str) -> AsyncIterator[tuple[Any, ...]]:
    """A zone, and behind it nodes for these clients."""
    write_readers(folder / "project", r1=(10.0, 5.0))
    async with AsyncExitStack() as stack:
        nats = stack.enter_context(nats_server(folder / "nats"))
        zone = await stack.enter_async_context(edge_zone(folder, nats, more=building(database)))
        yield (zone, *[await stack.enter_async_context(zone.connect(each)) for each in clients])


class Inbox:
    """What a client gets under a durable subscription."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._more = asyncio.Event()

    @classmethod
    async def of(cls, node: Client, type: str, **options: Any) -> Inbox:
        made = cls()
        registration = await node.register_for_events(type, durable="all", **options)
        await node.add_listener(registration, made.take)
        return made

    def take(self, event: Event) -> None:
        self.events.append(event)
        self._more.set()

    async def data(self, count: int) -> list[dict[str, Any]]:
        """The data of the first so many."""
        async with asyncio.timeout(120):
            while len(self.events) < count:
                self._more.clear()
                await self._more.wait()
        return [dict(event.data) for event in self.events]


def test_camera_and_reader_agree_on_one_point(tmp_path: Path, database: str) -> None:
    async def go() -> None:
        async with in_building(tmp_path, database, "camera-1", "reader-1", "hall") as (_, camera, reader, hall):
            seen = await Inbox.of(hall, "Sighting")
            await (await camera.publish_event("Seen", camera="c1", face="f9", polar=AHEAD)).stored
            await (await reader.publish_event("Read", reader="r1", tag="t17", offset=OFFSET)).stored
            assert await seen.data(2) == [{"who": "p1", "at": BOTH}] * 2

    asyncio.run(go())


def test_what_no_row_is_found_for(tmp_path: Path, database: str) -> None:
    async def go() -> None:
        async with in_building(tmp_path, database, "camera-1", "hall", "desk", "bell") as (
            zone,
            camera,
            hall,
            desk,
            bell,
        ):
            named, rung = await Inbox.of(desk, "Arrival"), await Inbox.of(bell, "Arrival")
            only = await Inbox.of(hall, "Sighting")
            with pytest.raises(SituError) as refused:
                await (await camera.publish_event("Seen", camera="c2", face="f8", polar=AHEAD)).stored
            assert refused.value.code == "INT705"
            [letter] = await zone.messages(zone.names.dead_stream)
            told = json.loads(letter.body)[0]["data"]
            assert (told["code"], told["path"], told["context"].partition("@")[0]) == ("INT705", "who", "cameras")
            [other] = told["others"]
            assert other.startswith("INT705: ")
            assert "`at`" in other
            for person in ("p1", "p7"):
                await hall.publish_event("Sighting", who=person, at={"x": 1.0, "y": 2.0})
            assert [each.get("name") for each in await named.data(2)] == ["Ann", None]
            assert [each["name"] for each in await rung.data(2)] == ["Ann", "somebody"]
            assert not only.events

    asyncio.run(go())


def test_money_is_dollars_at_the_rate_of_its_time_except_the_cost(tmp_path: Path, database: str) -> None:
    async def go() -> None:
        async with in_building(tmp_path, database, "shop", "dollars") as (_, shop, dollars):
            sold = await Inbox.of(dollars, "Sale", where="price.amount > 10.00")
            await sell(shop, "2026-11-01T12:00:00Z", "a", 10)
            await sell(shop, "2026-11-02T00:00:00Z", "b", 10)
            await sell(shop, "2026-11-02T12:00:00Z", "c", 5)
            await sell(shop, "2026-11-01T23:59:59Z", "d", 20)
            assert [(each["product"], str(each["price"]["amount"])) for each in await sold.data(3)] == [
                ("a", "11.00"),
                ("b", "12.00"),
                ("d", "22.00"),
            ]
            first = sold.events[0].data
            assert first["price"]["currency"] == "USD"
            assert first["dynamicCost"] == {"currency": "EUR", "amount": first["dynamicCost"]["amount"]}
            assert str(first["dynamicCost"]["amount"]) == "3.00"
            assert [str(part["amount"]) for part in first["parts"]] == ["1.10", "2.20"]
            # Before the first rate there is none: the filter is not true, and nothing is delivered.
            await sell(shop, "2026-10-31T23:59:59Z", "e", 99)
            await sell(shop, "2026-11-01T12:00:00Z", "f", 30)
            assert [each["product"] for each in await sold.data(4)] == ["a", "b", "d", "f"]

    asyncio.run(go())


async def sell(shop: Client, time: str, product: str, amount: int) -> None:
    def money(amount: int) -> dict[str, str]:
        return {"currency": "EUR", "amount": f"{amount}.00"}

    parts = [money(1), money(2)]
    sale = {"product": product, "price": money(amount), "dynamicCost": money(3), "parts": parts}
    await (await shop.publish_event("Sale", sale, time=time)).stored


def test_rows_that_change_are_used_from_then_on_and_those_that_cannot_be_read_stay(
    tmp_path: Path, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        async with in_building(tmp_path, database, "camera-1", "hall", "desk") as (zone, camera, hall, desk):
            seen = await Inbox.of(hall, "Sighting")
            anns = await Inbox.of(desk, "Arrival", where="name LIKE 'Ann%'")
            folder = zone.folder

            async def look() -> None:
                await (await camera.publish_event("Seen", camera="c1", face="f9", polar=AHEAD)).stored

            async def until(number: int, condition: Callable[[dict[str, Any]], bool]) -> int:
                """Look again and again until something is seen; gives how many there are."""
                async with asyncio.timeout(120):
                    while True:
                        await look()
                        number += 1
                        if condition((await seen.data(number))[-1]):
                            return number
                        await asyncio.sleep(0.1)

            await look()
            assert (await seen.data(1))[0]["at"] == BOTH
            # What may be an hour old is not looked at; the table of the database is, and the name.
            write(folder, {"data/faces.csv": "face,person\nf9,p2\n", "data/people.csv": "nr,name\np1,Anna\np2,Bob\n"})
            execute(database, "UPDATE cameras SET x = 20 WHERE id = 'c1'")
            number = await until(1, lambda data: bool(data["at"]["x"] == pytest.approx(20.0)))
            assert {each["who"] for each in await seen.data(number)} == {"p1"}
            # The database goes away: what was read last stays, and the log says so.
            execute(database, "ALTER TABLE cameras RENAME TO gone")
            with caplog.at_level(logging.WARNING, logger="situ.edge"):
                async with asyncio.timeout(120):
                    while "S201" not in caplog.text:
                        await asyncio.sleep(0.05)
            assert "The source `cameras` cannot be read again" in caplog.text
            assert 'relation "cameras" does not exist' in caplog.text
            [trouble] = await troubles(zone, "cannot be read again")
            assert 'relation "cameras" does not exist' in trouble
            await look()
            assert (await seen.data(number + 1))[-1]["at"]["x"] == pytest.approx(20.0)
            # Names were new before coordinates were, or at the same time; the filter goes by them as well.
            names = [each["name"] for each in await anns.data(number + 1)]
            assert (names[0], names[-1]) == ("Ann", "Anna")
            # The past is told, and replayed, with the tables of today.
            async with asyncio.timeout(120):
                past = [event async for event in desk.events("Arrival", limit=1, since="begin")]
            assert past[0].data["name"] == "Anna"
            deployment = zone.registry.current()
            plan = plan_for(deployment, ["desk/all"], folder)
            again = [each async for some in replay_in_process(zone.bus, plan, 1, 1) for each in some]
            assert [json.loads(each.line)["data"]["name"] for each in again] == ["Anna"]

    asyncio.run(go())


def test_a_table_that_was_never_read_stops_the_start(tmp_path: Path, database: str) -> None:
    async def go() -> None:
        execute(database, "ALTER TABLE cameras RENAME TO gone")
        async with in_building(tmp_path, database):
            pass

    with pytest.raises(SituError) as refused:
        asyncio.run(go())
    assert refused.value.code == "S111"
    assert "The source `cameras` cannot be read" in str(refused.value)


def test_a_version_whose_tables_cannot_be_read_waits_for_them(
    tmp_path: Path, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        async with in_building(tmp_path, database, "hall", "desk") as (zone, hall, desk):
            named = await Inbox.of(desk, "Arrival")
            sources = (zone.folder / "sources/all.yaml").read_text()
            (zone.folder / "sources/all.yaml").write_text(sources.replace("data/people.csv", "data/staff.csv"))
            changed = check_folder(zone.folder).deployment
            assert changed is not None
            assert zone.engine is not None
            with caplog.at_level(logging.WARNING, logger="situ.edge"):
                version = zone.registry.apply(changed, "test").version
                await publish_deployment(zone.bus, zone.registry.at(version))
                async with asyncio.timeout(120):
                    while "is not at work yet" not in caplog.text:
                        await asyncio.sleep(0.02)
            assert "S111" in caplog.text
            await (await hall.publish_event("Sighting", who="p1", at={"x": 1.0, "y": 2.0})).stored
            assert [each["name"] for each in await named.data(1)] == ["Ann"]
            assert zone.engine.version < version
            assert len(await troubles(zone, f"Version {version} is not at work yet: ")) == 1
            write(zone.folder, {"data/staff.csv": "nr,name\np1,Antonia\n"})
            async with asyncio.timeout(120):
                while zone.engine.version < version:
                    await asyncio.sleep(0.02)
            await (await hall.publish_event("Sighting", who="p1", at={"x": 1.0, "y": 2.0})).stored
            assert [each["name"] for each in await named.data(2)] == ["Ann", "Antonia"]
            assert await troubles(zone) == ()

    asyncio.run(go())


async def troubles(zone: EdgeZone, said: str = "") -> tuple[str, ...]:
    """What the engine says ails it, as soon as that is this; nothing is what it says when all is well."""
    async with asyncio.timeout(120):
        while True:
            found = (await troubles_of(zone.bus)).get("edge", ())
            if any(said in each for each in found) if said else not found:
                return found
            await asyncio.sleep(0.05)


def named_by(at: Zone) -> dict[str, list[dict[str, Any]]]:
    """The data of what waits for each subscription, by its type."""
    return {rows[0].type: [json.loads(row.data) for row in rows] for rows in at.delivered().values() if rows}


def told(type: str, id: str, data: dict[str, Any], time: str = "2026-11-03T00:00:00Z") -> dict[str, Any]:
    return event(id, type, data, time=time)


def test_spark_looks_up_as_the_edge_does(spark: SparkSession, tmp_path: Path, database: str) -> None:
    folder, checkpoints = tmp_path / "project", tmp_path / "checkpoints"
    write_readers(folder, r1=(10.0, 5.0))
    wanted = [
        Subscription(client="hall", name="all", types=("Sighting",), durable=True),
        Subscription(
            client="desk", name="all", types=("Arrival",), where="name LIKE 'A%'", durable=True, context="desk"
        ),
        Subscription(
            client="dollars", name="all", types=("Sale",), where="price.amount > 10", durable=True, context="us"
        ),
    ]
    with zone(tmp_path, wanted, types=TYPES, more=building(database)) as at:

        def engine(step: str = "") -> SparkEngine:
            def cut(reached: str) -> None:
                if reached == step:
                    raise cut_off(step)

            settings = at.deployment.settings
            return SparkEngine(spark, at.address, settings, checkpoints, folder=folder, on_step=cut)

        def money(amount: str, currency: str = "EUR") -> dict[str, str]:
            return {"currency": currency, "amount": amount}

        seen = {"camera": "c1", "face": "f9", "polar": AHEAD}
        read = {"reader": "r1", "tag": "t17", "offset": OFFSET}
        sale = {"price": money("10.00"), "dynamicCost": money("3.00"), "parts": [money("1.00")]}
        at.send("camera-1", [told("Seen", "1", seen), told("Seen", "2", {**seen, "face": "f8"})])
        at.send("reader-1", [told("Read", "1", read)])
        at.send("shop", [told("Sale", "1", {**sale, "product": "a"}, "2026-11-01T12:00:00Z")])
        at.send("shop", [told("Sale", "2", {**sale, "product": "b", "price": money("5.00")}, "2026-11-02T12:00:00Z")])
        at.send("shop", [told("Sale", "3", {**sale, "product": "c"}, "2026-11-02T00:00:00Z")])
        # The batch is cut off before it does anything, and the tables change: repeated, it finds what it would have.
        began = engine("publish")
        began.start()
        with pytest.raises(SituError):
            began.wait()
        first = read_offset(open_folder(checkpoints) / QUERY, 0).tables
        assert set(first) == {"badges", "cameras", "faces", "people", "rates", "readers"}
        assert not at.root()
        write(folder, {"data/people.csv": "nr,name\np1,Anna\n"})
        execute(database, "UPDATE cameras SET x = 20 WHERE id = 'c1'")
        running = engine()
        running.start()
        try:
            wait_for(drained(running, at))
            found = named_by(at)
            # The next batch finds the new rows, and a batch later nobody needs the old ones.
            for number in (3, 4):
                at.send("camera-1", [told("Seen", str(number), seen)])
                wait_for(drained(running, at))
        finally:
            running.stop()
        assert found["Sighting"] == [{"who": "p1", "at": BOTH}] * 2
        assert [each["name"] for each in found["Arrival"]] == ["Ann", "Ann"]
        assert [(each["product"], each["price"]) for each in found["Sale"]] == [
            ("a", money("11.00", "USD")),
            ("c", money("12.00", "USD")),
        ]
        assert {each["dynamicCost"]["currency"] for each in found["Sale"]} == {"EUR"}
        assert [each["parts"] for each in found["Sale"]] == [[money("1.10", "USD")], [money("1.20", "USD")]]
        assert [(letter["code"], letter["path"]) for letter in at.dead()] == [("INT705", "who")]
        assert [each["at"]["x"] for each in named_by(at)["Sighting"]][2:] == [pytest.approx(20.0)] * 2
        assert [each["name"] for each in named_by(at)["Arrival"]][2:] == ["Anna"] * 2
        last = read_offset(open_folder(checkpoints) / QUERY, 2).tables
        assert {name for name in first if first[name] != last[name]} == {"cameras", "people"}
        kept = {name: at.bus.get_object(DEPLOYMENTS, f"table-main-{digest}") for name, digest in first.items()}
        assert {name for name, content in kept.items() if content is None} == {"cameras", "people"}
        # Replay looks up in the tables that it is given: those of today.
        tables = tables_for(at.deployment, ["desk/all"], folder)
        rows = replay(spark, at.address, at.deployment.version, tables=tables).collect()
        names = [json.loads(row["event"])["data"]["name"] for row in rows if row["subscription"] == "desk/all"]
        assert names == ["Anna"] * 4


def test_spark_waits_for_tables_of_a_new_version_and_does_not_start_without(
    spark: SparkSession, tmp_path: Path, database: str
) -> None:
    folder = tmp_path / "project"
    write_readers(folder, r1=(10.0, 5.0))
    wanted = [Subscription(client="desk", name="all", types=("Arrival",), durable=True, context="desk")]
    with zone(tmp_path, wanted, types=TYPES, more=building(database)) as at:
        engine = SparkEngine(spark, at.address, at.deployment.settings, tmp_path / "checkpoints", folder=folder)
        (folder / "data/people.csv").rename(folder / "data/staff.csv")
        with pytest.raises(SituError) as refused:
            engine.start()
        assert refused.value.code == "S111"
        write(folder, DATA)
        engine.start()
        try:
            wait_for(drained(engine, at))
            (folder / "data/staff.csv").unlink()
            sources = (folder / "sources/all.yaml").read_text().replace("data/people.csv", "data/staff.csv")
            write(folder, {"sources/all.yaml": sources})
            changed = check_folder(folder).deployment
            assert changed is not None
            before = at.deployment.version
            at.publish(replace(changed, subscriptions=at.deployment.subscriptions))
            sighting = {"who": "p1", "at": {"x": 1.0, "y": 1.0}}
            at.send("hall", [told("Sighting", "1", sighting)])
            wait_for(lambda: bool(named_by(at)))
            assert engine.version == before
            entry = at.bus.get(at.names.metrics, f"{TROUBLES}spark")
            assert entry is not None
            assert b"S111 The source `people` cannot be read" in (entry.value or b"")
            write(folder, {"data/staff.csv": "nr,name\np1,Antonia\n"})
            wait_for(drained(engine, at))
            at.send("hall", [told("Sighting", "2", sighting)])
            wait_for(drained(engine, at))
        finally:
            engine.stop()
        assert [each["name"] for each in named_by(at)["Arrival"]] == ["Ann", "Antonia"]
        assert at.bus.get(at.names.metrics, f"{TROUBLES}spark") is None


def test_tables_on_the_bus_are_there_as_long_as_a_batch_may_need_them(tmp_path: Path) -> None:
    columns = (
        '{k: string, d: "decimal(9,2)", at: timestamp, day: date, span: duration, b: bytes, '
        "p: Point, many: [long], o: optional boolean}"
    )
    files = {
        "situ.yaml": "name: plant\n",
        "sources/a.yaml": f"pull: {{s: {{parquet: a.parquet, columns: {columns}}}}}\n",
    }
    with zone(tmp_path, [], more=files) as at:
        source, types = at.deployment.sources["s"], at.deployment.types

        def table(key: str) -> Table:
            row = {
                "k": key, "d": Decimal("1.50"), "at": datetime(2026, 11, 1, 0, 0, 0, 1, tzinfo=UTC),
                "day": date(2026, 11, 1), "span": timedelta(seconds=1), "b": b"\x00\xff", "p": {"x": 1.0, "y": 0.1},
                "many": [2**62, -1],
            }  # fmt: skip
            return Table(source="s", row=source.row, rows=(row, {**row, "k": key + "2", "o": True}))

        old, middle, new = table("a"), table("b"), table("c")

        def there() -> list[bool]:
            names = [f"table-main-{each.digest}" for each in (old, middle, new)]
            return [at.bus.get_object(DEPLOYMENTS, name) is not None for name in names]

        before: dict[str, str] = {}
        for each, expected in ((old, [True, False, False]), (middle, [True, True, False]), (new, [False, True, True])):
            # Each time in another process: what one of them has left, the next takes away.
            before = TableStore(at.bus).put({"s": each}, types, before)
            assert there() == expected
        fetched = FetchedTables()
        found = fetched.get(at.bus, before, {"s": source}, types)
        assert found == {"s": new}
        assert found["s"].rows == new.rows
        assert fetched.get(at.bus, before, {"s": source}, types)["s"] is found["s"]
        with pytest.raises(SituError, match="N102"):
            fetched.get(at.bus, {"s": old.digest}, {"s": source}, types)
