"""Rows: an event inside an engine, between the stage that decodes it and the one that delivers it.

A row has the key of its event, the envelope taken apart, and the data as canonical text of its type: what a stage
needs of the data it reads from that. What could not become a row, or not stay one, is :class:`Bad`, with everything
that is wrong with it. Times are microseconds since 1970.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from situ.event.message import TOPICS, lane_of
from situ.lang.problems import Problem

Error = tuple[str, str, str, str]
"""Code, path in the data, message, hint."""

_ROOT = "root"

OUTBOUND = "interpret-out"
"""The stage in which events fail that are in the log and cannot be put in the terms of somebody who wants them."""
BEHIND_LOG = frozenset({"route", "shape", "deliver", "detect"})
"""The other stages in which events fail that are in the log: what comes of that is for some only."""


class Row(msgspec.Struct, gc=False, eq=False):
    """One event. ``ad`` is empty until its advertisement is known; ``ext`` are its other attributes as members of a
    JSON object, ``"subject":"x","traceparent":"…"``, empty if there are none. ``sent`` are its type and data as its
    client sent them, in the terms of ``context``, where somebody there may get them like that. ``value`` is the data as
    the struct of its type (:func:`situ.event.data_reader.shape_of`), where it was read into one; nobody changes it.
    While nobody needs the text of that, on the way from decoding into root, ``data`` is empty.

    The last four are what it knows of its own visibility, if there are scopes: the number of the tag set it was
    published under, the epoch of the scopes then, the filters that are true for it, and for a situation the stamps of
    what it comes from."""

    pos: int
    client: str
    incarnation: int
    seq: int
    context: str
    recv: int
    id: str
    source: str
    type: str
    time: int
    ad: str
    confidence: float | None
    ext: str
    data: bytes
    sent: tuple[str, bytes] | None = None
    value: msgspec.Struct | None = None
    tags: int = 0
    epoch: int = 0
    bits: int = 0
    parts: str = ""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return _compared(self) == _compared(other)

    @property
    def key(self) -> str:
        return f"{self.client}.{self.incarnation}.{self.seq}"

    @property
    def lane(self) -> str:
        """In what its client's events have one order."""
        return self.client if self.incarnation < TOPICS else lane_of(self.client, self.incarnation)


_VALUE = Row.__struct_fields__.index("value")


def _compared(row: Row) -> tuple[object, ...]:
    """All but the value, which says nothing new."""
    fields = msgspec.structs.astuple(row)
    return fields[:_VALUE] + fields[_VALUE + 1 :]


class BadRow(msgspec.Struct, gc=False):
    """An event that cannot go on: where it came from, in which stage it failed, why, and what was sent.

    ``size`` is that of the whole original where only its beginning is kept; ``plan`` that of the transformation that
    failed. ``trace`` is for the log, where the stage raised something that nobody foresaw.
    """

    pos: int
    client: str
    incarnation: int
    seq: int
    context: str
    recv: int
    ad: str
    stage: str
    errors: tuple[Error, ...]
    original: bytes
    size: int | None = None
    plan: str = ""
    trace: str = ""

    @classmethod
    def of(
        cls,
        row: Row | BadRow,
        stage: str,
        errors: tuple[Error, ...],
        original: bytes,
        *,
        plan: str = "",
        trace: str = "",
    ) -> BadRow:
        """The same event, which cannot go on beyond this stage."""
        at = (row.pos, row.client, row.incarnation, row.seq, row.context, row.recv, row.ad)
        return cls(*at, stage, errors, original, plan=plan, trace=trace)

    @property
    def key(self) -> str:
        return f"{self.client}.{self.incarnation}.{self.seq}"


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where the events of a message come from: key and position of the first, which the others follow without gap."""

    client: str
    incarnation: int
    seq: int
    received: int
    pos: int
    context: str = _ROOT


def origins_of(rows: Sequence[Row]) -> dict[str, int]:
    """Of a message in other terms than root's, how many rows are `TYPE CONTEXT`: what they are now, who sent them."""
    context, _, _ = rows[0].context.partition("@")  # all are of one client
    if context == _ROOT:
        return {}
    return {f"{type} {context}": number for type, number in Counter([row.type for row in rows]).items()}


def errors_of(problems: Iterable[Problem]) -> tuple[Error, ...]:
    """The problems as an event carries them on its way to the dead letters."""
    return tuple((each.code.code, str(each.values.get("path", "")), each.message, each.hint) for each in problems)


def print_percent(value: float) -> str:
    """A confidence as text: ``97.5``, and ``97`` rather than ``97.0``; never with an exponent."""
    return f"{value:.20f}".rstrip("0").rstrip(".") if "e" in repr(value) else repr(value).removesuffix(".0")
