"""Sources: tables that others keep and Situ reads, each with the columns that are used; events that tell of concepts.

Plain data. Places and addresses stand here as they are written, ``${NAME}`` and all: a deployment shows no secrets, and
whoever reads the table puts in what the environment says. How sources are written is :mod:`situ.sources.declare`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from situ.lang.problems import Location
from situ.lang.quantities import format_duration
from situ.lang.tags import NO_TAGS, TagSet, WrittenTags
from situ.lang.types.json_codec import encode
from situ.lang.types.model import (
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Attribute,
    ListOf,
    Struct,
    Type,
    format_attribute,
    format_type,
    plain,
)


class SourceKind(StrEnum):
    """Where the rows are: in a file of one of these forms, or in a database."""

    CSV = "csv"
    PARQUET = "parquet"
    XML = "xml"
    SQL = "sql"

    @property
    def is_file(self) -> bool:
        return self is not SourceKind.SQL


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A table by name. ``row`` is what one row is: a struct without a name, its attributes in the order of names.

    ``place`` is a file, relative to the project, or a table or statement of the database at ``url``. Rows are told
    apart by the columns of ``key`` and, where each is valid from a time on, by ``as_of``; without a key nothing is
    said about that. A table that was read longer ago than ``max_age`` is read again.

    Of an XML file ``rows`` is the path of its rows, and ``paths`` are those of columns that are not called like an
    attribute or element of the row. With a ``concept`` each row tells of the instance whose identity is its key;
    ``attributes`` are the names of attributes with their columns, where the two have different names. ``scopes`` are
    the tags of its rows, as an advertisement has tags for its events.
    """

    name: str
    kind: SourceKind
    place: str
    row: Struct
    url: str = ""
    key: tuple[str, ...] = ()
    as_of: str = ""
    max_age: timedelta = timedelta(0)
    rows: str = ""
    paths: tuple[tuple[str, str], ...] = ()
    concept: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    scopes: TagSet = NO_TAGS
    location: Location | None = field(default=None, compare=False)
    tagged: WrittenTags | None = field(default=None, compare=False, repr=False)
    """The tags with their places, where a file says them."""

    @property
    def columns(self) -> tuple[Attribute, ...]:
        return self.row.attributes

    def column(self, name: str) -> Attribute | None:
        return self.row.attribute(name)

    def as_json(self) -> dict[str, Any]:
        """The source as a file declares it."""
        result: dict[str, Any] = {self.kind.value: self.place}
        if self.url:
            result["url"] = self.url
        if self.rows:
            result["rows"] = self.rows
        paths = dict(self.paths)
        result["columns"] = {each.name: _column(each, paths.get(each.name, "")) for each in self.columns}
        if self.key:
            result["key"] = list(self.key)
        if self.as_of:
            result["as_of"] = self.as_of
        if self.max_age:
            result["max_age"] = format_duration(self.max_age)
        if self.concept:
            result["concept"] = self.concept
        if self.attributes:
            result["attributes"] = dict(self.attributes)
        if self.scopes != NO_TAGS:
            result["scopes"] = self.scopes.as_json()
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """Events of a type, its subtypes included, that bring one attribute of the instances of a concept.

    ``id`` and ``value`` are paths in the payload, and so is ``time``, which says when it happened; without it the time
    of the event does. An event in which one of them is null tells nothing. ``lateness`` and ``idle`` are None where the
    project decides. With ``keep`` the last value of an instance stands until the next one, for so long at most.
    """

    name: str
    event: str
    concept: str
    id: tuple[str, ...]
    attribute: str
    value: tuple[str, ...]
    time: tuple[str, ...] = ()
    lateness: timedelta | None = None
    idle: timedelta | None = None
    keep: timedelta = timedelta(0)
    location: Location | None = field(default=None, compare=False)

    def as_json(self) -> dict[str, Any]:
        """The push source as a file declares it."""
        result: dict[str, Any] = {
            "event": self.event,
            "concept": self.concept,
            "id": ".".join(self.id),
            "attribute": self.attribute,
            "value": ".".join(self.value),
        }
        if self.time:
            result["time"] = ".".join(self.time)
        if self.lateness is not None:
            result["lateness"] = format_duration(self.lateness)
        if self.idle is not None:
            result["idle"] = format_duration(self.idle)
        if self.keep:
            result["keep"] = f"last {format_duration(self.keep)}"
        return result


def sources_as_json(sources: Mapping[str, Source]) -> dict[str, Any]:
    """All sources by name; equal ones give equal values."""
    return {name: sources[name].as_json() for name in sorted(sources)}


def pushes_as_json(pushes: Mapping[str, Push]) -> dict[str, Any]:
    """All push sources by name; equal ones give equal values."""
    return {name: pushes[name].as_json() for name in sorted(pushes)}


def may_be_key(type: Type) -> bool:
    """Whether rows can be found by a column of this type: only single values are equal or not."""
    return not isinstance(plain(type), Struct | ListOf)


def may_be_identity(type: Type) -> bool:
    """Whether a column of this type can tell instances of a concept apart; whole numbers count as the texts of them."""
    return plain(type) in (STRING, INT, LONG)


def may_be_as_of(type: Type) -> bool:
    """Whether a column of this type can say from when on a row is valid; a date means 00:00 UTC of its day."""
    return plain(type) in (TIMESTAMP, DATE)


def _column(attribute: Attribute, path: str) -> Any:
    if attribute.default is None and not path:
        return format_attribute(attribute)
    result: dict[str, Any] = {"type": format_type(attribute.type)}
    if attribute.unit.factors:
        result["unit"] = str(attribute.unit)
    if attribute.optional:
        result["optional"] = True
    if attribute.default is not None:
        result["default"] = encode(attribute.type, attribute.default)
    return {**result, "xpath": path} if path else result
