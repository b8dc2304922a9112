"""What generated Python calls for texts.

Like all that generated Python calls, each equals its Spark text on every input (:mod:`situ.expr.runtime`).
"""

from __future__ import annotations

from situ.expr.runtime import LONG_MAX

LONGEST_TEXT = 1 << 22


def _case_pairs() -> list[tuple[str, str]]:
    """Letters with exactly one other case, in scripts whose letters are settled: the same table for both engines."""
    pairs = []
    for code in (*range(0x41, 0x590), *range(0x1E00, 0x2000)):
        small = chr(code)
        large = small.upper()
        if (
            len(large) == 1
            and large != small
            and large.lower() == small
            and (ord(large) < 0x590 or ord(large) >= 0x1E00)
        ):
            pairs.append((small, large))
    return pairs


CASE_PAIRS = tuple((small, large) for small, large in _case_pairs() if ord(large) < 0x2000)
_UPPER = {ord(small): large for small, large in CASE_PAIRS}
_LOWER = {ord(large): small for small, large in CASE_PAIRS}


def upper(text: str) -> str:
    return text.upper() if text.isascii() else text.translate(_UPPER)


def lower(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_LOWER)


def substring(text: str, start: int, length: int = LONG_MAX) -> str:
    """Counts from 1; a negative start counts from the end; what lies outside the text is left out."""
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    last = first + length
    return text[max(first, 0) : max(last, 0)]


def replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    if len(text) + text.count(old) * (len(new) - len(old)) > LONGEST_TEXT:
        raise ArithmeticError("the text would become too long")
    return text.replace(old, new)


def split_part(text: str, separator: str, place: int) -> str:
    if place == 0:
        raise ValueError("parts are counted from 1")
    parts = text.split(separator) if separator else [text]
    index = place - 1 if place > 0 else len(parts) + place
    return parts[index] if 0 <= index < len(parts) else ""


def kv(text: str, key: str, separator: str, equals: str) -> str | None:
    prefix = key + equals
    for part in text.split(separator):
        if part.startswith(prefix):
            return part[len(prefix) :]
    return None


def kv_of(text: str, marked: str, separator: str) -> str | None:
    """The same for a key that is known: ``marked`` is what its part begins with behind a separator.

    The separator is one character, which is not in the key; so the text need not be taken apart.
    """
    _, found, rest = (separator + text).partition(marked)
    return rest.partition(separator)[0] if found else None
