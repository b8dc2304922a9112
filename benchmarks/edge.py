"""The edge engine: events a second and latency, against bare ``nats-py`` over JetStream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.clients import bare_consume, bare_publish, publish, subscribe
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from benchmarks.running import Client, exchange, percentile, situ_run
from tests.nats_server import nats_server

SITU, BARE = "Situ", "nats-py"
DURABLE, VOLATILE = "Situ, durable", "Situ, volatile"
TYPES = """
version: 1
events:
  Reading: {number: long, sent: long, sensor: string, text: string}
"""
RATE = 2_000
_SHARES = (0.01, 0.05, *(each / 10 for each in range(1, 10)), 0.95, 0.98, 0.99, 0.995, 0.999)


def project_files(*, situ: str = "", more: str = "") -> dict[str, str]:
    """One publisher and one subscriber, which declare what they do themselves."""
    return {"situ.yaml": f"version: 1\nname: bench\n{situ}", "types/all.yaml": TYPES + more}


def edge_run(bench: Bench) -> Path:
    """The folder of a run of that project on the edge engine."""
    return bench.share("edge", lambda: situ_run(bench.lasting_folder("edge"), project_files(), engine="edge")).folder


def latencies(ages: list[float]) -> Taken:
    """Of events in milliseconds: the value is the 99th percentile."""
    ages = sorted(ages)
    curve = [(100 * share, percentile(ages, share)) for share in _SHARES]
    p99 = percentile(ages, 0.99)
    return Taken(
        value=p99,
        figures={"p50": percentile(ages, 0.5), "p99.9": percentile(ages, 0.999), "highest": ages[-1]},
        curves={"": curve},
    )


def _throughput_variants(bench: Bench) -> list[Variant]:
    count = bench.some(200_000, 1_000)
    folder = edge_run(bench)
    server = bench.share("nats", lambda: nats_server(bench.lasting_folder("nats")))

    def by_situ() -> Taken:
        turn = bench.number()
        common = {"folder": str(folder), "type": "Reading", "count": count}
        receiver = Client(subscribe, client=f"desk-{turn}", where="number >= 0", durable=True, **common)
        sender = Client(publish, client=f"press-{turn}", rate=0.0, **common)
        return _rate(count, *exchange(receiver, sender))

    def by_nats() -> Taken:
        bare = {"url": server.url, "token": server.token, "count": count}
        return _rate(count, *exchange(Client(bare_consume, **bare), Client(bare_publish, rate=0.0, **bare)))

    return [Variant(name=SITU, work=by_situ), Variant(name=BARE, work=by_nats)]


def _rate(count: int, received: dict[str, float], sent: dict[str, float]) -> Taken:
    return Taken(
        value=count / (received["end"] - sent["begin"]),
        figures={"stored/s": count / (sent["end"] - sent["begin"])},
    )


def _throughput_verdicts(medians: dict[str, float]) -> list[Verdict]:
    ratio = medians[SITU] / medians[BARE]
    return [Verdict(what="edge engine against a bare nats-py consumer", value=ratio, goal="≥ 0.5", met=ratio >= 0.5)]


def _latency_variants(bench: Bench) -> list[Variant]:
    count = bench.some(15 * RATE, RATE // 4)
    folder = edge_run(bench)
    server = bench.share("nats", lambda: nats_server(bench.lasting_folder("nats")))

    def by_situ(*, durable: bool) -> Callable[[], Taken]:
        def work() -> Taken:
            turn = bench.number()
            common = {"folder": str(folder), "type": "Reading", "count": count}
            receiver = Client(subscribe, client=f"desk-{turn}", where="number >= 0", durable=durable, **common)
            sender = Client(publish, client=f"press-{turn}", rate=float(RATE), **common)
            return latencies(exchange(receiver, sender)[0]["ages"])

        return work

    def by_nats() -> Taken:
        bare = {"url": server.url, "token": server.token, "count": count}
        received, _ = exchange(Client(bare_consume, **bare), Client(bare_publish, rate=float(RATE), **bare))
        return latencies(received["ages"])

    return [
        Variant(name=VOLATILE, work=by_situ(durable=False)),
        Variant(name=DURABLE, work=by_situ(durable=True)),
        Variant(name=BARE, work=by_nats),
    ]


def _latency_verdicts(medians: dict[str, float]) -> list[Verdict]:
    return [
        Verdict(
            what=f"edge engine, p99 from publication to callback at {RATE:,} events/s, ms, {kind}",
            value=medians[name],
            goal="< 10",
            met=medians[name] < 10,
        )
        for kind, name in (("volatile", VOLATILE), ("durable", DURABLE))
    ]


SCENARIOS = [
    Scenario(
        name="edge-throughput",
        title="The edge engine",
        unit="events/s",
        about="200,000 events of about 170 bytes, from the first publication to the last callback; publisher, engine, "
        "bus and subscriber are processes of their own. *Situ*: client library → router and engine (check, root log, "
        "match) → durable subscription with a filter. *nats-py*: `json.dumps` → JetStream → durable pull consumer, "
        "`json.loads`. Both put up to 500 events into a message and have up to 16 messages under way.",
        variants=_throughput_variants,
        judge=_throughput_verdicts,
        repetitions=11,
        warm=False,
    ),
    Scenario(
        name="edge-latency",
        title="Latency of the edge engine",
        unit="ms (p99)",
        about=f"{RATE:,} events/s for 15 seconds, from the call that publishes to the callback, in processes of their "
        "own. All wait up to 5 ms for more events to share a message.",
        variants=_latency_variants,
        judge=_latency_verdicts,
        repetitions=3,
        warm=False,
        plot=Plot(x="% of the events", y="ms", curves=True, log_x=False, log_y=True),
    ),
]
