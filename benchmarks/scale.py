"""How cost grows: with the number of event types, with the number of subscriptions, with the size of events."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.clients import publish, sensor, subscribe
from benchmarks.edge import edge_run, project_files
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from benchmarks.running import Client, exchange, situ_run
from benchmarks.zones import Ingress, Sent, open_zone
from situ.event.message import join_lines
from situ.routing.model import Subscription

KINDS = (1, 500, 1_000)
SUBSCRIPTIONS = (1, 100, 10_000)
SIZES = (1, 100, 500)
SPARK, EDGE = "Spark", "edge"
_CLIENTS = ("press-1", "press-2", "press-4", "press-6", "press-3", "press-5", "press-7", "press-9")
_SUBSCRIBERS = 100
_MESSAGE = 512 * 1024
ALL = Subscription(client="desk", name="all", types=("Reading",), where="number >= 0", durable=True)


def _clients() -> dict[str, str]:
    lines = "".join(f"  {client}: {{advertisements: {{readings: {{type: Reading}}}}}}\n" for client in _CLIENTS)
    return {"clients/press.yaml": f"version: 1\nclients:\n{lines}"}


def _event(client: str, number: int, *, type: str = "Reading", text: str = "", sensors: int = 100) -> bytes:
    data = {"number": number, "sent": 0, "sensor": sensor(number, sensors), "text": text}
    event = {"specversion": "1.0", "id": str(number), "source": client, "type": type, "data": data}
    return json.dumps(event, separators=(",", ":")).encode()


def _messages(per_message: int, different: int, event: Callable[[str, int], bytes]) -> list[Sent]:
    """So many different messages, of all clients in turns."""
    return [
        Sent(
            (client := _CLIENTS[turn % len(_CLIENTS)]),
            join_lines(event(client, turn * per_message + number) for number in range(per_message)),
            per_message,
        )
        for turn in range(different)
    ]


def _drain(bench: Bench, ingress: Ingress, per_message: int) -> Callable[[], Taken]:
    from benchmarks.draining import take_by_engine

    def work() -> Taken:
        ingress.fill()
        rate = take_by_engine(bench, ingress).messages_a_second * per_message
        return Taken(value=rate, figures={"MB/s": rate * ingress.size / ingress.events / 1e6})

    return work


# ── types ──


def _type_variants(bench: Bench) -> list[Variant]:
    variants: list[Variant] = []
    situ = f"spark: {{max_events: {bench.some(100_000, 2_000)}}}\n"
    for kinds in (20,) if bench.quick else KINDS:
        declared = "".join(f"  Reading{number}(Reading): {{}}\n" for number in range(kinds))
        zone = bench.open(
            open_zone(bench.folder("zone"), {**project_files(situ=situ, more=declared), **_clients()}, [ALL])
        )
        parts = _messages(
            500,
            bench.some(64, 8),
            lambda client, number, kinds=kinds: _event(client, number, type=f"Reading{number % kinds}", text="x" * 50),
        )  # type: ignore[misc]
        ingress = Ingress(zone, parts, bench.some(1_200, 8))
        variants.append(Variant(name=f"{kinds:,} types", work=_drain(bench, ingress, 500), point=float(kinds)))
    return variants


def _type_verdicts(medians: dict[str, float]) -> list[Verdict]:
    names = [name for name in medians if name.endswith(" types")]
    many = names[-1]
    ratio = medians[names[0]] / medians[many]
    return [Verdict(what=f"pipeline, time per event, {many} against 1", value=ratio, goal="≤ 1.25", met=ratio <= 1.25)]


# ── subscriptions ──


def _where(number: int) -> str:
    return f"sensor = 's{number}'" + (" AND number < 1000000000" if number % 2 else "")


def _subscription_variants(bench: Bench) -> list[Variant]:
    variants: list[Variant] = []
    situ = f"spark: {{max_events: {bench.some(100_000, 2_000)}}}\n"
    for wanted in SUBSCRIPTIONS[1:2] if bench.quick else SUBSCRIPTIONS:
        many = [
            Subscription(
                client=f"c{number % _SUBSCRIBERS}", name=f"s{number}", types=("Reading",), where=_where(number)
            )
            for number in range(wanted)
        ]
        zone = bench.open(open_zone(bench.folder("zone"), {**project_files(situ=situ), **_clients()}, [ALL, *many]))
        parts = _messages(
            500,
            bench.some(64, 8),
            lambda client, number, wanted=wanted: _event(client, number, text="x" * 50, sensors=wanted),
        )  # type: ignore[misc]
        work = _drain(bench, Ingress(zone, parts, bench.some(1_200, 8)), 500)
        variants.append(Variant(name=f"{SPARK}, {wanted:,}", work=work, point=float(wanted), series=SPARK))
        variants.append(
            Variant(name=f"{EDGE}, {wanted:,}", work=_by_edge(bench, many), point=float(wanted), series=EDGE)
        )
    return variants


def _by_edge(bench: Bench, many: list[Subscription]) -> Callable[[], Taken]:
    count = bench.some(50_000, 500)
    declared: dict[str, list[str]] = {}
    for each in many:
        line = f'      {each.name}: {{types: [Reading], where: "{each.where}"}}\n'
        declared.setdefault(each.client, []).append(line)
    clients = "".join(f"  {client}:\n    subscriptions:\n{''.join(lines)}" for client, lines in declared.items())
    files = {**project_files(), "clients/many.yaml": f"version: 1\nclients:\n{clients}"}
    folder = bench.folder("edge")
    bench.open(situ_run(folder, files, engine="edge"))
    return _exchanged(bench, folder, count, sensors=len(many), size=220)


def _exchanged(
    bench: Bench, folder: Path, count: int, *, size: int, sensors: int = 100, filler: int = 50
) -> Callable[[], Taken]:
    """From the first publication to the last callback of a durable subscription."""

    def work() -> Taken:
        turn = bench.number()
        common = {"folder": str(folder), "type": "Reading", "count": count}
        receiver = Client(subscribe, client=f"desk-{turn}", where="number >= 0", durable=True, **common)
        sender = Client(publish, client=f"press-{turn}", rate=0.0, sensors=sensors, filler=filler, **common)
        received, sent = exchange(receiver, sender)
        rate = count / (received["end"] - sent["begin"])
        return Taken(value=rate, figures={"MB/s": rate * size / 1e6})

    return work


def _subscription_verdicts(medians: dict[str, float]) -> list[Verdict]:
    measured = [f"{wanted:,}" for wanted in SUBSCRIPTIONS if f"{SPARK}, {wanted:,}" in medians]
    few, most = measured[0], measured[-1]
    verdicts = []
    for engine in (SPARK, EDGE):
        ratio = medians[f"{engine}, {few}"] / medians[f"{engine}, {most}"]
        what = f"{engine}, time per event, {most} subscriptions against 1"
        verdicts.append(Verdict(what=what, value=ratio, goal="≤ 2", met=ratio <= 2))
    return verdicts


# ── size of events ──


def _size_variants(bench: Bench) -> list[Variant]:
    variants: list[Variant] = []
    for size in SIZES[:1] if bench.quick else SIZES:
        per_message = max(1, min(500, _MESSAGE // (size * 1024)))
        batch = per_message * bench.some(128, 2)
        files = {**project_files(situ=f"spark: {{max_events: {batch}}}\n"), **_clients()}
        zone = bench.open(open_zone(bench.folder("zone"), files, [ALL]))
        filler = size * 1000 - 160
        parts = _messages(per_message, 8, lambda client, number, f=filler: _event(client, number, text="x" * f))  # type: ignore[misc]
        work = _drain(bench, Ingress(zone, parts, bench.some(768, 4)), per_message)
        variants.append(Variant(name=f"{SPARK}, {size} KB", work=work, point=float(size), series=SPARK))
        folder = edge_run(bench)
        count = bench.some(100_000 // size if size > 1 else 50_000, 50)
        exchanged = _exchanged(bench, folder, count, size=size * 1000, filler=filler)
        variants.append(Variant(name=f"{EDGE}, {size} KB", work=exchanged, point=float(size), series=EDGE))
    return variants


SCENARIOS = [
    Scenario(
        name="types",
        title="Number of event types",
        unit="events/s",
        about="600,000 events of about 200 bytes, evenly over all types, in batches of 100,000 through the pipeline; "
        "one durable subscription with a filter to the type above all of them.",
        variants=_type_variants,
        judge=_type_verdicts,
        repetitions=3,
        spark=True,
        plot=Plot(x="event types", y="events/s"),
    ),
    Scenario(
        name="subscriptions",
        title="Number of subscriptions",
        unit="events/s",
        about="Events of about 200 bytes through both engines. One durable subscription takes them all; so many "
        f"others, of up to {_SUBSCRIBERS} clients, each ask for a sensor of their own, half of them for a number "
        "besides. Of fifty events one is wanted by one of them, however many they are, so that the curve shows the "
        "search and not the deliveries.",
        variants=_subscription_variants,
        judge=_subscription_verdicts,
        repetitions=3,
        warm=False,
        spark=True,
        plot=Plot(x="subscriptions", y="events/s"),
    ),
    Scenario(
        name="event-size",
        title="Size of events",
        unit="events/s",
        about="Events of 1, 100 and 500 KB, as many to a message as fit into 512 KiB, with one durable subscription "
        "that takes them all: every byte is stored in the ingress stream (on Spark), in the root log and for delivery.",
        variants=_size_variants,
        repetitions=3,
        warm=False,
        spark=True,
        plot=Plot(x="KB", y="MB/s", figure="MB/s"),
    ),
]
