"""The settings of a project: every key of ``situ.yaml``, and how the file is read, written and described to editors.

The classes are the one list of keys, with kind, default and purpose of each: loading, writing and the schema for
editors go through them, so a setting is added here and nowhere else. What settings do belongs to the parts they are
for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import timedelta
from typing import Any, TypeVar, get_args

from situ.lang.catalogue import CONTRADICTION, EXECUTORS_REVERSED, EXECUTORS_WITHOUT_CLUSTER
from situ.lang.documents import Document, Fields, Node, Reader, is_nothing, parse_json
from situ.lang.expr.limits import ExpressionLimits
from situ.lang.problems import Problems
from situ.lang.quantities import format_duration
from situ.lang.types import Extra
from situ.settings import kinds as of_kind
from situ.settings.kafka import KAFKA, KafkaSettings
from situ.settings.kinds import BUS, BusSettings, Kind, Text, plain

# ruff: noqa: RUF009 - the calls below make fields, as `dataclasses.field` does


KIND, GROUP, ABOUT, LATER = "kind", "group", "about", "later"

PROJECT_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

_SOME = timedelta(milliseconds=1)
_MASTER = r"local(\[(\*|[1-9][0-9]*)(, ?[0-9]+)?\])?|local-cluster\[[0-9]+, ?[0-9]+, ?[0-9]+\]|yarn|(spark|k8s)://\S+"
_SHUFFLE = "spark.sql.shuffle.partitions"


def _setting(kind: Kind[Any], default: Any, about: str) -> Any:
    return field(default=default, metadata={KIND: kind, ABOUT: about})


def _later(kind: Kind[Any], default: Any, about: str) -> Any:
    """A setting that came later: with its default it is not written, so deployments of before stay what they were."""
    return field(default=default, metadata={KIND: kind, ABOUT: about, LATER: True})


def _group(of: type, about: str) -> Any:
    return field(default_factory=of, metadata={GROUP: of, ABOUT: about})


@dataclass(frozen=True, slots=True, kw_only=True)
class Executors:
    """Without ``max`` it is Spark's and the cluster's matter how many there are."""

    min: int = _later(of_kind.integer(1, 10_000), 1, "fewest executors, when there is little to do; only with `max`")
    max: int = _later(
        of_kind.integer_or_auto(1, 10_000),
        of_kind.AUTO,
        "most executors, when events wait; `auto`: Situ neither asks for executors nor lets any go",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    master: Text = _setting(
        of_kind.text(_MASTER, ("local[*]", "spark://host:7077", "yarn", "k8s://host:443")),
        plain("local[*]"),
        "where Spark runs",
    )
    trigger: timedelta = _setting(of_kind.duration(), timedelta(milliseconds=200), "least time between two batches")
    max_events: int = _setting(
        of_kind.integer(1, 10**9),
        200_000,
        "most events in one batch; of messages that many wait for, about so many, and one message at least",
    )
    checkpoints: Text = _setting(
        of_kind.folder((".situ/checkpoints", "file:///shared/plant", "s3a://bucket/plant")),
        plain(".situ/checkpoints"),
        "where the checkpoints are: a folder, or a URI that all machines of a cluster reach",
    )
    conf: tuple[tuple[str, Text], ...] = _setting(
        of_kind.CONF, ((_SHUFFLE, plain("2")),), "settings of Spark itself, by name"
    )
    buckets: int = _later(
        of_kind.integer_or_auto(1, 1024),
        of_kind.AUTO,
        "among how many buckets policies are divided; `auto`: as many as there are cores, with some patience",
    )
    connector: Text = _later(
        of_kind.text(r"\S+(, ?\S+)*", ("org.example:connector:1.0", "/opt/jars/connector.jar")),
        plain("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"),
        "Spark's connector for Kafka, for real-time deliveries: coordinates in Maven, or files ending in `.jar`",
    )
    real_time_batch: timedelta = _later(
        of_kind.duration(timedelta(seconds=5)),
        timedelta(minutes=5),
        "how long a real-time query runs before it writes down how far it is; so much is delivered again after a crash",
    )
    executors: Executors = _group(Executors, "how many executors a cluster is asked for")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    age: timedelta = _setting(of_kind.duration(_SOME), timedelta(days=30), "how long dead letters are kept")
    size: int = _setting(of_kind.size(1), 1024**3, "how much of them is kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    age: timedelta = _setting(of_kind.duration(_SOME), timedelta(days=7), "how long events are kept")
    size: int = _setting(of_kind.size(1), 10 * 1024**3, "how much of them is kept")
    dead: Dead = _group(Dead, "what is kept of dead letters")
    archive: Text = _later(
        of_kind.folder(("archive", "file:///shared/plant/archive", "s3a://bucket/plant"), empty=True),
        plain(""),
        "where events are archived for good: a folder, or a URI; empty: they are not",
    )
    archive_every: timedelta = _later(
        of_kind.duration(_SOME), timedelta(minutes=5), "how long an event waits at most before it is archived"
    )
    archive_format: str = _later(
        of_kind.name(
            "an archive format",
            r"[a-z][a-z0-9_-]{0,31}",
            "Use `parquet`, or the name of a format that an installed package has.",
        ),
        "parquet",
        "the form of the archive; `parquet`, and what other packages add",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    # A place in a message is 16 bits of a log position.
    events: int = _setting(of_kind.integer(1, 65_536), 500, "most events in one message")
    size: int = _setting(of_kind.size(1), 512 * 1024, "most bytes in one message")
    linger: timedelta = _setting(
        of_kind.duration(), timedelta(milliseconds=5), "how long a message waits for more events"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    event: int = _setting(of_kind.size(1), 1024**2, "largest event")
    ahead: timedelta = _setting(
        of_kind.duration(), timedelta(minutes=5), "how far the time of an event may be in the future"
    )
    # Walks over expressions recurse: more levels than this do not fit a stack of calls.
    expression_nodes: int = _setting(of_kind.integer(1, 20_000), 1000, "most nodes of an expression")
    expression_depth: int = _setting(of_kind.integer(1, 100), 64, "most levels of an expression")
    literals: int = _setting(of_kind.integer(1, 100_000), 4096, "most values in the lists of an expression")


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    window: timedelta = _setting(of_kind.duration(_SOME), timedelta(seconds=5), "window of policies that name none")
    lateness: timedelta = _setting(of_kind.duration(), timedelta(seconds=2), "how late events may come")
    idle: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=10), "silence after which a source is not waited for"
    )
    extra: Extra = _setting(of_kind.choice(*get_args(Extra)), "drop", "what happens to undeclared attributes")
    shortcut: str = _setting(
        of_kind.choice("safe", "original", "never"), "safe", "when events pass without transformation"
    )
    install_timeout: timedelta = _setting(
        of_kind.duration(),
        timedelta(seconds=2),
        "how long a first publication is held back; who subscribes waits five times as long at most",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    age: timedelta = _setting(of_kind.duration(_SOME), timedelta(hours=72), "how long events are kept")
    size: int = _setting(of_kind.size(1), 10 * 1024**3, "how much of them is kept, per zone")


# A zone has one router today, so nothing reads these; the names and limits are kept for zones that are linked.
_LATER = "no effect yet: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    heartbeat: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=1), _LATER + "time between two signs of life of a router"
    )
    suspected: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=3), _LATER + "silence after which a router is suspected"
    )
    removed: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=10), _LATER + "silence after which a router is removed"
    )
    gateway_renew: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=2), _LATER + "how often a gateway renews its lease"
    )
    gateway_stop: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=4), _LATER + "age of a lease at which a gateway stops"
    )
    gateway_lease: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=6), _LATER + "how long a gateway's lease holds"
    )
    epoch_lease: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=5), _LATER + "how long a scope epoch holds"
    )
    child_grace: timedelta = _setting(of_kind.duration(), timedelta(seconds=30), "how long a lost link is waited for")
    withdrawal: timedelta = _setting(
        of_kind.duration(), timedelta(seconds=60), _LATER + "after which ineligible interest is withdrawn"
    )
    duplicate_window: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(minutes=10), "how long messages are remembered"
    )
    seen_window: int = _setting(
        of_kind.integer(1, 1_000_000), 1024, _LATER + "how many events below the highest are remembered"
    )
    out: Retention = _group(Retention, _LATER + "what is kept for other zones")
    groups: Retention = _group(Retention, "what is kept for groups of subscribers")


# Each pair says: the first, so many times, must be less than the second.
ORDERED = (
    ("heartbeat", 2, "suspected"),
    ("suspected", 1, "removed"),
    ("gateway_renew", 1, "gateway_stop"),
    ("gateway_stop", 1, "gateway_lease"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a project; only the name has no default."""

    name: str = _setting(
        of_kind.name(
            "a project",
            PROJECT_NAME,
            "Use letters, digits, `.`, `_` and `-`, at most 64, a letter or digit first.",
        ),
        "",
        "name of the project",
    )
    zone: str = _setting(
        of_kind.name("a zone", r"[a-z0-9-]{1,32}", "Use small letters, digits and `-`, at most 32."),
        "main",
        "name of the zone",
    )
    bus: BusSettings = _setting(BUS, BusSettings(), "what carries events between processes")
    registry: Text = _setting(
        of_kind.text(r"embedded|postgresql\+psycopg://\S+", ("embedded", "postgresql+psycopg://user@host/database")),
        plain("embedded"),
        "where declarations are stored",
    )
    kafka: KafkaSettings | None = _setting(KAFKA, None, "where Kafka is, for clients and subscriptions with topics")
    engine: str = _setting(of_kind.choice("spark", "edge"), "spark", "what executes the deployment")
    spark: Spark = _group(Spark, "settings of the Spark engine")
    log: Log = _group(Log, "how long events are kept")
    batch: BatchSettings = _group(BatchSettings, "how events are put together into messages")
    limits: Limits = _group(Limits, "what is refused as too large")
    outside: tuple[Text, ...] = _setting(
        of_kind.PATHS, (), "folders outside of the project that its sources may read from"
    )
    worker_events: bool = _later(
        of_kind.boolean(), False, "whether workers publish how busy they are, as events of the type `situ.worker`"
    )
    defaults: Defaults = _group(Defaults, "what holds where nothing else is said")
    overlay: Overlay = _group(Overlay, "how routers and zones find and lose each other")

    @property
    def expression_limits(self) -> ExpressionLimits:
        limits = self.limits
        return ExpressionLimits(nodes=limits.expression_nodes, depth=limits.expression_depth, literals=limits.literals)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Reading: ``situ.yaml`` → settings, with all that is wrong in it.

G = TypeVar("G")


def load_settings(document: Document, problems: Problems) -> Settings:
    """What the document says; a setting that is wrong or absent has its default."""
    known = [each.name for each in fields(Settings) if each.name != "name"]
    found = Reader(problems).document(document, required=("name",), optional=known)
    return Settings() if found is None else _read_group(Settings, found)


def settings_from_json(value: Any) -> Settings:
    """The settings that ``settings_as_json`` wrote; ValueError for what it cannot have written."""
    problems = Problems()
    settings = load_settings(parse_json(json.dumps(value), "settings"), problems)
    if problems.errors:
        raise ValueError("; ".join(map(str, problems.errors)))
    return settings


def _read_group(of: type[G], found: Fields) -> G:
    values: dict[str, Any] = {}
    for each in fields(of):  # type: ignore[arg-type]  # every group is a dataclass
        node = found.node(each.name)
        value = None
        if node is not None:
            group = each.metadata.get(GROUP)
            value = each.metadata[KIND].read(node, found.read) if group is None else _below(group, node, found.read)
        if value is not None:
            values[each.name] = value
    settings = of(**values)
    if isinstance(settings, Spark):
        most, master = settings.executors.max, settings.master
        if most != of_kind.AUTO and re.fullmatch(r"local(\[.*\])?", master.value):
            key = found.mapping.key("executors")
            location = key.location if key is not None else found.mapping.location
            found.read.problems.add(EXECUTORS_WITHOUT_CLUSTER(location, most=most, master=master.written))
        return of(**{**values, "conf": _with_default_conf(settings)})
    if isinstance(settings, Executors) and settings.max != of_kind.AUTO and settings.max < settings.min:
        key = found.mapping.key("max") or found.mapping.key("min")
        location = key.location if key is not None else found.mapping.location
        found.read.problems.add(EXECUTORS_REVERSED(location, least=settings.min, most=settings.max))
        return of()
    if isinstance(settings, Overlay):
        _check_order(settings, found)
    return settings


def _below(group: type[Any], node: Node, read: Reader) -> Any:
    if is_nothing(node):
        return None  # the key alone: someone is about to write more
    found = read.fields(node, optional=[each.name for each in fields(group)])
    return None if found is None else _read_group(group, found)


def _with_default_conf(spark: Spark) -> Any:
    """What a project says about Spark's own settings adds to ours and wins where both speak."""
    return tuple(sorted({**dict(Spark().conf), **dict(spark.conf)}.items()))


def _check_order(overlay: Overlay, found: Fields) -> None:
    for first, times, second in ORDERED:
        small, large = getattr(overlay, first), getattr(overlay, second)
        if times * small < large:
            continue
        key = found.mapping.key(first) or found.mapping.key(second)
        bound = f"`{second}`" if times == 1 else f"`{second}` / {times}"
        problem = CONTRADICTION(
            key.location if key is not None else found.mapping.location,
            first=first,
            found=format_duration(small),
            bound=bound,
            limit=format_duration(large / times),
            second=second,
        )
        found.read.problems.add(problem)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Writing: settings → JSON in the form of ``situ.yaml``, with every default written out; and the schema of that file.

_REFERENCE = {"type": "string", "pattern": r"\$\{"}


def settings_as_json(settings: Settings) -> dict[str, Any]:
    """All settings as plain JSON values; reading them back gives equal settings."""
    return _written(settings)


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of ``situ.yaml`` without its frame: an object with all keys."""
    return {**_object(Settings, Settings()), "required": ["name"]}


def _written(group: Any) -> dict[str, Any]:
    values = {each: getattr(group, each.name) for each in fields(group)}
    # A list of nothing says nothing: what was written before there was such a setting stays as it is.
    return {
        each.name: _value(each, value)
        for each, value in values.items()
        if value not in ((), None) and not (each.metadata.get(LATER) and value == each.default) and value != Executors()
    }


def _value(each: Field[Any], value: Any) -> Any:
    return _written(value) if GROUP in each.metadata else each.metadata[KIND].write(value)


def _object(of: type, defaults: Any) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for each in fields(of):
        default = getattr(defaults, each.name)
        if GROUP in each.metadata:
            form = _object(each.metadata[GROUP], default)
        else:
            form = _or_reference(each.metadata[KIND].schema)
            if each.default is not MISSING and default not in ("", None):
                form["default"] = _value(each, default)
        properties[each.name] = {"description": each.metadata[ABOUT], **form}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _or_reference(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Any value may come from the environment; where text is free, a reference is text like any other."""
    free = schema.get("type") == "string" and "pattern" not in schema
    return dict(schema) if free or schema.get("type") == "object" else {"anyOf": [dict(schema), _REFERENCE]}
