"""What the files of ``contexts/`` say, before anything is looked up.

One file declares one context. From its nodes this module makes declarations: names, patterns and expressions as text,
each with its place. What they mean, and whether they mean anything, is :mod:`situ.interpretation.load`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from situ.catalogue import BAD_CONTEXT_NAME, DECLARED_TWICE
from situ.documents import Document, Fields, Mapping, Node, Reader, Scalar, Sequence
from situ.errors import Location, Problems
from situ.interpretation.model import ROOT, Direction, former_root
from situ.types.declare import TypeDeclaration, UnitDeclaration, declare_types, declare_units, is_nothing

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Some words of a text, with their place."""

    text: str
    locate: Callable[[int, int], Location]

    @property
    def location(self) -> Location:
        return self.locate(0, len(self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingText:
    """``out: A -> B`` and what of it does not go by name. ``both`` is the one from root, and its opposite."""

    direction: Direction
    both: bool
    source: Words
    target: Words
    attributes: tuple[tuple[Scalar, Node], ...]
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleText:
    """``pattern -> function``; without a direction it is that of the context's mappings."""

    direction: Direction | None
    pattern: Words
    function: Words
    location: Location
    kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextText:
    """A context as written."""

    id: str
    location: Location
    read: Reader
    extends: Words | None = None
    derive: bool = False
    types: tuple[TypeDeclaration, ...] = ()
    units: tuple[UnitDeclaration, ...] = ()
    maps: tuple[MappingText, ...] = ()
    rules: tuple[RuleText, ...] = ()
    functions: tuple[tuple[Scalar, Node], ...] = ()
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
    written = document.root.get("context") if isinstance(document.root, Mapping) else None
    return isinstance(written, Scalar) and written.text == ROOT


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
        extends=Words(text=above.text, locate=above.locate) if above is not None else None,
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


def _mapping(scalar: Scalar, key: str, read: Reader) -> MappingText | None:
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
    if isinstance(node, Sequence):
        yield from _list_of_rules(node.items, None, fields.read)
        return
    if not isinstance(node, Mapping):
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


def _words(scalar: Scalar, start: int, text: str) -> Words:
    return Words(text=text, locate=lambda offset, length: scalar.locate(start + offset, length))


def _items(fields: Fields, key: str) -> tuple[Node, ...]:
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.items(key)


def _entries(fields: Fields, key: str) -> tuple[tuple[Scalar, Node], ...]:
    """A section that is there without content is empty: someone is about to write it."""
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.entries(key)
