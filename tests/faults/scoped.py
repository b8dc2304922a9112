"""A project with scopes under load: documents of scopes that are generated, and what each client may and must get.

Who reads notes with each event which epochs can have been in force when it was handed over. When each event was stamped
stands in the root log. What is visible in an epoch is asked of the rules themselves.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import situ
from situ.bus.credentials import ClientCredentials, make_seed, public_key, write_secret
from situ.bus.nats import open_bus
from situ.client.client import Client
from situ.client.events import Event
from situ.event.row import Row
from situ.event.seal import seal_of
from situ.lang.problems import SituError
from situ.lang.tags import TagSet
from situ.model import Deployment
from situ.project.check import check_folder
from situ.registry import open_registry
from situ.registry.snapshots import adopted_versions, fetch_deployment, publish_deployment
from situ.scopes.explanation import RootEvent
from situ.scopes.filters import FilterMeanings
from situ.scopes.graph import ScopeGraph
from situ.scopes.operations import JoinScope, LeaveScope, Operation
from situ.scopes.rights import Principal
from tests.faults.deployed import PATIENCE, Deployed, deployed
from tests.oracles.visibility import visible
from tests.project_files import write

CLIENTS = """
version: 1
clients:
  press: {scopes: {membership: line}, advertisements: {alarms: {type: Alarm}}}
  clerk: {scopes: {membership: office}, advertisements: {alarms: {type: Alarm}}}
  crew: {scopes: {membership: line}, subscriptions: {all: {types: [Alarm], durable: true}}}
  shift: {scopes: {membership: line}, subscriptions: {all: {types: [Alarm], durable: true}}}
  desk: {scopes: {membership: office}, subscriptions: {all: {types: [Alarm], durable: true}}}
  wall: {scopes: {membership: office}, subscriptions: {all: {types: [Alarm], durable: true}}}
  badge: {scopes: {membership: guest}, subscriptions: {all: {types: [Alarm], durable: true}}}
  gate: {scopes: {membership: guest}, subscriptions: {some: {types: [Alarm], where: level > 0, durable: true}}}
  screen: {scopes: {membership: guest}}
  visitor: {}
"""
FILTERS = ("", "level >= 2", "level < 4", "text <> 'jam'", "level IN (0, 2, 3)", "level = 1 OR text = 'fire'")
READERS = {
    "crew": "line",
    "shift": "line",
    "desk": "office",
    "wall": "office",
    "badge": "guest",
    "gate": "guest",
    "screen": "guest",
}
VISITOR, GUEST = "visitor", "guest"
READERS[VISITOR] = GUEST
"""Is let in and out, and declares what it wants itself."""
PUBLISHERS = {"press": "line", "clerk": "office"}
KNOWN = ("desk", "badge")
"""Clients that have credentials of their own, and may nothing but ask their router."""


AWAY = (SituError, OSError)


def alarm(number: int) -> dict[str, Any]:
    return {"text": ("jam", "fire", "alarm")[number % 3], "level": number % 5, "number": number}


def scopes(dice: random.Random) -> str:
    """Somebody joined, left, or has another filter."""
    line, office, guest = (dice.choice(FILTERS) for _ in range(3))
    into = dice.choice(("plant", "plant", "plant", ""))
    inside = dice.choice(("office", "office", "plant", "office, plant", "line", ""))
    everybody = {**PUBLISHERS, **{client: scope for client, scope in READERS.items() if client != VISITOR}}
    members = "".join(f"  {client}: {{ membership: [{scope}] }}\n" for client, scope in everybody.items())
    return f"""
version: 1
dimensions:
  membership:
    mode: closed
    scopes:
      plant: {{}}
      line: {{ in: [plant]{_filter("output", line)} }}
      office: {{ in: [{into}]{_filter("input", office)} }}
      guest: {{ in: [{inside}]{_filter("input", guest)} }}
clients:
{members}"""


def _filter(name: str, text: str) -> str:
    return f', {name}: "{text}"' if text else ""


@dataclass(frozen=True, slots=True)
class Got:
    """An event that a client got, and the epochs that can have been in force when it was handed over."""

    key: str
    number: int
    first: int
    last: int


@dataclass
class Scoped:
    """A run with scopes, and what is known of its epochs."""

    at: Deployed
    dice: random.Random
    graphs: dict[int, ScopeGraph] = field(default_factory=dict)
    deployment: Deployment = field(default_factory=Deployment)
    confirmed: int = 0
    """The last epoch that engine and router were seen to work with."""
    got: dict[str, list[Got]] = field(default_factory=lambda: {client: [] for client in READERS})

    visits: list[tuple[int, int]] = field(default_factory=list)
    """When the visitor was let in, and how much it had got before."""
    left: list[int] = field(default_factory=list)
    published: dict[str, int] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        """The last one that was asked for."""
        return max(self.graphs)

    def change(self) -> None:
        """Put other scopes in force, as `situ apply` does; a run that is there takes them up by itself."""
        while True:
            write(self.at.folder, {"scopes.yaml": scopes(self.dice)})
            checked = check_folder(self.at.folder)
            assert checked.deployment is not None, checked.problems
            if not self.graphs or checked.deployment.scopes != self.deployment.scopes:
                break
        with open_registry(self.at.folder, checked.deployment.settings) as registry:
            self.deployment = registry.apply(checked.deployment, "test").deployment
        self.graphs[self.deployment.epoch] = self.deployment.scopes

    async def confirm(self) -> None:
        """Wait until engine and router work with what is in force."""
        wanted, epoch = self.deployment.version, self.epoch
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while asyncio.get_running_loop().time() < deadline:
            self.at.check()
            with suppress(SituError):
                async with await open_bus(self.at.address, name="test", timeout=10) as bus:
                    await publish_deployment(bus, self.deployment)
                    while asyncio.get_running_loop().time() < deadline:
                        adopted = await adopted_versions(bus)
                        if min(adopted.get(each, 0) for each in (self.at.engine, "router-r1")) >= wanted:
                            self.confirmed = epoch
                            return
                        await asyncio.sleep(0.02)
        raise AssertionError(f"version {wanted} is not at work")

    def let_in(self) -> None:
        self._rescope(JoinScope(member=VISITOR, scope=GUEST, dimension="membership"))
        self.visits.append((self.epoch, len(self.got[VISITOR])))

    def let_out(self) -> None:
        """What it declared is suspended."""
        self._rescope(LeaveScope(member=VISITOR, scope=GUEST, dimension="membership"))
        self.left.append(self.epoch)

    def _rescope(self, operation: Operation) -> None:
        with open_registry(self.at.folder, self.deployment.settings) as registry:
            self.deployment = registry.change_scopes(operation, Principal(name="test", operator=True)).deployment
        self.graphs[self.deployment.epoch] = self.deployment.scopes

    async def visit(self) -> None:
        """Declare and read until it is told that it may not any more."""
        async with self.connected(VISITOR) as node:
            events = node.events("Alarm", durable="all", scopes={"membership": GUEST})
            with pytest.raises(SituError) as told:
                await self._note_all(VISITOR, events)
            # Who was let out before it could declare anything is in no scope, and knows of no types.
            assert told.value.code in ("V006", "INT601"), told.value

    # ── clients ──

    @asynccontextmanager
    async def connected(self, client: str) -> AsyncIterator[Client]:
        """A client; who comes while no run is there tries again."""
        credentials = str(secret_of(self.at.folder, client)) if client in KNOWN else None
        while True:
            self.at.check()
            with suppress(*AWAY):
                node = situ.connect(
                    self.at.folder, client=client, timeout=PATIENCE, queue_timeout=PATIENCE, credentials=credentials
                )
                entered = await node.__aenter__()
                break
            await asyncio.sleep(0.2)
        try:
            yield entered
        finally:
            await node.__aexit__(None, None, None)

    async def publish(self, client: str, rate: float, enough: asyncio.Event) -> None:
        """Publish numbered alarms until it is enough; all are stored when this returns."""
        async with self.connected(client) as node:
            number = 0
            while not enough.is_set():
                for _ in range(10):
                    number += 1
                    await node.publish_event("Alarm", alarm(number))
                await asyncio.sleep(10 / rate)
            assert await node.flush(PATIENCE), "everything published is stored in the end"
            self.published[client] = number

    async def follow(self, client: str, *types: str, **options: Any) -> None:
        """Read all the time. What was handed over may wait in the client for a while: any epoch since will do.

        While its scope lies in no other, nobody's alarms are visible to a client, and it knows of no such type: who
        comes then, as after a kill, tries again.
        """
        async with self.connected(client) as node:
            while True:
                try:
                    await self._note_all(client, node.events(*types, **options))
                except SituError as error:
                    if error.code not in ("INT601", "B106"):  # or the router that was killed is not there yet
                        raise
                else:
                    return
                await asyncio.sleep(0.2)

    async def _note_all(self, client: str, events: AsyncIterator[Event]) -> None:
        async for event in events:
            self.note(client, event, 0)

    async def look_in(self, client: str, name: str, most: int, idle: float = 1.5) -> None:
        """Read what waits, while scopes stay as they are and are known to be at work; then go."""
        assert self.confirmed == self.epoch
        async with self.connected(client) as node, aclosing(node.events(durable=name, limit=most)) as events:
            with suppress(TimeoutError, StopAsyncIteration):
                while True:
                    async with asyncio.timeout(idle):
                        event = await anext(events)
                    self.note(client, event, self.confirmed)

    async def read_out(self, client: str, name: str) -> None:
        """Read until nothing waits any more; all that was published has been routed."""
        assert self.confirmed == self.epoch
        async with self.connected(client) as node, aclosing(node.events(durable=name)) as events:
            step = asyncio.ensure_future(anext(events))
            while True:
                done, _ = await asyncio.wait({step}, timeout=1)
                if done:
                    self.note(client, step.result(), self.confirmed)
                    step = asyncio.ensure_future(anext(events))
                elif await self._is_empty(f"{client}_{name}"):
                    break
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)

    async def _is_empty(self, consumer: str) -> bool:
        async with await open_bus(self.at.address, name="test") as bus:
            (state,) = [each for each in await bus.consumers() if each.name == consumer]
            return not state.waiting and not state.unacknowledged

    async def routed(self) -> None:
        """Wait until the last that everybody published has been delivered to who reads all the time and sees it."""
        for publisher, client in (("press", "shift"), ("clerk", "wall")):
            begin, number = f"{publisher}.", self.published[publisher]
            while not any(each.number == number and each.key.startswith(begin) for each in self.got[client]):
                self.at.check()
                await asyncio.sleep(0.05)
        while not (await self._is_empty("shift_all") and await self._is_empty("wall_all")):
            await asyncio.sleep(0.2)
        async with await open_bus(self.at.address, name="test") as bus:
            self.seal = (await fetch_deployment(bus)).numbers.seal

    def sealed(self, row: Row) -> str:
        """The key of an event as clients get it."""
        return seal_of(self.seal).key(row.key)

    def note(self, client: str, event: Event, first: int) -> None:
        self.got[client].append(Got(event.key, event.data.number, first, self.epoch))

    # ── what they may and must have got ──

    def check(self, *, killed: int) -> Mapping[str, int]:
        """Nobody got what was not visible in both epochs, or anything twice; nothing that always was is missing.

        What was hidden for a while may come or not, and in its place or later: a run that was killed routes again what
        the one before routed last. How often which of these was to the point.
        """
        rows = {self.sealed(row): row for row in self.at.root() if row.client in PUBLISHERS}
        seen = _Seen(self, rows)
        points: Counter[str] = Counter(events=len(rows), epochs=len(self.graphs), killed=killed)
        for client in READERS:
            got = self.got[client]
            repeated = [key for key, times in Counter(each.key for each in got).items() if times > 1]
            assert not repeated, f"{client} got {len(repeated)} events twice: {repeated[:5]}"
            for each in got:
                row = rows[each.key]
                then = row.epoch
                assert seen(row, client, then), f"{client} got {row.key}, which was not visible in epoch {then}"
                later = range(max(each.first, then), max(each.last, then) + 1)
                assert any(seen(row, client, epoch) for epoch in later), f"{client} got {row.key} in one of {later}"
                points["older"] += each.first > then
            _check_order(client, [each for each in got if seen.always(rows[each.key], client)], rows)
            if client == VISITOR:
                points["visits"] = self._check_visits(rows)
            if client in ("screen", VISITOR):
                continue  # the one was promised nothing, and the other was away
            had = {each.key for each in got}
            for key, row in rows.items():
                if client == "gate" and alarm_of(row)["level"] == 0:
                    assert key not in had
                    continue
                must = seen.always(row, client)
                assert key in had or not must, f"{client} did not get {row.key} of epoch {row.epoch}"
                points["must"] += must
                points["withheld"] += key not in had and seen(row, client, row.epoch)
        points["screen"] = len(self.got["screen"])
        return points

    def _check_visits(self, rows: Mapping[str, Row]) -> int:
        """What it could have got before it was let out is not delivered later. How often it got something."""
        ends = [place for _, place in self.visits[1:]] + [len(self.got[VISITOR])]
        times = 0
        for number, ((_, begin), end) in enumerate(zip(self.visits, ends, strict=True)):
            since = self.left[number - 1] if number else 0
            older = [each.key for each in self.got[VISITOR][begin:end] if rows[each.key].epoch < since]
            assert not older, f"let out in epoch {since}, it got {len(older)} events of before: {older[:5]}"
            times += end > begin
        return times


def alarm_of(row: Row) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(row.data)
    return data


def _check_order(client: str, got: Sequence[Got], rows: Mapping[str, Row]) -> None:
    last: dict[str, int] = {}
    for place, each in enumerate(got):
        row = rows[each.key]
        if row.seq <= last.get(row.client, 0):
            around = [(one.key, rows[one.key].epoch, one.last) for one in got[max(place - 10, 0) : place + 5]]
            raise AssertionError(f"{client} got {row.key} behind {last[row.client]}: {around}")
        last[row.client] = row.seq


class _Seen:
    """Visibility by the rules alone."""

    def __init__(self, scoped: Scoped, rows: Mapping[str, Row]) -> None:
        self.seal = ""
        self._scoped = scoped
        self._filters = FilterMeanings(scoped.deployment.types)
        self._events = {
            row.key: RootEvent(filters=self._filters, type=row.type, envelope={"type": row.type}, data=alarm_of(row))
            for row in rows.values()
        }
        self._known: dict[tuple[int, str, str, str, int], bool] = {}

    def __call__(self, row: Row, client: str, epoch: int) -> bool:
        data = alarm_of(row)
        place = (epoch, row.client, client, data["text"], data["level"])  # no filter asks for anything else
        found = self._known.get(place)
        if found is None:
            published = TagSet.of({"membership": PUBLISHERS[row.client]})
            subscribed = TagSet.of({"membership": READERS[client]})
            graph = self._scoped.graphs[epoch]
            found = self._known[place] = visible(graph, self._events[row.key], published, subscribed)
        return found

    def always(self, row: Row, client: str) -> bool:
        """Whether it was never hidden since it was stamped."""
        return all(self(row, client, epoch) for epoch in range(row.epoch, self._scoped.epoch + 1))


def secret_of(folder: Path, client: str) -> Path:
    return folder.parent / f"{client}.creds"


@contextmanager
def scoped(folder: Path, *, engine: str, seed: int) -> Iterator[Scoped]:
    """A run that keeps to scopes."""
    dice = random.Random(seed)
    files = {"clients/all.yaml": CLIENTS, "scopes.yaml": scopes(dice)}
    with deployed(folder, engine=engine, files=files, start=False) as at:
        made = Scoped(at, dice)
        made.change()
        with open_registry(folder, made.deployment.settings) as registry:
            for client in KNOWN:
                seed_of = make_seed()
                registry.principals.add(client, public_key(seed_of), who="test")
                zone = made.deployment.settings.zone
                write_secret(
                    secret_of(folder, client), ClientCredentials(client=client, zone=zone, seed=seed_of).text()
                )
        at.start()
        at.ready()
        yield made
