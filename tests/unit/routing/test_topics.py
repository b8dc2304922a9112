"""Topics of Kafka in declarations and settings: what can be said, and all that can be wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from situ.cli.render.event import show_subscription
from situ.explain.subscription import explain_subscription
from situ.lang.problems import Problem
from situ.model import Deployment, diff_deployments
from situ.project.check import check_folder
from situ.project.format import format_folder
from situ.project.schemas import schemas
from situ.routing.model import ClientDeclaration, Subscription
from situ.routing.topics import TopicSource, TopicTarget
from situ.settings import settings_as_json, settings_from_json
from tests.project_files import write

TYPES = """
version: 1
types: {Spot: {x: double m}}
events: {Reading: {sensor: string, value: double, at: optional Spot}, Other: {x: int}}
"""
KAFKA = "kafka: {servers: 'host:9092', registry: 'http://registry:8081'}\n"
CLIENTS = """
version: 1
clients:
  plant:
    kafka: {topics: [a, b.c], group: g, type: Reading, time: at, id: n, source: by, key: sensor, start: end}
    advertisements: {readings: {type: Reading}}
  lake:
    kafka: {topics: [events]}
  desk:
    subscriptions:
      hot: {types: [Reading], kafka: {topic: hot, key: sensor, format: avro}}
      all: {types: [Reading], kafka: {topic: all}}
      own: {types: [Reading]}
"""


def _check(folder: Path, clients: str = CLIENTS, settings: str = KAFKA) -> tuple[Any, list[Problem]]:
    files = {"situ.yaml": f"version: 1\nname: plant\n{settings}", "types/t.yaml": TYPES, "clients/c.yaml": clients}
    checked = check_folder(write(folder, files), environment={"KEY": "very-secret"})
    return checked.deployment, list(checked.problems)


def test_what_is_declared(tmp_path: Path) -> None:
    deployment, problems = _check(tmp_path)
    assert deployment is not None
    assert not problems
    assert deployment.clients["plant"].kafka == TopicSource(
        topics=("a", "b.c"),
        group="g",
        format="json",
        type="Reading",
        time="at",
        id="n",
        source="by",
        key="sensor",
        start="end",
    )
    assert deployment.clients["lake"].kafka == TopicSource(topics=("events",))
    hot = deployment.subscriptions["desk/hot"]
    assert hot.kafka == TopicTarget(topic="hot", key="sensor", format="avro")
    assert hot.durable
    assert deployment.subscriptions["desk/own"].kafka is None
    assert not deployment.subscriptions["desk/own"].durable


def test_it_is_stored_and_read_back(tmp_path: Path) -> None:
    deployment, _ = _check(tmp_path)
    again = Deployment.from_json(json.loads(json.dumps(deployment.as_json())))
    assert again.as_json() == deployment.as_json()
    assert again.clients == deployment.clients
    assert again.subscriptions == deployment.subscriptions
    for name, client in deployment.clients.items():
        assert ClientDeclaration.from_json(name, client.as_json()) == client
    for id, subscription in deployment.subscriptions.items():
        assert Subscription.from_json(id, subscription.as_json()) == subscription


def test_what_says_nothing_of_kafka_is_what_it_was(tmp_path: Path) -> None:
    deployment, problems = _check(tmp_path, "version: 1\nclients: {desk: {}}\n", "")
    assert not problems
    assert "kafka" not in json.dumps(deployment.as_json())


def test_changes_are_shown(tmp_path: Path) -> None:
    before, _ = _check(tmp_path)
    after, _ = _check(tmp_path, CLIENTS.replace("topic: all", "topic: other").replace("group: g, ", ""))
    changes = " ".join(map(str, diff_deployments(before, after)))
    assert "desk/all" in changes
    assert "plant" in changes


@pytest.mark.parametrize(
    ("clients", "settings", "codes"),
    [
        (CLIENTS, "", ["P130", "P130", "P130", "P130"]),
        (CLIENTS, "kafka: {servers: 'host:9092'}\n", ["P132"]),
        ("clients: {a: {kafka: {topics: [t], type: Reading}}}", KAFKA, ["P131"]),
        ("clients: {a: {kafka: {topics: [t], type: Readin}}}", KAFKA, ["INT601"]),
        ("clients: {a: {kafka: {topics: [t], type: Spot}}}", KAFKA, ["INT605"]),
        ("clients: {a: {kafka: {topics: [t], format: json}}}", KAFKA, ["P104"]),
        ("clients: {a: {kafka: {topics: [t], time: at}}}", KAFKA, ["P132"]),
        ("clients: {a: {kafka: {topics: []}}}", KAFKA, ["P105"]),
        ("clients: {a: {kafka: {topics: ['a b']}}}", KAFKA, ["P105"]),
        ("clients: {a: {kafka: {topics: [t, t]}}}", KAFKA, ["INT106"]),
        ("clients: {a: {kafka: {topic: t}}}", KAFKA, ["P103", "P104"]),
        ("clients: {a: {kafka: {topics: [t], format: xml}}}", KAFKA, ["P119"]),
        ("clients: {a: {subscriptions: {s: {types: [Reading], kafka: {}}}}}", KAFKA, ["P104"]),
        ("clients: {a: {subscriptions: {s: {types: [Reading], kafka: {topic: t, key: at}}}}}", KAFKA, ["P132"]),
        ("clients: {a: {subscriptions: {s: {types: [Reading], kafka: {topic: t, key: senso}}}}}", KAFKA, ["P132"]),
        ("clients: {}", "kafka: {}\n", ["P104"]),
        ("clients: {}", "kafka: {servers: []}\n", ["P105"]),
        ("clients: {}", "kafka: {servers: host}\n", ["P105"]),
        ("clients: {}", "kafka: {servers: 'h:1', registry: host}\n", ["P105"]),
        ("clients: {}", "kafka: {servers: 'h:1', options: {group.id: x}}\n", ["P133"]),
        ("clients: {}", "kafka: {servers: 'h:1', options: {acks: [1]}}\n", ["P105"]),
    ],
)
def test_what_is_wrong(clients: str, settings: str, codes: list[str], tmp_path: Path) -> None:
    _, problems = _check(tmp_path, f"version: 1\n{clients.removeprefix(chr(10) + 'version: 1')}\n", settings)
    assert sorted(each.code.code for each in problems) == codes, [str(each) for each in problems]
    assert all(each.location is not None for each in problems)


def test_settings_hold_secrets_only_while_they_are_used(tmp_path: Path) -> None:
    settings = "kafka: {servers: ['a:1', 'b:2'], options: {sasl.password: '${KEY}', security.protocol: SASL_SSL}}\n"
    deployment, problems = _check(tmp_path, CLIENTS.replace("format: avro", "format: json"), settings)
    assert not problems
    assert "very-secret" not in json.dumps(deployment.as_json())
    assert "very-secret" not in repr(deployment.settings)
    kafka = deployment.settings.kafka
    assert kafka is not None
    assert json.loads(kafka.connection())["servers"] == "a:1,b:2"
    assert ["sasl.password", "very-secret"] in json.loads(kafka.connection())["options"]
    again = settings_from_json(settings_as_json(deployment.settings))
    assert again.kafka == kafka


def test_schemas_for_editors_know_it() -> None:
    assert "kafka" in schemas()["situ"]["properties"]
    assert "topics" in json.dumps(schemas()["clients"])


def test_files_with_topics_are_formatted(tmp_path: Path) -> None:
    before, _ = _check(tmp_path, CLIENTS.replace("{types: [Reading]}", "{types: [Reading], where: 'value>1'}"))
    assert format_folder(tmp_path, write=True)
    after = check_folder(tmp_path)
    assert after.deployment.digest == before.digest


def test_an_explanation_names_the_topic(tmp_path: Path) -> None:
    deployment, _ = _check(tmp_path)
    explained = explain_subscription("desk/hot", deployment)
    assert explained.as_json()["kafka"] == {"topic": "hot", "key": "sensor", "format": "avro"}
    console = Console(width=200)
    with console.capture() as shown:
        console.print(*show_subscription(explained))
    assert "topic hot, as avro, key `sensor`" in shown.get()
    assert explain_subscription("desk/own", deployment).kafka is None
