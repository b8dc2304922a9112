"""Expression text → syntax, what was written before names and types are known; and its canonical spelling."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from situ.lang.catalogue import TOO_LARGE
from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.problems import Location, SituError

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Text → :class:`Syntax`.
#
# A well-kept SQL parser does the reading, in :mod:`situ.lang.expr.sql_dialect`, which is loaded with the first
# expression that there is to read: most commands have none. Everything behind sees :class:`Syntax` only.

KEYWORDS = "AND OR NOT IN BETWEEN CASE WHEN THEN ELSE END IS NULL TRUE FALSE LIKE ESCAPE AS".split()


class Syntax(msgspec.Struct, frozen=True):
    """One construct as written: its kind, its own word if it has one, its parts, and where it stands."""

    kind: str
    text: str
    parts: tuple[Syntax, ...]
    start: int
    end: int


Locate = Callable[[int, int], Location]
"""From (offset, length) in the expression to a place in the file that holds it."""


def locate_in(text: str, file: str = "expression") -> Locate:
    """Places in an expression that stands for itself, not in a file."""

    lines: dict[int, str] = {}  # one long line with many problems is held once, not once a problem

    def locate(offset: int, length: int) -> Location:
        line = text.count("\n", 0, offset) + 1
        start = text.rfind("\n", 0, offset) + 1
        end = text.find("\n", offset)
        whole = lines.setdefault(start, text[start : end if end >= 0 else len(text)])
        return Location(file=file, line=line, column=offset - start + 1, length=max(1, length), text=whole)

    return locate


def parse_syntax(text: str, locate: Locate, limits: ExpressionLimits = DEFAULT_LIMITS) -> Syntax:
    """Read an expression; :class:`SituError` with the first problem, for after one the rest cannot be trusted."""
    if len(text) > limits.characters:
        raise SituError(TOO_LARGE(locate(0, 1), what="characters", limit=limits.characters))
    from situ.lang.expr.sql_dialect import read_expression

    return read_expression(text, locate, limits)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The canonical spelling of an expression: the same words, with blanks and capitals where we put them.
#
# Works on words alone, so it keeps what a person wrote: brackets, calls, ``BETWEEN``, units as they are named. Two
# spellings of one text become one, and the meaning stays. What is not understood is left as it is; whether the text is
# an expression at all is for :func:`parse_syntax` to say.

_WORD = re.compile(
    r"""(?P<blank>\s+)
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)
    | (?P<unit>\[[^\[\]]*\])
    | (?P<name>[^\W\d]\w*|[°℃℉]\w*)
    | (?P<sign>\|\||->|<>|!=|<=|>=|==|[-+*/%<>=(),.])
    """,
    re.VERBOSE,
)
_SYNONYMS = {"!=": "<>", "==": "="}
_TYPED_LITERAL = {"TIMESTAMP", "DATE", "DURATION"}
_KEYWORDS = frozenset(KEYWORDS)


class _Word(NamedTuple):
    kind: str
    text: str

    @property
    def ends_operand(self) -> bool:
        """Whether a value stands before what comes next: then ``-`` is a difference and not a sign."""
        if self.kind == "sign":
            return self.text == ")"
        return self.kind != "keyword" or self.text in ("NULL", "TRUE", "FALSE", "END")


def spell(text: str) -> str:
    """The expression in its canonical spelling, on one line."""
    words = _words(text)
    if words is None:
        return text.strip()
    result = ""
    before: _Word | None = None
    sign_before = False
    for word in words:
        sign = word.kind == "sign" and word.text in "+-" and (before is None or not before.ends_operand)
        if before is not None and not sign_before and _apart(before, word):
            result += " "
        result += word.text
        before, sign_before = word, sign
    return result


def _words(text: str) -> list[_Word] | None:
    words: list[_Word] = []
    position = 0
    while position < len(text):
        found = _WORD.match(text, position)
        if found is None or found.lastgroup is None:
            return None
        position = found.end()
        if found.lastgroup != "blank":
            words.append(_spelled(found.lastgroup, found[0], words[-1] if words else None))
    for index, word in enumerate(words[:-1]):
        if word.kind == "name" and word.text.upper() in _TYPED_LITERAL and words[index + 1].kind == "text":
            words[index] = _Word("name", word.text.upper())
    return words


def _spelled(kind: str, text: str, before: _Word | None) -> _Word:
    if kind == "name" and text.upper() in _KEYWORDS and (before is None or before.text not in (".", "AS")):
        return _Word("keyword", text.upper())
    if kind == "sign":
        return _Word(kind, _SYNONYMS.get(text, text))
    if kind == "unit":
        return _Word(kind, f"[{text[1:-1].strip()}]")
    return _Word(kind, text)


def _apart(before: _Word, word: _Word) -> bool:
    """Whether a blank stands between the two."""
    if before.kind == "sign" and before.text in ("(", "."):
        return False
    if word.kind == "sign" and word.text in (")", ",", "."):
        return False
    if word.kind == "sign" and word.text == "(":
        return before.kind not in ("name", "quoted")
    return True
