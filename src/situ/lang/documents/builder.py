"""How nodes are made of what a parser meets: the value of plain text, and the builder that every format drives."""

from __future__ import annotations

import math
import re

import msgspec

from situ.lang.catalogue import DOCUMENT_TOO_LARGE, KEY_NOT_TEXT, NAME_TWICE, TOO_MANY_PROBLEMS
from situ.lang.documents.nodes import Document, DocumentLimits, MappingNode, Node, ScalarNode, SequenceNode, SourceText
from situ.lang.problems import Location, Problem

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What plain text stands for: the core schema of YAML 1.2, without its traps.
#
# ``true``, ``false``, ``null``, whole numbers and decimal fractions are values; all else is text. ``on``, ``no``,
# ``12:30``, ``1_000`` and dates are text, as the schema has it. Numbers with leading zeros (``010``) are text here,
# although the schema reads them as decimal: readers of other YAML versions take them for octal, and those who write
# them mean a code, not a quantity.

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Assembles nodes from the parts a parser meets, without recursion and within the limits.
#
# Every format drives the same builder, so that depth, number of values, keys given twice and the number of problems are
# bounded in one place. It knows no syntax.


class Stop(Exception):
    """Nothing after this place is read; why is already noted."""


class _Open(msgspec.Struct):
    """A list or mapping whose end has not come yet."""

    start: int
    under: ScalarNode | None
    entries: dict[str, tuple[ScalarNode, Node]] | None  # None: it is a list
    items: list[Node] = msgspec.field(default_factory=list)
    key: ScalarNode | None = None  # the key whose value comes next
    dropped: bool = False  # the value that comes next has no usable key


class Builder:
    """Takes parts in document order; :meth:`document` gives the result at any time."""

    def __init__(self, source: SourceText, limits: DocumentLimits) -> None:
        self._source = source
        self._limits = limits
        self._problems: list[Problem] = []
        self._stack: list[_Open] = []
        self._nodes = 0
        self._root: Node | None = None
        self._uncertain = False

    # ── problems ──────────────────────────────────────────────────────────────────────────────────

    def report(self, problem: Problem, *, uncertain: bool = False) -> None:
        """Note a problem; ``uncertain`` when the document cannot be understood without what is wrong."""
        self._uncertain |= uncertain
        self._problems.append(problem)
        if len(self._problems) >= self._limits.problems:
            self._uncertain = True
            self._problems.append(TOO_MANY_PROBLEMS(problem.location, most=self._limits.problems))
            raise Stop

    def refuse(self, problem: Problem) -> Stop:
        """Note a problem after which nothing can be read: ``raise builder.refuse(…)``."""
        self._uncertain = True
        self._problems.append(problem)
        return Stop()

    def document(self) -> Document:
        empty = ScalarNode("", None, "", self._source, 0, 0)
        root = None if self._uncertain else self._root or empty
        return Document(file=self._source.file, root=root, problems=tuple(self._problems))

    # ── parts ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def expects_key(self) -> bool:
        if not self._stack:
            return False
        inside = self._stack[-1]
        return inside.entries is not None and inside.key is None and not inside.dropped

    def scalar(self, scalar: ScalarNode) -> None:
        self._count(scalar.start)
        if self.expects_key:
            self._key(scalar)
        else:
            self._place(scalar)

    def open_mapping(self, start: int) -> None:
        self._open(start, {})

    def open_sequence(self, start: int) -> None:
        self._open(start, None)

    def close(self, end: int) -> None:
        done = self._stack.pop()
        node: Node
        if done.entries is None:
            node = SequenceNode(tuple(done.items), done.under, self._source, done.start, end)
        else:
            node = MappingNode(tuple(done.entries.values()), done.under, self._source, done.start, end)
        if self.expects_key:
            self.drop_key(node.location, found="a list" if done.entries is None else "a mapping")
        else:
            self._place(node)

    def drop_key(self, location: Location, *, found: str) -> None:
        """What stands where a key should is none; the value that follows is read and forgotten."""
        self._stack[-1].dropped = True
        self.report(KEY_NOT_TEXT(location, found=found))

    def _open(self, start: int, entries: dict[str, tuple[ScalarNode, Node]] | None) -> None:
        self._count(start)
        if len(self._stack) >= self._limits.depth:
            remedy = "Nest less: no file of a project needs this depth."
            raise self._too_much(start, "deep", self._limits.depth, "levels", remedy)
        under = self._stack[-1].key if self._stack else None
        self._stack.append(_Open(start, under, entries))

    def _count(self, start: int) -> None:
        self._nodes += 1
        if self._nodes > self._limits.nodes:
            raise self._too_much(start, "large", self._limits.nodes, "values", "Split it into several files.")

    def _too_much(self, start: int, much: str, most: int, unit: str, remedy: str) -> Stop:
        place = self._source.location(start)
        return self.refuse(DOCUMENT_TOO_LARGE(place, much=much, most=most, unit=unit, remedy=remedy))

    def _key(self, key: ScalarNode) -> None:
        inside = self._stack[-1]
        if not isinstance(key.value, str):
            self.drop_key(key.location, found=f"`{key.text}`" if key.text else "nothing")
        elif inside.entries is not None and key.text in inside.entries:
            inside.dropped = True
            first = inside.entries[key.text][0].location
            self.report(NAME_TWICE(key.location, name=key.text, line=first.line))
        else:
            inside.key = key

    def _place(self, node: Node) -> None:
        if not self._stack:
            self._root = node
            return
        inside = self._stack[-1]
        if inside.entries is None:
            inside.items.append(node)
        elif inside.key is not None:
            inside.entries[inside.key.text] = (inside.key, node)
        inside.key, inside.dropped = None, False
