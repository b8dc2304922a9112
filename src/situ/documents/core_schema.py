"""What plain text stands for: the core schema of YAML 1.2, without its traps.

``true``, ``false``, ``null``, whole numbers and decimal fractions are values; all else is text. ``on``, ``no``,
``12:30``, ``1_000`` and dates are text, as the schema has it. Numbers with leading zeros (``010``) are text
here, although the schema reads them as decimal: readers of other YAML versions take them for octal, and those who
write them mean a code, not a quantity.
"""

from __future__ import annotations

import math
import re

_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+")
_FRACTION = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NUMBER_STARTS = frozenset("+-.0123456789")

# More digits than any number Situ computes with; converting a text of megabytes would take minutes.
_LONGEST_NUMBER = 400


def resolve(text: str) -> str | int | float | bool | None:
    """The value of plain text. What looks like a number but is none we can hold stays text."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS or len(text) > _LONGEST_NUMBER:
        return text
    if _WHOLE.fullmatch(text):
        return int(text, 0)
    if _FRACTION.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def looks_numeric(text: str) -> bool:
    """Whether plain text is written as a number, even one too large to hold or not finite."""
    return any(form.fullmatch(text) for form in (_WHOLE, _FRACTION, _NOT_FINITE))
