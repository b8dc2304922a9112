"""Policies tried on events that a test gives, at times that it says: what ``situ test`` does with a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from situ.client.events import Situation
from situ.event.instants import instant_at, microseconds
from situ.lang.catalogue import NO_TABLE_TO_FILL, UNKNOWN_POLICY
from situ.lang.problems import SituError, nearest
from situ.lang.types.lookup import EventData
from situ.policies.policy_tests import FoundSituation, GivenEvent, PolicyTest
from situ.project.check import LoadedProject
from situ.project.policy_tests import detection_of
from situ.sources.table import Table, make_table
from situ.stages.detect.policy_tests import run_policy_test, tables_of
from situ.testing.fixtures import Clock, Project, copy_project, load_project


class PolicyCase:
    """Policies of a project, events and rows of tables that a test gives, and the situations that come of them.

    ``project`` is a folder, or the files of one as a mapping of paths to texts. Without ``policies`` all of its
    policies are tried. Events happen, and are received, when the ``clock`` says so. No bus and no engine runs: what
    detects is the code that engines run.

    >>> case = situ.testing.PolicyCase(yard, "speeding")
    >>> case.rows("trucks", [{"id": "LY-204", "owner": "Lyra"}])
    >>> case.event("TruckSeen", truck="LY-204", speed=31.0)
    >>> case.clock.advance(minutes=5)
    >>> case.event("TruckSeen", truck="LY-204", speed=80.0)
    >>> [(each.bindings["T"], each.start.minute) for each in case.situations()]
    [('LY-204', 5)]
    """

    def __init__(self, project: Project, *policies: str, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self._loaded = _loaded(project)
        known = self._loaded.deployment.policies
        for name in policies:
            if name not in known:
                raise SituError(UNKNOWN_POLICY(name=name, nearest=nearest(name, known)))
        self._policies = policies or tuple(known)
        settings = self._loaded.settings
        self._data = EventData(self._loaded.deployment.types, settings.defaults.extra)
        self._events: list[GivenEvent] = []
        self._tables: dict[str, Table] = {}

    def rows(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """The rows of a table that policies look up in; one that is not given is empty."""
        source = self._loaded.deployment.sources.get(table)
        if source is None:
            raise SituError(NO_TABLE_TO_FILL(name=table, nearest=nearest(table, self._loaded.deployment.sources)))
        columns: dict[str, list[Any]] = {each.name: [row.get(each.name) for row in rows] for each in source.columns}
        self._tables[table] = make_table(source, columns)

    def event(
        self,
        /,
        type: str,
        data: Mapping[str, Any] | None = None,
        *,
        time: datetime | None = None,
        id: str | None = None,
        source: str = "test",
        **fields: Any,
    ) -> None:
        """An event in root's terms, received now. It happened now, too, unless ``time`` says when.

        :class:`SituError` if it is none of a declared type.
        """
        decoded = self._data.decode(type, {**data, **fields} if data else fields)
        if decoded.problems:
            raise SituError(*decoded.problems)
        now = self.clock()
        self._events.append(
            GivenEvent(
                type=type,
                id=id or f"e{len(self._events) + 1}",
                source=source,
                time=now if time is None else microseconds(time),
                received=now,
                data=decoded.value,
            )
        )

    def situations(self, *, settled: bool = True) -> list[Situation]:
        """What came of the events so far, in the order it began.

        ``settled`` is after a silence so long that everything is decided. Otherwise it is what is decided now, by the
        clock: what may still come within ``lateness`` is waited for.
        """
        deployment = self._loaded.deployment
        test = PolicyTest(
            name="case",
            policies=self._policies,
            events=tuple(self._events),
            pull=self._tables,
            clock=None if settled else self.clock(),
        )
        detecting = detection_of(deployment, test.policies)
        tables = tables_of(test, detecting, deployment.sources)
        return [_situation(each) for each in run_policy_test(test, detecting, tables, deployment.types).found]


def _loaded(project: Project) -> LoadedProject:
    if not isinstance(project, Mapping):
        return load_project(Path(project))
    with TemporaryDirectory(prefix="situ-") as folder:
        return load_project(copy_project(project, Path(folder)))


def _situation(found: FoundSituation) -> Situation:
    return Situation(
        id=found.id,
        policy=found.policy,
        bindings=dict(found.bindings),
        start=instant_at(found.at),
        end=None if found.closed is None else instant_at(found.closed),
        detections=found.detections,
    )
