"""``properties:`` of ``quality/*.yaml`` → properties, each checked by itself."""

from __future__ import annotations

import math
import re
from typing import cast, get_args

from situ.catalogue import BAD_NAME, BAD_SCALE, BUILT_IN_CHANGED, HOP_UNFIT, UNKNOWN_UNIT
from situ.documents import Fields, Node, Reader, Scalar
from situ.quality.property import BUILT_IN, Determined, Exceed, Hop, Property
from situ.quality.read_value import read_double, read_end
from situ.units import Units, UnknownUnit

PROPERTY_KEYS = ("range", "levels", "unit", "improve", "determined_by", "hop", "exceed", "scale", "quantum")
IMPROVE = ("maximise", "minimise")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_NAMES = "Use letters, digits, `_` and `-`, a letter first, at most 64."
_FREE = ("trust",)
"""Built in, and measured by nobody: its levels are the project's."""


def read_property(read: Reader, key: Scalar, node: Node, units: Units) -> Property | None:
    """A property; None if something is wrong with it, which is said."""
    fields = read.fields(node, optional=PROPERTY_KEYS)
    if fields is None:
        return None
    if not NAME.fullmatch(key.text):
        reason = "it has other characters, or too many"
        read.problems.add(BAD_NAME(key.location, name=key.text, what="a property", reason=reason, remedy=_NAMES))
        return None
    built_in = BUILT_IN.get(key.text)
    # What a project does not say of a built-in property stays.
    base = built_in or Property(name=key.text)
    domain = _domain(read, fields, key, base)
    unit = _unit(read, fields, units, base.unit)
    if domain is None or unit is None:
        return None
    levels, lo, hi = domain
    made = Property(
        name=key.text,
        lo=lo,
        hi=hi,
        unit="" if levels else unit,
        levels=levels,
        maximise=fields.choice("improve", IMPROVE, IMPROVE[not base.maximise]) == "maximise",
        determined_by=cast(Determined, fields.choice("determined_by", get_args(Determined), base.determined_by)),
        hop=cast(Hop, fields.choice("hop", get_args(Hop), base.hop)),
        exceed=cast(Exceed, fields.choice("exceed", get_args(Exceed), base.exceed)),
        scale=read_double(read, fields.node("scale"), least=0) or base.scale,
        quantum=read_double(read, fields.node("quantum"), least=0),
    )
    return made if _is_right(read, key, fields, made) else None


def _domain(read: Reader, fields: Fields, key: Scalar, base: Property) -> tuple[tuple[str, ...], float, float] | None:
    levels, span = fields.node("levels"), fields.node("range")
    if levels is not None and span is not None:
        read.problems.add(BAD_SCALE(key.location, name=key.text, what="has both a range and levels"))
        return None
    if levels is not None:
        names = tuple(each.text for each in fields.scalars("levels"))
        if len(names) < 2 or len(set(names)) < len(names):
            read.problems.add(
                BAD_SCALE(levels.location, name=key.text, what="has too few levels, or one of them twice")
            )
            return None
        return names, 0.0, float(len(names) - 1)
    if span is not None:
        return _range(read, fields, key, span)
    if key.text in BUILT_IN:
        return base.levels, base.lo, base.hi
    read.problems.add(BAD_SCALE(key.location, name=key.text, what="has neither a range nor levels"))
    return None


def _range(read: Reader, fields: Fields, key: Scalar, node: Node) -> tuple[tuple[str, ...], float, float] | None:
    items = fields.items("range")
    if len(items) == 2:
        lo, hi = read_end(read, items[0], -math.inf), read_end(read, items[1], math.inf)
        if lo is None or hi is None:
            return None
        if lo < hi and lo < math.inf and hi > -math.inf:
            return (), lo, hi
    read.problems.add(BAD_SCALE(node.location, name=key.text, what="has no range that goes from one number to another"))
    return None


def _unit(read: Reader, fields: Fields, units: Units, default: str) -> str | None:
    scalar = fields.scalar("unit")
    if scalar is None:
        return default
    try:
        return str(units.parse(scalar.text)) if scalar.text else ""
    except UnknownUnit as error:
        read.problems.add(UNKNOWN_UNIT(scalar.location, unit=scalar.text, nearest=error.nearest))
        return None


def _is_right(read: Reader, key: Scalar, fields: Fields, made: Property) -> bool:
    place = (fields.node("hop") or key).location
    if reason := hop_unfit(made):
        read.problems.add(HOP_UNFIT(place, name=made.name, hop=made.hop, reason=reason))
        return False
    built_in = BUILT_IN.get(made.name)
    if built_in is None or made.name in _FREE or _scale(made) == _scale(built_in):
        return True
    read.problems.add(BUILT_IN_CHANGED(key.location, name=made.name, scale=_shown(built_in)))
    return False


def hop_unfit(about: Property) -> str:
    """Why a hop rule does not fit the domain; empty, if it does. Every rule has to keep what is better better."""
    if about.hop in ("same", "worst"):
        return ""
    if about.levels:
        return "levels are no numbers"
    if about.hop == "add":
        return "more of it is better" if about.maximise else ""
    if not about.maximise:
        return "less of it is better"
    return "" if about.lo >= 0 else "it goes below 0"


def _scale(about: Property) -> tuple[object, ...]:
    return about.lo, about.hi, about.unit, about.levels, about.maximise


def _shown(about: Property) -> str:
    span = " < ".join(about.levels) if about.levels else f"{about.lo:g} to {about.hi:g} {about.unit}".strip()
    return f"{span}, {'more' if about.maximise else 'less'} is better"
