"""Names that nobody gave: of the advertisement of a type; and what a listener names: types, an expression, a policy."""

from __future__ import annotations

import re

from situ.catalogue import NOT_AVAILABLE
from situ.errors import SituError
from situ.types.reserved import SITUATION

_OTHER = re.compile(r"[^A-Za-z0-9]+")
_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*")
_POLICY = re.compile(r"policy\s+([A-Za-z0-9-]{1,64})")
_TEXT = re.compile(r"'(?:[^']|'')*'")
_TYPE_IS = re.compile(r"\btype\s+IS\s+(?!NOT\b)([A-Za-z][A-Za-z0-9_.]*)", re.IGNORECASE)


def name_of_type(type: str) -> str:
    """An advertisement's name for a type: names become subjects, which have no dots and underscores."""
    return _OTHER.sub("-", type).strip("-")[:64]


def listened_to(what: str) -> tuple[tuple[str, ...], str | None]:
    """The types and the filter of a listener: for a type, an expression that names types, or ``policy NAME``.

    What a policy finds are situations.
    """
    if (policy := _POLICY.fullmatch(what.strip())) is not None:
        return (SITUATION.name,), f"policy = '{policy[1]}'"
    types = types_in(what)
    return types, None if types == (what.strip(),) else what


def types_in(what: str) -> tuple[str, ...]:
    """A type's name stands for itself; an expression names its types as ``type IS T``."""
    if _TYPE.fullmatch(what.strip()):
        return (what.strip(),)
    found = tuple(sorted(set(_TYPE_IS.findall(_TEXT.sub("''", what)))))
    if not found:
        remedy = "Name the type of the events: `type IS Sighting AND at.x < 5 m`."
        raise SituError(NOT_AVAILABLE(what=f"A listener for `{what[:100]}`, which names no type,", remedy=remedy))
    return found
