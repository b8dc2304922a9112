"""Filters in normal form, an OR of ANDs of atoms, and what the atoms of an AND leave of the values of an attribute.

`normal_form` gives the ANDs of a filter, whose atoms the index looks up; `ValueSet` is what some atoms on one attribute
let through; `contradict` compares two filters by that. Whether one filter follows from another is
:mod:`situ.routing.covering`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import msgspec

from situ.lang.expr.functions.text import ANY, like_pieces
from situ.lang.expr.tree import FALSE, TRUE, And, Apply, Coalesce, Compare, In, IsNull, Literal, Node, Not, Or, Read
from situ.lang.records import replace
from situ.lang.types.model import BOOLEAN, plain

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Only *true* counts for a filter: false, null and failure all mean no match. An OR is true iff a part is, an AND iff
# all parts are, so both may be multiplied out; and what says nothing but "is it true" is unwrapped. An atom compares
# one attribute with constants. Everything else is opaque: a condition to be evaluated.

MOST_CONJUNCTIONS = 16

Path = tuple[str, ...]
"""Where a value is read: the variable, ``event`` or ``data``, and the steps below it."""


class OneOf(msgspec.Struct, frozen=True):
    """The attribute is one of these."""

    path: Path
    values: tuple[Any, ...]


class NoneOf(msgspec.Struct, frozen=True):
    """The attribute has a value, and it is none of these."""

    path: Path
    values: tuple[Any, ...]


class RangeBound(msgspec.Struct, frozen=True):
    """The attribute is at most (``upper``) or at least this, or strictly so (``open``)."""

    path: Path
    value: Any
    upper: bool
    open: bool


class Prefix(msgspec.Struct, frozen=True):
    """The text begins like this. ``whole`` is the condition that asks for more than that; None: it does not."""

    path: Path
    text: str
    whole: Node | None = None

    @property
    def exact(self) -> bool:
        return self.whole is None


class IsAbsent(msgspec.Struct, frozen=True):
    """There is no such attribute."""

    path: Path


class IsPresent(msgspec.Struct, frozen=True):
    """There is such an attribute, whatever its value is."""

    path: Path


class Opaque(msgspec.Struct, frozen=True):
    """Any other condition."""

    node: Node


Atom = OneOf | NoneOf | RangeBound | Prefix | IsAbsent | IsPresent | Opaque
Conjunction = tuple[Atom, ...]


def normal_form(node: Node) -> tuple[Conjunction, ...]:
    """The ANDs of which one must be true for the simplified filter to be. Without atoms: always; no AND: never."""
    conjunctions = _conjunctions(node)
    if conjunctions is None:
        return ((Opaque(node),),)
    return tuple(tuple(_atom(part) for part in parts) for parts in conjunctions)


def _conjunctions(node: Node) -> tuple[tuple[Node, ...], ...] | None:
    """None if there would be too many."""
    match node:
        case Literal(value=value):
            return ((),) if value is True else ()
        case Compare(right=Literal(value=None)):
            return ()
        case Or(args=args):
            found: list[tuple[Node, ...]] = []
            for arg in args:
                inner = _conjunctions(arg)
                if inner is None or len(found) + len(inner) > MOST_CONJUNCTIONS:
                    return None
                found += inner
            return tuple(found)
        case And(args=args):
            product: tuple[tuple[Node, ...], ...] = ((),)
            for arg in args:
                inner = _conjunctions(arg)
                if inner is None or len(product) * len(inner) > MOST_CONJUNCTIONS:
                    return None
                product = tuple((*left, *right) for left in product for right in inner)
            return product
        case Coalesce(args=(arg, Literal(value=False))):
            return _conjunctions(arg)
        case Not(arg=Coalesce(args=(arg, Literal(value=True)))):
            return _conjunctions(_opposite(arg))
        case Not(arg=Coalesce(args=(Read() | Compare(left=Read(), right=Literal()) as arg, Literal(value=False)))) if (
            not arg.can_fail
        ):
            read = arg if isinstance(arg, Read) else arg.left
            return (_opposite(arg),), (IsNull(read),)
        case _:
            return ((node,),)


def _opposite(node: Node) -> Node:
    match node:
        case Not(arg=arg):
            return arg
        case Literal(value=None):
            return node
        case Literal(value=value):
            return FALSE if value else TRUE
        case Compare(op=op):
            return replace(node, op=_OPPOSITE[op])
        case And(args=args):
            return Or(tuple(_opposite(arg) for arg in args))
        case Or(args=args):
            return And(tuple(_opposite(arg) for arg in args))
        case _:
            return Not(node)


_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _atom(node: Node) -> Atom:
    match node:
        case Compare(op="=", left=Read() as read, right=Literal(value=value)) if _is_attribute(read, value):
            return OneOf(_path(read), (value,))
        case Compare(op="<>", left=Read() as read, right=Literal(value=value)) if _is_attribute(read, value):
            return NoneOf(_path(read), (value,))
        case Compare(op="<" | "<=" | ">" | ">=" as op, left=Read() as read, right=Literal(value=value)) if (
            _is_attribute(read, value)
        ):
            return RangeBound(_path(read), value, op.startswith("<"), len(op) == 1)
        case In(item=Read() as read, values=values) if _is_attribute(read, values):
            return OneOf(_path(read), values)
        case Not(arg=In(item=Read() as read, values=values)) if _is_attribute(read, values):
            return NoneOf(_path(read), values)
        case Not(arg=IsNull(arg=Read() as read)) if _is_attribute(read, ()) and not node.can_fail:
            return IsPresent(_path(read))  # of a double that may be NaN it cannot be asked without failing
        case IsNull(arg=Read() as read) if _is_attribute(read, ()):
            return IsAbsent(_path(read))
        case Read() if plain(node.type) == BOOLEAN and _is_attribute(node, ()):
            return OneOf(_path(node), (True,))
        case Not(arg=Read() as read) if _is_attribute(read, ()):
            return OneOf(_path(read), (False,))
        case Apply(overload=overload, args=(Read() as read, Literal(value=str() as text))) if _is_attribute(read, text):
            return _begins(node, overload.name, read, text)
        case _:
            return Opaque(node)


def _begins(node: Node, function: str, read: Read, text: str) -> Atom:
    if function == "starts_with" and text:
        return Prefix(_path(read), text)
    if function != "like":
        return Opaque(node)
    pieces = like_pieces(text)
    if not pieces:
        return OneOf(_path(read), ("",))
    first = pieces[0]
    if first is None:
        return Opaque(node)
    start = first.partition(ANY)[0]
    if start == first and len(pieces) == 1:
        return OneOf(_path(read), (first,))
    if not start:
        return Opaque(node)
    return Prefix(_path(read), start, None if start == first and len(pieces) == 2 else node)


def _is_attribute(read: Read, constant: Any) -> bool:
    return bool(read.path) and constant is not None


def _path(read: Read) -> Path:
    return (read.variable, *read.path)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What the atoms of an AND on one attribute leave of its values. Between 2 and 3 there is no whole number, so a few of
# these can be listed; all other values lie dense. Constants of an attribute have one type. Where they do not, because
# types that do not know each other have an attribute of one name, comparing them raises: whoever asks knows nothing.

INCOMPARABLE = (TypeError, AttributeError)
"""What is raised where constants of one attribute have different types."""
_MOST_LISTED = 64
"""Whole numbers between two bounds that are listed one by one."""

Bound = tuple[Any, bool]
"""A value and whether it is left out itself."""


class ValueSet(msgspec.Struct, frozen=True):
    """What an attribute may be: ``absent``, and if ``present`` one of the ``listed`` values, or where none are listed
    any but the ``excluded`` ones that lies between the bounds and begins with the ``prefix``."""

    absent: bool = True
    present: bool = True
    listed: frozenset[Any] | None = None
    excluded: frozenset[Any] = frozenset()
    low: Bound | None = None
    high: Bound | None = None
    prefix: str = ""

    @property
    def possible(self) -> bool:
        """False only if no value is left, nor none."""
        return self.absent or self.present

    def holds(self, value: Any) -> bool:
        """Whether the attribute may have this value."""
        if not self.present:
            return False
        if self.listed is not None:
            return value in self.listed
        return (
            value not in self.excluded
            and (self.low is None or value > self.low[0] or (value == self.low[0] and not self.low[1]))
            and (self.high is None or value < self.high[0] or (value == self.high[0] and not self.high[1]))
            and (not self.prefix or value.startswith(self.prefix))
        )

    def within(self, other: ValueSet) -> bool:
        """Whether all that is possible here is possible there, for sure."""
        if self.absent and not other.absent:
            return False
        if not self.present:
            return True
        if not other.present:
            return False
        if self.listed is not None:
            return all(other.holds(value) for value in self.listed)
        return (
            other.listed is None
            and not any(self.holds(value) for value in other.excluded)
            and (not other.prefix or self._begins(other.prefix))
            and (other.low is None or self._is_above(*other.low))
            and (other.high is None or self._is_below(*other.high))
        )

    def _begins(self, prefix: str) -> bool:
        """All that lies between two texts that begin alike begins like them."""
        if self.prefix.startswith(prefix):
            return True
        ends = (self.low, self.high)
        return all(end is not None and end[0].startswith(prefix) for end in ends)

    def _is_above(self, value: Any, strict: bool) -> bool:
        if self.low is not None and (self.low[0] > value or (self.low[0] == value and (self.low[1] or not strict))):
            return True
        # The first text that begins like this is the beginning itself.
        return bool(self.prefix) and (self.prefix > value or (self.prefix == value and not strict))

    def _is_below(self, value: Any, strict: bool) -> bool:
        if self.high is not None and (self.high[0] < value or (self.high[0] == value and (self.high[1] or not strict))):
            return True
        return bool(self.prefix) and self.prefix < value and not value.startswith(self.prefix)


ANYTHING = ValueSet()
_NO_VALUE = ValueSet(present=False)
_IMPOSSIBLE = ValueSet(absent=False, present=False)


def value_set(atoms: Iterable[Atom]) -> ValueSet:
    """What is left of the values of one attribute by atoms that all ask of it; raises what is ``INCOMPARABLE``."""
    absent, present = True, True
    listed: frozenset[Any] | None = None
    excluded: frozenset[Any] = frozenset()
    low: Bound | None = None
    high: Bound | None = None
    prefix = ""
    for atom in atoms:
        if isinstance(atom, IsAbsent):
            present = False
            continue
        absent = False
        match atom:
            case OneOf(values=values):
                listed = frozenset(values) if listed is None else listed & frozenset(values)
            case NoneOf(values=values):
                excluded |= frozenset(values)
            case RangeBound(upper=upper):
                bound = _closed(atom)
                if upper:
                    high = min(bound, high or bound, key=lambda each: (each[0], not each[1]))
                else:
                    low = max(bound, low or bound)
            case Prefix(text=text):
                if not text.startswith(prefix) and not prefix.startswith(text):
                    present = False
                prefix = max(prefix, text, key=len)
            case _:
                pass
    if not present:
        return _NO_VALUE if absent else _IMPOSSIBLE
    return _narrowed(ValueSet(absent, present, listed, excluded, low, high, prefix))


def _closed(bound: RangeBound) -> Bound:
    """More than 3 is at least 4, for whole numbers."""
    value = bound.value
    if not bound.open or not isinstance(value, int) or isinstance(value, bool):
        return value, bound.open
    return value - 1 if bound.upper else value + 1, False


def _narrowed(values: ValueSet) -> ValueSet:
    """The same, listed where there are few, and recognised if nothing is left."""
    low, high = values.low, values.high
    listed = values.listed
    if listed is None and low is not None and high is not None:
        if high[0] < low[0] or (high[0] == low[0] and (high[1] or low[1])):
            return _IMPOSSIBLE
        if high[0] == low[0]:
            listed = frozenset((low[0],))
        elif isinstance(low[0], int) and isinstance(high[0], int) and high[0] - low[0] < _MOST_LISTED:
            listed = frozenset(range(low[0], high[0] + 1))
    if listed is None:
        return values
    dense = ValueSet(excluded=values.excluded, low=low, high=high, prefix=values.prefix)
    left = frozenset(value for value in listed if dense.holds(value))
    return ValueSet(absent=False, listed=left) if left else _IMPOSSIBLE


def value_sets(conjunction: Iterable[Atom]) -> dict[Path, ValueSet]:
    """What an AND leaves of the values of each attribute that it asks of by comparing it with constants."""
    return {path: value_set(atoms) for path, atoms in atoms_by_path(conjunction).items()}


def atoms_by_path(conjunction: Iterable[Atom]) -> dict[Path, tuple[Atom, ...]]:
    """What an AND compares with constants, by the path of the attribute."""
    found: dict[Path, tuple[Atom, ...]] = {}
    for atom in conjunction:
        if not isinstance(atom, Opaque):
            found[atom.path] = (*found.get(atom.path, ()), atom)
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Whether two filters contradict each other: no event is true of both. Said only where it follows from what each of them
# compares single attributes with. What is not understood contradicts nothing, so "no" means "perhaps".


def contradict(one: Node, other: Node) -> bool:
    """Whether no event can be true of both of these simplified filters."""
    return not any(_is_possible((*left, *right)) for left, right in product(normal_form(one), normal_form(other)))


def _is_possible(conjunction: Conjunction) -> bool:
    try:
        return all(each.possible for each in value_sets(conjunction).values())
    except INCOMPARABLE:
        return True
