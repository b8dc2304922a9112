"""The process of real-time queries: one Spark application beside that of the engine, which a run starts and watches.

Queries in real-time mode hold a slot for each partition for as long as a batch lasts, so they would starve those of the
engine in one application. What is to run follows from what both can see: the deployment in force, the offsets of the
engine, and the generations in the folder between them (:mod:`situ.spark.real_time.generations`). Whatever is killed, it
is looked at again and goes on.

It gets its task as one line on its input, and ends when that ends. What it has to tell are lines of JSON on its output.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from situ.bus.address import Address
from situ.kafka.connection import group_of
from situ.kafka.partition_reader import RangeReader
from situ.lang.catalogue import REAL_TIME_FAILED
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.spark.plans import current_version, load_plan
from situ.spark.real_time.generations import Generation, Generations, partition_key
from situ.spark.real_time.java_options import java_options
from situ.spark.real_time.leave_out import planned
from situ.spark.real_time.task import ProcessReport, ProcessTask, QueryProgress
from situ.stages.plan import Plan
from situ.stages.real_time import RealTimeClient, real_time_plan, visible_since
from situ.stages.seal_text import seal_properties
from situ.storage.state_folder import StateFolder, use_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger("situ.spark")
_LOOK = 0.5
_RUNS_AFTER = 3.0
"""Seconds for which tasks of a new generation have to run before deliveries are left to it: they compile first."""
_PAUSES = (1.0, 2.0, 5.0, 10.0)
_IDLE = 30.0
_ASK_EVERY = 2.0
"""Seconds after which Kafka is asked again whether anything is left of what an old generation had to deliver."""
_SLOTS = 256
"""Partitions that may be read at once; a slot is a thread that mostly waits."""


def main(given: TextIO, told: TextIO) -> int:
    """Work until the input ends, or nothing is to be delivered any more."""
    task = msgspec.json.decode(given.readline(), type=ProcessTask)
    threading.Thread(target=_end_with, args=(given,), daemon=True).start()
    use_options(task.conf)
    host = QueryHost(task)
    worked = time.monotonic()
    while True:
        try:
            busy = host.step()
            problem = ""
        except (SituError, PySparkException, Py4JError, OSError) as error:
            busy, problem = True, str(error) if isinstance(error, SituError) else str(host.failed(error))
            if isinstance(error, Py4JError):
                _tell(told, ProcessReport(problem=problem))
                return 1
        _tell(told, replace(host.report(), problem=problem))
        if busy:
            worked = time.monotonic()
        elif task.drain or time.monotonic() - worked > _IDLE:
            host.close()
            return 0
        time.sleep(_LOOK if not problem else _PAUSES[1])


def _end_with(given: TextIO) -> None:
    """End as soon as nobody is at the other end of the input: Java ends with this process."""
    with suppress(ValueError, OSError):
        while given.readline():
            pass
    os._exit(0)


def _tell(told: TextIO, report: ProcessReport) -> None:
    told.write(msgspec.json.encode(report).decode() + "\n")
    told.flush()


@dataclass(frozen=True)
class _Terms:
    """How the query of a client has to deliver by the scopes in force."""

    since: Mapping[str, str]
    """Subscription → what they ask besides."""
    sealed: bool


@dataclass
class _Running:
    """The queries of a generation, by client."""

    generation: Generation
    plan: Plan | None = None
    """Of the generation's version, once its queries were to run."""
    version: int = 0
    """Of the deployment by whose scopes they deliver."""
    terms: Mapping[str, _Terms] = field(default_factory=dict)
    queries: dict[str, StreamingQuery] = field(default_factory=dict)
    begun: dict[str, float] = field(default_factory=dict)
    """When tasks of a query were first seen."""
    since: float = field(default_factory=time.monotonic)
    failures: int = 0
    not_before: float = 0.0
    asked: float = float("-inf")
    """When it was last looked whether it is done."""


class QueryHost:
    """Runs the queries of all generations that are not done with, and decides which is current."""

    def __init__(self, task: ProcessTask) -> None:
        self._task = task
        self._address = Address.from_json(task.bus)
        self._generations = Generations(StateFolder(task.events))
        self._session: SparkSession | None = None
        self._running: dict[int, _Running] = {}
        self._ranges: RangeReader | None = None

    def step(self) -> bool:
        """Look what is to run, and have it run; False if there is nothing to do."""
        generations = self._generations
        wanted = None if self._task.drain else self._wanted()
        if wanted is None and generations.current():
            generations.make_current(0)
        for number in generations.numbers():
            if number not in self._running:
                self._running[number] = _Running(generations.load(number))
        in_force = current_version(self._address)
        for each in self._running.values():
            self._hold_to(each, in_force or each.generation.version)
        for number, each in tuple(self._running.items()):
            if each.generation is not wanted and number != generations.current() and self._is_done(each):
                self._end(number)
            else:
                self._keep_running(each)
        if wanted is not None and generations.current() != wanted.number and self._runs(wanted.number):
            generations.make_current(wanted.number)
            _log.info("real-time generation %d delivers", wanted.number)
        return bool(self._running) or wanted is not None

    def _wanted(self) -> Generation | None:
        """The generation that is to be current, made if there is none like it; None if nothing goes in real time."""
        reached, version = self._generations.reached(), current_version(self._address)
        if reached is None or not version:
            return None
        digests = planned(load_plan(self._address, version)).digests
        starts: dict[str, dict[str, int]] = {client: {} for client in digests}
        sources = load_plan(self._address, version).deployment.clients
        for key, (_, end) in reached.topics.items():
            client, topic, partition = key.split(" ")
            source = sources[client].kafka if client in starts else None
            if source is not None and topic in source.topics:
                starts[client][partition_key(topic, int(partition))] = end
        starts = {client: each for client, each in starts.items() if each}
        digests = {client: digests[client] for client in starts}
        if not digests:
            return None
        for number in reversed(self._generations.numbers()):
            known = self._running[number].generation if number in self._running else self._generations.load(number)
            if known.is_same(digests, starts):
                if number not in self._running:
                    self._running[number] = _Running(known)
                return self._running[number].generation
        made = self._generations.add(version, digests, starts)
        self._running[made.number] = _Running(made)
        return made

    # ── queries ──

    def _hold_to(self, running: _Running, version: int) -> None:
        """Stop queries that deliver otherwise than the scopes of this version let them; they go on by these."""
        if running.version == version:
            return
        if running.plan is None:
            running.plan = load_plan(self._address, running.generation.version)
        clients, now = planned(running.plan).clients, load_plan(self._address, version)
        terms = {name: _terms(clients[name], now) for name in running.generation.starts}
        for client, each in terms.items():
            if client in running.queries and each != running.terms.get(client):
                running.queries.pop(client).stop()
        running.version, running.terms = version, terms

    def _keep_running(self, running: _Running) -> None:
        now = time.monotonic()
        if now < running.not_before:
            return
        for client in running.generation.starts:
            query = running.queries.get(client)
            if query is not None and query.isActive:
                continue
            try:
                if query is not None and (error := query.exception()) is not None:
                    del running.queries[client]
                    raise error
                running.begun.pop(client, None)
                running.queries[client] = self._start(running, client)
                running.since = now
            except (PySparkException, SituError):
                running.failures += 1
                running.since = now
                running.not_before = now + _PAUSES[min(running.failures, len(_PAUSES)) - 1]
                raise
        if running.failures and now - running.since > _PAUSES[-1]:
            running.failures = 0

    def _start(self, running: _Running, client: str) -> StreamingQuery:
        from situ.spark.real_time.query import start_query

        generation, plan, terms = running.generation, running.plan, running.terms[client]
        assert plan is not None
        seeing = load_plan(self._address, running.version).seeing or plan.seeing
        # The first scopes have come since: from then on numbers are sealed.
        late = terms.sealed and plan.seeing is None
        return start_query(
            self._open_session(),
            (real_time_plan(plan, sealed=True) if late else planned(plan)).clients[client],
            generation.starts[client],
            since=terms.since,
            seal=seal_properties(seeing.seal) if seeing is not None else {},
            name=f"real time {client} {generation.number}",
            checkpoint=str(self._generations.checkpoint(generation.number, client)),
            kafka=java_options(self._task.kafka),
            batch=self._task.batch,
        )

    def _runs(self, number: int) -> bool:
        """Whether all its queries run, and have for a while."""
        running, now = self._running[number], time.monotonic()
        for client in running.generation.starts:
            query = running.queries.get(client)
            if query is None or not query.isActive:
                return False
            if client not in running.begun and self._has_tasks(query):
                running.begun[client] = now
        # One that has none now is between two batches.
        begun = [running.begun.get(client, now) for client in running.generation.starts]
        return now - max(begun) > _RUNS_AFTER

    def _has_tasks(self, query: StreamingQuery) -> bool:
        """Whether its tasks have begun: they read until the batch ends."""
        assert self._session is not None
        tracker = self._session.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(str(query.runId))]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return any(stage is not None and stage.numActiveTasks for stage in stages)

    def _open_session(self) -> SparkSession:
        from situ.spark.session import open_session

        if self._session is None:
            own = self._task.connector.replace(" ", "")
            files = ".jar" in own
            conf = {
                **self._task.conf,
                "spark.jars" if files else "spark.jars.packages": own,
                "spark.driver.memory": "1g",
                # A batch of each query has one thread for each partition; nothing here uses Python.
                "spark.scheduler.mode": "FAIR",
            }
            self._session = open_session(
                app=f"situ {self._task.project} real time",
                master=f"local[{_SLOTS}]",
                conf=conf,
                log=Path(self._task.log),
                plain_files="://" not in self._task.events,
            )
        return self._session

    def failed(self, error: Exception) -> SituError:
        """What Spark raised, as a problem."""
        text = str(error).partition("=== Streaming Query ===")[0]
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        reason = (lines or [type(error).__name__])[0][:500]
        return SituError(REAL_TIME_FAILED(reason=reason.rstrip(".")))

    # ── what is over ──

    def _is_done(self, running: _Running) -> bool:
        """Whether all is delivered that batches of the engine left to it."""
        generation, now = running.generation, time.monotonic()
        if now - running.asked < _ASK_EVERY:
            return False
        running.asked = now
        left = self._left(generation)
        if left is None:
            return False
        return all(
            self._has_delivered(generation, client, place, left.get(f"{client} {place}", 0))
            for client, starts in generation.starts.items()
            for place in starts
        )

    def _left(self, generation: Generation) -> Mapping[str, int] | None:
        if not self._task.drain:
            return self._generations.left_until(generation.number)
        reached = self._generations.reached()
        return {key: end for key, (_, end) in reached.topics.items()} if reached is not None else {}

    def _has_delivered(self, generation: Generation, client: str, place: str, until: int) -> bool:
        begin = generation.starts[client][place]
        at = max(begin, self._reached(generation, client).get(place, begin))
        if at >= until:
            return True
        # What stands between may be no record but the marks of transactions, at which Spark's offsets do not stop.
        if self._ranges is None:
            self._ranges = RangeReader(self._task.kafka)
        topic, _, partition = place.rpartition(" ")
        group = group_of(self._task.project, self._task.zone, f"{client}.real-time")
        found: Iterator[Any] = self._ranges.read(group, (topic, int(partition)), at, until)
        return next(found, None) is None

    def _reached(self, generation: Generation, client: str) -> dict[str, int]:
        """How far a query was when its last batch ended."""
        checkpoint = self._generations.checkpoint(generation.number, client)
        done = [int(name) for name in (checkpoint / "commits").names() if name.isdigit()]
        text = (checkpoint / "offsets").read(str(max(done))) if done else None
        if text is None:
            return {}
        offsets: dict[str, dict[str, int]] = json.loads(text.splitlines()[-1])
        return {
            partition_key(topic, int(number)): offset
            for topic, each in offsets.items()
            for number, offset in each.items()
        }

    def _end(self, number: int) -> None:
        running = self._running.pop(number)
        for query in running.queries.values():
            query.stop()
        self._generations.remove(number)
        _log.info("real-time generation %d is done", number)

    def report(self) -> ProcessReport:
        queries = tuple(
            _progress(query, client, number)
            for number, each in self._running.items()
            for client, query in each.queries.items()
        )
        return ProcessReport(current=self._generations.current(), open=tuple(self._running), queries=queries)

    def close(self) -> None:
        if self._session is not None:
            self._session.stop()


def _terms(client: RealTimeClient, now: Plan) -> _Terms:
    since = {each.id: visible_since(client, each, now) for each in client.subscriptions}
    return _Terms(since=since, sealed=client.sealed or now.seeing is not None)


def _progress(query: StreamingQuery, client: str, generation: int) -> QueryProgress:
    last = query.lastProgress
    if last is None:
        return QueryProgress(client=client, generation=generation, rows=0.0, at=0)
    rows = float(last.processedRowsPerSecond or 0.0)
    ended = dt.datetime.fromisoformat(last.timestamp) + dt.timedelta(milliseconds=last.batchDuration)
    return QueryProgress(client=client, generation=generation, rows=rows, at=int(ended.timestamp() * 1e6))


if __name__ == "__main__":
    sys.exit(main(sys.stdin, sys.stdout))
