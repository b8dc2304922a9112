"""Names that nobody gave: of the advertisement of a type; and the types that an expression names."""

from __future__ import annotations

import re

from situ.catalogue import NOT_AVAILABLE
from situ.errors import SituError

_OTHER = re.compile(r"[^A-Za-z0-9]+")
_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*")
_TEXT = re.compile(r"'(?:[^']|'')*'")
_TYPE_IS = re.compile(r"\btype\s+IS\s+(?!NOT\b)([A-Za-z][A-Za-z0-9_.]*)", re.IGNORECASE)


def name_of_type(type: str) -> str:
    """An advertisement's name for a type: names become subjects, which have no dots and underscores."""
    return _OTHER.sub("-", type).strip("-")[:64]


def types_in(what: str) -> tuple[str, ...]:
    """A type's name stands for itself; an expression names its types as ``type IS T``."""
    if _TYPE.fullmatch(what.strip()):
        return (what.strip(),)
    found = tuple(sorted(set(_TYPE_IS.findall(_TEXT.sub("''", what)))))
    if not found:
        remedy = "Name the type of the events: `type IS Sighting AND at.x < 5 m`."
        raise SituError(NOT_AVAILABLE(what=f"A listener for `{what[:100]}`, which names no type,", remedy=remedy))
    return found
