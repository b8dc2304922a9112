"""The settings of a project: every key of ``situ.yaml``, its kind, its default and what it is for.

This is the one list of them: loading, writing and the schema for editors go through these declarations, so a
setting is added here and nowhere else. What the settings do belongs to the parts they are for.
"""

# ruff: noqa: RUF009 - the calls below make fields, as `dataclasses.field` does

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, get_args

from situ.expr.limits import Limits as ExpressionLimits
from situ.settings import kinds as of_kind
from situ.settings.bus import BUS, Bus
from situ.settings.kinds import Kind, Text, plain
from situ.types.decode import Extra

KIND, GROUP, ABOUT = "kind", "group", "about"

PROJECT_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

_SOME = timedelta(milliseconds=1)
_MASTER = r"local(\[(\*|[1-9][0-9]*)(, ?[0-9]+)?\])?|local-cluster\[[0-9]+, ?[0-9]+, ?[0-9]+\]|yarn|(spark|k8s)://\S+"
_SHUFFLE = "spark.sql.shuffle.partitions"


def _setting(kind: Kind[Any], default: Any, about: str) -> Any:
    return field(default=default, metadata={KIND: kind, ABOUT: about})


def _group(of: type, about: str) -> Any:
    return field(default_factory=of, metadata={GROUP: of, ABOUT: about})


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
        of_kind.text(r"(?s).+", (".situ/checkpoints",)), plain(".situ/checkpoints"), "folder of the checkpoints"
    )
    conf: tuple[tuple[str, Text], ...] = _setting(
        of_kind.CONF, ((_SHUFFLE, plain("2")),), "settings of Spark itself, by name"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    age: timedelta = _setting(of_kind.duration(_SOME), timedelta(days=30), "how long dead letters are kept")
    size: int = _setting(of_kind.size(1), 1024**3, "how much of them is kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    age: timedelta = _setting(of_kind.duration(_SOME), timedelta(days=7), "how long events are kept")
    size: int = _setting(of_kind.size(1), 10 * 1024**3, "how much of them is kept")
    dead: Dead = _group(Dead, "what is kept of dead letters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    heartbeat: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=1), "time between two signs of life of a router"
    )
    suspected: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=3), "silence after which a router is suspected"
    )
    removed: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=10), "silence after which a router is removed"
    )
    gateway_renew: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=2), "how often a gateway renews its lease"
    )
    gateway_stop: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=4), "age of a lease at which a gateway stops"
    )
    gateway_lease: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(seconds=6), "how long a gateway's lease holds"
    )
    epoch_lease: timedelta = _setting(of_kind.duration(_SOME), timedelta(seconds=5), "how long a scope epoch holds")
    child_grace: timedelta = _setting(of_kind.duration(), timedelta(seconds=30), "how long a lost link is waited for")
    withdrawal: timedelta = _setting(
        of_kind.duration(), timedelta(seconds=60), "after which ineligible interest is withdrawn"
    )
    duplicate_window: timedelta = _setting(
        of_kind.duration(_SOME), timedelta(minutes=10), "how long messages are remembered"
    )
    seen_window: int = _setting(of_kind.integer(1, 1_000_000), 1024, "how many events below the highest are remembered")
    out: Retention = _group(Retention, "what is kept for other zones")
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
    bus: Bus = _setting(BUS, Bus(), "what carries events between processes")
    registry: Text = _setting(
        of_kind.text(r"embedded|postgresql\+psycopg://\S+", ("embedded", "postgresql+psycopg://user@host/database")),
        plain("embedded"),
        "where declarations are stored",
    )
    engine: str = _setting(of_kind.choice("spark", "edge"), "spark", "what executes the deployment")
    spark: Spark = _group(Spark, "settings of the Spark engine")
    log: Log = _group(Log, "how long events are kept")
    batch: Batch = _group(Batch, "how events are put together into messages")
    limits: Limits = _group(Limits, "what is refused as too large")
    outside: tuple[Text, ...] = _setting(
        of_kind.PATHS, (), "folders outside of the project that its sources may read from"
    )
    defaults: Defaults = _group(Defaults, "what holds where nothing else is said")
    overlay: Overlay = _group(Overlay, "how routers and zones find and lose each other")

    @property
    def expression_limits(self) -> ExpressionLimits:
        limits = self.limits
        return ExpressionLimits(nodes=limits.expression_nodes, depth=limits.expression_depth, literals=limits.literals)
