"""What ``situ publish`` is given: lines of JSON, each a CloudEvent or only the data of one.

Reads as it goes, so a file may be larger than memory and standard input may never end. A file that is one JSON value
over several lines is taken as such. Knows no bus.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from situ.event.cloudevents import event_of
from situ.lang.catalogue import NOTHING_TO_PUBLISH
from situ.lang.documents.strict_json import JSON_LIMITS, read_json, to_text
from situ.lang.problems import Location, Problem, SituError
from situ.lang.records import replace

PUBLISH_FORM = "situ publish Sighting --file …"
_WHOLE = 64 * 1024 * 1024  # the most that is read of one value over several lines


@dataclass(frozen=True, slots=True, kw_only=True)
class InputEvent:
    """One event to publish; ``line`` is where it stands, ``size`` how many bytes have been read up to its end."""

    line: int
    size: int
    type: str
    data: dict[str, Any]
    envelope: dict[str, Any] = field(default_factory=dict)
    sent: dict[str, Any] = field(default_factory=dict)
    """The whole event as it was sent; empty if that was only its data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputError:
    """A line that is no event."""

    line: int
    size: int
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Bare:
    """Of which type data without an envelope is, and how one would say so."""

    type: str
    form: str


class EventLineReader:
    """Takes the bytes of a file as they come."""

    def __init__(self, file: str, type: str, limit: int = JSON_LIMITS.event, form: str = PUBLISH_FORM) -> None:
        self._file, self._limit = file, limit
        self._bare = _Bare(type, form)
        self._rest = b""
        self._too_long = False
        self._line = 0
        self._size = 0
        self._whole: list[bytes] | None = None
        """All so far, if the first line is no JSON: it may be the beginning of a value over several lines."""

    def feed(self, chunk: bytes) -> list[InputEvent | InputError]:
        """What the lines are that end in this chunk."""
        if self._whole is not None and sum(map(len, self._whole)) < _WHOLE:
            self._whole.append(chunk)
            return []
        if self._too_long:  # of a line that is far too long the beginning is enough
            end = chunk.find(b"\n")
            if end < 0:
                return []
            chunk, self._too_long = chunk[end:], False
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > self._limit + 1:
            self._rest, self._too_long = self._rest[: self._limit + 2], True
        if self._line == 0 and lines and _fails(lines[0], self._limit):
            self._whole, self._rest = [b"\n".join([*lines, self._rest])], b""
            return []
        return self._judge_lines(lines)

    def finish(self) -> list[InputEvent | InputError]:
        """What the rest is."""
        if self._whole is None:
            return self._judge_lines([self._rest])
        whole, self._whole = b"".join(self._whole), None
        if _fails(whole, _WHOLE):
            return self._judge_lines(whole.split(b"\n"))
        value = read_json(to_text(whole, _WHOLE), JSON_LIMITS.depth)
        place = Location(file=self._file)
        return [
            _judged(each, place, self._bare, len(whole)) for each in (value if isinstance(value, list) else [value])
        ]

    def _judge_lines(self, lines: list[bytes]) -> list[InputEvent | InputError]:
        found: list[InputEvent | InputError] = []
        for line in lines:
            self._line += 1
            self._size += len(line) + 1
            if line.strip():
                found.append(
                    _of_line(line, Location(file=self._file, line=self._line), self._bare, self._limit, self._size)
                )
        return found


def _fails(text: bytes, limit: int) -> bool:
    try:
        read_json(to_text(text, limit), JSON_LIMITS.depth)
    except SituError:
        return True
    return False


def _of_line(line: bytes, place: Location, bare: _Bare, limit: int, size: int) -> InputEvent | InputError:
    try:
        value = read_json(to_text(line.rstrip(b"\r"), limit), JSON_LIMITS.depth)
    except SituError as error:
        return InputError(line=place.line, size=size, problems=_placed(error, place))
    return _judged(value, place, bare, size)


def _judged(value: Any, place: Location, bare: _Bare, size: int) -> InputEvent | InputError:
    try:
        if isinstance(value, dict) and "specversion" not in value:
            if not bare.type:
                raise SituError(NOTHING_TO_PUBLISH(line=place.line, form=bare.form))
            return InputEvent(line=place.line, size=size, type=bare.type, data=value)
        sent = dict(value) if isinstance(value, dict) else {}
        event = event_of(value, marked=False)
    except SituError as error:
        return InputError(line=place.line, size=size, problems=_placed(error, place))
    envelope = {"id": event.id, "source": event.source, "time": event.time, "confidence": event.confidence}
    known = {name: each for name, each in envelope.items() if each is not None}
    data = event.data if isinstance(event.data, dict) else {}
    return InputEvent(line=place.line, size=size, type=event.type, data=data, envelope=known, sent=sent)


def _placed(error: SituError, place: Location) -> tuple[Problem, ...]:
    return tuple(replace(problem, location=problem.location or place) for problem in error.problems)
