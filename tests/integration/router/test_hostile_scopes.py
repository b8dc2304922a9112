"""A client with valid credentials for one scope tries to get at another: each attempt is a test, and gets nothing.

One zone for all: a real server that knows clients by their keys, the router, the edge engine, a policy. Whatever comes
to the hostile client on any of its subjects is heard by a second connection of its own, and looked through for words
that it may not know.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import nats.errors
import pytest
from nats.aio.msg import Msg

from situ.client.capabilities import Accept
from situ.client.client import Client
from situ.client.connection import connect
from situ.client.events import Event
from situ.event.lines import decode_line, stored_lines
from situ.event.message import PLACES, StoredMessage, position, split_lines
from situ.event.row import Row
from situ.event.seal import seal_of
from situ.lang.problems import SituError
from situ.protocol.permissions import permissions_of
from situ.scopes.graph import NO_SCOPES, Grant
from situ.scopes.operations import (
    ApplyScopes,
    DropScope,
    GrantRights,
    JoinScope,
    LeaveScope,
    SetFilter,
    SetMode,
    operation_as_json,
)
from tests.admitted import AdmittingServer, Plain, admitting_server, plain
from tests.edge_zone import EdgeZone, edge_zone, eventually, nothing_more, take
from tests.guarded import FILES
from tests.integration.edge.test_detection import SITU

SCOPES = """
version: 1
dimensions:
  membership:
    mode: closed
    scopes:
      holding:   {}
      alphacorp: { in: [holding], output: "type IS Notice AND (text = 'summerparty' OR loud)" }
      betaworks: { in: [holding], output: "type IS Notice" }
      betalab:   {}
  floor: { scopes: { cellar: {}, attic: {} } }
clients:
  turbine7: { membership: [alphacorp], floor: [cellar] }
  bertram:  { membership: [alphacorp] }
  herald:   { membership: [alphacorp] }
  eve:      { membership: [betaworks, betalab] }
  crier:    { membership: [betaworks, betalab] }
  mole:     { membership: [betaworks] }
  unaccompanied-guest: { membership: [alphacorp] }
  spy:      { membership: [betalab] }
policies:
  spy: { reads: { membership: betalab, rest: any }, publishes: { membership: betalab, rest: any } }
  unaccompanied-guest: { reads: { membership: alphacorp, rest: any }, publishes: { rest: any } }
grants:
  - { to: unaccompanied-guest, dimension: membership, may: [broadcast] }
  - { to: persons,  dimension: membership, may: [broadcast] }
  - { to: rooms,    dimension: membership, may: [broadcast] }
  - { to: overseer, dimension: membership, may: [observe] }
"""
CLIENTS = """
  turbine7:
    scopes: {membership: alphacorp}
    advertisements: {seen: {type: Sighting}, wages: {type: Payroll}, parties: {type: Notice}}
  herald:
    scopes: {membership: alphacorp}
    advertisements: {wages: {type: Payroll}, cries: {type: Notice}}
  bertram:
    scopes: {membership: alphacorp, rest: any}
    subscriptions:
      ledger: {types: [Payroll, Sighting, Notice, GuestAlone, situ.situation, situ.deadletter], durable: true}
  eve:
    scopes: {membership: betaworks, rest: any}
    advertisements: {gossip: {type: Notice}}
    subscriptions: {news: {types: [Notice], durable: true}}
  mole: {context: nameless, scopes: {membership: betaworks, rest: any}}
  crier:
    scopes: {membership: betaworks}
    advertisements: {calls: {type: Notice}, seen: {type: Sighting, scopes: {membership: betalab}}}
"""
MORE = {
    **{name: text for name, text in FILES.items() if name not in ("situ.yaml", "clients/people.yaml")},
    "types/more.yaml": "types:\n  Remuneration: {salary: int}\nevents:\n  Payroll: {who: string, pay: Remuneration}\n"
    "  Notice: {text: string, loud: optional boolean}\n",
    "sources/building.yaml": FILES["sources/building.yaml"].replace("csv:", "scopes: {rest: any}\n            csv:"),
    "people.csv": "nr,role\n" + "".join(f"g{number},guest\n" for number in range(100)),
    "policies/unaccompanied-guest.dpl": FILES["policies/unaccompanied-guest.dpl"].replace("5 s", "1 s"),
    "policies/spy.dpl": FILES["policies/unaccompanied-guest.dpl"]
    .replace("5 s", "1 s")
    .replace("policy unaccompanied-guest", "policy spy"),
    "contexts/nameless.yaml": "context: nameless\nevents: {Uttered: {loud: optional boolean}}\n"
    "maps: [{out: Notice -> Uttered, attributes: {loud: loud}}]\n",
    "contexts/roles.yaml": "context: roles\nfunctions:\n"
    "  role_of: {signature: string -> string, lookup: {p: {source: persons, key: {nr: value}}}, value: p.role}\n",
    "scopes.yaml": SCOPES,
}
SALARY = 471147
SECRETS = (
    b"Payroll",
    b"Remuneration",
    b"salary",
    b"471147",
    b"wages",
    b"turbine7",
    b"bertram",
    b"ledger",
    b"alphacorp",
    b"holding",
    b"summerparty",
    b"cellar",
    b"unaccompanied-guest",
    b"GuestAlone",
    b"situtags",
)
INGRESS = "situ.main.in.r1.eve"


class World:
    """What runs, and how often it was stirred."""

    def __init__(
        self,
        zone: EdgeZone,
        server: AdmittingServer,
        nodes: dict[str, Client],
        wire: Plain,
        queues: list[asyncio.Queue[Msg]],
    ) -> None:
        self.zone = zone
        self.server = server
        self.turbine, self.bertram, self.herald, self.crier, self.eve = (
            nodes[name] for name in ("turbine7", "bertram", "herald", "crier", "eve")
        )
        self.wire = wire
        self.heard: list[bytes] = []
        """Everything that came to eve."""
        self.stirred = 0
        self.ledger = self.bertram.events(durable="ledger")
        self._queues = queues

    async def listen(self) -> None:
        """Note what has come to eve."""
        await self.wire.client.flush()
        for queue in self._queues:
            while not queue.empty():
                message = queue.get_nowait()
                self.heard += [message.data, repr(message.headers).encode()]

    async def stir(self, *, alone: bool = False) -> list[Event]:
        """Something happens in the other scope, and who belongs there gets it; ``alone``: it is a situation, too."""
        self.stirred += 1
        number = self.stirred
        await self.turbine.publish_event("Payroll", {"who": f"p{number}", "pay": {"salary": SALARY}})
        await self.turbine.publish_event("Sighting", {"who": f"x{number}", "at": {"x": 30.0, "y": 5.0}})
        if alone:
            await self.turbine.publish_event("Sighting", {"who": f"g{number}", "at": {"x": 5.0, "y": 5.0}})
        with pytest.raises(SituError, match="pay"):  # a dead letter
            await (await self.turbine.publish_event("Payroll", {"who": f"p{number}"})).stored
        wanted = {"Payroll", "Sighting", "situ.deadletter", *(("situ.situation.opened", "GuestAlone") if alone else ())}
        found: list[Event] = []
        while not wanted <= {each.type for each in found}:
            found += await take(self.ledger, 1, within=60)
        return found

    async def reaches(self, *types: str, alone: bool = False, **options: Any) -> list[Event]:
        """What eve gets by such a subscription of what happens in the other scope."""
        registration = await self.eve.register_for_events(*types, "Notice", **options)
        try:
            await self.stir(alone=alone)
            return await self.before_the_call(registration)
        finally:
            await self.eve.unregister_for_events(registration)

    async def before_the_call(self, events: Any) -> list[Event]:
        """What comes before something that she may hear, and that happens after all the rest."""
        self.stirred += 1
        call = f"call {self.stirred}"
        await (await self.crier.publish_event("Notice", text=call)).stored
        found: list[Event] = []
        coming = aiter(events)
        while True:
            (event,) = await take(coming, 1, within=60)
            if event.type == "Notice" and event.data.text == call:
                return found
            if event.type != "Notice" or not event.data.text.startswith(("call ", "cry ")):
                found.append(event)

    async def say(self, kind: str, body: Any) -> dict[str, Any]:
        """What the router answers to a message that no library would write."""
        session = (await self.eve.status()).session
        headers = {"Situ-Message": kind, "Situ-Session": str(session)}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await self.wire.ask(INGRESS, content, timeout=20, **headers)
        self.heard.append(answer.data)
        found: dict[str, Any] = json.loads(answer.data)
        return found

    async def row(self, key: str) -> Row:
        """The event in the log that a client knows by this key."""
        client, _, token = key.partition(".")
        numbers = seal_of(self.zone.registry.current().numbers.seal).opened(token)
        assert numbers is not None
        for message in await self.zone.messages(self.zone.names.root_stream):
            for row in read_rows(message):
                if (row.client, row.incarnation, row.seq) == (client, *numbers):
                    return row
        raise AssertionError(key)

    async def send(self, event: dict[str, Any]) -> None:
        """An event as no library would write it."""
        await self.eve._sender.put(json.dumps(event).encode(), None).stored

    async def refused(self, work: Awaitable[object]) -> SituError:
        with pytest.raises(SituError) as refused:
            await work
        return refused.value


def read_rows(message: StoredMessage) -> list[Row]:
    lines = stored_lines(message)
    return [decode_line(line, pos=position(message.seq, place)) for place, line in enumerate(lines)]


Attempt = Callable[[World], Awaitable[None]]
ATTEMPTS: dict[str, tuple[Attempt, tuple[bytes, ...]]] = {}


def attempt(name: str, *said: str) -> Callable[[Attempt], Attempt]:
    """``said`` are words that she says herself: they may come back to her."""

    def note(work: Attempt) -> Attempt:
        ATTEMPTS[name] = work, tuple(each.encode() for each in said)
        return work

    return note


def alike(one: SituError, other: SituError, name: str, invented: str) -> None:
    """Two refusals that differ in nothing but the name that she said herself."""
    assert one.code == other.code
    assert str(one).replace(name, "…") == str(other).replace(invented, "…"), (str(one), str(other))
    assert one.problems[0].hint.replace(name, "…") == other.problems[0].hint.replace(invented, "…")


# ── subscriptions ─────────────────────────────────────────────────────────────────────────────────


@attempt("subscribing to what others publish", "Payroll", "Sighting")
async def _(world: World) -> None:
    """A type of which it could never see an event is none."""
    assert await world.reaches("Sighting") == []
    for durable in (None, "wanted"):
        there = await world.refused(world.eve.register_for_events("Payroll", durable=durable))
        nowhere = await world.refused(world.eve.register_for_events("Payday", durable=durable))
        assert there.code == "INT601"
        alike(there, nowhere, "Payroll", "Payday")
    there = await world.refused(world.eve.register_for_events("Notice", "Payroll"))
    nowhere = await world.refused(world.eve.register_for_events("Notice", "Payday"))
    alike(there, nowhere, "Payroll", "Payday")


@attempt("subscribing by attributes that it has guessed", "Payroll", "Remuneration", "salary", "bonus")
async def _(world: World) -> None:
    """Whether a type or an attribute is there makes no difference to what is said of a filter."""
    for guessed, invented in (("salary", "bonus"), ("who", "whom")):
        filters = f"pay.{guessed} > 5", f"pay.{invented} > 5"
        there, nowhere = [
            await world.refused(world.eve.register_for_events("Payroll", where=each, durable="guess"))
            for each in filters
        ]
        alike(there, nowhere, guessed, invented)
    for text in ("type IS {}", "text = 'x' AND NOT type IS {}"):
        named = [text.format(name) for name in ("Payroll", "Payday")]
        there, nowhere = [
            await world.refused(world.eve.register_for_events("Notice", where=each, durable="guess")) for each in named
        ]
        alike(there, nowhere, "Payroll", "Payday")
    await world.eve.unregister_for_events(await world.eve.register_for_events("Notice", where="type IS Notice"))


@attempt("advertising what others publish", "Payroll", "salary", "Remuneration")
async def _(world: World) -> None:
    """Who advertises a type is told what it is made of."""
    there = await world.refused(world.eve.advertise("Payroll", name="mine"))
    nowhere = await world.refused(world.eve.advertise("Payday", name="mine"))
    alike(there, nowhere, "Payroll", "Payday")
    assert await world.eve.describe("Payroll") == {}


@attempt("saying how well it could publish what others do", "Payroll")
async def _(world: World) -> None:
    there = await world.refused(world.eve.capabilities.register("Payroll", {"rate": {"lb": 1, "ub": 9, "cv": 2}}))
    nowhere = await world.refused(world.eve.capabilities.register("Payday", {"rate": {"lb": 1, "ub": 9, "cv": 2}}))
    alike(there, nowhere, "Payroll", "Payday")


@attempt("naming a scope that it is not in", "alphacorp", "Sighting")
async def _(world: World) -> None:
    there = await world.refused(world.eve.register_for_events("Sighting", scopes={"membership": "alphacorp"}))
    nowhere = await world.refused(world.eve.register_for_events("Sighting", scopes={"membership": "gammacorp"}))
    assert there.code == "V006"
    alike(there, nowhere, "alphacorp", "gammacorp")


@attempt("naming what its own scope is in", "holding", "Sighting")
async def _(world: World) -> None:
    error = await world.refused(world.eve.register_for_events("Sighting", scopes={"membership": "holding"}))
    assert error.code == "V006"


@attempt("wanting any scope", "Sighting")
async def _(world: World) -> None:
    error = await world.refused(world.eve.register_for_events("Sighting", scopes={"membership": "any"}))
    assert error.code == "V011"


@attempt("wanting the rest, whatever that is", "Sighting")
async def _(world: World) -> None:
    error = await world.refused(world.eve.register_for_events("Sighting", scopes={"rest": "any"}))
    assert error.code == "V011"
    assert "membership" in str(error), "its own dimension, and no other is named"
    assert "floor" not in str(error)


@attempt("wanting any scope of an open dimension", "Payroll", "Sighting")
async def _(world: World) -> None:
    scopes = {"membership": "betaworks", "floor": "any"}
    assert await world.reaches("Sighting", scopes=scopes) == []


@attempt("two scopes at once", "alphacorp", "Sighting")
async def _(world: World) -> None:
    answer = await world.say(
        "Subscribe",
        {"req": 1, "sub": "both", "types": ["Sighting"], "scopes": {"membership": ["betaworks", "alphacorp"]}},
    )
    assert answer["code"] == "V016"


@attempt("saying nothing of scopes where nothing is seen", "Sighting")
async def _(world: World) -> None:
    """Among closed dimensions who says nothing sees nothing, not even the call."""
    answer = await world.say("Subscribe", {"req": 1, "sub": "mute", "types": ["Sighting"], "scopes": {"rest": "none"}})
    assert answer.get("sub") == "mute"
    news = await world.eve.register_for_events("Notice")
    await world.stir()
    assert await world.before_the_call(news) == []
    await world.eve.unregister_for_events(news)
    await world.say("Unsubscribe", {"req": 2, "sub": "mute"})


@attempt("a subscription in the name of another", "bertram", "ledger", "Payroll")
async def _(world: World) -> None:
    """Whose it is stands in the subject; what the message says of that is not looked at."""
    forged = {"req": 1, "sub": "mine", "types": ["Payroll"], "client": "bertram", "principal": "bertram"}
    await world.say("Subscribe", forged)
    assert "bertram/mine" not in world.zone.registry.current().subscriptions
    await world.say("Subscribe", {**forged, "sub": "bertram/ledger"})
    assert set(world.zone.registry.current().subscriptions) >= {"bertram/ledger", "eve/news"}
    assert "eve/bertram/ledger" not in world.zone.registry.current().subscriptions
    await world.say("Unsubscribe", {"req": 2, "sub": "mine"})


@attempt("all that it declares in one list, with forged tags", "alphacorp", "Sighting")
async def _(world: World) -> None:
    async with client(world.server, world.zone, "eve2") as other:
        session = (await other.status()).session
        async with plain(world.server, "eve2", world.server.seeds["eve2"]) as wire:
            told = await wire.hear("situ.main.live.eve2")
            wanted = {"types": ["Sighting"], "scopes": {"membership": "alphacorp"}}
            body = json.dumps({"subs": {"forged": wanted}}).encode()
            headers = {"Situ-Message": "FullList", "Situ-Session": str(session)}
            answer = await wire.ask("situ.main.in.r1.eve2", body, timeout=20, **headers)
            world.heard.append(answer.data)
            await eventually(lambda: not told.empty())
            refused = told.get_nowait()
            world.heard.append(refused.data)
            assert json.loads(refused.data)["code"] == "INT601", "it is in no scope: nothing is there for it"
    assert "eve2/forged" not in world.zone.registry.current().subscriptions


@attempt("a durable subscription with the name of another's", "ledger", "Sighting")
async def _(world: World) -> None:
    registration = await world.eve.register_for_events("Sighting", "Notice", durable="ledger")
    await world.stir()
    assert await world.before_the_call(registration) == []
    await world.eve.unregister_for_events(registration)


@attempt("reading the queue of another through its router", "bertram", "ledger")
async def _(world: World) -> None:
    await world.stir()
    consumers = {each.name: each for each in await world.zone.bus.consumers()}
    group = world.zone.names.out(consumers["bertram_ledger"].groups[0])
    for body in (
        {"do": "next", "name": "bertram_ledger", "batch": 10},
        {"do": "next", "name": "../bertram_ledger", "batch": 10},
        {"do": "next", "name": "*", "batch": 10},
        {"do": "again", "name": "news", "seq": 1, "batch": 10, "next_by_subj": group},
        {"do": "again", "name": "news", "seq": 1, "batch": 10, "next_by_subj": "situ.main.out.>"},
        {"do": "again", "name": "ledger", "seq": 1, "batch": 10, "next_by_subj": group},
    ):
        with pytest.raises(nats.errors.TimeoutError):
            await world.wire.ask(INGRESS, json.dumps(body).encode(), timeout=0.3, **{"Situ-Message": "Take"})


@attempt("hearing the groups of others")
async def _(world: World) -> None:
    for subject in ("situ.main.out.>", "situ.main.live.bertram", "situ.main.root.>", "situ.main.dead.>"):
        await world.wire.hear(subject)
        assert await world.wire.forbidden(f'subscription to "{subject}"'), subject


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────


async def cries(world: World, hidden: int, events: Any) -> list[Event]:
    """Two events of the other scope that she may see, with so many in between that she may not."""
    world.stirred += 1
    first, second = f"cry {world.stirred}a", f"cry {world.stirred}b"
    for text in (first, second):
        await world.herald.publish_event("Notice", text=text, loud=True)
        for number in range(hidden if text == first else 0):
            await world.herald.publish_event("Payroll", {"who": f"h{number}", "pay": {"salary": SALARY}})
    await world.herald.flush(20)
    found: list[Event] = []
    coming = aiter(events)
    while len(found) < 2:
        found += [each for each in await take(coming, 1, within=60) if each.data.text in (first, second)]
    return found


def numbers_in(lines: list[bytes]) -> set[int]:
    """All numbers of five digits or more that a client hears, times apart."""
    found: set[int] = set()
    for line in lines:
        text = re.sub(rb'"(time|siturecv|start|last)":"[^"]*"', b"", line)
        found.update(int(each) for each in re.findall(rb"[0-9]{5,20}", text))
    return found


@attempt("counting what it does not see by the numbers of what it does")
async def _(world: World) -> None:
    """Live, from a queue and from history: keys and ids have no order, positions are its own."""
    live = await world.eve.register_for_events("Notice")
    kept = await world.eve.register_for_events("Notice", durable="counting")
    for events in (live, kept):
        positions = []
        for hidden in (0, 3, 40):
            one, other = await cries(world, hidden, events)
            positions += [one.pos, other.pos]
            for each in (one, other):
                assert re.fullmatch(r"herald\.[A-Za-z0-9_-]{32}", each.key), each.key
                assert each.id == each.key.partition(".")[2], "an id that nobody gave is made of the key"
        assert positions == list(range(positions[0], positions[0] + 6)), positions
    past = world.eve.events("Notice", since="begin")
    seen = await take(past, 5, within=60)
    assert [each.pos for each in seen] == [1, 2, 3, 4, 5]
    await past.aclose()
    await world.eve.unregister_for_events(live, kept)
    await world.listen()
    lines = [line for content in world.heard if b'"specversion"' in content for line in split_lines(content)]
    assert any(b"cry " in each for each in lines)
    for line in lines:
        assert b"situpos" not in line
        assert not re.search(rb'"situkey":"[^"]*\.[0-9]+\.[0-9]+"', line), line
        assert not re.search(rb'"id":"[0-9]{10,}-[0-9]+"', line), line
    rows = [row for message in await world.zone.messages(world.zone.names.root_stream) for row in read_rows(message)]
    assert not numbers_in(lines) & ({row.incarnation for row in rows} | {row.pos for row in rows})


@attempt("counting by where pages of history end")
async def _(world: World) -> None:
    """What a page says of its end opens nothing but the next page, and no number does."""
    registration = await world.eve.register_for_events("Notice", durable="ends")
    await (await world.herald.publish_event("Notice", text="cry 0", loud=True)).stored
    session = (await world.eve.status()).session
    headers = {"Situ-Message": "History", "Situ-Session": str(session)}

    async def page(**asked: Any) -> Msg:
        body = json.dumps({"req": 1, "sub": "ends", "limit": 1, **asked}).encode()
        answer = await world.wire.ask(INGRESS, body, timeout=20, **headers)
        world.heard.append(answer.data)
        return answer

    first = await page()
    end = (first.headers or {})["Situ-Position"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{32}", end)
    second = await page(after=end)
    assert second.data != first.data
    last = (await world.zone.bus.state(world.zone.names.root_stream)).last
    key = split_lines(first.data)[0].split(b'"situkey":"')[1].split(b'"')[0].decode()
    for tried in ("0", "65536", str(last * PLACES), "-1", key.rpartition(".")[2], end[::-1], "x" * 32):
        assert (await page(after=tried)).data == first.data, tried
    await world.eve.unregister_for_events(registration)


@attempt("counting by the sequences of its own queue")
async def _(world: World) -> None:
    """The stream that queues are in counts messages for everybody; she is told the numbers of her own."""
    registration = await world.eve.register_for_events("Notice", durable="queue")
    coming = await world.wire.hear("_INBOX_eve.queue.>")

    async def ask(**asked: Any) -> dict[str, Any]:
        body = json.dumps({"name": "queue", **asked}).encode()
        answer = await world.wire.ask(INGRESS, body, timeout=20, **{"Situ-Message": "Take"})
        world.heard.append(answer.data)
        found: dict[str, Any] = json.loads(answer.data)
        return found

    marks = []
    for number in range(1, 4):
        await world.stir()
        await (await world.herald.publish_event("Notice", text=f"cry {number}", loud=True)).stored
        body = json.dumps({"name": "queue", "do": "next", "batch": 1}).encode()
        handed = ""
        while not handed:
            # On a busy machine the request may end before the event is in the queue, or come before the router knows
            # of the queue; then it is not answered at all.
            await world.wire.publish(INGRESS, body, reply=f"_INBOX_eve.queue.{number}", **{"Situ-Message": "Take"})
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    message = await coming.get()
                    handed = (message.headers or {}).get("Situ-Handed", "")
        mark, first, second, *_ = handed.split(".")
        assert (first, second) == (str(number), str(number))
        assert re.fullmatch(r"[A-Za-z0-9_-]{32}", mark)
        marks.append(mark)
        told = await ask(do="info")
        assert told["delivered"] == {"stream_seq": number, "consumer_seq": number}
        assert told["ack_floor"] == {"stream_seq": 0, "consumer_seq": 0}
        assert set(told) == {"config", "delivered", "ack_floor"}
    before = world.zone.router._desk.refused if world.zone.router is not None else 0
    tried = ("", "x", marks[0][::-1], str((await world.eve.status()).incarnation), "1")
    for mark in tried:
        body = json.dumps({"name": "queue", "do": "ack", "seq": 3, "number": 3, "mark": mark}).encode()
        await world.wire.publish(INGRESS, body, **{"Situ-Message": "Take"})
    assert (await ask(do="info"))["ack_floor"]["consumer_seq"] == 0
    router = world.zone.router
    assert router is not None
    await eventually(lambda: router._desk.refused >= before + len(tried))
    assert router._desk.refused == before + len(tried)
    assert (await ask(do="info"))["ack_floor"]["consumer_seq"] == 0
    body = json.dumps({"name": "queue", "do": "ack", "seq": 1, "number": 1, "mark": marks[1]}).encode()
    await world.wire.publish(INGRESS, body, **{"Situ-Message": "Take"})
    async with asyncio.timeout(60):  # nobody answers an acknowledgement: it takes effect a moment later
        while (await ask(do="info"))["ack_floor"]["consumer_seq"] != 2:
            await asyncio.sleep(0.05)
    events = aiter(registration)
    (again,) = await take(events, 1, within=60)
    assert (again.data.text, again.redelivered) == ("cry 3", True), "what she acknowledged, and nothing else"
    await world.eve.unregister_for_events(registration)


@attempt("finding events by numbers that others counted")
async def _(world: World) -> None:
    """Also of what she may see: where it is would tell what is before it."""
    news = await world.eve.register_for_events("Notice")
    (cry, _) = await cries(world, 1, news)
    await world.eve.unregister_for_events(news)
    row = await world.row(cry.key)
    assert (await world.eve.explain_visibility(cry.key, to="eve/news")).visible
    assert (await world.eve.explain_visibility(cry.id, to="eve/news")).visible
    for number in (row.key, row.id, str(row.pos)):
        told = await world.eve.explain_visibility(number, to="eve/news")
        assert not told.visible, number


# ── quality ───────────────────────────────────────────────────────────────────────────────────────


@attempt("expecting something of a publisher that it sees now and then")
async def _(world: World) -> None:
    """To her it is not there: no state, value, advice or count of it; and it hears nothing of her."""
    advised: list[Any] = []

    def advise(advice: Any) -> Accept:
        advised.append(advice)
        return Accept()

    profile = await world.turbine.capabilities.register("Notice", {"rate": {"lb": 1, "ub": 64, "cv": 7}})
    world.turbine.capabilities.on_advice(advise)
    news = await world.eve.register_for_events("Notice", durable="quality")
    states = {}
    for id, need in (("low", {"rate": {"lb": 5}}), ("high", {"rate": {"lb": 50}}), ("none", {})):
        await world.eve.expectations.register(news, need, id=id)
        states[id] = await world.eve.expectations.state(id)
    for id, found in states.items():
        assert (found.state, found.why, found.absent) == ("unsatisfied", "no-publisher", 0), id
        assert all(each.current is None and each.reachable is None for each in found.reasons), id
    assert advised == []
    usage = await world.turbine.capabilities.usage(profile)
    assert (usage.subscriptions, usage.expectations, dict(usage.floors)) == (0, 0, {})
    for id in states:
        await world.eve.expectations.revoke(id)
    await world.turbine.capabilities.revoke(profile)
    await world.eve.unregister_for_events(news)


# ── contexts ──────────────────────────────────────────────────────────────────────────────────────


@attempt("defining a context of what others publish", "Payroll", "Remuneration", "salary", "pay")
async def _(world: World) -> None:
    """What it may not know of cannot be mapped, by the same words as what is not there."""
    for text in (
        "events: {Mine: {x: string}}\nmaps: [{in: Mine -> NAME, attributes: {who: x}}]\n",
        "events: {Mine: {x: string}}\nmaps: [{out: NAME -> Mine, attributes: {x: who}}]\n",
        "rules: [NAME.pay.salary -> identity]\n",
        "events: {Mine(NAME): {x: string}}\n",
        "functions: {f: NAME -> double = 1.0}\n",
    ):
        errors = [
            await world.refused(world.eve.define_context("guess", text.replace("NAME", name)))
            for name in ("Payroll", "Payday")
        ]
        alike(errors[0], errors[1], "Payroll", "Payday")


@attempt("defining a context in a version that there is not")
async def _(world: World) -> None:
    """It is answered like everything else: a number is no name to be hidden."""
    for version in ("99", "0", "-1", "x"):
        async with asyncio.timeout(20):
            error = await world.refused(world.eve.define_context("late", f"version: {version}\nextends: root\n"))
        assert error.code.startswith("P1")


# ── history and replay ────────────────────────────────────────────────────────────────────────────


@attempt("asking for history", "Sighting", "GuestAlone")
async def _(world: World) -> None:
    await world.stir(alone=True)
    types = ("Sighting", "GuestAlone", "situ.situation", "situ.deadletter")
    registration = await world.eve.register_for_events(*types, "Notice", since="begin")
    assert [each for each in await world.before_the_call(registration) if not own(each)] == []
    await world.eve.unregister_for_events(registration)


@attempt("asking for history page by page", "Sighting")
async def _(world: World) -> None:
    registration = await world.eve.register_for_events("Sighting", durable="pages")
    session = (await world.eve.status()).session
    after: str | None = ""
    while after is not None:
        headers = {"Situ-Message": "History", "Situ-Session": str(session)}
        body = json.dumps({"req": 1, "sub": "pages", "after": after, "limit": 10**9}).encode()
        answer = await world.wire.ask(INGRESS, body, timeout=20, **headers)
        world.heard.append(answer.data)
        assert split_lines(answer.data) == []
        said = answer.headers or {}
        after = said["Situ-Position"] if said["Situ-More"] == "1" else None
    await world.eve.unregister_for_events(registration)


@attempt("the history of another's subscription", "ledger", "bertram")
async def _(world: World) -> None:
    there = await world.say("History", {"req": 1, "sub": "ledger"})
    nowhere = await world.say("History", {"req": 1, "sub": "nothing"})
    assert (there["code"], nowhere["code"]) == ("R002", "R002")
    assert there["message"].replace("ledger", "…") == nowhere["message"].replace("nothing", "…")
    assert (await world.say("History", {"req": 1, "sub": "bertram/ledger"}))["code"] == "R002"


# ── situations and policies ───────────────────────────────────────────────────────────────────────


@attempt("subscribing to situations", "GuestAlone")
async def _(world: World) -> None:
    """The policy publishes for everybody; what the situation was made of is not for everybody."""
    found = await world.reaches("situ.situation", "GuestAlone", "situ.action", "situ.notice", alone=True)
    assert found == []


@attempt("listening to a policy", "unaccompanied-guest")
async def _(world: World) -> None:
    heard: list[Event] = []
    listener = await world.eve.add_listener("policy unaccompanied-guest", heard.append)
    news = await world.eve.register_for_events("Notice")
    await world.stir(alone=True)
    await world.before_the_call(news)
    assert heard == []
    await world.eve.remove_listener(listener)
    await world.eve.unregister_for_events(news)


@attempt("a policy of its own scope", "GuestAlone")
async def _(world: World) -> None:
    """The same policy, for its own scope: it finds what is there, and nothing of what the other one finds."""
    scopes = {"membership": "betalab", "rest": "any"}
    situations = await world.eve.register_for_events("situ.situation.opened", scopes=scopes)
    news = await world.eve.register_for_events("Notice")
    await world.stir(alone=True)
    await (await world.crier.publish_event("Sighting", {"who": "g99", "at": {"x": 5.0, "y": 5.0}})).stored
    (opened,) = await take(aiter(situations), 1, within=60)
    assert opened.data["policy"] == "spy"
    assert {"alias": "A", "concept": "person", "id": "g99"} in opened.data["bindings"]
    assert await world.before_the_call(news) == []
    await nothing_more(aiter(situations))
    await world.eve.unregister_for_events(situations, news)


@attempt("speaking in the name of a policy", "unaccompanied-guest")
async def _(world: World) -> None:
    await world.wire.publish("situ.main.in.r1.unaccompanied-guest", b'{"specversion": "1.0", "type": "GuestAlone"}')
    assert await world.wire.forbidden('publish to "situ.main.in.r1.unaccompanied-guest"')


# ── dead letters ──────────────────────────────────────────────────────────────────────────────────


@attempt("subscribing to dead letters")
async def _(world: World) -> None:
    found = await world.reaches("situ.deadletter")
    assert [each for each in found if not own(each)] == []


@attempt("its own dead letter comes back to it alone", "Payroll", "turbine7", "wages")
async def _(world: World) -> None:
    """Also one that names an advertisement of another: it is no letter of that scope."""
    letters = await world.eve.register_for_events("situ.deadletter", "Notice")
    event = {"specversion": "1.0", "id": "f1", "source": "eve", "type": "Payroll", "situad": "turbine7/wages"}
    assert (await world.refused(world.send({**event, "data": {}}))).code == "INT701", "not what data there should be"
    (letter,) = [each for each in await world.before_the_call(letters) if own(each)]
    assert letter.data["key"].startswith("eve.")
    await world.eve.unregister_for_events(letters)
    reached = await world.stir()
    assert not any(each.type == "situ.deadletter" and each.data["key"].startswith("eve.") for each in reached)


# ── what the router tells of the registry ─────────────────────────────────────────────────────────


@attempt("having all types described", "GuestAlone")
async def _(world: World) -> None:
    """What the policy publishes for everybody is among them, though what it was made of hides it."""
    assert set(await world.eve.describe()) == {"Notice", "GuestAlone", "Sighting"}


@attempt("having a type described whose name it has guessed", "Payroll", "Remuneration")
async def _(world: World) -> None:
    assert await world.eve.describe("Payroll", "Remuneration", "Payday") == {}
    assert set(await world.bertram.describe("Payroll", "Remuneration")) == {"Payroll", "Remuneration"}


@attempt("subscribing to a type that is called nearly so", "Payrol", "salary")
async def _(world: World) -> None:
    error = await world.refused(world.eve.register_for_events("Payrol"))
    assert error.code == "INT601"
    assert "Payroll" not in f"{error} {error.problems[0].hint}"


@attempt("publishing a type that is called nearly so", "Payrol")
async def _(world: World) -> None:
    event = {"specversion": "1.0", "id": "n1", "source": "eve", "type": "Payrol", "data": {}}
    error = await world.refused(world.send(event))
    assert error.code == "INT701"
    assert "Payroll" not in f"{error} {error.problems[0].hint}"


@attempt("going over to a context that is not there")
async def _(world: World) -> None:
    error = await world.refused(world.eve.use_context("roo"))
    assert "root" not in error.problems[0].hint


@attempt("hearing in terms that look up in tables", "GuestAlone")
async def _(world: World) -> None:
    """Nobody asks a table who may see what it finds: such a context is for those whom the project puts there."""
    there = await world.refused(world.eve.register_for_events("Notice", context="roles"))
    nowhere = await world.refused(world.eve.register_for_events("Notice", context="rules"))
    assert there.code == "INT501"
    alike(there, nowhere, "roles", "rules")
    await world.eve.define_context("mine", "extends: roles\n")
    below = await world.refused(world.eve.register_for_events("Notice", context="mine"))
    alike(below, nowhere, "mine", "rules")
    async with client(world.server, world.zone, "eve2") as other:
        there, nowhere = [await world.refused(other.use_context(name)) for name in ("roles", "rules")]
        assert there.code == "INT501"
        alike(there, nowhere, "roles", "rules")


@attempt("hearing in other terms than those that it is given")
async def _(world: World) -> None:
    """Whom the project puts in a context gets what these terms have, and not what they leave out."""
    async with client(world.server, world.zone, "mole") as mole:
        there = await world.refused(mole.register_for_events("Notice", context="root"))
        nowhere = await world.refused(mole.register_for_events("Notice", context="rules"))
        assert there.code == "INT501"
        alike(there, nowhere, "root", "rules")
        await world.refused(mole.use_context("root"))
        assert set(await mole.describe()) == {"Uttered", "GuestAlone"}
        uttered = await mole.register_for_events("Uttered")
        await (await world.crier.publish_event("Notice", text="call softly", loud=False)).stored
        (event,) = await take(aiter(uttered), 1, within=60)
        assert (event.type, event.data) == ("Uttered", {"loud": False})


@attempt("what is declared for it")
async def _(world: World) -> None:
    answer = await world.say("FullList", {"acked": (await world.eve.status()).stored})
    assert set(answer["ads"]) == {"gossip"}
    assert set(answer["subs"]) == {"news"}


# ── explain ───────────────────────────────────────────────────────────────────────────────────────


@attempt("asking why an event of others is not visible", "turbine7")
async def _(world: World) -> None:
    """The same answer as of an event that never was."""
    reached = await world.stir()
    payroll = next(each for each in reached if each.type == "Payroll")
    row = await world.row(payroll.key)
    for there, nowhere in (
        (payroll.id, payroll.id[::-1]),
        (payroll.key, f"turbine7.{payroll.id[::-1]}"),
        (row.id, f"{row.incarnation}-99999"),
        (row.key, f"turbine7.{row.incarnation}.99999"),
        (str(row.pos), "99999999999"),
    ):
        told = await world.eve.explain_visibility(there, to="eve/news")
        nothing = await world.eve.explain_visibility(nowhere, to="eve/news")
        assert (told.visible, nothing.visible) == (False, False)
        assert told.text.replace(there, "…") == nothing.text.replace(nowhere, "…")
        assert {**told.answer, "event": ""} == {**nothing.answer, "event": ""}


@attempt("asking why others do not see an event of others", "bertram", "ledger", "turbine7")
async def _(world: World) -> None:
    reached = await world.stir()
    payroll = next(each for each in reached if each.type == "Payroll")
    there = await world.refused(world.eve.explain_visibility(payroll.key, to="bertram/ledger"))
    nowhere = await world.refused(world.eve.explain_visibility(f"{payroll.key}9", to="bertram/nothing"))
    assert there.code == "R011"
    alike(there, nowhere, "", "")


@attempt("asking who sees its own events", "bertram", "ledger")
async def _(world: World) -> None:
    """The answer and its own side. That of a subscription that is not there is that of one that does not see it."""
    await (await world.eve.publish_event("Notice", text="mine", id="eves-own")).stored
    there = await world.eve.explain_visibility("eves-own", to="bertram/ledger")
    nowhere = await world.eve.explain_visibility("eves-own", to="bertram/nothing")
    assert (there.visible, nowhere.visible) == (True, False)
    for told in (there, nowhere):
        assert told.answer["side"] == "producer"
        assert told.answer["dimensions"] == [{"dimension": "membership", "advertised": "betaworks"}]
        assert not told.answer.keys() & {"itself", "parts", "epoch"}


@attempt("trying out the filters of others", "turbine7", "wages", "eve")
async def _(world: World) -> None:
    there = await world.refused(world.eve.explain_visibility(to="eve/news", ad="turbine7/parties", sample={"text": ""}))
    nowhere = await world.refused(world.eve.explain_visibility(to="eve/news", ad="turbine7/none", sample={"text": ""}))
    assert there.code == "R011"
    alike(there, nowhere, "", "")


# ── scopes themselves ─────────────────────────────────────────────────────────────────────────────


@attempt("joining another scope", "alphacorp")
async def _(world: World) -> None:
    there = await world.refused(world.eve.join_scope("eve", "alphacorp", "membership"))
    nowhere = await world.refused(world.eve.join_scope("eve", "gammacorp", "membership"))
    assert there.code == "V014"
    alike(there, nowhere, "alphacorp", "gammacorp")
    assert world.zone.registry.current().scopes.memberships("eve", "membership") == ("betalab", "betaworks")


@attempt("changing scopes in every other way", "alphacorp", "holding", "bertram", "turbine7")
async def _(world: World) -> None:
    before = world.zone.registry.current()
    for operation in (
        JoinScope(member="alphacorp", scope="betaworks", dimension="membership"),
        LeaveScope(member="bertram", scope="alphacorp", dimension="membership"),
        SetFilter(dimension="membership", scope="alphacorp", side="output", text=None),
        SetMode(dimension="membership", closed=False),
        GrantRights(grant=Grant(to="eve", dimension="membership", may=("observe",))),
        DropScope(dimension="membership", scope="alphacorp"),
        ApplyScopes(graph=NO_SCOPES),
    ):
        answer = await world.say("ChangeScopes", {"req": 1, "operation": operation_as_json(operation)})
        assert answer["code"] == "V014", operation
    assert (await world.say("ChangeScopes", {"req": 1, "operation": {"do": "anything"}}))["code"] in ("R101", "V014")
    after = world.zone.registry.current()
    assert (after.scopes, after.epoch) == (before.scopes, before.epoch)


@attempt("publishing into another scope", "alphacorp")
async def _(world: World) -> None:
    forged = await world.refused(world.eve.advertise("Notice", name="x", scopes={"membership": "alphacorp"}))
    everywhere = await world.refused(world.eve.advertise("Notice", name="x", scopes={"rest": "any"}))
    assert (forged.code, everywhere.code) == ("V006", "V012")


# ── counters and status ───────────────────────────────────────────────────────────────────────────


@attempt("its own status")
async def _(world: World) -> None:
    status = await world.eve.status()
    assert status.advertisements == ("gossip",)
    world.heard.append(repr(status).encode())


@attempt("counters of the run")
async def _(world: World) -> None:
    for subject in (
        "$JS.API.DIRECT.GET.KV_metrics_main.$KV.metrics_main.figures.edge",
        "$JS.API.STREAM.INFO.ROOT_main",
        "$JS.API.CONSUMER.INFO.OUT_main.bertram_ledger",
    ):
        await world.wire.publish(subject)
        assert await world.wire.forbidden(f'publish to "{subject}"'), subject


@attempt("saying that events of others are lost")
async def _(world: World) -> None:
    await world.say("Loss", {"from_seq": 1, "to_seq": 2, "counts": {"turbine7": 3}, "reason": "x"})
    assert await world.reaches("situ.loss") == []


# ── running them ──────────────────────────────────────────────────────────────────────────────────


def own(event: Event) -> bool:
    """A dead letter about what she sent herself."""
    return event.type == "situ.deadletter" and event.data["key"].startswith("eve.")


@asynccontextmanager
async def client(server: AdmittingServer, zone: EdgeZone, name: str, *, run: bool = False) -> AsyncIterator[Client]:
    credentials = str(server.folder / "run") if run else server.file(name)
    async with connect(zone.folder, servers=[server.url], client=name, credentials=credentials) as node:
        yield node


@asynccontextmanager
async def world_of(server: AdmittingServer, folder: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        zone = await stack.enter_async_context(edge_zone(folder, server, situ=SITU, clients=CLIENTS, more=MORE))
        wire = await stack.enter_async_context(plain(server, "eve", server.seeds["eve"]))
        nodes = {
            name: await stack.enter_async_context(client(server, zone, name, run=name != "eve"))
            for name in ("turbine7", "bertram", "herald", "crier", "eve")
        }
        queues = [await wire.hear(subject) for subject in permissions_of("main", "eve").subscribe]
        world = World(zone, server, nodes, wire, queues)
        stack.push_async_callback(world.ledger.aclose)
        yield world


Outcome = tuple[BaseException | None, list[bytes]]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Outcome]]:
    """Attempt → why it did not come to what was expected, if so, and everything that came to eve meanwhile."""

    async def main() -> dict[str, Outcome]:
        found: dict[str, Outcome] = {}
        async with world_of(server, tmp_path_factory.mktemp("zone")) as world:
            for name, (work, _) in ATTEMPTS.items():
                error: BaseException | None = None
                world.heard = []
                try:
                    async with asyncio.timeout(120):
                        await work(world)
                except (AssertionError, Exception) as failure:  # noqa: BLE001 - each is raised in its own test
                    error = failure
                await world.listen()
                found[name] = error, world.heard
        return found

    with admitting_server(tmp_path_factory.mktemp("nats"), "eve", "eve2", "mole") as server:
        yield asyncio.run(main())


@pytest.mark.parametrize("name", ATTEMPTS)
def test_it_gets_nothing_by(name: str, outcomes: dict[str, Outcome]) -> None:
    error, heard = outcomes[name]
    if error is not None:
        raise error
    said = ATTEMPTS[name][1]
    for content in heard:
        for word in said:
            content = content.replace(word, b"")
        assert not [each for each in SECRETS if each in content], content


def test_there_was_something_to_hear(outcomes: dict[str, Outcome]) -> None:
    """What is looked through is what came: her own notices and answers among it."""
    everything = b"".join(each for _, heard in outcomes.values() for each in heard)
    assert re.search(rb"call \d", everything)
    assert b"betaworks" in everything
