"""Sources and push sources as files declare them, each with all that is wrong with it.

It knows the notation and the types of the project. It reads no table, and does not know which concepts there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import msgspec

from situ.lang.catalogue import (
    BAD_XPATH,
    COLUMN_UNFIT,
    CONCEPT_KEY,
    DECLARED_TWICE,
    MISSING_KEY,
    ONE_PLACE,
    PUSH_EVENT,
    PUSH_PATH,
    PUSH_TIME,
    PUSH_TIME_OF_SITUATION,
    PUSH_UNFIT,
    UNKNOWN_COLUMN,
    UNKNOWN_KEY,
)
from situ.lang.documents import Fields, MappingNode, Node, Reader, ScalarNode, SequenceNode
from situ.lang.expr.faults import Faults
from situ.lang.problems import Location, Problem, Problems, SituError, nearest
from situ.lang.quantities import parse_duration
from situ.lang.records import replace
from situ.lang.tags import NO_TAGS, read_tags
from situ.lang.types.declaration import declare_attribute
from situ.lang.types.lookup import Lookup
from situ.lang.types.model import (
    RESERVED_PREFIX,
    STRING,
    TIMESTAMP,
    Attribute,
    Struct,
    format_attribute,
    plain,
    unit_below,
)
from situ.lang.types.table import BINDINGS, Types
from situ.lang.units import NO_UNIT, Unit
from situ.sources.model import Push, Source, SourceKind, may_be_as_of, may_be_identity, may_be_key
from situ.sources.queries import BadPath, cell_path, read_statement, row_path

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# One source as a file declares it → a :class:`~situ.sources.model.Source`.
#
# ``{csv: people.csv, columns: {nr: string, role: optional string}, key: nr, max_age: 1 min}``; in place of ``csv`` also
# ``parquet``, ``xml`` with the path of its ``rows``, or ``sql`` with the ``url`` of a database. With a ``concept`` rows
# tell of its instances.

KINDS = tuple(kind.value for kind in SourceKind)
SOURCE_KEYS = (*KINDS, "url", "rows", "columns", "key", "as_of", "max_age", "concept", "attributes", "scopes")
_ONLY = {"url": SourceKind.SQL, "rows": SourceKind.XML}
"""Keys that go with one kind of place and belong to it."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9_+.-]*://.*", re.DOTALL)
_REFERENCE = "${"


class _Columns(msgspec.Struct):
    """Those that are right, by name, and the names of all that are written: a faulty one is not unknown."""

    right: dict[str, Attribute] = msgspec.field(default_factory=dict)
    written: dict[str, ScalarNode] = msgspec.field(default_factory=dict)
    paths: dict[str, str] = msgspec.field(default_factory=dict)


class SourceReader:
    """Reads sources that use the types of one table."""

    def __init__(self, types: Types, problems: Problems, faults: Faults) -> None:
        self._types = types
        self._faults = faults
        self._read = Reader(problems)

    def source(self, key: ScalarNode, node: Node) -> Source | None:
        """One source; None, with the problems noted, if it cannot be used."""
        before = len(self._read.problems.errors)
        fields = self._read.fields(node, optional=SOURCE_KEYS)
        if fields is None:
            return None
        kind, place = self._place(key, fields)
        columns = self._columns(key, fields, kind)
        self._check_stray(fields, kind)
        url = self._url(fields) if kind is SourceKind.SQL else ""
        rows = self._rows(fields) if kind is SourceKind.XML else ""
        if kind is SourceKind.SQL and place is not None:
            self._check_statement(place, columns)
        found = tuple(self._key(fields, columns))
        as_of = self._as_of(fields, columns)
        max_age = self._duration(fields, "max_age") or timedelta(0)
        concept = self._concept(key, fields, columns, found, as_of)
        attributes = tuple(self._attributes(fields, columns))
        said = fields.node("scopes")
        tagged = read_tags(self._read, said) if said is not None else None
        if kind is None or place is None or len(self._read.problems.errors) > before:
            return None
        return Source(
            name=key.text,
            kind=kind,
            place=_written(place),
            url=url,
            row=Struct("", tuple(columns.right[name] for name in sorted(columns.right))),
            key=found,
            as_of=as_of,
            max_age=max_age,
            rows=rows,
            paths=tuple(sorted(columns.paths.items())),
            concept=concept,
            attributes=attributes,
            scopes=tagged.tags if tagged is not None else NO_TAGS,
            location=key.location,
            tagged=tagged,
        )

    # ── where it is ───────────────────────────────────────────────────────────────────────────────

    def _place(self, key: ScalarNode, fields: Fields) -> tuple[SourceKind | None, ScalarNode | None]:
        said = [kind for kind in SourceKind if kind.value in fields]
        if len(said) != 1:
            found = " and ".join(f"`{kind}`" for kind in said) or "nothing"
            self._problem(ONE_PLACE(key.location, name=key.text, found=found, choices=KINDS))
            return None, None
        place = fields.scalar(said[0].value)
        if place is not None and not place.text.strip():
            expected = "a table or a statement" if said[0] is SourceKind.SQL else "the name of a file"
            self._read.wrong(place, expected)
            place = None
        return said[0], place

    def _url(self, fields: Fields) -> str:
        if "url" not in fields:
            place = fields.mapping.key("sql")
            where = "beside `sql`"
            self._problem(MISSING_KEY(place.location if place else fields.mapping.location, key="url", where=where))
            return ""
        scalar = fields.scalar("url")
        if scalar is None:
            return ""
        if not _URL.fullmatch(scalar.text) and _REFERENCE not in scalar.text:
            self._read.wrong(scalar, "an address such as `postgresql://user@host/database` or `sqlite:///file.db`")
        return _written(scalar)

    def _check_stray(self, fields: Fields, kind: SourceKind | None) -> None:
        for name, only in _ONLY.items():
            stray = fields.mapping.key(name)
            if stray is not None and kind not in (None, only):
                known = tuple(
                    each
                    for each in SOURCE_KEYS
                    if (each == kind or each not in KINDS) and _ONLY.get(each, kind) is kind
                )
                self._problem(UNKNOWN_KEY(stray.location, key=name, nearest=(), known=known))

    def _rows(self, fields: Fields) -> str:
        if "rows" not in fields:
            place = fields.mapping.key("xml")
            where = "beside `xml`"
            self._problem(MISSING_KEY(place.location if place else fields.mapping.location, key="rows", where=where))
            return ""
        scalar = fields.scalar("rows")
        if scalar is None:
            return ""
        try:
            row_path(scalar.text)
        except BadPath as error:
            self._bad_path(scalar, "rows", error)
        return scalar.text.strip()

    def _check_statement(self, place: ScalarNode, columns: _Columns) -> None:
        if _REFERENCE in place.text:
            return  # it will be known where the environment is
        try:
            given = read_statement(place.text, place.location).columns
        except SituError as error:
            self._read.problems.extend(error.problems)
            return
        if given is None:
            return
        for name, key in columns.written.items():
            if name.lower() not in given:
                self._unknown("The statement", name, key.location, tuple(sorted(given)))

    # ── what it holds ─────────────────────────────────────────────────────────────────────────────

    def _columns(self, key: ScalarNode, fields: Fields, kind: SourceKind | None) -> _Columns:
        columns = _Columns()
        if "columns" not in fields:
            self._problem(MISSING_KEY(key.location, key="columns", where=f"in `{key.text}`"))
        noted = Problems()
        lookup = Lookup(self._types.types, self._types.units, noted)
        entries = fields.entries("columns")
        node = fields.node("columns")
        if node is not None and not isinstance(node, ScalarNode | SequenceNode) and not entries:
            self._read.wrong(node, "at least one column, as in `columns: {id: string}`")
        for name, form in entries:
            columns.written[name.text] = name
            if kind is SourceKind.XML and isinstance(form, MappingNode):
                form = self._without_path(name, form, columns)
            declaration = declare_attribute(name, form, self._read)
            attribute = lookup.attribute(declaration) if declaration is not None else None
            if attribute is not None:
                columns.right[name.text] = attribute
        self._read.problems.extend(each for each in noted if not self._faults.explain(each))
        return columns

    def _without_path(self, name: ScalarNode, form: MappingNode, columns: _Columns) -> Node:
        """The declaration of a column without its path, which is noted: of ``{type: Box m, xpath: box}`` the type."""
        node = form.get("xpath")
        if node is None:
            return form
        scalar = self._read.scalar(node)
        if scalar is not None:
            try:
                cell_path(scalar.text)
                columns.paths[name.text] = scalar.text.strip()
            except BadPath as error:
                self._bad_path(scalar, "a cell", error)
        others = tuple(each for each in form.entries if each[0].text != "xpath")
        return others[0][1] if [key.text for key, _ in others] == ["type"] else replace(form, entries=others)

    def _key(self, fields: Fields, columns: _Columns) -> Iterator[str]:
        node = fields.node("key")
        scalars = fields.scalars("key") if isinstance(node, SequenceNode) else filter(None, (fields.scalar("key"),))
        if isinstance(node, SequenceNode) and not node.items:
            self._read.wrong(node, "at least one column")
        seen: dict[str, ScalarNode] = {}
        for scalar in scalars:
            if seen.setdefault(scalar.text, scalar) is not scalar:
                first = str(seen[scalar.text].location)
                self._problem(DECLARED_TWICE(scalar.location, what="The column", name=scalar.text, first=first))
                continue
            column = self._column(scalar, columns)
            if column is not None and not may_be_key(column.type):
                remedy = "Rows are found by single values, such as a text or a number."
                self._unfit(scalar, column, "part of a key", remedy)
            yield scalar.text

    def _as_of(self, fields: Fields, columns: _Columns) -> str:
        scalar = fields.scalar("as_of")
        if scalar is None:
            return ""
        column = self._column(scalar, columns)
        if column is not None and not may_be_as_of(column.type):
            self._unfit(scalar, column, "the time from which a row is valid", "Declare it as `timestamp` or `date`.")
        return scalar.text

    def _concept(self, key: ScalarNode, fields: Fields, columns: _Columns, found: tuple[str, ...], as_of: str) -> str:
        concept = fields.scalar("concept")
        if concept is None:
            stray = fields.mapping.key("attributes")
            if stray is not None and "concept" not in fields:
                self._problem(MISSING_KEY(stray.location, key="concept", where="beside `attributes`"))
            return ""
        identity = columns.right.get(found[0]) if len(found) == 1 else None
        remedy = "Write `key:` with the one column that is the identity of an instance."
        if not found:
            reason = "it has no key"
        elif len(found) > 1:
            reason = f"its key has {len(found)} columns"
        elif as_of:
            reason = "it holds several rows for an instance, each valid from a time on"
            remedy = "Let a view or a SELECT give the row that is valid now, and leave `as_of` out."
        elif identity is not None and not may_be_identity(identity.type):
            reason = f"its key `{identity.name}` is of type `{identity.type}`"
            remedy = "Identities are texts or whole numbers."
        else:
            return concept.text
        self._problem(
            CONCEPT_KEY(concept.location, source=key.text, concept=concept.text, reason=reason, remedy=remedy)
        )
        return concept.text

    def _attributes(self, fields: Fields, columns: _Columns) -> Iterator[tuple[str, str]]:
        for name, node in sorted(fields.entries("attributes"), key=lambda entry: entry[0].text):
            column = self._read.scalar(node)
            if column is not None:
                self._column(column, columns)
                if column.text != name.text:
                    yield name.text, column.text

    def _duration(self, fields: Fields, key: str) -> timedelta | None:
        node = fields.node(key)
        return None if node is None else read_duration(node, self._read)

    def _column(self, scalar: ScalarNode, columns: _Columns) -> Attribute | None:
        if scalar.text not in columns.written:
            self._unknown("The source", scalar.text, scalar.location, tuple(columns.written))
        return columns.right.get(scalar.text)

    # ── problems ──────────────────────────────────────────────────────────────────────────────────

    def _problem(self, problem: Problem) -> None:
        self._read.problems.add(problem)

    def _bad_path(self, scalar: ScalarNode, what: str, error: BadPath) -> None:
        problem = BAD_XPATH(scalar.location, path=scalar.text, what=what, reason=error.reason, remedy=error.remedy)
        self._problem(problem)

    def _unknown(self, where: str, column: str, location: Location, known: tuple[str, ...]) -> None:
        similar = nearest(column, known)
        self._problem(UNKNOWN_COLUMN(location, where=where, column=column, nearest=similar, known=known))

    def _unfit(self, scalar: ScalarNode, column: Attribute, use: str, remedy: str) -> None:
        problem = COLUMN_UNFIT(scalar.location, column=column.name, type=str(column.type), use=use, remedy=remedy)
        self._problem(problem)


def read_duration(node: Node, read: Reader, text: str | None = None) -> timedelta | None:
    """The duration that a node, or the part ``text`` of it, stands for; None, with the problem noted, if it is none."""
    if not isinstance(node, ScalarNode) or isinstance(node.value, bool) or node.value is None:
        read.wrong(node, "a duration such as `1 min`")
        return None
    try:
        return parse_duration(node.text if text is None else text, node.location)
    except SituError as error:
        # What the environment holds is not shown, not even when it is wrong.
        shown = "a duration such as `1 min`"
        read.wrong(node, shown) if node.substituted else read.problems.extend(error.problems)
        return None


def _written(scalar: ScalarNode) -> str:
    return scalar.written.text if scalar.written is not None else scalar.text


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# One push source as a file declares it → a :class:`~situ.sources.model.Push`.
#
# ``{event: Sighting, concept: person, id: who, attribute: position, value: at, lateness: 2 s, keep: last 10 min}``.

REQUIRED = ("event", "concept", "id", "attribute", "value")
PUSH_KEYS = (*REQUIRED, "time", "lateness", "idle", "keep")

_LAST = "last "


class PushSourceReader:
    """Reads push sources of events of one table of types."""

    def __init__(self, types: Types, problems: Problems, faults: Faults) -> None:
        self._types, self._faults = types, faults
        self._read = Reader(problems)

    def push(self, key: ScalarNode, node: Node) -> Push | None:
        """One push source; None, with the problems noted, if it cannot be used."""
        before = len(self._read.problems.errors)
        fields = self._read.fields(node, required=REQUIRED, optional=PUSH_KEYS[len(REQUIRED) :])
        if fields is None:
            return None
        texts = {name: fields.scalar(name) for name in REQUIRED}
        event = self._event(key, texts["event"])
        for name in ("id", "value"):
            scalar = texts[name]
            if event is not None and scalar is not None:
                found = self._at(event, scalar)
                if name == "id" and found is not None and plain(found.type) != STRING:
                    self._no_identity(event, scalar, found, texts["concept"])
        time = fields.scalar("time")
        if event is not None and time is not None:
            self._check_time(event, time)
        lateness, idle = self._duration(fields, "lateness"), self._duration(fields, "idle")
        keep = self._keep(fields)
        written = {name: scalar.text.strip() for name, scalar in texts.items() if scalar is not None}
        if event is None or len(written) < len(REQUIRED) or len(self._read.problems.errors) > before:
            return None
        return Push(
            name=key.text,
            event=written["event"],
            concept=written["concept"],
            id=tuple(written["id"].split(".")),
            attribute=written["attribute"],
            value=tuple(written["value"].split(".")),
            time=() if time is None else tuple(time.text.strip().split(".")),
            lateness=lateness,
            idle=idle,
            keep=keep,
            location=key.location,
        )

    def _event(self, key: ScalarNode, scalar: ScalarNode | None) -> Struct | None:
        if scalar is None:
            return None
        found = self._types.event(scalar.text)
        if found is not None:
            return found
        if scalar.text not in self._faults.types:
            similar = nearest(scalar.text, self._types.events)
            self._read.problems.add(PUSH_EVENT(scalar.location, push=key.text, name=scalar.text, nearest=similar))
        return None

    def _at(self, event: Struct, scalar: ScalarNode) -> Attribute | None:
        found = attribute_at(event, tuple(scalar.text.strip().split(".")))
        if isinstance(found, Attribute):
            return found
        struct, step = found
        if step not in self._faults.attributes.get(struct.name, ()):
            known = tuple(each.name for each in struct.attributes)
            self._read.problems.add(
                PUSH_PATH(
                    scalar.location,
                    path=scalar.text,
                    event=event.name,
                    type=str(struct),
                    step=step,
                    nearest=nearest(step, known),
                    known=known,
                )
            )
        return None

    def _check_time(self, event: Struct, scalar: ScalarNode) -> None:
        found = self._at(event, scalar)
        if event.name.startswith(RESERVED_PREFIX):
            # Who reads what policies conclude waits for these policies, which count by the time of the event.
            self._read.problems.add(PUSH_TIME_OF_SITUATION(scalar.location, event=event.name))
        elif found is not None and plain(found.type) != TIMESTAMP:
            self._read.problems.add(
                PUSH_TIME(scalar.location, path=scalar.text, event=event.name, found=format_attribute(found))
            )

    def _no_identity(self, event: Struct, scalar: ScalarNode, found: Attribute, concept: ScalarNode | None) -> None:
        remedy = "Identities are texts: give the event one, or let a context make it one by a function."
        self._read.problems.add(
            PUSH_UNFIT(
                scalar.location,
                path=scalar.text,
                event=event.name,
                found=format_attribute(found),
                concept=concept.text if concept is not None else "",
                attribute="id",
                expected="string",
                remedy=remedy,
            )
        )

    def _duration(self, fields: Fields, key: str) -> timedelta | None:
        node = fields.node(key)
        return None if node is None else read_duration(node, self._read)

    def _keep(self, fields: Fields) -> timedelta:
        scalar = fields.scalar("keep")
        if scalar is None:
            return timedelta(0)
        if not scalar.text.startswith(_LAST):
            self._read.wrong(scalar, "`last` and a duration, such as `last 10 min`")
            return timedelta(0)
        return read_duration(scalar, self._read, scalar.text.removeprefix(_LAST).strip()) or timedelta(0)


def attribute_at(struct: Struct, path: tuple[str, ...]) -> Attribute | tuple[Struct, str]:
    """What is at a path below a struct, with its unit; or the struct that has no attribute for a step, and the step.

    Below the bindings of a situation are aliases: any policy may have any, so none is unknown, and each may be missing.
    """
    unit: Unit = NO_UNIT
    optional = False
    for place, step in enumerate(path):
        attribute = struct.attribute(step)
        if attribute is None:
            return struct, step
        unit = unit_below(struct, unit, attribute)
        optional = optional or attribute.nullable
        if place == len(path) - 1:
            return Attribute(name=step, type=attribute.type, unit=unit, optional=optional)
        below = plain(attribute.type)
        if below == BINDINGS and place == len(path) - 2:
            return Attribute(name=path[-1], type=STRING, optional=True)
        struct = below if isinstance(below, Struct) else Struct(format_attribute(attribute), ())
    raise ValueError("an empty path leads nowhere")
