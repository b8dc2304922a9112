"""Detection over months as a batch on Spark: what policies find in an archive or in files of others, as a table.

`replay_history` needs no run and no bus: what is declared is that of the project folder, or that of the registry where
the archive is older than a root of now. `SituationTable` writes situations to Parquet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from situ.app.replay import PolicyInput, ReplayedSituation
from situ.archive.format import ArchiveDescription, archive_of, open_archive, store_options
from situ.bus.folder_lock import private_folder
from situ.event.instants import microseconds
from situ.lang.catalogue import (
    ARCHIVE_IN_FORMER_TERMS,
    ARCHIVE_OF_ANOTHER,
    NO_ARCHIVE,
    NO_SPARK,
    TABLE_IN_THE_WAY,
)
from situ.lang.documents import parse_yaml
from situ.lang.problems import Location, Problems, SituError
from situ.lang.records import replace
from situ.model import Deployment
from situ.policies.lifecycle import situation_sentence
from situ.policies.model import Policy
from situ.project.state_folder import LOGS
from situ.registry import open_registry
from situ.settings import Settings
from situ.stages.detect.backfill import lookback
from situ.stages.detect.situation_events import DetectionCounts
from situ.stages.plan import Plan, compile_plan
from situ.storage.state_folder import StateFolder, environment_of, open_folder, use_options

if TYPE_CHECKING:
    from datetime import datetime

    from situ.spark.history.detect import HistoryNote, HistoryPlan, PastSituation
    from situ.spark.history.mapped_files import DeadRow, FileMap

OnSituation = Callable[[ReplayedSituation], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOutcome:
    """What was seen of a history; its situations were told one by one."""

    events: int = 0
    seconds: float = 0.0
    """That the batch took, without the start of Spark."""
    situations: int = 0
    counts: DetectionCounts = field(default_factory=DetectionCounts)
    looked: Mapping[str, PolicyInput] = field(default_factory=dict)
    dead: Mapping[str, int] = field(default_factory=dict)
    """Rows of files that are no events, by code."""
    samples: tuple[DeadRow, ...] = ()
    """The first of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """What is asked: policies over a place, of the time from ``since`` to before ``until``, as events say it."""

    place: str
    policies: Mapping[str, Policy]
    maps: Sequence[tuple[str, bytes]] = ()
    """Files that say what columns are: names and contents."""
    since: datetime | None = None
    until: datetime | None = None


def replay_history(
    folder: Path, deployment: Deployment, query: HistoryQuery, told: OnSituation, *, base: Path = Path()
) -> HistoryOutcome:
    """Detect over a history, on the Spark of the project; ``told`` gets each situation, in no order.

    ``base`` is where relative places begin.
    """
    settings = deployment.settings
    use_options(store_options(settings))
    deployment = with_policies(deployment, query.policies)
    place = open_folder(query.place, base)
    plan, deployment = _plan_of(place, deployment, query, folder)
    compiled = compile_plan(deployment)
    names = tuple(query.policies)
    if query.since is not None:
        since = microseconds(query.since)
        plan = replace(plan, since=since, early=since - lookback(compiled.detecting.only(names)))
    if query.until is not None:
        plan = replace(plan, until=microseconds(query.until))
    plan = replace(plan, parts=tuple(each for each in plan.parts if _is_wanted(each, plan)))
    return _run(folder, settings, names, plan, compiled, told)


def with_policies(deployment: Deployment, policies: Mapping[str, Policy]) -> Deployment:
    """The deployment as if these policies were part of it, and at work."""
    names = policies.keys()
    return replace(
        deployment,
        policies={**deployment.policies, **policies},
        stopped={name: each for name, each in deployment.stopped.items() if name not in names},
        suspended=deployment.suspended - names,
    )


def _is_wanted(part: Any, plan: HistoryPlan) -> bool:
    return (plan.early is None or part.end >= plan.early) and (plan.until is None or part.begin < plan.until)


def _plan_of(
    place: StateFolder, deployment: Deployment, query: HistoryQuery, folder: Path
) -> tuple[HistoryPlan, Deployment]:
    from situ.spark.history.detect import HistoryPlan
    from situ.spark.history.mapped_files import find_files

    if query.maps:
        maps = _maps(query.maps, deployment)
        return HistoryPlan(files=find_files(place, maps, deployment), maps=maps), deployment
    settings = deployment.settings
    archive = open_archive(place, settings.log.archive_format)
    found = archive.description()
    if found is None:
        remedy = "Files of others need a map that says what their columns are: `--map`."
        raise SituError(NO_ARCHIVE(place=str(place), remedy=remedy))
    _check_project(found, settings, place)
    parts = tuple(part for segment in archive.segments() for part in segment.parts)
    latest = max((each.generation for each in parts), default=1)
    if latest > _generation(deployment):
        deployment = with_policies(_registered(folder, settings, latest, place), query.policies)
    return HistoryPlan(place=str(place), format=settings.log.archive_format, parts=parts), deployment


def _check_project(found: ArchiveDescription, settings: Settings, place: StateFolder) -> None:
    if found.project != settings.name:
        where = Location(file=str(place))
        raise SituError(ARCHIVE_OF_ANOTHER(where, what="project", found=found.project, expected=settings.name))


def _generation(deployment: Deployment) -> int:
    return compile_plan(deployment).interpretation.generation


def _registered(folder: Path, settings: Settings, latest: int, place: StateFolder) -> Deployment:
    """What the registry has in force: it knows the former roots that events of the archive are in the terms of."""
    with open_registry(folder, settings) as registry:
        current = registry.current()
    known = _generation(current)
    if latest > known:
        raise SituError(ARCHIVE_IN_FORMER_TERMS(Location(file=str(place)), found=latest, known=known))
    return current


def _maps(files: Sequence[tuple[str, bytes]], deployment: Deployment) -> tuple[FileMap, ...]:
    from situ.spark.history.mapped_files import load_map

    problems = Problems()
    found = [load_map(parse_yaml(data, name), deployment, problems) for name, data in files]
    problems.raise_errors()
    return tuple(each for each in found if each is not None)


def _run(
    folder: Path, settings: Settings, names: Sequence[str], plan: HistoryPlan, compiled: Plan, told: OnSituation
) -> HistoryOutcome:
    from situ.spark.history.detect import detect_history, history_terms

    terms, count = history_terms(compiled, names, plan.maps, folder), 0
    with _session(folder, settings) as session:
        begin = time.perf_counter()
        history = detect_history(session, terms, plan)
        for each in history.situations:
            count += 1
            told(_replayed(each))
        seconds = time.perf_counter() - begin
    return HistoryOutcome(
        events=history.note.events,
        seconds=seconds,
        situations=count,
        counts=history.note.counts,
        looked=_looked(history.note, compiled, names),
        dead=history.note.dead,
        samples=tuple(history.note.samples),
    )


@contextmanager
def _session(folder: Path, settings: Settings) -> Iterator[Any]:
    try:
        from situ.spark.session import open_session
    except ModuleNotFoundError as error:
        raise SituError(NO_SPARK(reason=f"there is no Python module `{error.name}`")) from error
    log = folder / LOGS / "replay.log"
    private_folder(log.parent)
    conf = {name: value.value for name, value in settings.spark.conf}
    # Rows of a shuffle are whole portions of events: a few of them are enough for a batch.
    conf.setdefault("spark.sql.execution.arrow.maxBytesPerBatch", str(16 * 1024 * 1024))
    # Java has nothing in its heap but what it sorts. What does not fit goes to disk, which takes twice as long.
    conf.setdefault("spark.memory.fraction", "0.8")
    session = open_session(
        app="situ replay",
        master=settings.spark.master.value,
        conf=conf,
        log=log,
        folder=folder,
        variables=environment_of(conf),
    )
    try:
        yield session
    finally:
        session.stop()


def _looked(note: HistoryNote, plan: Plan, names: Sequence[str]) -> dict[str, PolicyInput]:
    found = {}
    for name in names:
        seen, hidden = note.looked.get(name, (0, 0))
        sources = tuple(sorted(plan.detecting.watches[name].patience))
        found[name] = PolicyInput(sources=sources, seen=seen, hidden=hidden)
    return found


def _replayed(each: PastSituation) -> ReplayedSituation:
    return ReplayedSituation(
        id=each.id,
        policy=each.policy,
        bindings=each.bindings,
        start=each.start,
        last=each.last,
        end=each.end,
        detections=each.detections,
        causes=each.causes,
        positions=each.positions,
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Situations as a table.

_INSTANT = pa.timestamp("us", tz="UTC")
TABLE = pa.schema(
    [
        ("policy", pa.string()),
        ("situation", pa.string()),
        ("bindings", pa.map_(pa.string(), pa.string())),
        ("start", _INSTANT),
        ("last", _INSTANT),
        ("end", _INSTANT),
        ("detections", pa.int64()),
        ("causes", pa.list_(pa.struct([("source", pa.string()), ("id", pa.string())]))),
        ("text", pa.string()),
    ]
)
_SUCCESS, _PREFIX = "_SUCCESS", "situations-"
_A_FILE = 100_000


class SituationTable:
    """A folder of Parquet files, a row for each situation. It is whole when ``_SUCCESS`` is there.

    What an earlier replay wrote there is replaced; N178 if something else is there.
    """

    def __init__(self, place: str, policies: Mapping[str, Policy], base: Path = Path()) -> None:
        self._folder = open_folder(place, base)
        self._policies = policies
        self._rows: list[dict[str, Any]] = []
        self._files = self.count = 0
        before = self._folder.names()
        others = [name for name in before if name != _SUCCESS and not name.startswith(_PREFIX)]
        if others:
            reason = f"it has other files, such as `{others[0]}`"
            raise SituError(TABLE_IN_THE_WAY(place=str(self._folder), reason=reason))
        for name in sorted(before):  # what says that it is whole goes first
            self._folder.remove(name)

    def add(self, each: ReplayedSituation) -> None:
        self._rows.append(
            {
                "policy": each.policy,
                "situation": each.id,
                "bindings": list(each.bindings),
                "start": each.start,
                "last": each.last,
                "end": each.end,
                "detections": each.detections,
                "causes": [{"source": cause.source, "id": cause.id} for cause in each.causes],
                "text": situation_sentence(self._policies[each.policy], each.bindings),
            }
        )
        self.count += 1
        if len(self._rows) >= _A_FILE:
            self._write()

    def finish(self) -> None:
        if self._rows or not self._files:
            self._write()
        self._put(_SUCCESS, b"")

    def _write(self) -> None:
        sink = pa.BufferOutputStream()
        parquet.write_table(pa.Table.from_pylist(self._rows, schema=TABLE), sink, compression="zstd")
        self._files += 1
        self._put(f"{_PREFIX}{self._files:06d}.parquet", sink.getvalue().to_pybytes())
        self._rows = []

    def _put(self, name: str, content: bytes) -> None:
        try:
            self._folder.write(name, content)
        except OSError as error:
            reason = error.strerror or str(error)
            raise SituError(TABLE_IN_THE_WAY(place=str(self._folder), reason=reason)) from None


def archive_in(folder: Path, settings: Settings) -> Any:
    """The archive of a project, for commands that read its log; None if it has none."""
    use_options(store_options(settings))
    return archive_of(settings, folder)
