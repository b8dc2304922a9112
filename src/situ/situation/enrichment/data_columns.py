"""The data of many events, as JSON text → columns of what is looked at, and nothing else.

The text is canonical and was checked when its events came in, so it is read in C and trusted; a text that is not what
its type says tells nothing, and is counted.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from situ.event.instants import microseconds, read_instant
from situ.expr.columns import column, is_json
from situ.expr.vectors import Bools
from situ.types.model import BOOLEAN, DOUBLE, DURATION, INT, LONG, STRING, TIMESTAMP, Type, plain
from situ.types.scalars import read_timestamp

Path = tuple[str, ...]
Text = bytes | msgspec.Raw

_SHAPES: Mapping[Type, Any] = {
    BOOLEAN: bool | None,
    INT: int | None,
    LONG: int | None,
    DOUBLE: float | None,
    STRING: str | None,
    TIMESTAMP: str | None,
    DURATION: dt.timedelta | None,
}
_NULL = msgspec.Raw(b"null")
_INSTANT = pa.timestamp("us", tz="UTC")


class _Binding(msgspec.Struct, gc=False):
    alias: str
    id: str


class DataColumns:
    """Reads these paths of data, each of this type. A struct of which only parts are wanted is read as those."""

    def __init__(self, wanted: Mapping[Path, Type], present: Iterable[Path] = (), bound: Iterable[Path] = ()) -> None:
        """``present``: paths of which it is asked only whether something is there.

        ``bound``: those that lead to the bindings of a situation; below is not an attribute, but an alias.
        """
        self._root = _Place()
        for path in bound:
            self._root.at(path).bound = True
        whole = [path for path, type in wanted.items() if is_json(type)]
        parts: dict[Path, tuple[dict[Path, Type], list[Path]]] = {}
        for path, type in wanted.items():
            above = _above(path, whole)
            if above is None:
                self._root.at(path).type = plain(type)
            else:
                parts.setdefault(above, ({}, []))[0][path[len(above) :]] = type
        for path in present:
            above = _above(path, whole)
            if above is None:
                self._root.at(path)
            else:
                parts.setdefault(above, ({}, []))[1].append(path[len(above) :])
        # What is wanted as a whole and in parts is read as a text, and its parts from that.
        self._parts = {path: DataColumns(*of) for path, of in parts.items()}
        shape = self._root.shape()
        self._all = msgspec.json.Decoder(list[shape]).decode  # type: ignore[valid-type]  # made at run time
        self._one = msgspec.json.Decoder(shape).decode

    def read(self, texts: Sequence[Text]) -> Read:
        """What is at each path in each of these texts."""
        unreadable: Bools | None = None
        try:
            found = self._all(b"[%b]" % b",".join(texts))
        except msgspec.DecodeError:
            found = [self._read_one(text) for text in texts]
            unreadable = np.fromiter((each is None for each in found), np.bool_, len(found))
        read = Read(columns={}, present={}, unreadable=unreadable)
        self._root.take(found, (), read)
        for path, reader in self._parts.items():
            of = reader.read([b"{}" if each is None else each.encode() for each in read.columns[path].to_pylist()])
            read.columns.update({(*path, *below): array for below, array in of.columns.items()})
            read.present.update({(*path, *below): there for below, there in of.present.items() if below})
        return read

    def _read_one(self, text: Text) -> Any:
        try:
            return self._one(bytes(text))
        except msgspec.DecodeError:
            return None


def _above(path: Path, whole: Iterable[Path]) -> Path | None:
    """The outermost of these paths that leads to something which this one leads into."""
    return min((each for each in whole if len(each) < len(path) and path[: len(each)] == each), key=len, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Columns by path; where something is at each path, None: everywhere; and which texts could not be read."""

    columns: dict[Path, pa.Array]
    present: dict[Path, Bools | None]
    unreadable: Bools | None


class _Place:
    """A place in data: a value of ``type``, if that is wanted, and what is wanted below it."""

    def __init__(self) -> None:
        self.type: Type | None = None
        self.bound = False
        self._below: dict[str, _Place] = {}

    def at(self, path: Path) -> _Place:
        place = self
        for step in path:
            place = place._below.setdefault(step, _Place())
        return place

    def shape(self) -> Any:
        """What msgspec is to read here."""
        if self.type is not None and not is_json(self.type):
            return _SHAPES[self.type]
        if self.type is not None or not self._below:
            return msgspec.Raw
        if self.bound:
            return list[_Binding]
        # Attributes may have any name, also one that Python reserves: fields are numbered and renamed.
        fields: list[tuple[str, Any, Any]] = []
        for number, place in enumerate(self._below.values()):
            shape = place.shape()
            raw = shape is msgspec.Raw
            fields.append((f"a{number}", shape if raw else shape | None, _NULL if raw else None))
        names = {f"a{number}": name for number, name in enumerate(self._below)}
        return msgspec.defstruct("Data", fields, rename=names, gc=False)

    def take(self, found: Sequence[Any], path: Path, into: Read) -> None:
        """Put what was read here, and below, into columns."""
        if self.type is not None and not is_json(self.type):
            into.present[path] = _there(found)
            into.columns[path] = instants(found) if self.type == TIMESTAMP else column(found, self.type)
        elif self.type is not None or not self._below:
            texts = [None if each is None or (text := bytes(each)) == b"null" else text for each in found]
            into.present[path] = _there(texts)
            if self.type is not None:
                into.columns[path] = pa.array(texts, pa.binary()).cast(pa.string())
        elif self.bound:
            into.present[path] = _there(found)
            identities = [{one.alias: one.id for one in each or ()} for each in found]
            for name, place in self._below.items():
                place.take([each.get(name) for each in identities], (*path, name), into)
        else:
            into.present[path] = _there(found)
            for number, (name, place) in enumerate(self._below.items()):
                place.take(_each(attrgetter(f"a{number}"), found), (*path, name), into)


def _there(found: Sequence[Any]) -> Bools | None:
    return None if None not in found else np.fromiter((each is not None for each in found), np.bool_, len(found))


def _each(get: Callable[[Any], Any], found: Sequence[Any]) -> list[Any]:
    try:
        return list(map(get, found))
    except AttributeError:  # a struct that is not there has no attributes
        return [None if each is None else get(each) for each in found]


def instants(texts: Sequence[str | None]) -> pa.Array:
    """Instants as they are written in the log, in microseconds."""
    try:
        return pa.array(texts, pa.string()).cast(_INSTANT).cast(pa.int64())
    except pa.ArrowInvalid:
        return pa.array([None if text is None else _instant(text) for text in texts], pa.int64())


def _instant(text: str) -> int:
    found = read_instant(text)
    return microseconds(read_timestamp(text)) if found is None else found
