"""What shaping means, said slowly: each function sees the whole history at once and asks everything afresh.

Rows are in the order of the log. Who is kept is given in that order, whenever it would have been let go. Filters and
these are held equal on generated histories; nothing else uses this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from situ.event.row import Row
from situ.quality.model.declarations import Aggregate
from situ.quality.model.shapes import EventFloor, Limit, Suppress, Thin
from situ.quality.shaping.suppress import Read

_MINUTE = 60_000_000


def selected(rows: Sequence[Row], publishers: frozenset[str] | None) -> list[Row]:
    return [row for row in rows if publishers is None or row.client in publishers]


def good(rows: Sequence[Row], each: EventFloor, now: int | None = None) -> list[Row]:
    def passes(row: Row) -> bool:
        if each.about == "confidence":
            return each.keep_missing if row.confidence is None else row.confidence >= each.floor
        age = (row.recv if now is None else now) - row.time
        return Fraction(max(age, 0), 1_000_000) <= Fraction(each.floor)

    return [row for row in rows if passes(row)]


# ── thin ──


def thinned(rows: Sequence[Row], thin: Thin, lateness: int, read: Read) -> list[Row]:
    """Of each window the ones that rank first, of those that came in time for it."""

    def per(row: Row) -> str:
        return str(read(row).get(thin.per)) if thin.per else ""

    def line(row: Row) -> Any:
        return () if thin.across else (row.client, row.source, per(row))

    waits = thin.across or thin.keep != "first"
    kept: list[Row] = []
    windows: dict[Any, list[Row]] = {}
    for place, row in enumerate(rows):
        window = _window(row.time, thin.limits)
        if window is None:
            kept.append(row)
            continue
        limit, number = window
        highest = _highest(each for each in rows[:place] if line(each) == line(row))
        in_time = _end(limit, number) > highest - (lateness if waits else 2 * lateness)
        if in_time:
            windows.setdefault((line(row), per(row), *_named(limit), number), []).append(row)
    for (*_, events, _, form, _), some in windows.items():
        ranked = sorted(some, key=_RANKS[thin.keep]) if waits else some
        kept += ranked[: events if form == "quota" else 1]
    return sorted(kept, key=rows.index)


def _highest(rows: Iterable[Row]) -> float:
    return max((min(row.time, row.recv) for row in rows), default=-math.inf)


def _named(limit: Limit) -> tuple[int, int, str]:
    return limit.events, limit.minutes, limit.form


def _number(time: int, limit: Limit) -> int:
    per_minutes = 1 if limit.form == "quota" else limit.events
    return math.floor(Fraction(time * per_minutes, _MINUTE * limit.minutes))


def _start(limit: Limit, number: int) -> int:
    """The first instant of a window."""
    per_minutes = 1 if limit.form == "quota" else limit.events
    return math.ceil(Fraction(number * _MINUTE * limit.minutes, per_minutes))


def _end(limit: Limit, number: int) -> int:
    return _start(limit, number + 1)


def _window(time: int, limits: Sequence[Limit]) -> tuple[Limit, int] | None:
    holding = [
        (limit, _number(time, limit))
        for limit in limits
        if limit.since is None or _start(limit, _number(time, limit)) >= limit.since
    ]
    if not holding or (holding[-1][0].until is not None and time >= holding[-1][0].until):
        return None
    return holding[-1]


def _earliest(row: Row) -> Any:
    return (row.time, row.id)


def _latest(row: Row) -> Any:
    return (-row.time, row.id)


def _surest(row: Row) -> Any:
    """Whoever says nothing comes behind all who do."""
    return (-math.inf if row.confidence is None else row.confidence) * -1, -row.time, row.id


_RANKS: Mapping[str, Callable[[Row], Any]] = {"first": _earliest, "last": _latest, "best": _surest}


# ── suppress ──


def suppressed(
    rows: Sequence[Row], suppress: Suppress, read: Read, changes: Mapping[int, Suppress] | None = None
) -> list[Row]:
    """Those that pass, in the order in which they do; ``changes``: from these places of rows on it is another one."""
    passed: list[Row] = []
    for place in range(len(rows) + 1):
        if changes and place in changes:
            suppress = changes[place]
            passed += _told(rows[:place], passed, suppress, read)
        if place < len(rows) and _passes(rows[place], rows[:place], passed, suppress, read):
            passed.append(rows[place])
    return passed


def _key(row: Row, suppress: Suppress, read: Read) -> tuple[str, ...]:
    return (row.client, row.source, *([str(read(row).get(suppress.per))] if suppress.per else []))


def _delta(row: Row, suppress: Suppress, read: Read) -> float:
    key = _key(row, suppress, read)
    names = {key[-1], *([] if suppress.per else [row.source.removeprefix(f"{row.client}/")])}
    return min([suppress.delta, *(each for name, each in suppress.per_key if name in names)])


def _passes(row: Row, before: Sequence[Row], passed: Sequence[Row], suppress: Suppress, read: Read) -> bool:
    value = read(row).get(suppress.attribute)
    own = [each for each in before if _alike(each, row, suppress, read)]
    if value is None or not own:
        return True
    if row.time < max(each.time for each in own):
        return False
    last = [each for each in passed if _alike(each, row, suppress, read)][-1]
    silent = suppress.max_silence is not None and row.time - last.time >= suppress.max_silence
    return silent or abs(value - read(last)[suppress.attribute]) > _delta(row, suppress, read)


def _alike(one: Row, other: Row, suppress: Suppress, read: Read) -> bool:
    if read(one).get(suppress.attribute) is None:
        return False
    return _key(one, suppress, read) == _key(other, suppress, read)


def _told(before: Sequence[Row], passed: Sequence[Row], suppress: Suppress, read: Read) -> list[Row]:
    """The latest of each key that is too far away by now."""
    found = []
    for row in before:
        own = [each for each in before if _alike(each, row, suppress, read)]
        if not own or row is not max(enumerate(own), key=lambda each: (each[1].time, each[0]))[1]:
            continue
        last = [each for each in passed if _alike(each, row, suppress, read)][-1]
        away = abs(read(row)[suppress.attribute] - read(last)[suppress.attribute])
        if last is not row and away > _delta(row, suppress, read):
            found.append(row)
    return sorted(found, key=lambda row: (row.time, row.id))


# ── aggregate ──

Result = tuple[str, str, int, Fraction]
"""Client, source, end of the window, value."""
_Step = tuple[int, Fraction]


def aggregated(rows: Sequence[Row], aggregate: Aggregate, lateness: int, read: Read) -> list[Result]:
    """What comes out of each window in which something came, of events that were not late."""
    found: list[Result] = []
    for source in dict.fromkeys((row.client, row.source) for row in rows):
        own = [row for row in rows if (row.client, row.source) == source and aggregate.attribute in read(row)]
        own = [row for place, row in enumerate(own) if row.time >= _highest(own[:place]) - lateness]
        if not own:
            continue
        steps = sorted(((row.time, Fraction(read(row)[aggregate.attribute])) for row in own), key=lambda each: each[0])
        every = aggregate.every
        first, last = steps[0][0] // every * every, (steps[-1][0] + aggregate.window) // every * every
        for end in range(first + every, last + every, every):
            begin = end - aggregate.window
            inside = [each for each in steps if begin <= each[0] < end]
            if inside:
                before = [each for each in steps if each[0] < begin]
                found.append((*source, end, _result(aggregate.function, before, inside, begin, end)))
    return found


def _result(function: str, before: Sequence[_Step], inside: Sequence[_Step], begin: int, end: int) -> Fraction:
    if function == "sum":
        return sum((value for _, value in inside), Fraction())
    steps = [*([(begin, before[-1][1])] if before and inside[0][0] > begin else []), *inside]
    values = [value for _, value in steps]
    if function in ("min", "max"):
        return min(values) if function == "min" else max(values)
    until = [*(time for time, _ in steps[1:]), end]
    area = sum(((after - time) * value for (time, value), after in zip(steps, until, strict=True)), Fraction())
    return area / (end - steps[0][0])
