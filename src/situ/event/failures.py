"""Failures that nobody foresaw: what one event does to a stage is that event's misfortune, and nobody else's.

Stages work on many events at once. Where that raises something they do not know, they work on each event alone, and
the one that fails is a dead letter with the code E705; the others go on as if it had not been there. The way of many
events costs nothing more than before: it is only left when something was raised.

What is raised because memory, disk, bus or registry fail says nothing of an event. It is raised on, to whoever waits
for these to come back.

The core writes no log. A failure travels with its event as text, and the engine that makes the dead letter logs it. Its
id follows from where it was raised and not from the event: the same mistake has the same id whichever event finds it,
and a batch that is repeated makes the same letters.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from situ.event.lines import encode_row
from situ.event.message import EventKey
from situ.event.row import BadRow, Error, Row, errors_of
from situ.lang.catalogue import EVENT_FAILED
from situ.lang.problems import SituError

_OF_ENVIRONMENT = (MemoryError, OSError)
_CODES_OF_ENVIRONMENT = ("B", "D", "N")
"""Bus, database of the registry, engine."""
_DEEPEST_SHOWN = 40
"""Frames of a traceback that are kept, those next to where it was raised: a deep recursion has a thousand."""

KEPT = 64 * 1024
"""Bytes that a dead letter holds of an event that is too large, or of which nothing is known."""

_T = TypeVar("_T")


def is_of_event(error: BaseException) -> bool:
    """Whether what was raised while working on an event may be taken for the event's own failure."""
    if isinstance(error, SituError):
        return not error.code.startswith(_CODES_OF_ENVIRONMENT)
    return isinstance(error, Exception) and not isinstance(error, _OF_ENVIRONMENT)


class StageFailure(msgspec.Struct, frozen=True):
    """Something unforeseen that was raised in a stage."""

    id: str
    """Of the mistake: the same wherever the same is raised at the same place."""
    stage: str
    what: str
    """The kind of exception. What it says may be about others than whoever gets to read this."""
    trace: str
    """The traceback, for the log; before it the id and the stage."""

    @property
    def errors(self) -> tuple[Error, ...]:
        """As an event carries it to the dead letters."""
        return errors_of([EVENT_FAILED(stage=self.stage, what=self.what, id=self.id)])


def failure_of(error: BaseException, stage: str) -> StageFailure:
    """What was raised in a stage; raised on if it says nothing of the event."""
    if not is_of_event(error):
        raise error
    # Walked by hand: to summarise a whole recursion takes longer than all else that is done with an event.
    frames = []
    at = error.__traceback__
    while at is not None:
        frames.append(at)
        at = at.tb_next
    places = [f"{_file(each.tb_frame.f_code.co_filename)}:{each.tb_lineno}" for each in frames[-3:]]
    kind = type(error).__name__
    id = hashlib.sha256(" ".join([stage, kind, *places]).encode()).hexdigest()[:8]
    shown = "".join(
        f'  File "{each.tb_frame.f_code.co_filename}", line {each.tb_lineno}, in {each.tb_frame.f_code.co_name}\n'
        for each in frames[-_DEEPEST_SHOWN:]
    )
    said = "".join(traceback.format_exception_only(type(error), error))[:2000]
    return StageFailure(id, stage, kind, f"{id} {stage}\nTraceback (most recent call last):\n{shown}{said}")


def _file(path: str) -> str:
    """Without the folder: the same mistake has the same id wherever Situ is installed."""
    return path.replace("\\", "/").rpartition("/")[2]


def failed(row: Row | BadRow, stage: str, error: BaseException, original: bytes | None = None) -> BadRow:
    """The event as a dead letter of a stage that raised something unforeseen; its line, unless it is said what was
    sent."""
    return failed_by(failure_of(error, stage), row, original)


def failed_by(failure: StageFailure, row: Row | BadRow, original: bytes | None = None) -> BadRow:
    """The event as a dead letter of what is known to have failed on it."""
    if original is None:
        original = _original(row)
    return BadRow.of(row, failure.stage, failure.errors, original, trace=failure.trace)


def _original(row: Row | BadRow) -> bytes:
    if isinstance(row, BadRow):
        return row.original
    try:
        return encode_row(row)
    except Exception as error:
        if not is_of_event(error):
            raise
        return row.data  # that it cannot be written may be what is wrong with it


def failed_text(text: bytes, key: EventKey, received: int, error: BaseException, stage: str = "decode") -> BadRow:
    """The same of an event that has not become a row."""
    failure = failure_of(error, stage)
    return BadRow(
        pos=0,
        client=key.client,
        incarnation=key.incarnation,
        seq=key.seq,
        context="root",
        recv=received,
        ad="",
        stage=stage,
        errors=failure.errors,
        original=text[:KEPT],
        size=len(text) if len(text) > KEPT else None,
        trace=failure.trace,
    )


def largest_working(
    things: Sequence[_T], work: Callable[[list[_T]], object]
) -> tuple[list[_T], list[tuple[_T, Exception]]]:
    """Those of the things that ``work`` does together without raising, in their order, and the others, each with what
    it raised beside those before it.

    ``work`` must be without effects: it is tried on more and more of them, by halves, so that few bad ones among many
    cost few tries. If it raises for no things at all, that is raised.
    """
    work([])
    good: list[_T] = []
    bad: list[tuple[_T, Exception]] = []
    waiting = [list(things)] if things else []
    while waiting:
        some = waiting.pop()
        try:
            work([*good, *some])
        except Exception as error:
            if not is_of_event(error):
                raise
            if len(some) == 1:
                bad.append((some[0], error))
            else:
                half = len(some) // 2
                waiting += [some[half:], some[:half]]
        else:
            good += some
    return good, bad


class FailureLog:
    """Says which failures are to be written down: of each mistake the first ones, then ever fewer.

    Whoever finds an event that fails can send it a million times; the log is not to be filled by that.
    """

    _EACH, _MOST = 3, 1000

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def texts(self, traces: Iterable[str]) -> list[str]:
        """What is to be written down of these failures."""
        found = []
        for trace in traces:
            head, _, rest = trace.partition("\n")
            if len(self._seen) >= self._MOST and head not in self._seen:
                self._seen.clear()
            number = self._seen[head] = self._seen.get(head, 0) + 1
            if number <= self._EACH or str(number).strip("0") == "1":
                id, _, stage = head.partition(" ")
                often = f", {number:,} times so far" if number > 1 else ""
                found.append(
                    f"mistake {id} in {stage}{often}: one event is left out, all others go on\n{rest.rstrip()}"
                )
        return found

    def of(self, bad: Iterable[BadRow]) -> list[str]:
        """The same of dead letters, most of which are none of these."""
        return self.texts(each.trace for each in bad if each.trace)
