"""Interpretation on Spark, end to end: against content-based routing, a job written by hand, and rules looked up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from benchmarks import interpretation_events as events
from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Taken, Variant, Verdict
from benchmarks.interpretation import BEFORE
from benchmarks.interpretation_events import DEEP, FLAT, PER_MESSAGE, Form
from benchmarks.zones import Ingress, Sent, open_zone
from situ.event.message import COUNT
from situ.routing.delivery_groups import group_of

CONTENT, MEDIATED = "content-based", "mediated"
FEW, LOOKED_UP = "mediated, small batches", "rules looked up, small batches"
BY_HAND = "written by hand"
RATIOS = ((1, 1), (10, 1), (10, 10))
# As many clients in the one half of the shards as in the other.
CLIENTS = ("reader-1", "reader-4", "reader-2", "reader-5", "reader-3", "reader-7", "camera-1", "camera-4")


def _ingress(
    bench: Bench,
    form: Form,
    consumers: int,
    contexts: int,
    *,
    mediated: bool,
    full: int,
    batch: int = 100_000,
) -> Ingress:
    context, type = ("carrier", "Load") if mediated else ("root", "Shipment")
    clients = "".join(
        f"  {client}: {{context: {context}, advertisements: {{loads: {{type: {type}}}}}}}\n" for client in CLIENTS
    )
    most = bench.some(batch, 2_000)
    files = events.files(form, contexts=contexts, clients=clients, situ=f"spark: {{max_events: {most}}}\n")
    wanted = events.subscriptions(consumers, contexts, mediated=mediated)
    zone = bench.open(open_zone(bench.folder("zone"), files, wanted))
    parts = [
        Sent(client, events.body(form, client, mediated=mediated, seed=seed), PER_MESSAGE, context)
        for seed in range(4)
        for client in CLIENTS
    ]
    return Ingress(zone, parts, bench.some(full, 4_000) // PER_MESSAGE)


def _about(form: Form, consumers: int, contexts: int) -> str:
    return f"{form}, 1:{consumers}, {contexts} {'context' if contexts == 1 else 'contexts'}"


def _variants(bench: Bench) -> list[Variant]:
    from benchmarks.draining import drain_by_engine

    variants: list[Variant] = []
    for form, ratios in ((FLAT, RATIOS[:1] if bench.quick else RATIOS), (DEEP, () if bench.quick else RATIOS[:1])):
        for consumers, contexts in ratios:
            about = _about(form, consumers, contexts)
            for name in (CONTENT, MEDIATED):
                mediated = name == MEDIATED
                full = 500_000 if consumers == 1 else 300_000
                ingress = _ingress(bench, form, consumers, contexts, mediated=mediated, full=full)
                work = drained(ingress, lambda ingress=ingress: drain_by_engine(bench, ingress), consumers)  # type: ignore[misc]
                variants.append(Variant(name=f"{about}: {name}", work=work))
            if consumers == 1 and form == FLAT:
                variants += _others(bench, about, ingress)
    return variants


def _others(bench: Bench, about: str, ingress: Ingress) -> list[Variant]:
    """Other ways to do the same, over the same events."""
    from benchmarks import interpretation_by_hand, reflective
    from benchmarks.draining import drain_by_engine, drain_by_query
    from situ.spark import frames

    zone = ingress.zone
    (subscription,) = zone.deployment.subscriptions.values()
    group = group_of(subscription)
    few = _ingress(bench, FLAT, 1, 1, mediated=True, full=120_000, batch=20_000)

    def by_hand() -> float:
        return drain_by_query(
            bench,
            ingress,
            content="events",
            write=lambda frame, _: interpretation_by_hand.publish(frame, zone.address, group),
        )

    def looked_up() -> float:
        stages = reflective.dispatching(few.zone.address, few.zone.deployment.version)
        return drain_by_query(
            bench,
            few,
            content="rows",
            write=lambda frame, _: _collected(frame.mapInArrow(stages, frames.schema("counts"))),
        )

    return [
        Variant(name=f"{about}: {BY_HAND}", work=drained(ingress, by_hand, 1)),
        Variant(name=f"{about}: {FEW}", work=drained(few, lambda: drain_by_engine(bench, few), 1)),
        Variant(name=f"{about}: {LOOKED_UP}", work=drained(few, looked_up, 1)),
    ]


def _collected(frame: object) -> None:
    frame.collect()  # type: ignore[attr-defined]


def drained(ingress: Ingress, drain: Callable[[], float], consumers: int) -> Callable[[], Taken]:
    """Fill, drain, and see that everybody has got everything."""

    def work() -> Taken:
        ingress.fill()
        rate = drain() * PER_MESSAGE
        found = _delivered(ingress)
        names = ingress.zone.names
        delivered = {subject: number for subject, number in found.items() if subject != names.root_stream}
        groups = len({group_of(each) for each in ingress.zone.deployment.subscriptions.values()})
        assert found[names.root_stream] == ingress.events, f"{found[names.root_stream]} of {ingress.events} events"
        assert len(delivered) == groups <= consumers, f"{len(delivered)} groups of {groups} got anything"
        assert set(delivered.values()) == {ingress.events}, f"{delivered} of {ingress.events} events"
        return Taken(value=rate)

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
            if f"{about}: {MEDIATED}" not in medians:
                continue
            ratio = medians[f"{about}: {MEDIATED}"] / medians[f"{about}: {CONTENT}"]
            same = contexts == 1
            what = f"Spark, mediated against content-based, {about}"
            verdicts.append(
                Verdict(what=what, value=ratio, goal="≥ 0.95" if same else "", met=ratio >= 0.95 if same else None)
            )
    about = _about(FLAT, 1, 1)
    hand = medians[f"{about}: {MEDIATED}"] / medians[f"{about}: {BY_HAND}"]
    looked_up = medians[f"{about}: {FEW}"] / medians[f"{about}: {LOOKED_UP}"]
    return [
        *verdicts,
        Verdict(what="Spark, mediated against a job written by hand", value=hand, goal="≥ 0.98", met=hand >= 0.98),
        Verdict(what="Spark, compiled against rules looked up", value=looked_up, goal="≥ 2", met=looked_up >= 2),
    ]


SCENARIOS = [
    Scenario(
        name="interpretation-spark",
        title="Interpretation on Spark",
        unit="events/s",
        about="500,000 events wait in the ingress stream (300,000 for ten consumers), in the terms of a carrier: five "
        "attributes side by side, or fifteen levels; each variant drains it in batches of 100,000, the first two left "
        "out. *Mediated*: into root for the log, matched, out to the consumers, who are all in one context or each in "
        "one of ten. *Content-based*: the same events, sent and wanted in the terms of root. Everybody gets "
        "everything; ten consumers of one context share a delivery. *Written by hand* is "
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
]
