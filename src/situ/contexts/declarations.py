"""Functions of contexts as written: taken apart, with the place of each part, nothing looked up.

Short form ``TYPE [UNIT] -> TYPE [UNIT] = EXPRESSION``; long form a mapping with ``signature`` and, beside the
expression, what it looks up or remembers.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from situ.catalogue import MISSING_KEY, NOT_A_CHOICE, SIGNATURE_SYNTAX, STATE_UNBOUNDED
from situ.documents import Fields, Mapping, Node, Reader, Scalar
from situ.errors import Location, SituError, nearest
from situ.expr.declare import has_free_name
from situ.expr.signature import SignatureText, parse_signature, split_definition
from situ.expr.spelling import spell
from situ.expr.syntax import Locate
from situ.interpretation.declare import CONVERSION_KEYS
from situ.interpretation.model import Expression, Missing
from situ.quantities import parse_duration, parse_instant
from situ.types.declare import check_attribute_name, is_nothing
from situ.types.scalars import print_timestamp

_TIMES = ("event", "now")
_MEANS = ("expr", "value", "python")
_HOLD = "hold "
_VARIABLES = ("value", "event", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupText:
    """``name: {source, key: {column: expression}, as_of: column}``."""

    name: Scalar
    source: Scalar
    keys: tuple[tuple[Scalar, Expression], ...]
    as_of: Scalar | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateText:
    """``name: {event, key, keep: {name: expression}, history, ttl, max_keys}``; None where something is missing."""

    name: Scalar
    event: Scalar
    key: Expression | None
    keep: tuple[tuple[Scalar, Expression], ...]
    history: timedelta
    ttl: timedelta | None
    max_keys: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionText:
    """A function of a context, without what in it was not understood."""

    name: str
    location: Location
    signature: SignatureText
    expression: Expression | None = None
    python: str = ""
    code: str = ""
    time: str = ""
    time_location: Location | None = None
    lookups: tuple[LookupText, ...] = ()
    key: Expression | None = None
    states: tuple[StateText, ...] = ()
    missing: Missing = Missing.ERROR
    default: Node | None = None
    hold: timedelta = timedelta()
    lossy: bool = False
    inverse: Scalar | None = None
    nulls: bool = False
    lost: frozenset[str] = frozenset()
    """The names of rows that are not understood, but were declared."""


def read_conversion(key: Scalar, node: Node, read: Reader) -> ConversionText | None:
    """The function under this key; None, with the problems noted, if not even its signature is understood."""
    named = has_free_name(key, read.problems)
    if key.text == "keep":
        read.problems.add(
            SIGNATURE_SYNTAX(key.location, found="`keep`", expected="another name: that one belongs to Situ")
        )
    try:
        if isinstance(node, Mapping):
            text = _Long(key, read).read(node)
        else:
            scalar = read.scalar(node)
            text = None if scalar is None else _short(key, scalar)
    except SituError as error:
        read.problems.extend(error.problems)
        return None
    return text if named else None


def as_expression(text: str, locate: Locate) -> Expression:
    return Expression(text=spell(text), written=text, locate=locate)


def _short(key: Scalar, scalar: Scalar) -> ConversionText:
    end, start = split_definition(scalar.text, scalar.locate)
    return ConversionText(
        name=key.text,
        location=key.location,
        signature=_signature(scalar.text[:end], scalar.locate),
        expression=as_expression(scalar.text[start:], lambda at, length: scalar.locate(start + at, length)),
    )


def _signature(text: str, locate: Locate) -> SignatureText:
    signature = parse_signature(text, locate)
    if not signature.converts:
        place = locate(len(text) - len(text.lstrip()), 1)
        expected = "the type of `value`: functions of contexts convert one value"
        raise SituError(SIGNATURE_SYNTAX(place, found="`(`", expected=expected))
    return signature


class _Long:
    """Reads the long form; what is not understood is left out, so that all of it is looked at."""

    def __init__(self, key: Scalar, read: Reader) -> None:
        self._key, self._read = key, read
        self._lost: set[str] = set()

    def read(self, node: Mapping) -> ConversionText | None:
        fields = self._read.fields(node, required=("signature",), optional=CONVERSION_KEYS[1:])
        if fields is None:
            return None
        written = fields.scalar("signature")
        signature: SignatureText | None = None
        try:
            signature = None if written is None else _signature(written.text, written.locate)
        except SituError as error:
            self._read.problems.extend(error.problems)
        missing, default, hold = self._missing(fields.node("missing"))
        time, place = self._time(fields)
        lookups = self._lookups(fields)
        states = self._states(fields)
        expression = self._means(fields)
        nulls = fields.choice("nulls", ("call", "skip"), "skip") == "call"
        lossy = fields.boolean("lossy", False)
        inverse, key = fields.scalar("inverse"), self._expression(fields, "key")
        if signature is None:
            return None
        return ConversionText(
            name=self._key.text,
            location=self._key.location,
            signature=signature,
            expression=expression,
            python=fields.text("python", ""),
            code=fields.text("code", ""),
            time=time,
            time_location=place,
            lookups=lookups,
            key=key,
            states=states,
            missing=missing,
            default=default,
            hold=hold,
            lossy=lossy,
            inverse=inverse,
            nulls=nulls,
            lost=frozenset(self._lost),
        )

    def _means(self, fields: Fields) -> Expression | None:
        given = [name for name in _MEANS if name in fields]
        if not given:
            self._read.problems.add(MISSING_KEY(self._key.location, key="expr", where=f"in `{self._key.text}`"))
        if len(given) > 1:
            self._read.wrong(fields.mapping, f"one of {', '.join(f'`{each}`' for each in _MEANS)}, not several")
        return self._expression(fields, "expr") or self._expression(fields, "value")

    def _expression(self, fields: Fields, name: str) -> Expression | None:
        scalar = fields.scalar(name)
        return None if scalar is None else as_expression(scalar.text, scalar.locate)

    def _time(self, fields: Fields) -> tuple[str, Location | None]:
        scalar = fields.scalar("time")
        if scalar is None:
            return "", None
        if scalar.text in _TIMES:
            return scalar.text, scalar.location
        try:
            return print_timestamp(parse_instant(scalar.text, scalar.location)), scalar.location
        except SituError as error:
            if similar := nearest(scalar.text, _TIMES):
                found, choices = f"`{scalar.text}`", (*_TIMES, "2026-11-01T08:30:00Z")
                problem = NOT_A_CHOICE(scalar.location, found=found, nearest=similar, choices=choices)
                self._read.problems.add(problem)
            else:
                self._read.problems.extend(error.problems)
            return "event", scalar.location  # it says something, so that is not missing

    def _missing(self, node: Node | None) -> tuple[Missing, Node | None, timedelta]:
        if node is None:
            return Missing.ERROR, None, timedelta()
        if is_nothing(node):
            return Missing.NULL, None, timedelta()
        if isinstance(node, Mapping):
            fields = self._read.fields(node, required=("default",))
            return Missing.DEFAULT, fields.node("default") if fields is not None else None, timedelta()
        scalar = self._read.scalar(node)
        if scalar is not None and scalar.text.startswith(_HOLD):
            hold = self._duration_of(scalar, scalar.text.removeprefix(_HOLD))
            return Missing.HOLD, None, hold or timedelta()
        if scalar is not None and scalar.text not in ("error", "null"):
            self._read.wrong(scalar, "`error`, `null`, `hold 5 s` or `{default: …}`")
        return Missing.NULL if scalar is not None and scalar.text == "null" else Missing.ERROR, None, timedelta()

    # ── lookups and states ────────────────────────────────────────────────────────────────────────

    def _lookups(self, fields: Fields) -> tuple[LookupText, ...]:
        found = []
        for name, node in self._entries(fields, "lookup"):
            below = self._read.fields(node, required=("source", "key"), optional=("as_of",))
            source = below.scalar("source") if below is not None else None
            if below is None or not self._is_variable(name) or source is None:
                self._lost.add(name.text)
                continue
            keys = self._expressions(below, "key")
            found.append(LookupText(name=name, source=source, keys=keys, as_of=below.scalar("as_of")))
        return tuple(sorted(found, key=lambda each: each.name.text))

    def _states(self, fields: Fields) -> tuple[StateText, ...]:
        found = []
        for name, node in self._entries(fields, "state"):
            below = self._read.fields(node, required=("event", "keep"), optional=("key", "history", "ttl", "max_keys"))
            if below is None or not self._is_variable(name):
                self._lost.add(name.text)
                continue
            lacking = [f"`{each}`" for each in ("key", "ttl", "max_keys") if each not in below]
            if "key" not in fields:
                lacking.append(f"a `key` of the function `{self._key.text}`")
            if lacking:
                shown = ", ".join(lacking)
                self._read.problems.add(
                    STATE_UNBOUNDED(name.location, name=self._key.text, state=name.text, missing=shown)
                )
            event, keep = below.scalar("event"), self._expressions(below, "keep")
            history, ttl = self._duration(below, "history"), self._duration(below, "ttl")
            key, most = self._expression(below, "key"), below.integer("max_keys", least=1)
            if event is not None:
                text = StateText(
                    name=name, event=event, key=key, keep=keep, history=history or timedelta(), ttl=ttl, max_keys=most
                )
                found.append(text)
            else:
                self._lost.add(name.text)
        return tuple(sorted(found, key=lambda each: each.name.text))

    def _expressions(self, fields: Fields, key: str) -> tuple[tuple[Scalar, Expression], ...]:
        found = []
        for name, node in self._entries(fields, key):
            scalar = self._read.scalar(node)
            if scalar is not None and check_attribute_name(name, self._read):
                found.append((name, as_expression(scalar.text, scalar.locate)))
        return tuple(sorted(found, key=lambda each: each[0].text))

    def _is_variable(self, name: Scalar) -> bool:
        if not check_attribute_name(name, self._read):
            return False
        if name.text.lower() in _VARIABLES:
            self._read.wrong(name, f"another name than {', '.join(f'`{each}`' for each in _VARIABLES)}")
            return False
        return True

    def _duration(self, fields: Fields, name: str) -> timedelta | None:
        scalar = fields.scalar(name)
        return None if scalar is None else self._duration_of(scalar, scalar.text)

    def _duration_of(self, scalar: Scalar, text: str) -> timedelta | None:
        try:
            return parse_duration(text, scalar.location)
        except SituError as error:
            self._read.problems.extend(error.problems)
            return None

    def _entries(self, fields: Fields, key: str) -> tuple[tuple[Scalar, Node], ...]:
        node = fields.node(key)
        return () if node is None or is_nothing(node) else fields.entries(key)
