"""Nodes → typed values, with every problem collected.

What a loader does with a document reads like a description of the file::

    read = Reader(problems)
    fields = read.document(document, required=("name",), optional=("engine", "batch"))
    if fields is not None:
        name = fields.text("name")
        engine = fields.choice("engine", ("spark", "edge"), default="spark")

Every method answers with the value, or adds a problem and answers with the default: a loader goes on to the
end and finds all that is wrong. A key that is absent and not required is no problem. Must not know: any
particular file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar, assert_never, overload

from situ.catalogue import MISSING_KEY, NOT_A_CHOICE, NUMBER_OUT_OF_RANGE, UNKNOWN_KEY, UNKNOWN_VERSION, WRONG_KIND
from situ.documents.core_schema import looks_numeric
from situ.documents.nodes import Document, Mapping, Node, Scalar, Sequence
from situ.errors import Problems, nearest

T = TypeVar("T")

FILE_VERSION = 1

# Looking for similar names costs far more than the problem itself, and nobody reads a hint for the hundredth.
_HINTS = 100


class Reader:
    """Reads single nodes; holds the problems found on the way."""

    __slots__ = ("problems",)

    def __init__(self, problems: Problems) -> None:
        self.problems = problems

    def document(
        self, document: Document, *, required: Collection[str] = (), optional: Collection[str] = ()
    ) -> Fields | None:
        """The fields of a whole file, which may also say its ``version``; takes over the document's own problems."""
        self.problems.extend(document.problems)
        if document.root is None:
            return None
        fields = self.fields(document.root, required=required, optional=("version", *optional))
        if fields is not None:
            self._check_version(fields.node("version"))
        return fields

    def fields(self, node: Node, *, required: Collection[str] = (), optional: Collection[str] = ()) -> Fields | None:
        """The fields of a mapping with exactly these keys."""
        mapping = self.mapping(node)
        if mapping is None:
            return None
        known = (*required, *optional)
        for key, _ in mapping.entries:
            if key.text not in known:
                similar = nearest(key.text, known) if len(self.problems) < _HINTS else ()
                self.problems.add(UNKNOWN_KEY(key.location, key=key.text, nearest=similar, known=known))
        for name in required:
            if name not in mapping:
                place = mapping.under.location if mapping.under else mapping.location
                where = f"in `{mapping.under.text}`" if mapping.under else "here"
                self.problems.add(MISSING_KEY(place, key=name, where=where))
        return Fields(self, mapping)

    def mapping(self, node: Node) -> Mapping | None:
        if isinstance(node, Mapping):
            return node
        self.wrong(node, "a mapping (`key: value`)")
        return None

    def items(self, node: Node) -> tuple[Node, ...] | None:
        if isinstance(node, Sequence):
            return node.items
        self.wrong(node, "a list")
        return None

    def scalar(self, node: Node) -> Scalar | None:
        """Text with its place. A reference to the environment gives text even where that looks like a number."""
        if isinstance(node, Scalar) and (isinstance(node.value, str) or node.substituted):
            return node
        unquoted = isinstance(node, Scalar) and node.text != ""
        self.wrong(node, "text", remedy="Put it in quotes if it is meant as text." if unquoted else "")
        return None

    def text(self, node: Node) -> str | None:
        scalar = self.scalar(node)
        return scalar.text if scalar else None

    def integer(self, node: Node, *, least: int | None = None, most: int | None = None) -> int | None:
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, int) and not isinstance(value, bool) and _within(value, least, most):
            return value
        self._no_number(node, "a whole number" + _range(least, most))
        return None

    def number(self, node: Node, *, least: float | None = None, most: float | None = None) -> float | None:
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and _within(value, least, most):
            return value
        self._no_number(node, "a number" + _range(least, most))
        return None

    def boolean(self, node: Node) -> bool | None:
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        self.wrong(node, "`true` or `false`")
        return None

    def choice(self, node: Node, choices: Collection[str]) -> str | None:
        text = self.text(node)
        if text is None or text in choices:
            return text
        # A secret is not given away, not even by what it resembles.
        secret = isinstance(node, Scalar) and node.substituted
        found, similar = (describe(node), ()) if secret else (f"`{text}`", nearest(text, choices))
        self.problems.add(NOT_A_CHOICE(node.location, found=found, nearest=similar, choices=tuple(choices)))
        return None

    def wrong(self, node: Node, expected: str, *, remedy: str = "") -> None:
        """Report that a node is not what the file's description asks for."""
        self.problems.add(WRONG_KIND(node.location, expected=expected, found=describe(node), remedy=remedy))

    def _no_number(self, node: Node, expected: str) -> None:
        numeric = isinstance(node, Scalar) and isinstance(node.value, str) and looks_numeric(node.text)
        if not isinstance(node, Scalar) or not numeric:
            self.wrong(node, expected)
        elif node.quoted or node.substituted:
            self.wrong(node, expected, remedy="Write the number without quotes." if node.quoted else "")
        else:
            self.problems.add(NUMBER_OUT_OF_RANGE(node.location, number=node.text))

    def _check_version(self, node: Node | None) -> None:
        if node is None or (isinstance(node, Scalar) and node.value == FILE_VERSION and node.text == str(FILE_VERSION)):
            return
        found = f"`{node.text}`" if isinstance(node, Scalar) and node.text and not node.substituted else describe(node)
        self.problems.add(UNKNOWN_VERSION(node.location, found=found, known=FILE_VERSION))


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one mapping, read by name; ``default`` stands for those that are absent or wrong."""

    read: Reader
    mapping: Mapping

    def __contains__(self, name: str) -> bool:
        return name in self.mapping

    def node(self, name: str) -> Node | None:
        return self.mapping.get(name)

    @overload
    def text(self, name: str) -> str | None: ...
    @overload
    def text(self, name: str, default: str) -> str: ...
    def text(self, name: str, default: str | None = None) -> str | None:
        return self._value(name, self.read.text, default)

    @overload
    def choice(self, name: str, choices: Collection[str]) -> str | None: ...
    @overload
    def choice(self, name: str, choices: Collection[str], default: str) -> str: ...
    def choice(self, name: str, choices: Collection[str], default: str | None = None) -> str | None:
        return self._value(name, lambda node: self.read.choice(node, choices), default)

    @overload
    def integer(self, name: str, *, least: int | None = None, most: int | None = None) -> int | None: ...
    @overload
    def integer(self, name: str, default: int, *, least: int | None = None, most: int | None = None) -> int: ...
    def integer(
        self, name: str, default: int | None = None, *, least: int | None = None, most: int | None = None
    ) -> int | None:
        return self._value(name, lambda node: self.read.integer(node, least=least, most=most), default)

    @overload
    def number(self, name: str, *, least: float | None = None, most: float | None = None) -> float | None: ...
    @overload
    def number(self, name: str, default: float, *, least: float | None = None, most: float | None = None) -> float: ...
    def number(
        self, name: str, default: float | None = None, *, least: float | None = None, most: float | None = None
    ) -> float | None:
        return self._value(name, lambda node: self.read.number(node, least=least, most=most), default)

    @overload
    def boolean(self, name: str) -> bool | None: ...
    @overload
    def boolean(self, name: str, default: bool) -> bool: ...
    def boolean(self, name: str, default: bool | None = None) -> bool | None:
        return self._value(name, self.read.boolean, default)

    def scalar(self, name: str) -> Scalar | None:
        """Text with its place, for what is checked further."""
        return self._value(name, self.read.scalar, None)

    def scalars(self, name: str) -> tuple[Scalar, ...]:
        """A list of text, each with its place."""
        return tuple(scalar for item in self.items(name) if (scalar := self.read.scalar(item)) is not None)

    def items(self, name: str) -> tuple[Node, ...]:
        return self._value(name, self.read.items, None) or ()

    def entries(self, name: str) -> tuple[tuple[Scalar, Node], ...]:
        """The entries of a mapping whose keys are names the writer chooses."""
        mapping = self._value(name, self.read.mapping, None)
        return mapping.entries if mapping else ()

    def fields(self, name: str, *, required: Collection[str] = (), optional: Collection[str] = ()) -> Fields | None:
        node = self.node(name)
        return None if node is None else self.read.fields(node, required=required, optional=optional)

    def _value(self, name: str, read: Callable[[Node], T | None], default: T | None) -> T | None:
        node = self.node(name)
        value = None if node is None else read(node)
        return default if value is None else value


def describe(node: Node) -> str:
    """What a node is, in plain words. What came from the environment may be a secret and is not shown."""
    match node:
        case Sequence():
            return "a list"
        case Mapping():
            return "a mapping"
        case Scalar(substituted=True):
            return "a value from the environment"
        case Scalar(value=None):
            return "nothing"
        case Scalar(value=str()):
            return f"the text `{_short(node.text)}`"
        case Scalar(value=bool()):
            return f"`{node.text}`"
        case Scalar():
            return f"the number `{node.text}`"
        case _:
            assert_never(node)


def _short(text: str) -> str:
    return " ".join(text[:60].split()) + ("…" if len(text) > 60 else "")


def _within(value: float, least: float | None, most: float | None) -> bool:
    return (least is None or value >= least) and (most is None or value <= most)


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f" from {least} to {most}"
    if least is not None:
        return f" of at least {least}"
    return "" if most is None else f" of at most {most}"
