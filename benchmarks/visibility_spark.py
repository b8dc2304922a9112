"""What scopes cost the pipeline: the same events to the same consumers, with scopes and without."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import interpretation_events as events
from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Taken, Variant, Verdict
from benchmarks.interpretation_events import FLAT, PER_MESSAGE
from benchmarks.interpretation_spark import CLIENTS, drained
from benchmarks.zones import Ingress, Sent, open_zone
from situ.lang.records import replace
from situ.lang.tags import NO_TAGS, TagSet

WITHOUT, SETTLED, FILTERED = "without scopes", "always or never", "by four filters"
GOALS = {SETTLED: 0.95, FILTERED: 0.85}
CONSUMERS = 10


def _scopes(*, filtered: bool) -> str:
    """Two dimensions; in each what passes from the readers up into the site and down to the desks."""
    out, into = ("output: \"id LIKE 'S%'\"", "input: \"id LIKE 'S-%' AND id <> 'S'\"") if filtered else ("", "")
    more_out, more_into = ("output: \"id LIKE '_-%'\"", "input: \"NOT (id LIKE 'T%')\"") if filtered else ("", "")

    def scope(name: str, rest: str) -> str:
        return f"      {name}: {{in: [{name.partition('-')[0]}]{', ' if rest else ''}{rest}}}\n"

    dimensions = "".join(
        f"  {name}:\n    mode: closed\n    scopes:\n      {name}: {{}}\n{scope(f'{name}-readers', first)}"
        f"{scope(f'{name}-desks', last)}{scope(f'{name}-others', '')}"
        for name, first, last in (("place", out, into), ("net", more_out, more_into))
    )
    members = "".join(f"  {each}: {{place: [place-readers], net: [net-readers]}}\n" for each in CLIENTS)
    return f"version: 1\ndimensions:\n{dimensions}clients:\n{members}"


def _ingress(bench: Bench, name: str) -> Ingress:
    scoped = name != WITHOUT
    tags = ", scopes: {place: place-readers, net: net-readers}" if scoped else ""
    clients = "".join(f"  {each}: {{advertisements: {{loads: {{type: Shipment{tags}}}}}}}\n" for each in CLIENTS)
    most = bench.some(100_000, 2_000)
    files = events.files(FLAT, clients=clients, situ=f"spark: {{max_events: {most}}}\n")
    if scoped:
        files["scopes.yaml"] = _scopes(filtered=name == FILTERED)
    desks = TagSet.of({"place": "place-desks", "net": "net-desks"}) if scoped else NO_TAGS
    wanted = [replace(each, scopes=desks) for each in events.subscriptions(CONSUMERS, 1, mediated=False)]
    zone = bench.open(open_zone(bench.folder("zone"), files, wanted))
    parts = [
        Sent(client, events.body(FLAT, client, mediated=False, seed=seed), PER_MESSAGE)
        for seed in range(4)
        for client in CLIENTS
    ]
    return Ingress(zone, parts, bench.some(600_000, 4_000) // PER_MESSAGE)


def _variants(bench: Bench) -> list[Variant]:
    from benchmarks.draining import take_by_engine

    def work(name: str) -> Callable[[], Taken]:
        ingress = _ingress(bench, name)
        return drained(ingress, lambda: take_by_engine(bench, ingress), CONSUMERS)

    return [
        Variant(name=name, work=work(name))
        for name in ((WITHOUT, FILTERED) if bench.quick else (WITHOUT, SETTLED, FILTERED))
    ]


def _verdicts(medians: dict[str, float]) -> list[Verdict]:
    ratios = {name: medians[name] / medians[WITHOUT] for name in GOALS if name in medians}
    return [
        Verdict(
            what=f"Spark, {name} against without scopes", value=ratios[name], goal=f"≥ {goal}", met=ratios[name] >= goal
        )
        for name, goal in GOALS.items()
        if name in ratios
    ]


SCENARIOS = [
    Scenario(
        name="visibility-spark",
        title="Visibility on Spark: the pipeline with scopes and without",
        unit="events/s",
        about="600,000 events of five attributes wait in the ingress stream; each variant drains it in batches of "
        "100,000, the first two left out, to ten consumers who share a delivery. With scopes there are two closed "
        "dimensions, and an event goes up from the readers and down to the desks in both: without filters that is "
        "settled when the scopes are compiled; with one at each boundary each event is asked four, which all are true, "
        "so that everybody gets the same.",
        variants=_variants,
        judge=_verdicts,
        repetitions=5,
        warm=False,
        spark=True,
    ),
]
