"""situ.yaml: every key with its default, every form of a value, everything that can be wrong in it."""

from __future__ import annotations

from datetime import timedelta
from textwrap import dedent
from typing import Any

import pytest

from situ.lang.documents import parse_yaml, substitute
from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.problems import Problem, Problems
from situ.lang.quantities import format_duration
from situ.settings import BusSettings, Settings, load_settings, settings_as_json, settings_from_json
from situ.settings.kinds import Text, format_size, plain
from situ.settings.model import Executors

# As the reference documents them.
DOCUMENTED = """
version: 1
name: smart-building
zone: main
bus: embedded
registry: embedded
engine: spark
spark: {master: "local[*]", trigger: 200 ms, max_events: 200000, checkpoints: .situ/checkpoints, conf: {spark.sql.shuffle.partitions: 2}}
log: {age: 7 d, size: 10 GiB, dead: {age: 30 d, size: 1 GiB}}
batch: {events: 500, size: 512 KiB, linger: 5 ms}
limits: {event: 1 MiB, ahead: 5 min, expression_nodes: 1000, expression_depth: 64, literals: 4096}
defaults: {window: 5 s, lateness: 2 s, idle: 10 s, extra: drop, shortcut: safe, install_timeout: 2 s}
overlay: {heartbeat: 1 s, epoch_lease: 5 s}
"""  # noqa: E501 - as it stands in a file


def load(text: str, environment: dict[str, str] | None = None) -> tuple[Settings, tuple[Problem, ...]]:
    problems = Problems()
    document = parse_yaml(dedent(text), "situ.yaml")
    assert document.root is not None
    root = substitute(document.root, environment or {}, problems)
    settings = load_settings(type(document)(file=document.file, root=root), problems)
    return settings, problems.sorted()


def good(text: str, environment: dict[str, str] | None = None) -> Settings:
    settings, problems = load(text, environment)
    assert not problems, "\n".join(map(str, problems))
    return settings


def faults(text: str, environment: dict[str, str] | None = None) -> list[str]:
    _, problems = load(text, environment)
    return [f"{place.line}:{place.column} {p.code.code}" for p in problems if (place := p.location) is not None]


def test_what_is_not_said_has_the_documented_default() -> None:
    assert good("name: smart-building") == good(DOCUMENTED)


def test_a_few_defaults_as_values() -> None:
    settings = good("name: p")
    assert settings.bus == BusSettings(kind="embedded")
    assert settings.spark.trigger == timedelta(milliseconds=200)
    assert settings.log.dead.size == 1024**3
    assert settings.spark.conf == (("spark.sql.shuffle.partitions", plain("2")),)
    assert settings.expression_limits == DEFAULT_LIMITS
    assert settings.overlay.gateway_lease == timedelta(seconds=6)


def test_limits_reach_expressions() -> None:
    settings = good("name: p\nlimits: {expression_nodes: 7, expression_depth: 5, literals: 3}")
    assert settings.expression_limits == ExpressionLimits(nodes=7, depth=5, literals=3)


def test_settings_that_came_later_are_written_only_where_they_say_something() -> None:
    """What a deployment was before there were such settings, it is with their defaults."""
    assert "worker_events" not in settings_as_json(good("name: p\nworker_events: false"))
    assert not {"buckets", "executors"} & settings_as_json(good("name: p\nspark: {buckets: auto}"))["spark"].keys()
    said = good("name: p\nworker_events: true\nspark: {master: yarn, buckets: 6, executors: {max: 4}}")
    assert (said.spark.buckets, said.spark.executors, said.worker_events) == (6, Executors(min=1, max=4), True)
    assert settings_from_json(settings_as_json(said)) == said


def test_a_group_that_is_not_filled_in_yet_is_no_mistake() -> None:
    assert good("name: p\nbatch:\nspark:\n") == good("name: p")


def test_conf_adds_to_ours_and_wins() -> None:
    settings = good(
        "name: p\nspark: {conf: {spark.ui.enabled: false, spark.sql.shuffle.partitions: 8, spark.driver.memory: 2g}}"
    )
    assert {key: text.value for key, text in settings.spark.conf} == {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "8",
        "spark.ui.enabled": "false",
    }


@pytest.mark.parametrize(
    ("written", "bus"),
    [
        ("embedded", BusSettings(kind="embedded")),
        ("nats://host:4222", BusSettings(kind="nats", servers=(plain("nats://host:4222"),))),
        ("tls://[::1]:4222", BusSettings(kind="nats", servers=(plain("tls://[::1]:4222"),))),
        ("{nats: nats://a}", BusSettings(kind="nats", servers=(plain("nats://a"),))),
        (
            "{nats: [nats://a, nats://u:p@b:1], tls: {ca: ca.pem, cert: c.pem, key: k.pem}, credentials: x.creds}",
            BusSettings(
                kind="nats",
                servers=(plain("nats://a"), plain("nats://u:p@b:1")),
                ca=plain("ca.pem"),
                cert=plain("c.pem"),
                key=plain("k.pem"),
                credentials=plain("x.creds"),
            ),
        ),
    ],
)
def test_every_form_of_the_bus(written: str, bus: BusSettings) -> None:
    settings = good(f"name: p\nbus: {written}")
    assert settings.bus == bus
    assert settings_from_json(settings_as_json(settings)) == settings


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("zone: main", ["1:1 P104"]),
        ("name: p\nnmae: q", ["2:1 P103"]),
        ("name: p\nzones: {a: b}", ["2:1 P103"]),
        ("name: [p]", ["1:7 P105"]),
        ("name: a b", ["1:7 INT110"]),
        ("name: -p", ["1:7 INT110"]),
        ('name: ""', ["1:7 INT110"]),
        ("name: p\nversion: 2", ["2:10 P111"]),
        ("name: p\nzone: Main", ["2:7 INT110"]),
        ("name: p\nengine: flink", ["2:9 P119"]),
        ("name: p\nengine: 1", ["2:9 P105"]),
        ("name: p\nregistry: mysql://x", ["2:11 P119"]),
        ("name: p\nregistry: [embedded]", ["2:11 P105"]),
        ("name: p\nbus: kafka", ["2:6 P119"]),
        ("name: p\nbus: nats://a b", ["2:6 P119"]),
        ("name: p\nbus: [embedded]", ["2:6 P105"]),
        ("name: p\nbus:", ["2:5 P105"]),
        ("name: p\nbus: {}", ["2:6 P104"]),
        ("name: p\nbus: {tls: {ca: x}}", ["2:6 P104"]),
        ("name: p\nbus: {nats: []}", ["2:13 P105"]),
        ("name: p\nbus: {nats: {a: b}}", ["2:13 P105"]),
        ("name: p\nbus: {nats: [http://a, 4222]}", ["2:14 P105", "2:24 P105"]),
        ("name: p\nbus: {nats: nats://a, tls: {ac: x}}", ["2:29 P103"]),
        ("name: p\nbus: {nats: nats://a, tls: x}", ["2:28 P105"]),
        ("name: p\nbus: memory", ["2:6 P128"]),
        ("name: p\nbus: {files: events}", ["2:7 P128"]),
        ("name: p\nspark: local", ["2:8 P105"]),
        ("name: p\nspark: {master: loca}", ["2:17 P119"]),
        ("name: p\nspark: {trigger: fast}", ["2:18 P121"]),
        ("name: p\nspark: {trigger: -1 s}", ["2:18 P121"]),
        ("name: p\nspark: {max_events: 0}", ["2:21 P105"]),
        ("name: p\nspark: {max_events: 1.5}", ["2:21 P105"]),
        ("name: p\nspark: {checkpoints: ''}", ["2:22 P119"]),
        ("name: p\nspark: {checkpoints: s4://bucket}", ["2:22 P119"]),
        ("name: p\nlog: {archive: s3q://bucket/plant}", ["2:16 P119"]),
        ("name: p\nspark: {conf: [a]}", ["2:15 P105"]),
        ("name: p\nspark: {conf: {sql.x: 1}}", ["2:16 INT110"]),
        ("name: p\nspark: {conf: {spark.x: [1]}}", ["2:25 P105"]),
        ("name: p\nspark: {buckets: 0}", ["2:18 P105"]),
        ("name: p\nspark: {buckets: some}", ["2:18 P105"]),
        ("name: p\nspark: {executors: 3}", ["2:20 P105"]),
        ("name: p\nspark: {master: spark://h:1, executors: {min: 3, max: 2}}", ["2:50 P140"]),
        ("name: p\nspark: {executors: {max: 4}}", ["2:9 P141"]),
        ("name: p\nworker_events: often", ["2:16 P105"]),
        ("name: p\nlog: {age: 7 m}", ["2:12 P121"]),
        ("name: p\nlog: {age: 7}", ["2:12 P121"]),
        ("name: p\nlog: {age: true}", ["2:12 P105"]),
        ("name: p\nlog: {age: }", ["2:12 P105"]),
        ("name: p\nlog: {age: 0 s}", ["2:12 P121"]),
        ("name: p\nlog: {age: 1 fortnite}", ["2:12 INT105"]),
        ("name: p\nlog: {size: 1 MiBi}", ["2:13 P121"]),
        ("name: p\nlog: {size: 0 B}", ["2:13 P121"]),
        ("name: p\nlog: {size: 0,5 GiB}", ["2:13 P121", "2:15 P103"]),
        ("name: p\nlog: {dead: {size: 1}}", ["2:20 P121"]),
        ("name: p\nbatch: {events: 65537}", ["2:17 P105"]),
        ("name: p\nlimits: {expression_depth: 1000}", ["2:28 P105"]),
        ("name: p\ndefaults: {extra: ignore, shortcut: often}", ["2:19 P119", "2:37 P119"]),
        ("name: p\noverlay: {heartbeat: 2 s}", ["2:11 P126"]),
        ("name: p\noverlay: {suspected: 10 s}", ["2:11 P126"]),
        ("name: p\noverlay: {gateway_lease: 4 s}", ["2:11 P126"]),
        ("name: p\noverlay: {gateway_renew: 5 s, gateway_stop: 5 s}", ["2:11 P126"]),
    ],
)
def test_what_is_wrong_is_reported_where_it_stands(text: str, found: list[str]) -> None:
    assert faults(text) == found


def test_all_mistakes_at_once_and_the_rest_is_still_read() -> None:
    settings, problems = load("nam: p\nzone: x y\nbatch: {events: no, linger: 9 ms}\nlog: {dead: 5}\n")
    assert [problem.code.code for problem in problems] == ["P103", "P104", "INT110", "P105", "P105"]
    assert settings.batch.linger == timedelta(milliseconds=9)
    assert (settings.zone, settings.batch.events) == ("main", 500)


def test_overlay_times_that_fit_are_accepted() -> None:
    settings = good("name: p\noverlay: {heartbeat: 5 s, suspected: 11 s, removed: 1 min, out: {age: 1 d}}")
    assert settings.overlay.out.age == timedelta(days=1)
    assert settings.overlay.groups.age == timedelta(days=3)


# ── secrets ───────────────────────────────────────────────────────────────────────────────────────

SECRETS = {
    "PASSWORD": "hunter2",
    "WHERE": "nats://u:hunter2@host",
    "EVENTS": "7",
    "URL": "postgresql+psycopg://x:y@z/q",
}
WITH_SECRETS = """
    name: p
    bus: {nats: ["${WHERE}", "nats://me:${PASSWORD}@b"], credentials: "${PASSWORD}"}
    registry: ${URL}
    batch:
      events: ${EVENTS}
    spark: {conf: {spark.password: "${PASSWORD}"}}
    """


def test_secrets_are_there_to_be_used_and_nowhere_to_be_seen() -> None:
    settings = good(WITH_SECRETS, SECRETS)
    assert settings.bus.servers[1] == Text("nats://me:${PASSWORD}@b", "whatever")
    assert settings.bus.servers[1].value == "nats://me:hunter2@b"
    assert settings.registry.value == SECRETS["URL"]
    assert dict(settings.spark.conf)["spark.password"].value == "hunter2"
    assert settings.batch.events == 7
    written = settings_as_json(settings)
    assert "hunter2" not in repr(settings) + str(written)
    assert written["bus"]["nats"] == ["${WHERE}", "nats://me:${PASSWORD}@b"]
    assert settings_from_json(written) == settings


def test_another_secret_is_the_same_setting() -> None:
    other = {**SECRETS, "PASSWORD": "other", "URL": "postgresql+psycopg://other"}
    assert good(WITH_SECRETS, SECRETS) == good(WITH_SECRETS, other)


@pytest.mark.parametrize(
    "line",
    [
        "bus: ${PASSWORD}",
        "bus: {nats: ['${PASSWORD}']}",
        "registry: ${PASSWORD}",
        "engine: ${PASSWORD}",
        "zone: ${PASSWORD}!",
        "log: {age: '${PASSWORD}'}",
        "log: {age: '${SHORT}'}",
        "spark: {master: '${PASSWORD}'}",
    ],
)
def test_a_wrong_secret_is_not_shown(line: str) -> None:
    _, problems = load(f"name: p\n{line}", {"PASSWORD": "hunter2", "SHORT": "0 s"})
    assert len(problems) == 1
    assert "hunter2" not in problems[0].message + problems[0].hint
    assert "0 s" not in problems[0].message


def test_what_is_not_set_is_reported_once() -> None:
    assert faults("name: p\nbus: nats://${HOST}:4222\nregistry: ${DB}\n") == ["2:13 P109", "3:11 P109"]


# ── written forms ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(days=7), "7 d"),
        (timedelta(hours=36), "36 h"),
        (timedelta(minutes=90), "90 min"),
        (timedelta(milliseconds=1500), "1500 ms"),
        (timedelta(microseconds=1), "1 us"),
        (timedelta(0), "0 s"),
    ],
)
def test_durations_are_written_shortly_and_exactly(value: timedelta, text: str) -> None:
    assert format_duration(value) == text
    assert good(f"name: p\ndefaults: {{lateness: {text}}}").defaults.lateness == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(10 * 1024**3, "10 GiB"), (1000**2, "1 MB"), (1024 * 1000, "1000 KiB"), (1023, "1023 B"), (1, "1 B")],
)
def test_sizes_are_written_shortly_and_exactly(value: int, text: str) -> None:
    assert format_size(value) == text
    assert good(f"name: p\nlog: {{size: {text}}}").log.size == value


def test_the_same_setting_in_other_words_is_the_same() -> None:
    one = good("name: p\nlog: {age: 7 d, size: 1 GiB}")
    other = good("log: {size: 1048576 KiB, age: 168 h}\nname: p")
    assert settings_as_json(one) == settings_as_json(other)


@pytest.mark.parametrize("value", [None, [], {}, {"name": 1}, {"name": "p", "other": 1}, {"name": "p", "bus": "x"}])
def test_what_was_never_written_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="settings:1"):
        settings_from_json(value)


def test_a_number_or_auto_says_so() -> None:
    _, (problem,) = load("name: p\nspark: {buckets: many}")
    assert "a whole number from 1 to 1024 or `auto`" in str(problem)


def test_folders_are_paths_or_uris_of_known_stores() -> None:
    known = ("a/b", "/a", "file:///a", "s3a://b/c", "hdfs://h:1/a", "abfss://a@b/c", "x:y")
    assert [good(f"name: p\nlog: {{archive: '{each}'}}").log.archive.value for each in known] == list(known)
    _, (problem,) = load("name: p\nspark: {checkpoints: s4://bucket}")
    assert "`s4://` is not possible here" in str(problem)
    assert problem.values["nearest"][0] == "s3://"
