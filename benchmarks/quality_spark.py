"""What shaping and measuring cost the pipeline: the same events to the same consumers, with both and without."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import interpretation_events as events
from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Taken, Variant, Verdict
from benchmarks.interpretation_events import FLAT, PER_MESSAGE
from benchmarks.interpretation_spark import CLIENTS, drained
from benchmarks.zones import Ingress, Sent, open_zone
from situ.lang.records import replace
from situ.model import Deployment
from situ.quality.model.declarations import BUILT_IN, Capability, Profile, Quality
from situ.quality.model.shapes import EventFloor, Limit, Shape, Thin

WITHOUT, MEASURED, SHAPED = "without", "measured", "measured and shaped"
THINNED = "measured, and one of both thinned"
_NAMES = (WITHOUT, MEASURED, SHAPED, THINNED)
GOAL = 0.95
_ALL = 1_000_000_000
"""More events a minute than there are: every event is judged, and nobody gets fewer."""


def _profiles() -> Quality:
    rate = Capability(about=BUILT_IN["rate"], lb=1, ub=_ALL, cv=_ALL)
    found = [Profile(publisher=each, type="Shipment", capabilities={"rate": rate}) for each in CLIENTS]
    return Quality(profiles={each.id: each for each in found})


def _shape(events: int) -> Shape:
    each = (EventFloor(about="confidence", floor=75, keep_missing=True),)
    return Shape(each=each, thin=Thin(limits=(Limit(events=events, form="quota"),)))


def _deployment(name: str, deployment: Deployment) -> Deployment:
    if name == WITHOUT:
        return deployment
    first, second = sorted(deployment.subscriptions)
    shapes = {SHAPED: {first: _shape(_ALL), second: _shape(_ALL)}, THINNED: {second: _shape(10)}}
    return replace(deployment, quality=_profiles(), shapes=shapes.get(name, {}))


def _ingress(bench: Bench, name: str) -> Ingress:
    clients = "".join(f"  {each}: {{advertisements: {{loads: {{type: Shipment}}}}}}\n" for each in CLIENTS)
    most = bench.some(100_000, 2_000)
    files = events.files(FLAT, clients=clients, situ=f"spark: {{max_events: {most}}}\n")
    wanted = events.subscriptions(2, 1, mediated=False)
    # Another filter: both have groups of their own anyway.
    wanted[1] = replace(wanted[1], where="id LIKE '_-%'")
    zone = bench.open(open_zone(bench.folder("zone"), files, wanted))
    zone.publish(_deployment(name, zone.deployment))
    parts = [
        Sent(client, events.body(FLAT, client, mediated=False, seed=seed), PER_MESSAGE)
        for seed in range(4)
        for client in CLIENTS
    ]
    return Ingress(zone, parts, bench.some(600_000, 4_000) // PER_MESSAGE)


def _variants(bench: Bench) -> list[Variant]:
    from benchmarks.draining import Marks, take_by_engine

    def work(name: str) -> Callable[[], Taken]:
        ingress = _ingress(bench, name)

        def take() -> Marks:
            return take_by_engine(bench, ingress)

        def thinned() -> Taken:
            ingress.fill()
            return take().taken(PER_MESSAGE)

        return thinned if name == THINNED else drained(ingress, take, 2)

    return [Variant(name=name, work=work(name)) for name in _NAMES[:: bench.some(1, 3)]]


def _verdicts(medians: dict[str, float]) -> list[Verdict]:
    ratios = {name: medians[name] / medians[WITHOUT] for name in _NAMES[1:] if name in medians}
    return [
        Verdict(what=f"Spark, {name} against without", value=ratio, goal=f"≥ {GOAL}", met=ratio >= GOAL)
        for name, ratio in ratios.items()
    ]


SCENARIOS = [
    Scenario(
        name="quality-spark",
        title="Quality on Spark: the pipeline with shaping and measuring and without",
        unit="events/s",
        about="600,000 events of five attributes wait in the ingress stream; each variant drains it in batches of "
        "100,000, the first two left out, to two consumers with a delivery each. Measured: all publishers have "
        "profiles. Shaped: both consumers have a floor of confidence and a limit of their rate that lets every event "
        "through, so that all are judged and everybody gets the same. Thinned: one of both gets ten a minute and "
        "source, and the other all.",
        variants=_variants,
        judge=_verdicts,
        repetitions=5,
        warm=False,
        spark=True,
    ),
]
