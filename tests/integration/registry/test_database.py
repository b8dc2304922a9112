"""The registry on real databases: what is stored reads back, no writer loses an update, and trouble has a name.

Every test that is not about one of the two databases runs on both.
"""

from __future__ import annotations

import multiprocessing
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as trying
from sqlalchemy import create_engine, inspect, text

import situ.registry.database
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.lang.tags import NO_TAGS, TagSet
from situ.lang.types.table import Types
from situ.model import Deployment
from situ.quality.model.shapes import Limit, Shape, Thin
from situ.registry import Key, Registry, open_registry
from situ.registry.database import METADATA, upgrade
from situ.registry.lookup import FILE, FORMATS, admitted_names, suspended_names
from situ.registry.snapshots import decode_deployment, encode_deployment
from situ.routing import Advertisement, ClientDeclaration, Subscription
from situ.scopes.graph import NO_SCOPES, ScopeGraph
from situ.scopes.stamp_codec import NO_NUMBERING
from situ.settings import Settings
from situ.settings.kinds import plain
from tests.integration.registry.test_scopes import OPERATOR, folder, join, leave
from tests.postgresql import PostgresqlServer
from tests.property.lang.test_types import tables
from tests.registry_files import FILES, changed, deploy, document, subscription
from tests.scopes import TYPES as ALARMS
from tests.scopes import dimension, graph_of

PLANT = deploy()
EMBEDDED = Settings(name="plant")
Open = Callable[..., Registry]


@pytest.fixture(scope="session")
def postgresql(postgresql_server: PostgresqlServer) -> Callable[[], str]:
    """Makes new databases on a server of this test run; gives their URLs."""

    def new() -> str:
        return postgresql_server.new_database().replace("postgresql://", "postgresql+psycopg://", 1)

    return new


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Settings]:
    """A folder and settings that name a new, empty registry."""
    if request.param == "sqlite":
        return tmp_path, EMBEDDED
    return tmp_path, Settings(name="plant", registry=plain(request.getfixturevalue("postgresql")()))


@pytest.fixture
def opened(where: tuple[Path, Settings]) -> Iterator[Open]:
    """Opens the registry, as often as asked."""
    registries: list[Registry] = []

    def open_one(**options: Any) -> Registry:
        registries.append(open_registry(*where, **options))
        return registries[-1]

    yield open_one
    for registry in registries:
        registry.close()


@pytest.fixture
def registry(opened: Open) -> Registry:
    return opened()


@pytest.fixture
def plant(registry: Registry) -> Registry:
    """A registry to which the plant has been applied."""
    assert registry.apply(PLANT, "ann", "first").version == 1
    return registry


class TestQuality:
    THIN = Shape(thin=Thin(limits=(Limit(events=10, since=5),)))

    def test_shapes_are_versions_that_everybody_reads(self, plant: Registry, opened: Open) -> None:
        other = opened()
        assert plant.shape({"control/high": self.THIN}, who="router").version == 2
        assert other.current().shapes == {"control/high": self.THIN}
        assert other.current() == plant.current()
        assert plant.shape({"control/high": self.THIN}, who="router").version == 2
        assert plant.shape({"control/high": None, "control/other": None}, who="router").version == 3
        assert opened().current().shapes == {}
        assert other.at(2).shapes == {"control/high": self.THIN}

    def test_applying_the_folder_leaves_shapes_alone(self, plant: Registry) -> None:
        plant.shape({"control/high": self.THIN}, who="router")
        assert plant.apply(PLANT, "ann").version == 2
        assert plant.current().shapes == {"control/high": self.THIN}

    def test_what_is_kept_is_there_for_the_next_process(self, registry: Registry, opened: Open) -> None:
        kept = registry.kept("quality")
        assert kept.read() == {}
        kept.keep({"expectation/a/1": {"version": 1}, "ledger": [1, 2.5, "x"], "gone": None})
        kept.keep({"expectation/a/1": {"version": 2}, "ledger": None, "profile/p/T": {}})
        kept.keep({})
        assert opened().kept("quality").read() == {"expectation/a/1": {"version": 2}, "profile/p/T": {}}
        assert opened().kept("other").read() == {}

    def test_a_step_is_kept_whole_or_not_at_all(self, registry: Registry) -> None:
        kept = registry.kept("quality")
        kept.keep({"a": 1})
        with pytest.raises(ValueError, match="JSON"):
            kept.keep({"a": 2, "b": float("nan")})
        assert kept.read() == {"a": 1}


class TestContexts:
    def test_versions_count_and_every_one_can_be_found(self, registry: Registry, opened: Open) -> None:
        """Also by those who were there before, and by those who read it from a deployment on the bus."""
        other = opened()
        files = {**FILES, "contexts/us.yaml": "context: us\n", "contexts/ny.yaml": "context: us.ny\nextends: us\n"}
        registry.apply(deploy(files), "ann")
        assert other.current().contexts.get("us@1") is not None
        files["contexts/us.yaml"] = "context: us\ntypes: {Tap: {open: boolean}}\n"
        registry.apply(deploy(files), "ann")
        for each in (registry.current(), other.current(), opened().current()):
            assert dict(each.contexts.versions) == {"us": 2}
            assert each.contexts.get("us@1") is None
            found = each.contexts.get("us@2")
            assert found is each.contexts.get("us")
            below = each.contexts.by_id["us.ny"].parent
            assert below is not None
            assert below.name == "us@2"
            content, digest = encode_deployment(each)
            again = decode_deployment(content, each.version)
            assert (again, again.digest, dict(again.contexts.versions)) == (each, digest, {"us": 2})
        assert dict(registry.at(1).contexts.versions) == {}
        registry.declare([subscription("desk/s", "level > 3 %")], who="bob")
        assert dict(other.current().contexts.versions) == {"us": 2}


class TestReading:
    def test_an_empty_registry_has_version_0_with_nothing_in_it(self, registry: Registry) -> None:
        assert registry.version() == 0
        assert registry.current() == Deployment()
        assert (registry.versions(), registry.objects(), registry.changes()) == ((), (), ())

    def test_what_was_applied_reads_back(self, plant: Registry, opened: Open) -> None:
        for each in (plant, opened()):
            assert each.current().version == 1
            assert each.current().digest == PLANT.digest
            assert each.current() == PLANT.at_version(1)

    @given(types=tables())
    @trying(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_any_deployment_reads_back(self, registry: Registry, opened: Open, types: Types) -> None:
        wanted = Deployment(settings=PLANT.settings, types=types)
        applied = registry.apply(wanted, "ann")
        assert applied.deployment.digest == wanted.digest
        other = opened()
        assert other.current() == applied.deployment
        assert other.current().types == types
        other.close()

    def test_every_version_reads_back(self, plant: Registry, opened: Open) -> None:
        wanted = {1: PLANT.digest}
        for number in range(2, 8):
            match number % 3:
                case 0:
                    done = plant.declare([subscription(f"desk/s{number}", f"level > {number} %")], who="bob")
                    wanted[number] = done.deployment.digest
                case 1:
                    withdrawn = [subscription(f"desk/s{number - 1}")]
                    wanted[number] = plant.withdraw(withdrawn, who="bob").deployment.digest
                case 2:
                    other = changed("types/a.yaml", "tank: string", f"tank: string, room{number}: int")
                    wanted[number] = plant.apply(other, "ann").deployment.digest
        for reader in (plant, opened()):
            assert {number: reader.at(number).digest for number in wanted} == wanted
            assert [each.version for each in reader.versions()] == sorted(wanted, reverse=True)
            assert [each.digest for each in reader.versions(2)] == [wanted[7], wanted[6]]

    def test_a_version_that_never_was_is_refused(self, plant: Registry) -> None:
        with pytest.raises(SituError, match="D112") as refused:
            plant.at(9)
        assert "1 to 1" in refused.value.hint

    def test_what_did_not_change_is_not_read_again(self, plant: Registry, opened: Open) -> None:
        other = opened()
        first = other.current()
        assert other.current() is first
        plant.declare([subscription("desk/a")], who="bob")
        second = other.current()
        assert (second.version, second.types is first.types) == (2, True)

    def test_objects_have_versions_and_origins(self, plant: Registry) -> None:
        plant.declare([subscription("desk/a")], who="bob")
        plant.declare([subscription("desk/a", "level > 1 %")], who="bob")
        found = plant.find("subscription", "desk/a")
        assert (found.version, found.origin, found.value) == (2, "client", {"types": ["Level"], "where": "level > 1 %"})
        assert [each.name for each in plant.objects("subscription")] == ["control/high", "desk/a"]
        assert {each.origin for each in plant.objects("event")} == {"folder"}
        with pytest.raises(SituError, match="D108"):
            plant.find("subscription", "desk/b")

    def test_a_damaged_registry_is_noticed(self, where: tuple[Path, Settings], plant: Registry, opened: Open) -> None:
        plant.declare([subscription("desk/a", "level > 1 %")], who="bob")
        engine = _engine(*where)
        with engine.begin() as connection:
            connection.execute(text("UPDATE object SET body = '{\"types\":[\"Moved\"]}' WHERE name = 'desk/a'"))
        engine.dispose()
        with pytest.raises(SituError, match="D113"):
            opened().current()
        with pytest.raises(SituError, match="D113"):
            opened().at(2)


class TestChanging:
    def test_the_same_again_gets_no_version(self, plant: Registry) -> None:
        again = plant.apply(deploy(), "ann")
        assert (again.version, again.changes) == (1, ())
        assert plant.declare([], who="bob").version == 1

    def test_a_change_says_what_it_changed(self, plant: Registry) -> None:
        applied = plant.apply(changed("types/a.yaml", "tank: string", "tank: int"), "ann")
        assert [str(change) for change in applied.changes] == ["event Level changed"]
        assert applied.version == 2

    def test_a_plan_changes_nothing(self, plant: Registry) -> None:
        wanted = changed("types/a.yaml", "tank: string", "tank: int")
        assert [str(change) for change in plant.plan(wanted).changes] == ["event Level changed"]
        assert (plant.version(), plant.plan(PLANT).changes) == (1, ())

    def test_nothing_can_be_changed_before_something_was_applied(self, registry: Registry) -> None:
        for attempt in (
            lambda: registry.declare([subscription("desk/a")], who="bob"),
            lambda: registry.add("client", "desk", document("clients: {desk: {}}"), who="bob"),
            lambda: registry.remove("client", "desk", who="bob"),
        ):
            with pytest.raises(SituError, match="D107"):
                attempt()

    def test_many_declarations_are_one_version(self, plant: Registry, opened: Open) -> None:
        things = [subscription(f"c{n % 7}/s{n}", f"level > {n} %") for n in range(1, 500)]
        wrong = subscription("c1/wrong", "depth > 1 m")
        done = plant.declare([*things, wrong], who="router r1")
        assert done.version == 2
        assert [problem.code.code for problem in done.refused(wrong)] == ["INT602"]
        assert done.refused(things[0]) == ()
        assert len(opened().current().subscriptions) == 500
        assert plant.withdraw([*things, wrong], who="router r1").version == 3
        assert plant.current().digest == PLANT.digest

    def test_added_altered_removed(self, plant: Registry) -> None:
        low = "functions: {low: '(l: double %) -> boolean = l < 5 %'}"
        assert plant.add("function", "low", document(low), who="ann").version == 2
        altered = plant.alter("function", "low", document(low.replace("5", "6")), who="ann")
        assert [str(change) for change in altered.changes] == ["function low changed"]
        found = plant.find("function", "low")
        assert (found.origin, found.version, found.file) == ("api", 2, "new.yaml")
        assert found.text == "low: '(l: double %) -> boolean = l < 6 %'"
        plant.declare([subscription("desk/a", "low(level)")], who="bob")
        with pytest.raises(SituError, match="INT602"):
            plant.remove("function", "low", who="ann")
        plant.withdraw([subscription("desk/a")], who="bob")
        assert plant.remove("function", "low", who="ann").deployment.digest == PLANT.digest
        assert plant.version() == 6

    def test_what_others_added_survives_an_apply(self, plant: Registry, opened: Open) -> None:
        plant.add("event", "Low", document("events: {Low(Level): {why: string}}"), who="ann")
        plant.add("unit", "floor", document("units: {floor: label}"), who="ann")
        low = "functions: {low: '(l: double %) -> boolean = NOT high(l)'}"
        plant.add("function", "low", document(low), who="ann")
        plant.declare([subscription("desk/a", "low(level)", types=("Low",))], who="bob")
        applied = plant.apply(changed("types/a.yaml", "tank: string", "tank: int"), "ann")
        assert [str(change) for change in applied.changes] == ["event Level changed"]
        again = opened().current()
        assert again.digest == applied.deployment.digest
        assert again.types.event("Low") is not None
        files = {**FILES, "types/a.yaml": "events: {Moved: {a: int}}", "clients/c.yaml": "clients: {}"}
        with pytest.raises(SituError, match="INT101"):
            plant.apply(deploy(files), "ann")
        assert plant.version() == 6

    def test_an_invalid_change_gets_no_version(self, plant: Registry) -> None:
        plant.declare([subscription("desk/a", "level > 1 %")], who="bob")
        files = {**FILES, "types/a.yaml": "events: {Level: {tank: string}}", "clients/c.yaml": "clients: {}"}
        with pytest.raises(SituError, match="INT602"):
            plant.apply(deploy(files), "ann")
        assert plant.version() == 2
        assert [each.deployment for each in plant.changes(1)] == [2]

    def test_names_go_on_counting_when_they_come_back(self, plant: Registry) -> None:
        for _ in range(3):
            plant.declare([subscription("desk/a")], who="bob")
            plant.withdraw([subscription("desk/a")], who="bob")
        plant.declare([subscription("desk/a")], who="bob")
        assert plant.find("subscription", "desk/a").version == 7
        assert plant.current().version == 8


class TestHistory:
    def test_changes_say_who_when_what_and_why(self, plant: Registry) -> None:
        begun = datetime.now(UTC)
        plant.declare([subscription("desk/a")], who="bob", reason="testing")
        plant.declare([subscription("desk/a", "level > 1 %")], who="bob")
        plant.withdraw([subscription("desk/a")], who="eve")
        history = plant.changes(kind="subscription", name="desk/a")
        assert [(each.who, each.deployment, each.before, each.after, each.reason) for each in history] == [
            ("eve", 4, 2, None, ""),
            ("bob", 3, 1, 2, ""),
            ("bob", 2, None, 1, "testing"),
        ]
        assert all(begun <= each.at <= datetime.now(UTC) for each in history)
        assert plant.changes(1)[0].key in (Key("subscription", "desk/a"), Key("client", "desk"))

    def test_the_first_apply_records_everything(self, plant: Registry) -> None:
        recorded = plant.changes()
        assert {each.key for each in recorded} == {each.key for each in plant.objects()}
        assert {(each.who, each.reason, each.deployment, each.before) for each in recorded} == {
            ("ann", "first", 1, None)
        }


class TestManyWriters:
    def test_threads_of_one_registry_lose_nothing(self, plant: Registry) -> None:
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda n: _declare_one(plant, n), range(40)))
        assert sorted(done) == list(range(2, 42))
        assert len(plant.current().subscriptions) == 41

    def test_registries_of_one_database_lose_nothing(self, plant: Registry, opened: Open) -> None:
        writers = [opened(patience=30) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda n: _declare_one(writers[n % 4], n), range(40)))
        assert sorted(done) == list(range(2, 42))
        for each in (*writers, plant):
            assert len(each.current().subscriptions) == 41
            assert each.current().digest == plant.current().digest

    def test_processes_lose_nothing(self, where: tuple[Path, Settings], plant: Registry) -> None:
        context = multiprocessing.get_context("spawn")
        processes = [context.Process(target=_declare_some, args=(*where, start)) for start in (0, 100)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
            assert process.exitcode == 0
        assert len(plant.current().subscriptions) == 21
        assert [each.version for each in plant.versions()] == list(range(21, 0, -1))

    def test_who_was_slower_is_checked_against_what_the_faster_one_did(self, plant: Registry, opened: Open) -> None:
        """The second proposal is made before, and judged again after, the first one is stored."""
        slow, proposed, stored = opened(), threading.Event(), threading.Event()
        hold = slow._database.writing

        def wait_then_write() -> Any:
            proposed.set()
            assert stored.wait(30)
            return hold()

        slow._database.writing = wait_then_write  # type: ignore[method-assign]
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(slow.declare, [subscription("desk/a", "low(level)")], who="bob")
            # The function is not there when the subscription is proposed first, so that one is refused at once;
            # a subscription to what is there, and gone when it is written, must be refused then.
            assert waiting.result(30).version == 1
            waiting = pool.submit(slow.declare, [Advertisement(client="d", name="m", type="Moved")], who="bob")
            assert proposed.wait(30)
            files = {**FILES, "types/a.yaml": FILES["types/a.yaml"].replace("Moved", "Shifted")}
            plant.apply(deploy(files), "ann")
            stored.set()
            done = waiting.result(30)
        assert [problem.code.code for problem in done.refused(Advertisement(client="d", name="m", type="Moved"))] == [
            "INT601"
        ]
        assert plant.version() == done.version == 2


class TestScopes:
    """Epochs count on, and no number is given twice, whoever opens the registry in between."""

    LONG = " OR ".join(f"vendor = 'vendor {number}'" for number in range(300))
    PLANT = graph_of(dimension("membership", {"line": "plant"}, output_line="severity >= 4", input_line=LONG))
    WIDER = graph_of(dimension("membership", {"line": "plant", "office": "plant"}))

    def declared(self, scopes: ScopeGraph, *tags: str) -> Deployment:
        ads = [
            Advertisement(client="press", name=tag, type="Alarm", scopes=TagSet.of({"membership": tag})) for tag in tags
        ]
        return Deployment(
            settings=EMBEDDED,
            types=ALARMS,
            scopes=replace(scopes, clients={"press": {"membership": tags}} if tags else {}),
            clients={"press": ClientDeclaration(name="press")},
            advertisements={each.id: each for each in ads},
        )

    def test_epochs_and_numbers_are_kept(self, opened: Open) -> None:
        registry = opened()
        assert registry.apply(self.declared(NO_SCOPES), "ann").deployment.epoch == 0
        assert registry.current().numbers is NO_NUMBERING
        line, office = TagSet.of({"membership": "line"}), TagSet.of({"membership": "office"})
        first = registry.apply(self.declared(self.PLANT, "line"), "ann").deployment
        assert (first.epoch, first.numbers.tags, len(first.numbers.filters)) == (1, (NO_TAGS, line), 2)
        other = opened()
        assert other.current() == first
        gone = other.apply(self.declared(NO_SCOPES), "ann").deployment
        assert (gone.epoch, gone.numbers) == (0, first.numbers)
        again = opened().apply(self.declared(self.WIDER, "office"), "ann").deployment
        assert again.epoch > first.epoch
        assert again.numbers.tags == (NO_TAGS, line, office)
        assert again.numbers.filters == first.numbers.filters
        assert registry.current() == again
        assert (registry.at(2).epoch, registry.at(2).numbers) == (1, again.numbers)


class TestFormats:
    def test_the_known_formats_are_the_migrations(self) -> None:
        folder = Path(situ.registry.database.__file__).parent / "migrations" / "versions"
        assert tuple(sorted(file.stem[1:5] for file in folder.glob("r*.py"))) == FORMATS

    def test_an_empty_database_gets_the_tables_of_this_release(
        self, where: tuple[Path, Settings], registry: Registry
    ) -> None:
        assert registry.version() == 0
        engine = _engine(*where)
        with engine.connect() as connection:
            found = inspect(connection)
            for table in METADATA.sorted_tables:
                assert {each["name"] for each in found.get_columns(table.name)} == {each.name for each in table.columns}
                indexes = {each.name for each in table.indexes}
                assert {each["name"] for each in found.get_indexes(table.name)} >= indexes
            version = connection.execute(text("SELECT version_num FROM registry_format")).scalar_one()
        engine.dispose()
        assert version == FORMATS[-1]

    def test_a_database_of_an_older_release_is_brought_up_to_date(
        self, where: tuple[Path, Settings], opened: Open
    ) -> None:
        engine = _engine(*where)
        with engine.begin() as connection:
            upgrade(connection, "0001")
            connection.execute(text("INSERT INTO state (part, key, version, value) VALUES ('test', 'kept', 1, 'yes')"))
        engine.dispose()
        registry = opened()
        assert registry.apply(PLANT, "ann").version == 1
        engine = _engine(*where)
        with engine.connect() as connection:
            assert connection.execute(text("SELECT value FROM state")).scalar_one() == "yes"
            assert connection.execute(text("SELECT version_num FROM registry_format")).scalar_one() == FORMATS[-1]
        engine.dispose()

    def test_a_database_of_a_newer_release_is_refused_and_left_alone(
        self, where: tuple[Path, Settings], opened: Open
    ) -> None:
        opened().close()
        engine = _engine(*where)
        with engine.begin() as connection:
            connection.execute(text("UPDATE registry_format SET version_num = '9999'"))
        with pytest.raises(SituError, match="D106") as refused:
            opened()
        assert "9999" in str(refused.value)
        with engine.connect() as connection:
            assert connection.execute(text("SELECT version_num FROM registry_format")).scalar_one() == "9999"
        engine.dispose()

    def test_who_opens_at_the_same_time_does_not_clash(self, where: tuple[Path, Settings]) -> None:
        start = threading.Barrier(6)

        def open_one(_: int) -> int:
            start.wait(30)
            with open_registry(*where, patience=30) as registry:
                return registry.version()

        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(open_one, range(6))) == [0] * 6


class TestNames:
    """Names without opening the registry: what it says itself, from any database, of any format."""

    def test_what_is_suspended_and_who_is_let_in_is_what_the_registry_says(
        self, where: tuple[Path, Settings], registry: Registry, tmp_path: Path
    ) -> None:
        registry.apply(folder(tmp_path / "scoped"), "ann")
        assert (suspended_names(*where), admitted_names(*where)) == ((), frozenset())
        for member, scope in (("press", "line"), ("desk", "office")):
            registry.change_scopes(leave(member, scope), OPERATOR)
        assert suspended_names(*where) == tuple((each.kind, each.name) for each in registry.suspended())
        assert suspended_names(*where) == (("advertisement", "press/alarms"), ("subscription", "desk/all"))
        registry.change_scopes(join("press", "line"), OPERATOR)
        registry.apply(folder(tmp_path / "scoped"), "ann")
        assert suspended_names(*where) == tuple((each.kind, each.name) for each in registry.suspended())
        for name in ("ann", "bob"):
            registry.principals.add(name, f"key of {name}", who="ann")
        registry.principals.remove("bob", who="ann")
        assert admitted_names(*where) == {each.name for each in registry.principals.list()} == {"ann"}

    def test_a_database_that_is_not_there_or_of_an_older_release_is_brought_up_to_date(
        self, where: tuple[Path, Settings]
    ) -> None:
        assert suspended_names(*where) == ()
        engine = _engine(*where)
        with engine.begin() as connection:
            METADATA.drop_all(connection)
            connection.execute(text("DROP TABLE registry_format"))
            upgrade(connection, "0001")
        assert admitted_names(*where) == frozenset()
        with engine.connect() as connection:
            assert connection.execute(text("SELECT version_num FROM registry_format")).scalar_one() == FORMATS[-1]
        engine.dispose()

    def test_a_database_of_a_newer_release_is_refused(self, where: tuple[Path, Settings], opened: Open) -> None:
        opened().close()
        engine = _engine(*where)
        with engine.begin() as connection:
            connection.execute(text("UPDATE registry_format SET version_num = '9999'"))
        engine.dispose()
        with pytest.raises(SituError, match="D106"):
            suspended_names(*where)

    def test_a_file_that_is_no_database_has_a_name(self, tmp_path: Path) -> None:
        (tmp_path / ".situ").mkdir()
        (tmp_path / FILE).write_bytes(b"no database" * 1000)
        with pytest.raises(SituError, match="D105"):
            suspended_names(tmp_path, EMBEDDED)


class TestTrouble:
    def test_a_locked_sqlite_registry_is_waited_for_and_then_named(self, tmp_path: Path) -> None:
        with open_registry(tmp_path, EMBEDDED, patience=0.2) as registry:
            registry.apply(PLANT, "ann")
            holder = sqlite3.connect(tmp_path / ".situ" / "registry.db", isolation_level=None)
            holder.execute("BEGIN IMMEDIATE")
            begun = time.monotonic()
            with pytest.raises(SituError, match="D104") as refused:
                registry.declare([subscription("desk/a")], who="bob")
            assert 0.1 < time.monotonic() - begun < 10
            assert "registry.db" in str(refused.value)
            assert registry.current().version == 1  # reading goes on
            holder.execute("ROLLBACK")
            holder.close()
            assert registry.declare([subscription("desk/a")], who="bob").version == 2

    def test_a_locked_postgresql_registry_is_waited_for_and_then_named(
        self, tmp_path: Path, postgresql: Callable[[], str]
    ) -> None:
        settings = Settings(name="plant", registry=plain(postgresql()))
        with open_registry(tmp_path, settings, patience=0.2) as registry, open_registry(tmp_path, settings) as other:
            registry.apply(PLANT, "ann")
            with other._database.writing(), pytest.raises(SituError, match="D104"):
                registry.declare([subscription("desk/a")], who="bob")
            assert registry.current().version == 1
            assert registry.declare([subscription("desk/a")], who="bob").version == 2

    def test_a_writer_that_dies_leaves_nothing_behind(self, where: tuple[Path, Settings], plant: Registry) -> None:
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_die_writing, args=where)
        process.start()
        process.join(60)
        assert process.exitcode == 9
        assert plant.version() == 1
        assert plant.declare([subscription("desk/b")], who="bob").version == 2
        assert plant.find("subscription", "desk/b").version == 1

    def test_a_folder_that_is_a_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / ".situ").write_text("no folder")
        with pytest.raises(SituError, match="D105"):
            open_registry(tmp_path, EMBEDDED)

    def test_a_file_that_is_no_database_is_named(self, tmp_path: Path) -> None:
        (tmp_path / ".situ").mkdir()
        (tmp_path / ".situ" / "registry.db").write_text("no database, but long enough to be looked at" * 100)
        with pytest.raises(SituError, match="D105") as refused:
            open_registry(tmp_path, EMBEDDED)
        assert "back-up" in refused.value.hint

    def test_a_server_that_is_not_there_is_named_without_the_password(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        url = f"postgresql+psycopg://ann:hush@127.0.0.1:{port}/plant"
        with pytest.raises(SituError, match="D105") as refused:
            open_registry(tmp_path, Settings(registry=plain(url)))
        assert "hush" not in str(refused.value)
        assert f"127.0.0.1:{port}" in str(refused.value)

    @pytest.mark.parametrize("url", ["postgresql+psycopg://[", "postgresql+psycopg://ann@host:port/x", "${DATABASE}"])
    def test_an_address_that_is_none_is_named(self, tmp_path: Path, url: str) -> None:
        with pytest.raises(SituError, match="D105"):
            open_registry(tmp_path, Settings(registry=plain(url)))

    def test_a_database_that_is_not_there_is_named(self, tmp_path: Path, postgresql: Callable[[], str]) -> None:
        url = postgresql().replace("/test", "/no-test")
        with pytest.raises(SituError, match="D105") as refused:
            open_registry(tmp_path, Settings(registry=plain(url)))
        assert "createdb" in refused.value.hint


def test_one_more_subscription_among_thousands_is_quick(tmp_path: Path) -> None:
    """Well below the time that ten thousand checks would take; how long it is exactly is for the benchmarks."""
    with open_registry(tmp_path, EMBEDDED) as registry:
        registry.apply(PLANT, "ann")
        things = [subscription(f"c{n % 100}/s{n}", f"level > {n % 90} %") for n in range(2_000)]
        begun = time.perf_counter()
        registry.declare(things, who="router r1")
        all_of_them = time.perf_counter() - begun
        singles = []
        for n in range(5):
            begun = time.perf_counter()
            registry.declare([subscription(f"extra/s{n}", "level > 5 %")], who="router r1")
            singles.append(time.perf_counter() - begun)
        assert min(singles) < all_of_them / 10


def _declare_one(registry: Registry, number: int) -> int:
    return registry.declare([subscription(f"c{number}/s", f"level > {number} %")], who="bob").version


def _declare_some(folder: Path, settings: Settings, start: int) -> None:
    with open_registry(folder, settings, patience=30) as registry:
        for number in range(start, start + 10):
            _declare_one(registry, number)


def _die_writing(folder: Path, settings: Settings) -> None:
    import os

    from situ.registry import store

    with open_registry(folder, settings) as registry:
        write = store.write_next

        def write_and_die(*arguments: Any) -> None:
            write(*arguments)
            os._exit(9)

        store.write_next = write_and_die
        registry.declare([Subscription(client="desk", name="a", types=("Level",))], who="bob")


def _engine(folder: Path, settings: Settings) -> Any:
    if settings.registry.value != "embedded":
        return create_engine(settings.registry.value)
    (folder / ".situ").mkdir(exist_ok=True)
    return create_engine(f"sqlite:///{folder / '.situ' / 'registry.db'}")
