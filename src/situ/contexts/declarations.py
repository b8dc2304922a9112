"""Files of ``contexts/`` as written: mappings, rules and functions as text with places, nothing looked up.

One file declares one context. `declare_contexts` makes a `ContextText` of each file, `read_conversion` takes a function
apart. What names and expressions mean, and whether they mean anything, is :mod:`situ.contexts.load`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

import msgspec

from situ.contexts.model import ROOT, Direction, Expression, MissingValue, former_root
from situ.lang.catalogue import (
    BAD_CONTEXT_NAME,
    DECLARED_TWICE,
    MISSING_KEY,
    NOT_A_CHOICE,
    SIGNATURE_SYNTAX,
    STATE_UNBOUNDED,
)
from situ.lang.documents import Document, Fields, MappingNode, Node, Reader, ScalarNode, SequenceNode, is_nothing
from situ.lang.expr.definitions import has_free_name
from situ.lang.expr.scope import SignatureText, parse_signature, split_definition
from situ.lang.expr.syntax import Locate, spell
from situ.lang.problems import Location, Problems, SituError, nearest
from situ.lang.quantities import parse_duration, parse_instant
from situ.lang.records import replace
from situ.lang.types.declaration import (
    TypeDeclaration,
    UnitDeclaration,
    check_attribute_name,
    declare_types,
    declare_units,
)
from situ.lang.types.scalars import print_timestamp

CONTEXT_KEYS = ("extends", "derive", "units", "types", "events", "maps", "rules", "kept", "functions")
"""The keys of a file of ``contexts/`` besides ``context``, which it must have."""

CONVERSION_KEYS = (
    "signature",
    "expr",
    "value",
    "python",
    "code",
    "time",
    "lookup",
    "key",
    "state",
    "missing",
    "nulls",
    "lossy",
    "inverse",
)
"""The keys of a function's long form; only ``signature`` is always needed."""

MAPPING_KEYS = ("in", "out", "both")
LONGEST_ID = 64

_ID = re.compile(r"[a-z][a-z0-9_-]*(?:\.[a-z0-9][a-z0-9_-]*)*")
_RESERVED = ("situ",)
_MAPPING = re.compile(r"\s*([^\s<>]+)\s*(<?->)\s*([^\s<>]+)\s*")
_RULE = re.compile(r"\s*(\S(?:.*\S)?)\s*->\s*([A-Za-z_][A-Za-z0-9_]*)\s*", re.DOTALL)


class PlacedWords(msgspec.Struct, frozen=True, kw_only=True):
    """Some words of a text, with their place."""

    text: str
    locate: Callable[[int, int], Location]

    @property
    def location(self) -> Location:
        return self.locate(0, len(self.text))


class MappingText(msgspec.Struct, frozen=True, kw_only=True):
    """``out: A -> B`` and what of it does not go by name. ``both`` is the one from root, and its opposite."""

    direction: Direction
    both: bool
    source: PlacedWords
    target: PlacedWords
    attributes: tuple[tuple[ScalarNode, Node], ...]
    location: Location


class RuleText(msgspec.Struct, frozen=True, kw_only=True):
    """``pattern -> function``; without a direction it is that of the context's mappings."""

    direction: Direction | None
    pattern: PlacedWords
    function: PlacedWords
    location: Location
    kept: bool = False


class ContextText(msgspec.Struct, frozen=True, kw_only=True):
    """A context as written."""

    id: str
    location: Location
    read: Reader
    extends: PlacedWords | None = None
    derive: bool = False
    types: tuple[TypeDeclaration, ...] = ()
    units: tuple[UnitDeclaration, ...] = ()
    maps: tuple[MappingText, ...] = ()
    rules: tuple[RuleText, ...] = ()
    functions: tuple[tuple[ScalarNode, Node], ...] = ()
    document: Document | None = None


def declare_contexts(documents: Iterable[Document], problems: Problems) -> dict[str, ContextText]:
    """The contexts by their ids, each once."""
    read = Reader(problems)
    result: dict[str, ContextText] = {}
    for document in documents:
        if document.root is not None and is_nothing(document.root):
            problems.extend(document.problems)
            continue
        declared = _declare(document, read)
        if declared is None:
            continue
        first = result.setdefault(declared.id, declared)
        if first is not declared:
            where = str(first.location)
            problems.add(DECLARED_TWICE(declared.location, what="The context", name=declared.id, first=where))
            # What else is wrong with it is found, too, under a name that nothing can refer to.
            result[f"{declared.id} {document.file}"] = replace(declared, extends=None)
    return result


def is_root(document: Document) -> bool:
    """Whether a file declares root, whose types and units are those of the project."""
    written = document.root.get("context") if isinstance(document.root, MappingNode) else None
    return isinstance(written, ScalarNode) and written.text == ROOT


def id_fault(id: str) -> str:
    """Why this cannot be the identifier of a context; empty if it can."""
    if not _ID.fullmatch(id):
        return "it is not made of small letters, digits, `_` and `-`, or a part begins otherwise"
    if len(id) > LONGEST_ID:
        return f"it has more than {LONGEST_ID} characters"
    if id.split(".")[0] in _RESERVED or (id.startswith(f"{ROOT}.") and not former_root(id)):
        return f"names beginning with `{id.split('.')[0]}` belong to Situ"
    return ""


def _declare(document: Document, read: Reader) -> ContextText | None:
    fields = read.document(document, required=("context",), optional=CONTEXT_KEYS)
    if fields is None:
        return None
    written = fields.scalar("context")
    if written is not None and (reason := id_fault(written.text)):
        read.problems.add(BAD_CONTEXT_NAME(written.location, name=written.text or " ", reason=reason))
    above = fields.scalar("extends")
    return ContextText(
        id=written.text if written is not None else f" {document.file}",
        location=written.location if written is not None else fields.mapping.location,
        read=read,
        extends=PlacedWords(text=above.text, locate=above.locate) if above is not None else None,
        derive=fields.boolean("derive", False),
        types=tuple(declare_types(fields)),
        units=tuple(declare_units(fields)),
        maps=tuple(_maps(fields)),
        rules=(*_rules(fields, "rules"), *(replace(each, kept=True) for each in _rules(fields, "kept"))),
        functions=_entries(fields, "functions"),
        document=document,
    )


# ── mappings ──────────────────────────────────────────────────────────────────────────────────────


def _maps(fields: Fields) -> Iterator[MappingText]:
    for node in _items(fields, "maps"):
        below = fields.read.fields(node, optional=(*MAPPING_KEYS, "attributes"))
        if below is None:
            continue
        given = [key for key in MAPPING_KEYS if key in below]
        if len(given) != 1:
            fields.read.wrong(node, "a mapping with one of the keys `in`, `out` and `both`")
        for key in given:
            scalar = below.scalar(key)
            parsed = None if scalar is None else _mapping(scalar, key, fields.read)
            if parsed is not None:
                yield replace(parsed, attributes=_entries(below, "attributes"))


def _mapping(scalar: ScalarNode, key: str, read: Reader) -> MappingText | None:
    arrow = "<->" if key == "both" else "->"
    match = _MAPPING.fullmatch(scalar.text)
    if match is None or match[2] != arrow:
        read.wrong(scalar, f"`Name {arrow} Name`", remedy="Name the event type of the source, then what it becomes.")
        return None
    return MappingText(
        direction=Direction.IN if key == "in" else Direction.OUT,
        both=key == "both",
        source=_words(scalar, match.start(1), match[1]),
        target=_words(scalar, match.start(3), match[3]),
        attributes=(),
        location=scalar.location,
    )


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────


def _rules(fields: Fields, key: str) -> Iterator[RuleText]:
    node = fields.node(key)
    if node is None or is_nothing(node):
        return
    if isinstance(node, SequenceNode):
        yield from _list_of_rules(node.items, None, fields.read)
        return
    if not isinstance(node, MappingNode):
        fields.read.wrong(node, "a list of rules, or lists under `in` and `out`")
        return
    below = fields.read.fields(node, optional=("out", "in"))
    for direction in (Direction.OUT, Direction.IN):
        if below is not None:
            yield from _list_of_rules(_items(below, direction.value), direction, fields.read)


def _list_of_rules(items: Iterable[Node], direction: Direction | None, read: Reader) -> Iterator[RuleText]:
    for node in items:
        scalar = read.scalar(node)
        match = _RULE.fullmatch(scalar.text) if scalar is not None else None
        if scalar is None:
            continue
        if match is None:
            read.wrong(scalar, "a rule: `PATTERN -> FUNCTION`", remedy="For example `UniversalAddress -> to_address`.")
            continue
        yield RuleText(
            direction=direction,
            pattern=_words(scalar, match.start(1), match[1]),
            function=_words(scalar, match.start(2), match[2]),
            location=scalar.location,
        )


def _words(scalar: ScalarNode, start: int, text: str) -> PlacedWords:
    return PlacedWords(text=text, locate=lambda offset, length: scalar.locate(start + offset, length))


def _items(fields: Fields, key: str) -> tuple[Node, ...]:
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.items(key)


def _entries(fields: Fields, key: str) -> tuple[tuple[ScalarNode, Node], ...]:
    """A section that is there without content is empty: someone is about to write it."""
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.entries(key)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Functions as written. Short form ``TYPE [UNIT] -> TYPE [UNIT] = EXPRESSION``; long form a mapping with ``signature``
# and, beside the expression, what it looks up or remembers.

_TIMES = ("event", "now")
_MEANS = ("expr", "value", "python")
_HOLD = "hold "
_VARIABLES = ("value", "event", "data")


class LookupText(msgspec.Struct, frozen=True, kw_only=True):
    """``name: {source, key: {column: expression}, as_of: column}``."""

    name: ScalarNode
    source: ScalarNode
    keys: tuple[tuple[ScalarNode, Expression], ...]
    as_of: ScalarNode | None


class StateText(msgspec.Struct, frozen=True, kw_only=True):
    """``name: {event, key, keep: {name: expression}, history, ttl, max_keys}``; None where something is missing."""

    name: ScalarNode
    event: ScalarNode
    key: Expression | None
    keep: tuple[tuple[ScalarNode, Expression], ...]
    history: timedelta
    ttl: timedelta | None
    max_keys: int | None


class ConversionText(msgspec.Struct, frozen=True, kw_only=True):
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
    missing: MissingValue = MissingValue.ERROR
    default: Node | None = None
    hold: timedelta = timedelta()
    lossy: bool = False
    inverse: ScalarNode | None = None
    nulls: bool = False
    lost: frozenset[str] = frozenset()
    """The names of rows that are not understood, but were declared."""


def read_conversion(key: ScalarNode, node: Node, read: Reader) -> ConversionText | None:
    """The function under this key; None, with the problems noted, if not even its signature is understood."""
    named = has_free_name(key, read.problems)
    if key.text == "keep":
        read.problems.add(
            SIGNATURE_SYNTAX(key.location, found="`keep`", expected="another name: that one belongs to Situ")
        )
    try:
        if isinstance(node, MappingNode):
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


def _short(key: ScalarNode, scalar: ScalarNode) -> ConversionText:
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

    def __init__(self, key: ScalarNode, read: Reader) -> None:
        self._key, self._read = key, read
        self._lost: set[str] = set()

    def read(self, node: MappingNode) -> ConversionText | None:
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

    def _missing(self, node: Node | None) -> tuple[MissingValue, Node | None, timedelta]:
        if node is None:
            return MissingValue.ERROR, None, timedelta()
        if is_nothing(node):
            return MissingValue.NULL, None, timedelta()
        if isinstance(node, MappingNode):
            fields = self._read.fields(node, required=("default",))
            return MissingValue.DEFAULT, fields.node("default") if fields is not None else None, timedelta()
        scalar = self._read.scalar(node)
        if scalar is not None and scalar.text.startswith(_HOLD):
            hold = self._duration_of(scalar, scalar.text.removeprefix(_HOLD))
            return MissingValue.HOLD, None, hold or timedelta()
        if scalar is not None and scalar.text not in ("error", "null"):
            self._read.wrong(scalar, "`error`, `null`, `hold 5 s` or `{default: …}`")
        return (
            MissingValue.NULL if scalar is not None and scalar.text == "null" else MissingValue.ERROR,
            None,
            timedelta(),
        )

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

    def _expressions(self, fields: Fields, key: str) -> tuple[tuple[ScalarNode, Expression], ...]:
        found = []
        for name, node in self._entries(fields, key):
            scalar = self._read.scalar(node)
            if scalar is not None and check_attribute_name(name, self._read):
                found.append((name, as_expression(scalar.text, scalar.locate)))
        return tuple(sorted(found, key=lambda each: each[0].text))

    def _is_variable(self, name: ScalarNode) -> bool:
        if not check_attribute_name(name, self._read):
            return False
        if name.text.lower() in _VARIABLES:
            self._read.wrong(name, f"another name than {', '.join(f'`{each}`' for each in _VARIABLES)}")
            return False
        return True

    def _duration(self, fields: Fields, name: str) -> timedelta | None:
        scalar = fields.scalar(name)
        return None if scalar is None else self._duration_of(scalar, scalar.text)

    def _duration_of(self, scalar: ScalarNode, text: str) -> timedelta | None:
        try:
            return parse_duration(text, scalar.location)
        except SituError as error:
            self._read.problems.extend(error.problems)
            return None

    def _entries(self, fields: Fields, key: str) -> tuple[tuple[ScalarNode, Node], ...]:
        node = fields.node(key)
        return () if node is None or is_nothing(node) else fields.entries(key)
