"""Matching: time per event against the number of subscriptions and of event types, with promises of advertisements and
without; and the time for one subscription more."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from benchmarks.bench import Bench
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from situ.event.row import Row
from situ.lang.expr.limits import DEFAULT_LIMITS
from situ.lang.types.model import DOUBLE, LONG, STRING, Attribute, Struct
from situ.lang.types.table import Types
from situ.routing import Subscription
from situ.routing.covering import CoveringTable, WantedEvents, covers, wanted_events
from situ.routing.delivery_groups import FilterReader
from situ.routing.filter import Filter
from situ.routing.routing_table import RoutingTable, compile_routing

EVENTS = 5_000
SUBSCRIPTIONS = (1, 100, 1_000, 10_000, 100_000)
KINDS = (1, 500, 1_000)
ATTRIBUTES = (
    Attribute(name="tag", type=STRING),
    Attribute(name="room", type=STRING),
    Attribute(name="floor", type=LONG),
    Attribute(name="celsius", type=DOUBLE),
)


def _types(count: int) -> Types:
    structs = [Struct(f"Seen{number}", ATTRIBUTES) for number in range(count)]
    return Types(types={each.name: each for each in structs}, events=frozenset(each.name for each in structs))


def _row(number: int, type: str, tag: str, dice: random.Random) -> Row:
    data = {"tag": tag, "room": f"r{dice.randrange(40)}", "floor": dice.randrange(5), "celsius": dice.uniform(0, 40)}
    text = msgspec.json.encode(data)
    return Row(number, "reader", 1, number + 1, "root", 0, f"x{number}", "reader", type, 0, "", None, "", text)


def _compile(types: Types, subscriptions: list[Subscription]) -> RoutingTable:
    return compile_routing(types=types, functions={}, subscriptions={each.id: each for each in subscriptions})


def _wanted(count: int) -> list[Subscription]:
    """Each asks for a tag of its own, half of them for a temperature besides: an event matches one of them or none."""
    return [
        Subscription(
            client=f"c{number}",
            name="s",
            types=("Seen0",),
            where=f"tag = 'T{number}'" + (" AND celsius < 30.5" if number % 2 else ""),
            durable=number % 4 == 0,
        )
        for number in range(count)
    ]


def _run(routing: RoutingTable, rows: list[Row], times: int = 4) -> Callable[[], int]:
    def work() -> int:
        for _ in range(times):
            routing.route(rows)
        return len(rows) * times

    return work


def _subscription_variants(bench: Bench) -> list[Variant]:
    variants: list[Variant] = []
    types, events = _types(1), bench.some(EVENTS, 200)
    for count in SUBSCRIPTIONS[:3] if bench.quick else SUBSCRIPTIONS:
        dice = random.Random(7)
        # The same share of events is wanted at every size, so that curves show the search and not the deliveries.
        rows = [_row(n, "Seen0", f"T{dice.randrange(count)}" if n % 2 else "nobody", dice) for n in range(events)]
        routing = _compile(types, _wanted(count))
        variants.append(
            Variant(name=f"{count:,} subscriptions", work=_run(routing, rows), point=float(count), series="index")
        )
        if count in (100, 1_000):
            tests = [each.test for each in routing.wanted.filters.values()]
            variants.append(
                Variant(
                    name=f"{count:,} subscriptions, each tested",
                    work=_each(tests, rows[: 200_000 // count]),
                    point=float(count),
                    series="each tested",
                )
            )
    return variants


def _each(
    tests: Sequence[Callable[[Mapping[str, object], Mapping[str, object]], bool]], rows: list[Row]
) -> Callable[[], int]:
    """What matching costs without an index: every filter's compiled test on every event."""

    def work() -> int:
        for row in rows:
            data = msgspec.json.decode(row.data)
            for test in tests:
                test({}, data)
        return len(rows)

    return work


def _subscription_verdicts(medians: dict[str, float]) -> list[Verdict]:
    most = [name for name in medians if name.endswith(" subscriptions")][-1]
    cost = medians["1,000 subscriptions"] / medians[most]
    gain = medians["1,000 subscriptions"] / medians["1,000 subscriptions, each tested"]
    return [
        Verdict(what=f"time per event, {most} against 1,000", value=cost, goal="≤ 4", met=cost <= 4),
        Verdict(what="index against testing each of 1,000", value=gain, goal="≥ 20", met=gain >= 20),
    ]


def _type_variants(bench: Bench) -> list[Variant]:
    variants: list[Variant] = []
    for count in (1, 20) if bench.quick else KINDS:
        dice = random.Random(7)
        types = _types(count)
        wanted = [
            Subscription(client=f"c{number}", name="s", types=(f"Seen{number}",), where="tag = 'T1' AND celsius < 30.5")
            for number in range(count)
        ]
        rows = [_row(n, f"Seen{n % count}", f"T{dice.randrange(4)}", dice) for n in range(bench.some(50_000, 500))]
        routing = _compile(types, wanted)
        variants.append(Variant(name=f"{count:,} types", work=_run(routing, rows, 1), point=float(count)))
    return variants


def _type_verdicts(medians: dict[str, float]) -> list[Verdict]:
    few, *_, many = medians
    ratio = medians[few] / medians[many]
    return [Verdict(what=f"time per event, {many} against 1", value=ratio, goal="≤ 1.1", met=ratio <= 1.1)]


class _Growing:
    """A snapshot that gets one subscription after the other, and loses it again."""

    def __init__(self, count: int) -> None:
        self._routing = _compile(_types(1), _wanted(count))
        self._row = _row(1, "Seen0", "T1", random.Random(7))
        self._routing.route_one(self._row)
        self._added = 0

    def work(self) -> int:
        for _ in range(50):
            self._added += 1
            where = f"tag = 'new{self._added}'"
            new = Subscription(client=f"new{self._added}", name="s", types=("Seen0",), where=where)
            self._routing = self._routing.updated({new.id: new}, [f"new{self._added - 200}/s"])
            self._routing.route_one(self._row)
        return 50


def _update_variants(bench: Bench) -> list[Variant]:
    return [
        Variant(name=f"one more than {count:,}", work=_Growing(count).work, point=float(count))
        for count in ((100,) if bench.quick else (100, 1_000, 10_000, 100_000))
    ]


def _update_verdicts(medians: dict[str, float]) -> list[Verdict]:
    most = list(medians)[-1]
    took = 1_000 / medians[most]
    return [Verdict(what=f"{most}, ms", value=took, goal="< 1", met=took < 1)]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Promises: subscriptions to rectangles of a floor, and readers that each see one aisle of it. An index files a
# rectangle under one of its sides; which of those found there are in the aisle at all, tests tell, or the promise.

PLACES = (Attribute(name="tag", type=STRING), Attribute(name="x", type=DOUBLE), Attribute(name="y", type=DOUBLE))
AISLES = 20
LENGTH = 100.0


class _AislePromises:
    """What readers promise: that they see tags in their aisles."""

    def __init__(self, types: Types) -> None:
        width = LENGTH / AISLES
        asked = {
            f"reader{number}/seen": Subscription(
                client=f"reader{number}",
                name="seen",
                types=("Placed",),
                where=f"y >= {number * width} AND y < {(number + 1) * width}",
            )
            for number in range(AISLES)
        }
        self._routing = compile_routing(types=types, functions={}, subscriptions=asked)

    def promised(self, ad: str, type: str) -> Sequence[Filter]:
        return self._routing.filters_for(ad, type)


def _promise_variants(bench: Bench) -> list[Variant]:
    placed = Struct("Placed", PLACES)
    types = Types(types={"Placed": placed}, events=frozenset({"Placed"}))
    variants: list[Variant] = []
    for count in (1_000,) if bench.quick else (1_000, 10_000):
        dice = random.Random(7)
        wanted: dict[str, Subscription] = {}
        for number in range(count):
            x, y = dice.uniform(0, LENGTH - 5), dice.uniform(0, LENGTH - 2)
            where = f"x >= {x} AND x < {x + 5} AND y >= {y} AND y < {y + 2}"
            each = Subscription(client=f"c{number}", name="s", types=("Placed",), where=where)
            wanted[each.id] = each
        rows = [_placed(number, dice) for number in range(bench.some(EVENTS, 200))]
        for name, promises in (("without promises", None), ("with promises", _AislePromises(types))):
            routing = compile_routing(types=types, functions={}, subscriptions=wanted, promises=promises)
            for _ in range(8):  # indexes for promises are made when they pay
                routing.route(rows)
            work = _run(routing, rows, 1)
            variants.append(Variant(name=f"{count:,} rectangles, {name}", work=work, point=float(count), series=name))
    return variants


def _placed(number: int, dice: random.Random) -> Row:
    aisle = dice.randrange(AISLES)
    width = LENGTH / AISLES
    data = {"tag": f"T{number}", "x": dice.uniform(0, LENGTH), "y": dice.uniform(aisle * width, (aisle + 1) * width)}
    text, client = msgspec.json.encode(data), f"reader{aisle}"
    ad = f"{client}/seen"
    return Row(number, client, 1, number + 1, "root", 0, f"x{number}", client, "Placed", 0, ad, None, "", text)


def _promise_verdicts(medians: dict[str, float]) -> list[Verdict]:
    without, with_ = list(medians)[-2:]
    gain = medians[with_] / medians[without]
    return [Verdict(what=f"events a second, {with_} against without", value=gain, goal="≥ 2", met=gain >= 2)]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Covering: entries of subscriptions to one neighbour, of which some follow from others.


class _Neighbour:
    """What a neighbour is told of one subscription after the other."""

    def __init__(self, count: int) -> None:
        dice = random.Random(7)
        types = _types(10)
        meaning = FilterReader(types, {}, DEFAULT_LIMITS)
        self._entries: dict[str, WantedEvents] = {}
        for number in range(count):
            room, low = dice.randrange(40), dice.randrange(0, 40, 5)
            where = dice.choice(
                (
                    f"room = 'r{room}'",
                    f"room = 'r{room}' AND celsius > {low}",
                    f"room IN ('r{room}', 'r{room + 1}') AND floor = {dice.randrange(5)}",
                    f"celsius BETWEEN {low} AND {low + dice.choice((5, 10, 20))} AND floor < {dice.randrange(1, 5)}",
                    f"tag LIKE 'T{dice.randrange(100)}%' AND celsius > {low}",
                )
            )
            type = f"Seen{dice.randrange(10)}"
            wanted = Subscription(client=f"c{number}", name="s", types=(type,), where=where)
            self._entries[wanted.id] = wanted_events(meaning.conditions(wanted), types)

    def work(self) -> Taken:
        start = time.perf_counter()
        table: CoveringTable[WantedEvents] = CoveringTable(covers)
        for id, entry in self._entries.items():
            table, _ = table.changed({id: entry})
        took = time.perf_counter() - start
        return Taken(value=len(self._entries) / took, figures={"sent": float(len(table.sent))})


def _covering_variants(bench: Bench) -> list[Variant]:
    return [
        Variant(name=f"{count:,} entries", work=_Neighbour(count).work, point=float(count))
        for count in ((100,) if bench.quick else (100, 1_000, 3_000))
    ]


SCENARIOS = [
    Scenario(
        name="matching",
        title="Matching: events a second against the number of subscriptions",
        unit="events/s",
        about=f"{EVENTS:,} events of four attributes, half of them wanted by one subscription, which asks for a tag of "
        "its own and half of the time for a temperature besides; one core. For comparison, the compiled test of every "
        "subscription on every event.",
        variants=_subscription_variants,
        judge=_subscription_verdicts,
        repetitions=5,
        plot=Plot(x="subscriptions", y="events/s", log_y=True),
    ),
    Scenario(
        name="matching-types",
        title="Matching: events a second against the number of event types",
        unit="events/s",
        about="50,000 events evenly over all types, one subscription with a filter on each; one core.",
        variants=_type_variants,
        judge=_type_verdicts,
        repetitions=5,
        plot=Plot(x="event types", y="events/s"),
    ),
    Scenario(
        name="matching-updates",
        title="Matching: subscribing while events flow",
        unit="updates/s",
        about="One subscription more and one less, made from the snapshot before, and the first event after that; one "
        "core.",
        variants=_update_variants,
        judge=_update_verdicts,
        repetitions=9,
        plot=Plot(x="subscriptions", y="updates/s"),
    ),
    Scenario(
        name="matching-promises",
        title="Matching: events a second with promises of advertisements and without",
        unit="events/s",
        about=f"{EVENTS:,} events of {AISLES} readers, each of which promises to see one aisle of a floor. "
        "Subscriptions ask for rectangles of it, each a thousandth of the floor; one core.",
        variants=_promise_variants,
        judge=_promise_verdicts,
        repetitions=5,
    ),
    Scenario(
        name="covering",
        title="Covering: subscriptions for one neighbour a second",
        unit="entries/s",
        about="Subscriptions to ten event types, with filters on rooms, temperatures, floors and beginnings of tags, "
        "are taken in one after the other; those that others cover are not sent. One core.",
        variants=_covering_variants,
        repetitions=5,
    ),
]
