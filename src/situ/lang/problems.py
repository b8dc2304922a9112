"""Every error Situ reports has this form: a stable code, a message, a place, a remedy.

It owns severities, places, problems, the exception that carries problems, how a problem reads in a terminal, and how a
code is defined. The list of codes is :mod:`situ.lang.catalogue`; nothing here knows which codes exist. Only
``situ.cli`` turns problems into exit codes.
"""

from __future__ import annotations

import difflib
import heapq
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any


class Severity(Enum):
    """How much a problem matters: an error refuses, a warning runs, an observation only informs."""

    ERROR = "error"
    WARNING = "warning"
    OBSERVATION = "observation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place in a document. Lines and columns count characters from 1; ``text`` is the whole line."""

    file: str
    line: int = 1
    column: int = 1
    length: int = 1
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Code:
    """One entry of the catalogue: what can go wrong, said once.

    ``parameters`` gives the name and type of every value the texts mention. ``hint`` is used when all the
    parameters it mentions are non-empty, ``otherwise`` when not, so a hint can offer the nearest names
    where there are any and a general remedy where there are none.
    """

    code: str
    severity: Severity
    title: str
    message: str
    hint: str
    otherwise: str
    parameters: Mapping[str, type]

    def __call__(self, location: Location | None = None, *, cause: Problem | None = None, **values: Any) -> Problem:
        """Make a problem of this kind; the values must be exactly the declared parameters."""
        if values.keys() != self.parameters.keys():
            raise TypeError(f"{self.code} takes {sorted(self.parameters)}, got {sorted(values)}")
        for name, value in values.items():
            if not isinstance(value, self.parameters[name]):
                raise TypeError(f"{self.code}: {name} must be {self.parameters[name].__name__}, got {value!r}")
        return Problem(code=self, location=location, values=MappingProxyType(values), cause=cause)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong, here. Equality ignores nothing: two problems at two places are two.

    >>> try:
    ...     await gate.advertise("TruckSean")
    ... except situ.SituError as error:
    ...     problem = error.problems[0]
    >>> problem.code.code, problem.is_error
    ('INT601', True)
    """

    code: Code
    location: Location | None
    values: Mapping[str, Any] = field(hash=False)
    cause: Problem | None = None

    @property
    def severity(self) -> Severity:
        return self.code.severity

    @property
    def is_error(self) -> bool:
        return self.code.severity is Severity.ERROR

    @property
    def message(self) -> str:
        return _fill(self.code.message, self.values)

    @property
    def hint(self) -> str:
        """What to do about it; the deepest cause knows best when this problem itself has nothing to say."""
        wanted = _mentioned(self.code.hint)
        full = all(self.values[name] not in ("", (), None) for name in wanted)
        own = _fill(self.code.hint if full else self.code.otherwise, self.values)
        if not own and self.cause is not None:
            return self.cause.hint
        return own

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{place}{self.code.code} {self.message}"

    def as_json(self) -> dict[str, Any]:
        """The problem as plain data, for ``--json`` and for dead letters."""
        place = self.location
        return {
            "code": self.code.code,
            "severity": self.severity.value,
            "message": self.message,
            "hint": self.hint,
            "file": place.file if place else None,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "cause": self.cause.as_json() if self.cause else None,
        }


class SituError(Exception):
    """Raised where work cannot go on; carries every problem that was found, never just the first.

    >>> try:
    ...     await gate.advertise("TruckSean")
    ... except situ.SituError as error:
    ...     print(error.code, error.hint)
    INT601 Did you mean `TruckSeen`?
    """

    def __init__(self, *problems: Problem) -> None:
        self.problems: tuple[Problem, ...] = problems
        super().__init__("\n".join(str(problem) for problem in problems))

    @property
    def code(self) -> str:
        return self.problems[0].code.code

    @property
    def hint(self) -> str:
        return self.problems[0].hint


class Problems:
    """Collects problems while checking goes on, in the order found, each once."""

    __slots__ = ("_found",)

    def __init__(self, found: Iterable[Problem] = ()) -> None:
        self._found: dict[tuple[str, Location | None, str], Problem] = {}
        self.extend(found)

    def add(self, problem: Problem) -> None:
        self._found.setdefault((problem.code.code, problem.location, problem.message), problem)

    def extend(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self.add(problem)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self if problem.is_error)

    def sorted(self) -> tuple[Problem, ...]:
        """By place: file, line, column; problems without a place come first."""
        return tuple(sorted(self, key=_place_key))

    def raise_errors(self) -> None:
        """Raise :class:`SituError` with all errors, if there are any."""
        if errors := self.errors:
            raise SituError(*errors)


def nearest(name: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The known names that look most like ``name``, case ignored; empty when none comes close."""
    by_fold: dict[str, str] = {}
    for candidate in known:
        by_fold.setdefault(candidate.casefold(), candidate)
    wanted = name.casefold()
    likely = by_fold if len(by_fold) <= _MOST_COMPARED else _likely(wanted, by_fold)
    close = difflib.get_close_matches(wanted, likely, n=most, cutoff=0.6)
    return tuple(by_fold[fold] for fold in close)


_MOST_COMPARED = 100  # comparing letter by letter is slow, and a project may know thousands of names


def _likely(wanted: str, known: Iterable[str]) -> list[str]:
    """The names that share most of their beginning and end with the one wanted: a slip leaves one of them whole."""

    def shared(candidate: str) -> int:
        start = end = 0
        shortest = min(len(wanted), len(candidate))
        while start < shortest and wanted[start] == candidate[start]:
            start += 1
        while end < shortest - start and wanted[-1 - end] == candidate[-1 - end]:
            end += 1
        return start + end

    return heapq.nlargest(_MOST_COMPARED, known, key=shared)


def render(problem: Problem) -> str:
    """The problem as a person reads it: place and message, the line with a caret, then the hint."""
    place = f"{problem.location}: " if problem.location else ""
    lines = [f"{place}{problem.severity.value} {problem.code.code}: {problem.message}"]
    lines.extend(_excerpt(problem.location))
    cause = problem.cause
    while cause is not None:
        lines.append(f"  because {cause.code.code}: {cause.message}")
        cause = cause.cause
    if problem.hint:
        lines.append(f"  hint: {problem.hint}")
    return "\n".join(lines)


_WIDEST_LINE = 160


def _excerpt(location: Location | None) -> list[str]:
    if location is None or not location.text:
        return []
    # A hostile file may hold one line of megabytes: show the part around the column.
    start = max(0, location.column - 1 - _WIDEST_LINE // 2) if len(location.text) > _WIDEST_LINE else 0
    shown = location.text[start : start + _WIDEST_LINE]
    before = shown[: location.column - 1 - start]
    blank = "".join("\t" if character == "\t" else " " for character in before)
    carets = "^" * max(1, min(location.length, len(shown) - len(before)))
    shown = _printable(shown)
    return [f"  | {shown}", f"  | {blank}{carets}"]


def _printable(text: str) -> str:
    """User text must not move the cursor or colour the terminal; tabs stay, so that carets stay below their column."""
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _place_key(problem: Problem) -> tuple[str, int, int]:
    place = problem.location
    return (place.file, place.line, place.column) if place else ("", 0, 0)


def _mentioned(template: str) -> tuple[str, ...]:
    return tuple(name for _, name, _, _ in string.Formatter().parse(template) if name)


def _fill(template: str, values: Mapping[str, Any]) -> str:
    return template.format_map({name: _show(value) for name, value in values.items()})


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        quoted = [f"`{_printable(str(item))}`" for item in value]
        return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" or {quoted[-1]}" if quoted else ""
    text = str(value)
    return _printable(text if len(text) <= 200 else text[:199] + "…")


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# How an entry comes into the catalogue: by being defined, once.

CODES: dict[str, Code] = {}


def define(
    code: str,
    title: str,
    message: str,
    hint: str = "",
    otherwise: str = "",
    severity: Severity = Severity.ERROR,
    **parameters: type,
) -> Code:
    """Enter a code; a code that is already there, under whatever name, is a mistake."""
    if code in CODES:
        raise ValueError(f"{code} is defined twice")
    entry = Code(code, severity, title, message, hint, otherwise, parameters)
    CODES[code] = entry
    return entry
