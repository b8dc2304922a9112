"""Tests of policies: what is given, which situations are expected of it, and how ``*.test.yaml`` files say so.

`PolicyTest` is a test as plain data, `compare` holds found situations against expected ones, `load_policy_test` reads a
file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from situ.event.instants import microseconds, print_instant
from situ.lang.catalogue import NO_TABLE_TO_FILL, TEST_FILE_UNFIT, UNKNOWN_ALIAS, UNKNOWN_POLICY
from situ.lang.documents import (
    Document,
    Fields,
    Node,
    Reader,
    ScalarNode,
    SequenceNode,
    parse_json,
    parse_yaml,
    to_data,
)
from situ.lang.problems import Location, Problem, Problems, SituError, nearest
from situ.lang.quantities import format_duration, parse_duration, parse_instant
from situ.lang.records import replace
from situ.lang.types.json_codec import Extra
from situ.lang.types.lookup import EventData
from situ.lang.types.table import Types
from situ.policies.lifecycle import SituationPhase, SituationTransition
from situ.policies.model import Policy
from situ.sources.model import Source
from situ.sources.table import Table, make_table

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A test as data. Times are microseconds; those that a test gives as durations count from :data:`START`.

START = (datetime(2000, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
_YEAR = 365 * 86_400 * 1_000_000


def moment(time: int) -> str:
    """As a test writes it: after its start, or as an instant."""
    if START <= time < START + _YEAR:
        return format_duration(timedelta(microseconds=time - START))
    return print_instant(time)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenEvent:
    """An event in root terms; ``data`` is a value of its type."""

    type: str
    id: str
    source: str
    time: int
    received: int
    data: Mapping[str, Any]
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedSituation:
    """A situation. What is None, and an alias that is not named, may be anything."""

    policy: str
    at: int | None = None
    bindings: tuple[tuple[str, str], ...] = ()
    closed: int | None = None
    detections: int | None = None
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTest:
    """Events in the order they arrive, the rows of pull sources, and what is expected of some policies.

    ``clock`` is what the clock says at the end; without it the test goes on until all is settled.
    """

    name: str
    policies: tuple[str, ...]
    events: tuple[GivenEvent, ...] = ()
    pull: Mapping[str, Table] = field(default_factory=dict)
    clock: int | None = None
    expect: tuple[ExpectedSituation, ...] = ()
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSituation:
    """A situation that came of a test; ``closed`` is None while it is open."""

    id: str
    policy: str
    at: int
    bindings: tuple[tuple[str, str], ...]
    closed: int | None
    detections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """One line of a verdict: what was expected, what was found, or both."""

    expected: ExpectedSituation | None
    found: FoundSituation | None

    @property
    def passed(self) -> bool:
        return self.expected is not None and self.found is not None and not differences(self.expected, self.found)


def situations(transitions: Iterable[SituationTransition]) -> list[FoundSituation]:
    """What became of the situations that these transitions tell of, in the order they opened."""
    last: dict[str, SituationTransition] = {}
    for transition in transitions:
        last[transition.situation.id] = transition
    found = [
        FoundSituation(
            id=each.situation.id,
            policy=each.situation.policy,
            at=each.situation.start,
            bindings=each.situation.bindings,
            closed=each.end if each.stage is SituationPhase.CLOSED else None,
            detections=each.situation.detections,
        )
        for each in last.values()
    ]
    return sorted(found, key=lambda each: (each.at, each.policy, each.bindings, each.id))


def compare(expect: Iterable[ExpectedSituation], found: Iterable[FoundSituation]) -> list[VerdictLine]:
    """Every expected situation beside one that was found: first those that fit, then those that differ least."""
    left, open_lines = list(found), list(expect)
    lines: list[tuple[ExpectedSituation, FoundSituation | None]] = []
    for most in (0, 1, 2, 3):
        for expected in list(open_lines):
            similar = [each for each in left if each.policy == expected.policy]
            best = min(similar, key=lambda each: len(differences(expected, each)), default=None)
            if best is not None and len(differences(expected, best)) <= most:
                lines.append((expected, best))
                left.remove(best)
                open_lines.remove(expected)
    paired = [VerdictLine(expected=each, found=other) for each, other in lines]
    paired += [VerdictLine(expected=each, found=None) for each in open_lines]
    paired += [VerdictLine(expected=None, found=each) for each in left]
    return sorted(paired, key=_order)


def _order(line: VerdictLine) -> tuple[int, str]:
    at = line.found.at if line.found is not None else line.expected.at if line.expected is not None else None
    policy = line.found.policy if line.found is not None else line.expected.policy if line.expected is not None else ""
    return (START if at is None else at), policy


def differences(expected: ExpectedSituation, found: FoundSituation) -> list[str]:
    """In which respects what was found is not what was expected: ``policy``, ``at``, aliases and so on."""
    wrong = ["policy"] if expected.policy != found.policy else []
    if expected.at is not None and expected.at != found.at:
        wrong.append("at")
    bound = dict(found.bindings)
    wrong += [alias for alias, identity in expected.bindings if bound.get(alias) != identity]
    if expected.closed is not None and expected.closed != found.closed:
        wrong.append("closed")
    if expected.detections is not None and expected.detections != found.detections:
        wrong.append("detections")
    return wrong


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``*.test.yaml`` → a test, with a place for everything that is wrong in it. Events are checked against the types, rows
# against the columns of their tables. Files that a test names are read by whoever calls.

ENDING = ".test.yaml"
_SOURCE = "test"
_MICROSECOND = timedelta(microseconds=1)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d")
LINES = ".jsonl"
_LISTS = (".yaml", ".yml", ".json", LINES)
_MOST_PROBLEMS = 100
"""Of lines with something wrong in them; behind so many the rest is not read."""


class PolicyTestFiles(Protocol):
    """How files that a test names are read; their names are taken from the folder of the test."""

    def text(self, file: str) -> bytes:
        """The content of a file; :class:`SituError` if it cannot be read."""

    def table(self, source: Source, file: str) -> Table:
        """The rows in a file of the form that a source has; :class:`SituError` if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTestProject:
    """What a test is about: the types, sources and policies of its project."""

    types: Types
    sources: Mapping[str, Source]
    policies: Mapping[str, Policy]
    extra: Extra = "drop"


def load_policy_test(
    document: Document, around: PolicyTestProject, files: PolicyTestFiles, problems: Problems
) -> PolicyTest | None:
    """The test of a file; None if it has errors, which are reported."""
    found = Problems()
    test = _Loading(document, around, files, found).test()
    problems.extend(found)
    return None if found.errors else test


class _Loading:
    def __init__(
        self, document: Document, around: PolicyTestProject, files: PolicyTestFiles, problems: Problems
    ) -> None:
        self.document, self.around, self.files, self.problems = document, around, files, problems
        self.read = Reader(problems)
        self.data = EventData(around.types, around.extra)
        self.own = document.file.rsplit("/", 1)[-1].removesuffix(ENDING)
        """The policy beside the test, if there is one of that name."""

    def test(self) -> PolicyTest | None:
        fields = self.read.document(self.document, required=("given", "expect"), optional=("policies",))
        given = fields.fields("given", optional=("events", "pull", "clock")) if fields is not None else None
        if fields is None or given is None:
            return None
        expect = tuple(each for item in fields.items("expect") for each in self._expected(item))
        named = [*self._policies(fields), *(each.policy for each in expect if each.policy)]
        beside = [self.own] if self.own in self.around.policies else []
        policies = tuple(dict.fromkeys([*beside, *named]))
        if not policies and not self.problems.errors:
            self.problems.add(UNKNOWN_POLICY(self._place(), name=self.own, nearest=self._similar(self.own)))
        return PolicyTest(
            name=self.own,
            policies=policies,
            events=tuple(self._events(given.node("events"))),
            pull=dict(self._pull(given)),
            clock=self._time(given.scalar("clock")),
            expect=expect,
            file=self.document.file,
        )

    def _place(self) -> Location | None:
        return None if self.document.root is None else self.document.root.location

    def _similar(self, name: str) -> tuple[str, ...]:
        return nearest(name, self.around.policies)

    def _policies(self, fields: Fields) -> Iterator[str]:
        for scalar in fields.scalars("policies"):
            if self._known(scalar):
                yield scalar.text

    def _known(self, policy: ScalarNode) -> bool:
        if policy.text in self.around.policies:
            return True
        self.problems.add(UNKNOWN_POLICY(policy.location, name=policy.text, nearest=self._similar(policy.text)))
        return False

    # ── what is expected ──

    def _expected(self, node: Node) -> Iterator[ExpectedSituation]:
        fields = self.read.fields(node, optional=("policy", "at", "bindings", "closed", "detections"))
        if fields is None:
            return
        scalar = fields.scalar("policy")
        name = self.own if scalar is None else scalar.text
        if (scalar is not None and not self._known(scalar)) or ("policy" in fields and scalar is None):
            return
        if name not in self.around.policies:
            self.problems.add(UNKNOWN_POLICY(node.location, name=name, nearest=self._similar(name)))
            return
        yield ExpectedSituation(
            policy=name,
            at=self._time(fields.scalar("at")),
            bindings=tuple(sorted(self._bindings(self.around.policies[name], fields))),
            closed=self._time(fields.scalar("closed")),
            detections=fields.integer("detections", least=1),
            location=node.location,
        )

    def _bindings(self, policy: Policy, fields: Fields) -> Iterator[tuple[str, str]]:
        aliases = [each.name for each in policy.aliases]
        for key, value in fields.entries("bindings"):
            identity = self.read.text(value)
            if key.text not in aliases:
                self.problems.add(UNKNOWN_ALIAS(key.location, name=key.text, nearest=nearest(key.text, aliases)))
            elif identity is not None:
                yield key.text, identity

    def _time(self, scalar: ScalarNode | None) -> int | None:
        """A duration after the start of the test, or an instant."""
        if scalar is None:
            return None
        try:
            if _INSTANT.match(scalar.text):
                return microseconds(parse_instant(scalar.text, scalar.location))
            return START + parse_duration(scalar.text, scalar.location) // _MICROSECOND
        except SituError as error:
            self.problems.extend(error.problems)
            return None

    # ── what is given ──

    def _events(self, node: Node | None) -> Iterator[GivenEvent]:
        latest = None
        for number, item in enumerate(self._list(node), 1):
            fields = self.read.fields(item, required=("at", "type"), optional=("data", "id", "source", "received"))
            if fields is None:
                continue
            time, received = self._time(fields.scalar("at")), self._time(fields.scalar("received"))
            type = fields.text("type")
            if time is None or type is None:
                continue
            received = received if received is not None else time if latest is None else max(time, latest)
            latest = received
            given = fields.node("data")
            decoded = self.data.decode(type, None if given is None else to_data(given))
            if decoded.problems:
                self.problems.extend(_placed(decoded.problems, (given or item).location))
                continue
            yield GivenEvent(
                type=type,
                id=fields.text("id", f"e{number}"),
                source=fields.text("source", _SOURCE),
                time=time,
                received=received,
                data=decoded.value,
                location=item.location,
            )

    def _pull(self, given: Fields) -> Iterator[tuple[str, Table]]:
        for key, node in given.entries("pull"):
            source = self.around.sources.get(key.text)
            if source is None:
                similar = nearest(key.text, self.around.sources)
                self.problems.add(NO_TABLE_TO_FILL(key.location, name=key.text, nearest=similar))
                continue
            try:
                table = self._table(source, node)
            except SituError as error:
                self.problems.extend(_placed(error.problems, node.location))
            else:
                if table is not None:
                    yield key.text, table

    def _table(self, source: Source, node: Node) -> Table | None:
        file = self._file(node)
        if file is not None and not file.text.endswith(_LISTS):
            return self.files.table(source, file.text)
        names, before = [each.name for each in source.columns], len(self.problems)
        items = [item for item in self._list(node) if self.read.fields(item, optional=names) is not None]
        if len(self.problems) > before:
            return None
        rows = [to_data(item) for item in items]
        cells: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in names}
        return make_table(source, cells)

    def _file(self, node: Node | None) -> ScalarNode | None:
        """The file that stands in place of a list."""
        if node is None or isinstance(node, SequenceNode):
            return None
        fields = self.read.fields(node, required=("file",))
        return None if fields is None else fields.scalar("file")

    def _list(self, node: Node | None) -> Iterable[Node]:
        if node is None:
            return ()
        if isinstance(node, SequenceNode):
            return node.items
        file = self._file(node)
        return () if file is None else self._listed(file)

    def _listed(self, file: ScalarNode) -> Iterator[Node]:
        """What a file lists, one by one: nodes take much more room than what is made of them."""
        reading = next((read for ending, read in _READERS.items() if file.text.endswith(ending)), None)
        if reading is None:
            remedy = f"Name one that ends with {', '.join(_LISTS)}."
            self.problems.add(
                TEST_FILE_UNFIT(file.location, file=file.text, reason="it is no list of this form", remedy=remedy)
            )
            return
        try:
            data = self.files.text(file.text)
        except SituError as error:
            self.problems.extend(_placed(error.problems, file.location))
            return
        before = len(self.problems)
        for document in reading(data, file.text):
            self.problems.extend(document.problems)
            if document.root is not None and file.text.endswith(LINES):
                yield document.root
            elif document.root is not None:
                yield from self.read.items(document.root) or ()
            if len(self.problems) - before >= _MOST_PROBLEMS:
                return


def _lines(data: bytes, file: str) -> Iterator[Document]:
    """One JSON value a line."""
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            yield parse_json(line, file, first=number)


_READERS: Mapping[str, Callable[[bytes, str], Iterable[Document]]] = {
    ".yaml": lambda data, file: [parse_yaml(data, file)],
    ".yml": lambda data, file: [parse_yaml(data, file)],
    ".json": lambda data, file: [parse_json(data, file)],
    LINES: _lines,
}


def _placed(problems: tuple[Problem, ...], place: Location) -> tuple[Problem, ...]:
    """What is wrong with a value, at the place where it is written."""
    return tuple(replace(each, location=place) for each in problems)
