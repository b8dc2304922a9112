"""What loaders read documents with: ``${NAME}`` replaced from the environment, and nodes read as typed values.

It knows no particular file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from collections.abc import Mapping as Environment
from typing import Any, TypeVar, assert_never, overload

import msgspec

from situ.lang.catalogue import (
    BAD_CHARACTER,
    BAD_REFERENCE,
    DOCUMENT_TOO_LARGE,
    ENVIRONMENT_UNSET,
    MISSING_KEY,
    NOT_A_CHOICE,
    NUMBER_OUT_OF_RANGE,
    TOO_MANY_PROBLEMS,
    UNKNOWN_KEY,
    UNKNOWN_VERSION,
    WRONG_KIND,
)
from situ.lang.documents.builder import looks_numeric, resolve
from situ.lang.documents.nodes import Document, DocumentLimits, MappingNode, Node, Piece, ScalarNode, SequenceNode
from situ.lang.problems import Code, Problems, nearest
from situ.lang.records import replace

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``${NAME}`` in values: taken from the environment, for what does not belong into a file.
#
# Keys are never substituted, and what comes from the environment is not looked into again. The environment is an
# argument: it is not read here.

_REFERENCE = re.compile(r"(?P<escape>\$\$\{)|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|(?P<broken>\$\{[^}\r\n]{0,40}\}?)")
_SURROGATE = re.compile("[\ud800-\udfff]")


def substitute(
    node: Node,
    environment: Environment[str, str],
    problems: Problems,
    limits: DocumentLimits = DocumentLimits(),  # noqa: B008
) -> Node:
    """The node with every ``${NAME}`` in its values replaced; ``$${`` stands for ``${`` itself.

    A plain scalar is read anew after the replacement, so ``port: ${PORT}`` is a number. Where a
    reference cannot be replaced a problem is added and the reference stays.
    """
    return _Substitution(environment, problems, limits).node(node)


class _Substitution:
    def __init__(self, environment: Environment[str, str], problems: Problems, limits: DocumentLimits) -> None:
        self._environment = environment
        self._problems = problems
        self._limits = limits
        # A file of megabytes may name a long variable on every line, or one that is not set: what it grows
        # to and what is said about it are bounded.
        self._room = limits.size
        self._reports = limits.problems

    def node(self, node: Node) -> Node:
        if isinstance(node, ScalarNode):
            return self._scalar(node) if "${" in node.text else node
        if isinstance(node, SequenceNode):
            return replace(node, items=tuple(self.node(item) for item in node.items))
        return replace(node, entries=tuple((key, self.node(value)) for key, value in node.entries))

    def _scalar(self, scalar: ScalarNode) -> ScalarNode:
        chunks: list[str] = []
        pieces: list[Piece] = []
        length = written = 0

        def add(chunk: str, start: int, end: int, *, verbatim: bool) -> None:
            nonlocal length, written
            if chunk or not pieces:
                pieces.append(Piece(length, start, end, verbatim))
            chunks.append(chunk)
            length, written = length + len(chunk), end

        for found in _REFERENCE.finditer(scalar.text):
            add(scalar.text[written : found.start()], written, found.start(), verbatim=True)
            add(self._replacement(scalar, found), *found.span(), verbatim=False)
        add(scalar.text[written:], written, len(scalar.text), verbatim=True)
        text = "".join(chunks)
        value = text if scalar.quoted else resolve(text)
        return replace(scalar, text=text, value=value, written=scalar, pieces=tuple(pieces))

    def _replacement(self, scalar: ScalarNode, found: re.Match[str]) -> str:
        if found["escape"]:
            return "${"
        name = found["name"]
        if name is None:
            return self._refuse(scalar, found, BAD_REFERENCE, found=found[0])
        value = self._environment.get(name)
        if value is None:
            return self._refuse(scalar, found, ENVIRONMENT_UNSET, name=name)
        if half := _SURROGATE.search(value):
            return self._refuse(scalar, found, BAD_CHARACTER, character=f"U+{ord(half[0]):04X} in `{name}`")
        if len(value) > self._room:
            return self._refuse(scalar, found, DOCUMENT_TOO_LARGE, **self._too_large)
        self._room -= len(value)
        return value

    def _refuse(self, scalar: ScalarNode, reference: re.Match[str], code: Code, **values: Any) -> str:
        """Note the problem; the reference stays as it was written."""
        if self._reports > 0:
            self._problems.add(code(scalar.locate(reference.start(), len(reference[0])), **values))
        elif self._reports == 0:
            self._problems.add(TOO_MANY_PROBLEMS(scalar.location, most=self._limits.problems))
        self._reports -= 1
        return reference[0]

    @property
    def _too_large(self) -> dict[str, Any]:
        remedy = "Refer to a file instead of putting its content into the environment."
        return {"much": "large", "most": self._limits.size, "unit": "characters from the environment", "remedy": remedy}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Nodes → typed values, with every problem collected.
#
# What a loader does with a document reads like a description of the file::
#
#     read = Reader(problems)
#     fields = read.document(document, required=("name",), optional=("engine", "batch"))
#     if fields is not None:
#         name = fields.text("name")
#         engine = fields.choice("engine", ("spark", "edge"), default="spark")
#
# Every method answers with the value, or adds a problem and answers with the default: a loader goes on to the end and
# finds all that is wrong. A key that is absent and not required is no problem.

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

    def mapping(self, node: Node) -> MappingNode | None:
        if isinstance(node, MappingNode):
            return node
        self.wrong(node, "a mapping (`key: value`)")
        return None

    def items(self, node: Node) -> tuple[Node, ...] | None:
        if isinstance(node, SequenceNode):
            return node.items
        self.wrong(node, "a list")
        return None

    def scalar(self, node: Node) -> ScalarNode | None:
        """Text with its place. A reference to the environment gives text even where that looks like a number."""
        if isinstance(node, ScalarNode) and (isinstance(node.value, str) or node.substituted):
            return node
        unquoted = isinstance(node, ScalarNode) and node.text != ""
        self.wrong(node, "text", remedy="Put it in quotes if it is meant as text." if unquoted else "")
        return None

    def text(self, node: Node) -> str | None:
        scalar = self.scalar(node)
        return scalar.text if scalar else None

    def integer(
        self, node: Node, *, least: int | None = None, most: int | None = None, instead: str = ""
    ) -> int | None:
        """``instead``: what else the caller would have taken."""
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(value, int) and not isinstance(value, bool) and _within(value, least, most):
            return value
        self._no_number(node, "a whole number" + _range(least, most) + (f" or {instead}" if instead else ""))
        return None

    def number(self, node: Node, *, least: float | None = None, most: float | None = None) -> float | None:
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and _within(value, least, most):
            return value
        self._no_number(node, "a number" + _range(least, most))
        return None

    def boolean(self, node: Node) -> bool | None:
        if isinstance(node, ScalarNode) and isinstance(node.value, bool):
            return node.value
        self.wrong(node, "`true` or `false`")
        return None

    def choice(self, node: Node, choices: Collection[str]) -> str | None:
        text = self.text(node)
        if text is None or text in choices:
            return text
        # A secret is not given away, not even by what it resembles.
        secret = isinstance(node, ScalarNode) and node.substituted
        found, similar = (describe(node), ()) if secret else (f"`{text}`", nearest(text, choices))
        self.problems.add(NOT_A_CHOICE(node.location, found=found, nearest=similar, choices=tuple(choices)))
        return None

    def wrong(self, node: Node, expected: str, *, remedy: str = "") -> None:
        """Report that a node is not what the file's description asks for."""
        self.problems.add(WRONG_KIND(node.location, expected=expected, found=describe(node), remedy=remedy))

    def _no_number(self, node: Node, expected: str) -> None:
        numeric = isinstance(node, ScalarNode) and isinstance(node.value, str) and looks_numeric(node.text)
        if not isinstance(node, ScalarNode) or not numeric:
            self.wrong(node, expected)
        elif node.quoted or node.substituted:
            self.wrong(node, expected, remedy="Write the number without quotes." if node.quoted else "")
        else:
            self.problems.add(NUMBER_OUT_OF_RANGE(node.location, number=node.text))

    def _check_version(self, node: Node | None) -> None:
        if node is None or (
            isinstance(node, ScalarNode) and node.value == FILE_VERSION and node.text == str(FILE_VERSION)
        ):
            return
        found = (
            f"`{node.text}`" if isinstance(node, ScalarNode) and node.text and not node.substituted else describe(node)
        )
        self.problems.add(UNKNOWN_VERSION(node.location, found=found, known=FILE_VERSION))


class Fields(msgspec.Struct, frozen=True):
    """The fields of one mapping, read by name; ``default`` stands for those that are absent or wrong."""

    read: Reader
    mapping: MappingNode

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

    def scalar(self, name: str) -> ScalarNode | None:
        """Text with its place, for what is checked further."""
        return self._value(name, self.read.scalar, None)

    def scalars(self, name: str) -> tuple[ScalarNode, ...]:
        """A list of text, each with its place."""
        return tuple(scalar for item in self.items(name) if (scalar := self.read.scalar(item)) is not None)

    def items(self, name: str) -> tuple[Node, ...]:
        return self._value(name, self.read.items, None) or ()

    def entries(self, name: str) -> tuple[tuple[ScalarNode, Node], ...]:
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
        case SequenceNode():
            return "a list"
        case MappingNode():
            return "a mapping"
        case ScalarNode(substituted=True):
            return "a value from the environment"
        case ScalarNode(value=None):
            return "nothing"
        case ScalarNode(value=str()):
            return f"the text `{_short(node.text)}`"
        case ScalarNode(value=bool()):
            return f"`{node.text}`"
        case ScalarNode():
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
