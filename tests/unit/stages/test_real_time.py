"""What goes in real time: which subscriptions are refused, what is said of each way, which records are plain."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from situ.kafka.records import KafkaRecord
from situ.lang.catalogue import NOT_A_CHOICE, TOO_LARGE
from situ.lang.problems import Problem, SituError
from situ.lang.records import replace
from situ.project.check import check_folder
from situ.routing.delivery_groups import group_of
from situ.routing.model import Subscription
from situ.stages import real_time
from situ.stages.plan import Plan, compile_plan
from situ.stages.real_time import real_time_plan, visible_since
from situ.stages.seal_text import TOKEN
from tests.project_files import write
from tests.real_time import NOW, RECORDS, OrdinaryWay
from tests.real_time import project as declared

TYPES = """
version: 1
events:
  Reading: {sensor: string, value: double °C}
  Price: {amount: "decimal(18,2)"}
  Lasted: {time: duration}
  Place: {room: string}
"""
CLIENTS = """
version: 1
clients:
  meters:
    kafka: {topics: [readings], type: Reading}
    advertisements: {r: {type: Reading}}
  shop:
    kafka: {topics: [prices], type: Price}
    advertisements: {p: {type: Price}}
  clock:
    kafka: {topics: [times], type: Lasted}
    advertisements: {l: {type: Lasted}}
  rooms:
    advertisements: {p: {type: Place}}
  desk:
    subscriptions:
      s: {types: [Reading], kafka: {topic: out}, delivery: real-time}
"""
CONTEXT = """
version: 1
context: us
events:
  Heat: {{name: string, value: double °F}}
maps:
  - out: Reading -> Heat
    attributes: {{name: sensor}}
rules:
  out: [Reading.sensor -> named]
functions:
  named: {function}
"""
NAMES = {
    "sources/names.yaml": """
version: 1
pull:
  names: {csv: names.csv, columns: {sensor: string, name: string}, key: sensor}
""",
    "names.csv": "sensor,name\ns1,one\n",
}
PYTHON = {
    "functions/f.py": "import situ\n\n\n@situ.function\ndef named(value: str) -> str:\n    return value\n",
}


def checked(folder: Path, subscription: str, files: Mapping[str, str] = {}) -> list[Problem]:
    clients = CLIENTS.replace("s: {types: [Reading], kafka: {topic: out}, delivery: real-time}", subscription)
    settings = "version: 1\nname: plant\nkafka: {servers: 'localhost:9092', registry: 'http://localhost:8081'}\n"
    write(folder, {"situ.yaml": settings, "types/t.yaml": TYPES, "clients/c.yaml": clients, **files})
    return list(check_folder(folder, {}).errors)


REFUSED = {
    "no topic": ("s: {types: [Reading], delivery: real-time}", "it is not delivered to a topic of Kafka"),
    "avro": (
        "s: {types: [Reading], kafka: {topic: out, format: avro}, delivery: real-time}",
        "its records are avro, which Spark SQL does not write with a registry",
    ),
    "not from topics": (
        "s: {types: [Place], kafka: {topic: out}, delivery: real-time}",
        "no client whose events come from topics publishes what it asks for",
    ),
    "envelope": (
        "s: {types: [Reading], where: event.subject = 'a', kafka: {topic: out}, delivery: real-time}",
        "`meters`: the filter of `desk/s` reads `event.subject`, which is not known before an engine has it",
    ),
    "decimals": (
        "s: {types: [Price], kafka: {topic: out}, delivery: real-time}",
        "`shop`: `amount` is a decimal(18,2), which Spark SQL does not read as engines do",
    ),
    "durations": (
        "s: {types: [Lasted], kafka: {topic: out}, delivery: real-time}",
        "`clock`: `time` is a duration, which Spark SQL does not read as engines do",
    ),
}


REMEMBERS = """{signature: string -> string, key: event.source, missing: 'null', value: last.sensor,
  state: {last: {event: Reading, key: sensor, keep: {sensor: sensor}, history: 1 min, ttl: 1 h, max_keys: 9}}}"""
HEAT = "s: {types: [Heat], context: us, kafka: {topic: out}, delivery: real-time}"
CONVERTED: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "table": (
        "{signature: string -> string, lookup: {row: {source: names, key: {sensor: value}}}, value: row.name}",
        NAMES,
        "looks up in a table, whose rows may change while a query runs",
    ),
    "python": ("{signature: string -> string, python: f.named}", PYTHON, "calls a function of Python"),
    "memory": (
        REMEMBERS,
        {},
        "remembers other events",
    ),
}


@pytest.mark.parametrize("case", CONVERTED)
def test_conversions_that_are_more_than_expressions_are_refused(case: str, tmp_path: Path) -> None:
    function, files, reason = CONVERTED[case]
    (problem,) = checked(tmp_path, HEAT, {"contexts/us.yaml": CONTEXT.format(function=function), **files})
    assert problem.code.code == "P134", problem
    assert problem.values["reason"] == f"`meters`: the conversion of `Reading` out `us` {reason}"


EVERY = "s: {types: [Reading], kafka: {topic: out}, delivery: real-time}"


def among_scopes(folder: Path, output: str) -> Plan:
    """`meters` publishes to a scope inside that of `desk`, out of which comes what passes this filter."""
    tags = {"meters": "east", "desk": "all"}
    clients = CLIENTS
    for client, tag in tags.items():
        clients = clients.replace(f"  {client}:\n", f"  {client}:\n    scopes: {{site: {tag}}}\n")
    own = "".join(f"  {client}: {{site: [{tag}]}}\n" for client, tag in tags.items())
    scopes = (
        f"version: 1\ndimensions:\n  site: {{mode: closed, scopes: {{all: {{}}, east: {{in: [all], {output}}}}}}}\n"
    )
    settings = "version: 1\nname: plant\nkafka: {servers: 'localhost:9092'}\n"
    write(
        folder,
        {
            "situ.yaml": settings,
            "types/t.yaml": TYPES,
            "clients/c.yaml": clients,
            "scopes.yaml": f"{scopes}clients:\n{own}",
        },
    )
    found = check_folder(folder, {})
    assert found.deployment is not None, [str(each) for each in found.errors]
    return compile_plan(found.deployment)


@pytest.mark.parametrize(
    ("output", "visible"),
    [
        ("output: 'TRUE'", "TRUE"),
        ("output: 'FALSE'", "FALSE"),
        ("output: type IS Price", "FALSE"),
        ("output: value > 3 °C", "`data`.`value` > 3.0D"),
    ],
)
def test_among_scopes_the_decision_is_an_expression_and_keys_are_sealed(
    output: str, visible: str, tmp_path: Path
) -> None:
    made = real_time_plan(among_scopes(tmp_path, output)).clients["meters"]
    (one,) = made.subscriptions
    assert visible in one.visible
    assert made.sealed
    assert TOKEN in one.record


def test_what_spark_cannot_decide_goes_by_the_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = among_scopes(tmp_path, "output: value > 3 °C")
    made = real_time_plan(plan).clients["meters"]

    def refuse(*_: object) -> Any:
        raise SituError(TOO_LARGE(what="operations", limit=100))

    monkeypatch.setattr(real_time, "emit_spark", refuse)
    (way,) = real_time_plan(plan).ordinary["desk/s"]
    assert way.client == "meters"
    assert way.reason.startswith("the filter `value > 3 °C` of scopes is more than Spark SQL can take: ")
    assert visible_since(made, made.subscriptions[0], plan) == "FALSE", "nothing hidden rather than everything"


def test_what_later_scopes_hide_is_not_delivered_by_what_began_before(tmp_path: Path) -> None:
    before = among_scopes(tmp_path / "before", "output: value > 3 °C")
    made = real_time_plan(before).clients["meters"]
    (one,) = made.subscriptions
    assert visible_since(made, one, before) == "TRUE"
    assert "9.0D" in visible_since(made, one, among_scopes(tmp_path / "less", "output: value > 9 °C"))
    assert visible_since(made, one, among_scopes(tmp_path / "none", "output: 'FALSE'")) == "FALSE"
    gone = replace(before.deployment, subscriptions={})
    assert visible_since(made, one, compile_plan(gone)) == "FALSE"


def test_what_began_before_there_were_scopes_is_sealed_by_the_first(tmp_path: Path) -> None:
    assert checked(tmp_path, EVERY) == []
    deployment = check_folder(tmp_path, {}).deployment
    assert deployment is not None
    plan = compile_plan(deployment)
    made, late = (real_time_plan(plan, sealed=sealed).clients["meters"] for sealed in (False, True))
    assert not made.sealed
    assert TOKEN not in made.subscriptions[0].record
    assert late.sealed
    assert TOKEN in late.subscriptions[0].record


@pytest.mark.parametrize("case", REFUSED)
def test_what_nothing_reaches_in_real_time_is_refused(case: str, tmp_path: Path) -> None:
    subscription, reason = REFUSED[case]
    (problem,) = checked(tmp_path, subscription)
    assert problem.code.code == "P134"
    assert problem.values["reason"] == reason
    assert problem.location is not None
    assert problem.location.file.endswith("clients/c.yaml")
    assert problem.location.line == subscription_line(tmp_path)


def subscription_line(folder: Path) -> int:
    lines = (folder / "clients/c.yaml").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if "real-time" in line)


def test_what_can_be_is_let_through(tmp_path: Path) -> None:
    several = "s: {types: [Reading, Price, Place], kafka: {topic: out}, delivery: real-time}"
    assert checked(tmp_path, several) == []
    deployment = check_folder(tmp_path, {}).deployment
    assert deployment is not None
    plan = real_time_plan(compile_plan(deployment))
    assert plan.clients_of("desk/s") == ("meters",)
    assert [way.client for way in plan.ordinary["desk/s"]] == ["shop"]


def test_a_word_that_is_no_delivery_is_refused(tmp_path: Path) -> None:
    (problem,) = checked(tmp_path, "s: {types: [Reading], kafka: {topic: out}, delivery: soon}")
    assert problem.code.code == NOT_A_CHOICE.code


def test_it_has_a_delivery_group_of_its_own() -> None:
    first, second = (Subscription(client="desk", name=name, types=("Reading",), durable=True) for name in "ab")
    assert group_of(first) == group_of(second)
    stored = {**first.as_json(), "delivery": "real-time"}
    alone = Subscription.from_json("desk/a", stored)
    assert alone.in_real_time
    assert group_of(alone) != group_of(first)
    assert alone.as_json() == stored
    assert "delivery" not in first.as_json()


# ── plain records ──


PLAIN = [
    '{"sensor":"s","value":1}',
    ' { "value" : -1.50 , "sensor" : "Tür 東" } ',
    '{"sensor":"","value":0.0,"count":-5,"level":0,"well":true}',
    '{"value":1}',  # it lacks something, and is a dead letter
    '{"sensor":"s","value":1,"value":2}',  # so is that
    '{"sensor":"s","value":1,"at":1698913000000,"n":7}',
    '{"sensor":"s","value":1,"at":"2023-11-01T00:00:00.5Z","n":"x-7"}',
    '{"sensor":"s","value":1,"stays":[{"room":"a","floor":1},{"room":"b","floor":2}],"words":[]}',
]
OTHERS = [
    "",
    "[]",
    '{"sensor":"s","value":1}x',
    '{"sensor":"s","value":1,}',
    '{"sensor":"s","value":01}',
    '{"sensor":"s","value":1e3}',
    '{"sensor":"s","value":-0.0}',
    '{"sensor":"s","value":"1"}',
    '{"sensor":"s","value":1,"other":2}',
    '{"sensor":"\\u0073","value":1}',
    '{"sensor":"a\tb","value":1}',
    '{"sensor":"s","value":1,"level":2.0}',
    '{"sensor":"s","value":1,"level":null}',
    '{"sensor":"s","value":1,"count":1234567890123456789}',
    '{"sensor":"s","value":1,"at":"2023-11-01"}',
    '{"sensor":"s","value":1,"at":"2024-01-01T00:00:00Z"}',  # later than the record says
    '{"sensor":"s","value":1,"n":"17"}',
    '{"sensor":"s",\n"value":1}',
    '{"sensor":"s","value":1,"words":[1]}',
    '{"sensor":"s","value":1,"words":["a",]}',
    '{"sensor":"s","value":1,"place":{"room":"a","floor":1,"more":2}}',
]


def test_which_records_are_plain(tmp_path: Path) -> None:
    plain = OrdinaryWay(declared(tmp_path)).real_time.clients["plant"].plain
    assert [text for text in PLAIN if not plain.takes(None, text.encode(), NOW)] == []
    assert [text for text in OTHERS if plain.takes(None, text.encode(), NOW)] == []
    value = PLAIN[0].encode()
    assert plain.takes(b"k", value, NOW)
    assert not plain.takes(b"\xff", value, NOW)
    assert not plain.takes(b'"', value, NOW)
    assert not plain.takes(None, None, NOW)
    assert not plain.takes(None, value, 0)
    assert not plain.takes(None, b'{"sensor":"%b","value":1}' % (b"x" * 70_000), NOW)


def test_what_is_generated_has_plain_records_and_others(tmp_path: Path) -> None:
    way = OrdinaryWay(declared(tmp_path))
    for client, make in RECORDS.items():
        records: list[KafkaRecord] = make(1, 200)
        plain = sum(way.is_plain(client, each) for each in records)
        assert 20 < plain < 190
