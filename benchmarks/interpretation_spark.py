"""Interpretation on Spark, end to end: against content-based routing, a job written by hand, and rules looked up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks import interpretation_events as events
from benchmarks.bench import Bench
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from benchmarks.interpretation import BEFORE
from benchmarks.interpretation_events import DEEP, FLAT, PER_MESSAGE, Form
from benchmarks.zones import Ingress, Sent, open_zone
from situ.event.message import COUNT
from situ.routing.delivery_groups import group_of
from situ.routing.model import Subscription

if TYPE_CHECKING:
    from benchmarks.draining import Marks

CONTENT, ANEW, MEDIATED = "content-based", "content-based, text written anew", "mediated"
FEW, LOOKED_UP = "mediated, small batches", "rules looked up, small batches"
BY_HAND = "written by hand"
RATIOS = ((1, 1), (10, 1), (10, 10))
# As many clients in the one half of the shards as in the other.
CLIENTS = ("reader-1", "reader-4", "reader-2", "reader-5", "reader-3", "reader-7", "camera-1", "camera-4")


def _ingress(
    bench: Bench, form: Form, consumers: int, contexts: int, *, way: str, full: int, batch: int = 100_000
) -> Ingress:
    context, type = ("root", "Shipment") if way == CONTENT else ("carrier", "Load")
    clients = "".join(
        f"  {client}: {{context: {context}, advertisements: {{loads: {{type: {type}}}}}}}\n" for client in CLIENTS
    )
    files = events.files(
        form, contexts=contexts, clients=clients, situ=_settings(bench, batch), convert=way == MEDIATED
    )
    wanted = events.subscriptions(consumers, contexts, mediated=way != CONTENT)
    zone = bench.open(open_zone(bench.folder("zone"), files, wanted))
    parts = [
        Sent(client, events.body(form, client, mediated=way == MEDIATED, type=type, seed=seed), PER_MESSAGE, context)
        for seed in range(4)
        for client in CLIENTS
    ]
    return Ingress(zone, parts, bench.some(full, 4_000) // PER_MESSAGE)


def _settings(bench: Bench, batch: int) -> str:
    return f"spark: {{max_events: {bench.some(batch, 2_000)}}}\n"


def _about(form: Form, consumers: int, contexts: int) -> str:
    return f"{form}, 1:{consumers}, {contexts} {'context' if contexts == 1 else 'contexts'}"


def _variants(bench: Bench) -> list[Variant]:
    from benchmarks.draining import take_by_engine

    variants: list[Variant] = []
    for form, ratios in ((FLAT, RATIOS[:1] if bench.quick else RATIOS), (DEEP, () if bench.quick else RATIOS[:1])):
        for consumers, contexts in ratios:
            about = _about(form, consumers, contexts)
            for name in (CONTENT, ANEW, MEDIATED) if consumers == 1 else (CONTENT, MEDIATED):
                full = 500_000 if consumers == 1 else 300_000
                ingress = _ingress(bench, form, consumers, contexts, way=name, full=full)
                work = drained(ingress, lambda ingress=ingress: take_by_engine(bench, ingress), consumers)  # type: ignore[misc]
                variants.append(Variant(name=f"{about}: {name}", work=work))
            if consumers == 1 and form == FLAT:
                variants += _others(bench, about, ingress)
    return variants


def _others(bench: Bench, about: str, ingress: Ingress) -> list[Variant]:
    """Other ways to do the same, over the same events."""
    from benchmarks import interpretation_by_hand, reflective
    from benchmarks.draining import take_by_engine, take_by_query
    from situ.spark import frames

    zone = ingress.zone
    (subscription,) = zone.deployment.subscriptions.values()
    group = group_of(subscription)
    few = _ingress(bench, FLAT, 1, 1, way=MEDIATED, full=120_000, batch=20_000)

    def by_hand() -> Marks:
        return take_by_query(
            bench,
            ingress,
            content="events",
            write=lambda frame, _: interpretation_by_hand.publish(frame, zone.address, group),
        )

    def looked_up() -> Marks:
        stages = reflective.dispatching(few.zone.address, few.zone.deployment.version)
        return take_by_query(
            bench,
            few,
            content="rows",
            write=lambda frame, _: _collected(frame.mapInArrow(stages, frames.schema("counts"))),
        )

    return [
        Variant(name=f"{about}: {BY_HAND}", work=drained(ingress, by_hand, 1)),
        Variant(name=f"{about}: {FEW}", work=drained(few, lambda: take_by_engine(bench, few), 1)),
        Variant(name=f"{about}: {LOOKED_UP}", work=drained(few, looked_up, 1)),
    ]


def _collected(frame: object) -> None:
    frame.collect()  # type: ignore[attr-defined]


def drained(ingress: Ingress, take: Callable[[], Marks], consumers: int) -> Callable[[], Taken]:
    """Fill, drain, and see that everybody has got everything."""

    def work() -> Taken:
        ingress.fill()
        marks = take()
        found = _delivered(ingress)
        names = ingress.zone.names
        delivered = {subject: number for subject, number in found.items() if subject != names.root_stream}
        groups = len({group_of(each) for each in ingress.zone.deployment.subscriptions.values()})
        assert found[names.root_stream] == ingress.events, f"{found[names.root_stream]} of {ingress.events} events"
        assert len(delivered) == groups <= consumers, f"{len(delivered)} groups of {groups} got anything"
        assert set(delivered.values()) == {ingress.events}, f"{delivered} of {ingress.events} events"
        return marks.taken(PER_MESSAGE)

    return work


def _delivered(ingress: Ingress) -> Counter[str]:
    names, found = ingress.zone.names, Counter[str]()
    for stream in (names.root_stream, names.out_stream, names.dead_stream):
        for message in ingress.zone.bus.read(stream, 1):
            found[stream if stream == names.root_stream else message.subject] += int(message.headers[COUNT])
    return found


def _verdicts(medians: dict[str, float]) -> list[Verdict]:
    verdicts = []
    for form, ratios in ((FLAT, RATIOS), (DEEP, RATIOS[:1])):
        for consumers, contexts in ratios:
            about = _about(form, consumers, contexts)
            for other, goal in ((ANEW, 0.9), (CONTENT, 0.8)):
                if f"{about}: {other}" not in medians:
                    continue
                ratio = medians[f"{about}: {MEDIATED}"] / medians[f"{about}: {other}"]
                same = contexts == 1
                verdicts.append(
                    Verdict(
                        what=f"Spark, mediated against {other}, {about}",
                        value=ratio,
                        goal=f"≥ {goal}" if same else "",
                        met=ratio >= goal if same else None,
                    )
                )
    about = _about(FLAT, 1, 1)
    hand = medians[f"{about}: {MEDIATED}"] / medians[f"{about}: {BY_HAND}"]
    looked_up = medians[f"{about}: {FEW}"] / medians[f"{about}: {LOOKED_UP}"]
    return [
        *verdicts,
        Verdict(what="Spark, mediated against a job written by hand", value=hand, goal="≥ 0.98", met=hand >= 0.98),
        Verdict(what="Spark, compiled against rules looked up", value=looked_up, goal="≥ 2", met=looked_up >= 2),
    ]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Some of the events in other terms.

SHARES = (0, 1, 10, 50, 100)
"""Percent of the messages that carriers send, to a desk in a context of its own."""
_MIX = 100


def _share_variants(bench: Bench) -> list[Variant]:
    from benchmarks.draining import take_by_engine

    variants = []
    for share in SHARES[-2:] if bench.quick else SHARES:
        ingress = _mixed(bench, share)
        consumers = 1 if share in (0, 100) else 2

        def work(ingress: Ingress = ingress, consumers: int = consumers) -> Taken:
            ingress.fill()
            marks = take_by_engine(bench, ingress)
            found = _delivered(ingress)
            assert found.pop(ingress.zone.names.root_stream) == ingress.events
            assert (len(found), found.total()) == (consumers, ingress.events), f"{found} of {ingress.events} events"
            return marks.taken(PER_MESSAGE)

        variants.append(Variant(name=f"{share} % mediated", work=work, point=share, series="Situ"))
    return variants


def _mixed(bench: Bench, share: int) -> Ingress:
    carriers = tuple(f"carrier-{number}" for number in (1, 4, 2, 5))
    clients = "".join(f"  {each}: {{advertisements: {{loads: {{type: Shipment}}}}}}\n" for each in CLIENTS[:4])
    clients += "".join(
        f"  {each}: {{context: carrier, advertisements: {{loads: {{type: Load}}}}}}\n" for each in carriers
    )
    files = events.files(FLAT, clients=clients, situ=_settings(bench, 100_000))
    wanted = [
        Subscription(client="c0", name="own", types=("Shipment",), where="id LIKE 'S-%'", durable=True),
        Subscription(
            client="c1", name="theirs", types=("Delivery",), where="id LIKE 'M-%'", durable=True, context="desk0"
        ),
    ]
    zone = bench.open(open_zone(bench.folder("zone"), files, wanted))
    own = [Sent(each, events.body(FLAT, each, mediated=False), PER_MESSAGE) for each in CLIENTS[:4]]
    theirs = [
        Sent(each, events.body(FLAT, each, mediated=True, prefix="M"), PER_MESSAGE, "carrier") for each in carriers
    ]
    parts = [
        (theirs if (number + 1) * share // _MIX > number * share // _MIX else own)[number % 4] for number in range(_MIX)
    ]
    return Ingress(zone, parts, bench.some(500_000, 4_000) // PER_MESSAGE)


def _share_verdicts(medians: dict[str, float]) -> list[Verdict]:
    most = f"{SHARES[-1]} % mediated"
    return [
        Verdict(what=f"Spark, {most} against {share} %", value=medians[most] / medians[f"{share} % mediated"])
        for share in SHARES[:-1]
        if f"{share} % mediated" in medians
    ]


SCENARIOS = [
    Scenario(
        name="interpretation-spark",
        title="Interpretation on Spark",
        unit="events/s",
        about="500,000 events wait in the ingress stream (300,000 for ten consumers), in the terms of a carrier: five "
        "attributes side by side, or fifteen levels; each variant drains it in batches of 100,000, the first two left "
        "out. *Mediated*: into root for the log, matched, out to the consumers, who are all in one context or each in "
        "one of ten. *Content-based*: the same events, sent and wanted in the terms of root, whose bytes are passed "
        "on; *text written anew*: contexts of carrier and consumer have the values of root under other names. "
        "Everybody gets everything; ten consumers of one context share a delivery. *Written by hand* is "
        "`benchmarks/interpretation_by_hand.py`: the same log and the same deliveries, converted in SQL. *Rules looked "
        "up* interprets by the reference interpreter in the same stages; both it and what it is compared with take "
        "120,000 events in batches of 20,000. "
        + BEFORE
        + "no difference to content-based at a broker, reflection at less than half.",
        variants=_variants,
        judge=_verdicts,
        repetitions=3,
        warm=False,
        spark=True,
    ),
    Scenario(
        name="interpretation-share",
        title="Interpretation on Spark: some of the events",
        unit="events/s",
        about="500,000 flat events wait in the ingress stream and are drained in batches of 100,000, the first two "
        "left out. So many percent of the messages come from carriers and go to a desk, each in a context of its own; "
        "all others are sent and wanted in the terms of root.",
        variants=_share_variants,
        judge=_share_verdicts,
        repetitions=3,
        warm=False,
        plot=Plot(x="% of the events mediated", y="events/s", log_x=False),
        spark=True,
    ),
]
