"""One source as a file declares it → a :class:`~situ.sources.model.Source`, with all that is wrong with it.

``{csv: people.csv, columns: {nr: string, role: optional string}, key: nr, max_age: 1 min}``; in place of ``csv`` also
``parquet``, ``xml`` with the path of its ``rows``, or ``sql`` with the ``url`` of a database. With a ``concept`` rows
tell of its instances. Knows the notation, and reads no table; what a concept is, is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

from situ.catalogue import (
    BAD_XPATH,
    COLUMN_UNFIT,
    CONCEPT_KEY,
    DECLARED_TWICE,
    MISSING_KEY,
    ONE_PLACE,
    UNKNOWN_COLUMN,
    UNKNOWN_KEY,
)
from situ.documents import Fields, Mapping, Node, Reader, Scalar, Sequence
from situ.errors import Location, Problem, Problems, SituError, nearest
from situ.expr.faults import Faults
from situ.quantities import parse_duration
from situ.sources.model import Kind, Source, may_be_as_of, may_be_identity, may_be_key
from situ.sources.paths import BadPath, cell_path, row_path
from situ.sources.statement import read_statement
from situ.tags import NO_TAGS, read_tags
from situ.types.declare import declare_attribute
from situ.types.lookup import Lookup
from situ.types.model import Attribute, Struct
from situ.types.table import Types

KINDS = tuple(kind.value for kind in Kind)
SOURCE_KEYS = (*KINDS, "url", "rows", "columns", "key", "as_of", "max_age", "concept", "attributes", "scopes")
_ONLY = {"url": Kind.SQL, "rows": Kind.XML}
"""Keys that go with one kind of place and belong to it."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9_+.-]*://.*", re.DOTALL)
_REFERENCE = "${"


@dataclass(slots=True)
class _Columns:
    """Those that are right, by name, and the names of all that are written: a faulty one is not unknown."""

    right: dict[str, Attribute] = field(default_factory=dict)
    written: dict[str, Scalar] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)


class Declaring:
    """Reads sources that use the types of one table."""

    def __init__(self, types: Types, problems: Problems, faults: Faults) -> None:
        self._types = types
        self._faults = faults
        self._read = Reader(problems)

    def source(self, key: Scalar, node: Node) -> Source | None:
        """One source; None, with the problems noted, if it cannot be used."""
        before = len(self._read.problems.errors)
        fields = self._read.fields(node, optional=SOURCE_KEYS)
        if fields is None:
            return None
        kind, place = self._place(key, fields)
        columns = self._columns(key, fields, kind)
        self._check_stray(fields, kind)
        url = self._url(fields) if kind is Kind.SQL else ""
        rows = self._rows(fields) if kind is Kind.XML else ""
        if kind is Kind.SQL and place is not None:
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

    def _place(self, key: Scalar, fields: Fields) -> tuple[Kind | None, Scalar | None]:
        said = [kind for kind in Kind if kind.value in fields]
        if len(said) != 1:
            found = " and ".join(f"`{kind}`" for kind in said) or "nothing"
            self._problem(ONE_PLACE(key.location, name=key.text, found=found, choices=KINDS))
            return None, None
        place = fields.scalar(said[0].value)
        if place is not None and not place.text.strip():
            expected = "a table or a statement" if said[0] is Kind.SQL else "the name of a file"
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

    def _check_stray(self, fields: Fields, kind: Kind | None) -> None:
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

    def _check_statement(self, place: Scalar, columns: _Columns) -> None:
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

    def _columns(self, key: Scalar, fields: Fields, kind: Kind | None) -> _Columns:
        columns = _Columns()
        if "columns" not in fields:
            self._problem(MISSING_KEY(key.location, key="columns", where=f"in `{key.text}`"))
        noted = Problems()
        lookup = Lookup(self._types.types, self._types.units, noted)
        entries = fields.entries("columns")
        node = fields.node("columns")
        if node is not None and not isinstance(node, Scalar | Sequence) and not entries:
            self._read.wrong(node, "at least one column, as in `columns: {id: string}`")
        for name, form in entries:
            columns.written[name.text] = name
            if kind is Kind.XML and isinstance(form, Mapping):
                form = self._without_path(name, form, columns)
            declaration = declare_attribute(name, form, self._read)
            attribute = lookup.attribute(declaration) if declaration is not None else None
            if attribute is not None:
                columns.right[name.text] = attribute
        self._read.problems.extend(each for each in noted if not self._faults.explain(each))
        return columns

    def _without_path(self, name: Scalar, form: Mapping, columns: _Columns) -> Node:
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
        scalars = fields.scalars("key") if isinstance(node, Sequence) else filter(None, (fields.scalar("key"),))
        if isinstance(node, Sequence) and not node.items:
            self._read.wrong(node, "at least one column")
        seen: dict[str, Scalar] = {}
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

    def _concept(self, key: Scalar, fields: Fields, columns: _Columns, found: tuple[str, ...], as_of: str) -> str:
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

    def _column(self, scalar: Scalar, columns: _Columns) -> Attribute | None:
        if scalar.text not in columns.written:
            self._unknown("The source", scalar.text, scalar.location, tuple(columns.written))
        return columns.right.get(scalar.text)

    # ── problems ──────────────────────────────────────────────────────────────────────────────────

    def _problem(self, problem: Problem) -> None:
        self._read.problems.add(problem)

    def _bad_path(self, scalar: Scalar, what: str, error: BadPath) -> None:
        problem = BAD_XPATH(scalar.location, path=scalar.text, what=what, reason=error.reason, remedy=error.remedy)
        self._problem(problem)

    def _unknown(self, where: str, column: str, location: Location, known: tuple[str, ...]) -> None:
        similar = nearest(column, known)
        self._problem(UNKNOWN_COLUMN(location, where=where, column=column, nearest=similar, known=known))

    def _unfit(self, scalar: Scalar, column: Attribute, use: str, remedy: str) -> None:
        problem = COLUMN_UNFIT(scalar.location, column=column.name, type=str(column.type), use=use, remedy=remedy)
        self._problem(problem)


def read_duration(node: Node, read: Reader, text: str | None = None) -> timedelta | None:
    """The duration that a node, or the part ``text`` of it, stands for; None, with the problem noted, if it is none."""
    if not isinstance(node, Scalar) or isinstance(node.value, bool) or node.value is None:
        read.wrong(node, "a duration such as `1 min`")
        return None
    try:
        return parse_duration(node.text if text is None else text, node.location)
    except SituError as error:
        # What the environment holds is not shown, not even when it is wrong.
        shown = "a duration such as `1 min`"
        read.wrong(node, shown) if node.substituted else read.problems.extend(error.problems)
        return None


def _written(scalar: Scalar) -> str:
    return scalar.written.text if scalar.written is not None else scalar.text
