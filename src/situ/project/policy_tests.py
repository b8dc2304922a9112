"""The tests of a project's policies: found, read and run, on the edge engine, on Spark or on the reference.

`run_tests` runs them; `run_tests_on_spark` opens a Spark session of its own for that and closes it again.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from situ.bus.folder_lock import private_folder
from situ.lang.catalogue import ENGINE_FAILED, FILE_UNREADABLE, NO_SPARK, TEST_FILE_UNFIT, UNKNOWN_POLICY
from situ.lang.documents import parse_yaml
from situ.lang.problems import Location, Problem, Problems, SituError, nearest
from situ.lang.records import replace
from situ.model import Deployment
from situ.policies.actions.action_events import publications
from situ.policies.check.interactions import ChainDelay, chain_delays
from situ.policies.policy_tests import (
    ENDING,
    LINES,
    PolicyTest,
    PolicyTestProject,
    VerdictLine,
    compare,
    load_policy_test,
)
from situ.project.check import LoadedProject
from situ.project.folder import read_file
from situ.project.state_folder import LOGS
from situ.sources.model import Source, SourceKind
from situ.sources.table import Table
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.policy_tests import PolicyTestOutcome, run_policy_test, run_policy_test_by_definition, tables_of
from situ.tables.reader import TableReader

TEST_LOG = LOGS / "test.log"
"""What Spark and Java say on their own; begun anew each time."""


def run_tests_on_spark(folder: Path, deployment: Deployment, tests: Sequence[PolicyTest]) -> list[PolicyTestOutcome]:
    """What comes of these tests; :class:`SituError` if there is no Spark, or if it fails."""
    if not tests:
        return []
    try:
        from situ.spark.policy_tests import run_policy_tests_on_spark
        from situ.spark.session import LOST, open_session
    except ModuleNotFoundError as error:
        raise SituError(NO_SPARK(reason=f"there is no Python module `{error.name}`")) from error
    settings = deployment.settings
    log = folder / TEST_LOG
    private_folder(log.parent)
    conf = {name: value.value for name, value in settings.spark.conf}
    session = open_session(app=f"situ test {settings.name}", master=settings.spark.master.value, conf=conf, log=log)
    try:
        return run_policy_tests_on_spark(session, deployment, tests)
    except LOST as error:
        reason = str(error).strip().splitlines()[0][:500] or type(error).__name__
        remedy = f"See {TEST_LOG}; `situ test --engine edge` needs no Spark."
        raise SituError(ENGINE_FAILED(engine="spark", reason=reason, remedy=remedy)) from error
    finally:
        session.stop()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Tests of a project.

FOLDER = "policies"
_KINDS = {".csv": SourceKind.CSV, ".parquet": SourceKind.PARQUET, ".xml": SourceKind.XML}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTestResult:
    """A test, with its verdict line by line, or with what keeps it from being run."""

    file: str
    test: PolicyTest | None
    tried: PolicyTestOutcome | None
    lines: tuple[VerdictLine, ...] = ()
    problems: tuple[Problem, ...] = ()
    empty: tuple[str, ...] = ()
    """Of a test that failed: the tables that its policies ask for and that it gives no rows of."""
    delays: Mapping[str, ChainDelay] = field(default_factory=dict)
    """Of its policies that read what others publish: how much later they decide in a run."""

    @property
    def passed(self) -> bool:
        return self.tried is not None and all(line.passed for line in self.lines)


def find_tests(opened: LoadedProject, names: Sequence[str]) -> list[str]:
    """The files of tests, relative to the project; those of these names if there are some."""
    folder = opened.path / FOLDER
    found = sorted(f"{FOLDER}/{each.name}" for each in folder.glob(f"*{ENDING}")) if folder.is_dir() else []
    return [file for name in names for file in _named(name, found, opened)] if names else found


def _named(name: str, found: Sequence[str], opened: LoadedProject) -> Iterable[str]:
    if name.endswith(ENDING):
        file = _inside(Path(name), opened.path)
        if file not in found:
            reason, remedy = "there is no test here", f"Tests are the files `{FOLDER}/*{ENDING}` of the project."
            raise SituError(FILE_UNREADABLE(Location(file=name), reason=reason, remedy=remedy))
        return [file]
    own = f"{FOLDER}/{name}{ENDING}"
    if own in found:
        return [own]
    tested = [PurePosixPath(file).name.removesuffix(ENDING) for file in found]
    raise SituError(UNKNOWN_POLICY(name=name, nearest=nearest(name, [*opened.deployment.policies, *tested])))


def _inside(file: Path, folder: Path) -> str:
    full, root = file.absolute(), folder.absolute()
    return full.relative_to(root).as_posix() if full.is_relative_to(root) else file.as_posix()


def run_tests(opened: LoadedProject, files: Iterable[str], *, engine: str = "edge") -> list[PolicyTestResult]:
    """Run these tests on ``edge``, ``spark`` or ``reference``. One that cannot be run keeps no other from it."""
    loaded = load_tests(opened, files)
    tests = [each.test for each in loaded if each.test is not None]
    tried = iter(_on_spark(opened, tests) if engine == "spark" else _here(opened, tests, engine))
    deployment = opened.deployment
    waiting = chain_delays(
        deployment.policies,
        publications(deployment.policies, deployment.actions),
        deployment.ontology,
        deployment.push,
        deployment.types,
        deployment.settings.defaults.lateness,
    )
    judged = [each if each.test is None else _judged(opened, each, each.test, next(tried)) for each in loaded]
    return [
        each
        if each.test is None
        else replace(each, delays={name: waiting[name] for name in each.test.policies if name in waiting})
        for each in judged
    ]


def load_tests(opened: LoadedProject, files: Iterable[str]) -> list[PolicyTestResult]:
    """These tests, not run yet; those that cannot be understood with what is wrong in them."""
    return [_load(opened, file) for file in files]


def _judged(
    opened: LoadedProject, loaded: PolicyTestResult, test: PolicyTest, tried: PolicyTestOutcome
) -> PolicyTestResult:
    judged = replace(loaded, tried=tried, lines=tuple(compare(test.expect, tried.found)))
    if judged.passed:
        return judged
    asked = detection_of(opened.deployment, test.policies).tables.keyed
    return replace(judged, empty=tuple(name for name in asked if name not in test.pull))


def _here(opened: LoadedProject, tests: Iterable[PolicyTest], engine: str) -> Iterator[PolicyTestOutcome]:
    deployment, run = opened.deployment, run_policy_test_by_definition if engine == "reference" else run_policy_test
    for test in tests:
        detecting = detection_of(deployment, test.policies)
        yield run(test, detecting, tables_of(test, detecting, deployment.sources), deployment.types)


def _on_spark(opened: LoadedProject, tests: Sequence[PolicyTest]) -> list[PolicyTestOutcome]:

    return run_tests_on_spark(opened.path, opened.deployment, tests)


def _load(opened: LoadedProject, file: str) -> PolicyTestResult:
    """A test that was not run yet; without one if it cannot be understood."""
    deployment, problems = opened.deployment, Problems()
    data = read_file(opened.path, file, problems)
    around = PolicyTestProject(
        types=deployment.types,
        sources=deployment.sources,
        policies=deployment.policies,
        extra=deployment.settings.defaults.extra,
    )
    files = _Files(opened.path, posixpath.dirname(file))
    document = None if data is None else parse_yaml(data, file)
    test = None if document is None else load_policy_test(document, around, files, problems)
    return PolicyTestResult(file=file, test=test, tried=None, problems=problems.sorted())


def detection_of(deployment: Deployment, policies: Iterable[str]) -> DetectionPlan:
    """Some policies of a project, compiled."""
    names = tuple(policies)
    return DetectionPlan(
        [deployment.policies[name] for name in names],
        deployment.ontology,
        deployment.push,
        deployment.sources,
        deployment.types,
        deployment.settings.defaults,
        deployment.actions,
        resting=[each for name, each in deployment.policies.items() if name not in names],
    )


class _Files:
    """Files that a test names, from its own folder; they may be anywhere in the project."""

    def __init__(self, project: Path, folder: str) -> None:
        self._project, self._folder = project, folder

    def text(self, file: str) -> bytes:
        problems = Problems()
        # Of lines each is bounded, and not their number: a part of the events would be another test.
        data = read_file(self._project, self._place(file), problems, whole=file.endswith(LINES))
        if data is None:
            raise SituError(*problems)
        return data

    def table(self, source: Source, file: str) -> Table:
        kind = _KINDS.get(posixpath.splitext(file)[1])
        if kind is None or (kind is SourceKind.XML and source.kind is not SourceKind.XML):
            reason = f"the rows of `{source.name}` cannot be read from such a file"
            remedy = "Name a CSV or Parquet file with its columns, or write the rows as a list."
            raise SituError(TEST_FILE_UNFIT(None, file=file, reason=reason, remedy=remedy))
        self.text(file)  # outside of the project nothing is read
        reading = TableReader(self._project, os.environ)
        try:
            return reading.read(replace(source, kind=kind, place=self._place(file), url="")).table
        finally:
            reading.close()

    def _place(self, file: str) -> str:
        """Where the file is in the project."""
        place = posixpath.normpath(posixpath.join(self._folder, file))
        if place.startswith(("../", "/")):
            remedy = "Put it into the project folder, and name it from the folder of the test."
            raise SituError(TEST_FILE_UNFIT(None, file=file, reason="it is outside of the project", remedy=remedy))
        return place
