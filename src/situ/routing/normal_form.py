"""Filters in normal form, an OR of ANDs of atoms, and whether two filters contradict each other.

`normal_form` gives the ANDs of a filter, whose atoms the index looks up; `contradict` compares two filters by them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from situ.lang.expr.functions.text import ANY, like_pieces
from situ.lang.expr.tree import FALSE, TRUE, And, Apply, Coalesce, Compare, In, IsNull, Literal, Node, Not, Or, Read
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


class RangeBound(msgspec.Struct, frozen=True):
    """The attribute is at most (``upper``) or at least this, or strictly so (``open``)."""

    path: Path
    value: Any
    upper: bool
    open: bool


class Prefix(msgspec.Struct, frozen=True):
    """The text begins like this. ``exact`` says whether that is all that is asked."""

    path: Path
    text: str
    exact: bool


class IsAbsent(msgspec.Struct, frozen=True):
    """There is no such attribute."""

    path: Path


class Opaque(msgspec.Struct, frozen=True):
    """Any other condition."""

    node: Node


Atom = OneOf | RangeBound | Prefix | IsAbsent | Opaque
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
        case _:
            return Not(node)


def _atom(node: Node) -> Atom:
    match node:
        case Compare(op="=", left=Read() as read, right=Literal(value=value)) if _is_attribute(read, value):
            return OneOf(_path(read), (value,))
        case Compare(op="<" | "<=" | ">" | ">=" as op, left=Read() as read, right=Literal(value=value)) if (
            _is_attribute(read, value)
        ):
            return RangeBound(_path(read), value, op.startswith("<"), len(op) == 1)
        case In(item=Read() as read, values=values) if _is_attribute(read, values):
            return OneOf(_path(read), values)
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
        return Prefix(_path(read), text, exact=True)
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
    return Prefix(_path(read), start, exact=start == first and len(pieces) == 2) if start else Opaque(node)


def _is_attribute(read: Read, constant: Any) -> bool:
    return bool(read.path) and constant is not None


def _path(read: Read) -> Path:
    return (read.variable, *read.path)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Whether two filters contradict each other: no event is true of both. Said only where it follows from what each of them
# compares single attributes with. What is not understood contradicts nothing, so "no" means "perhaps".


def contradict(one: Node, other: Node) -> bool:
    """Whether no event can be true of both of these simplified filters."""
    return not any(_is_possible((*left, *right)) for left in normal_form(one) for right in normal_form(other))


def _is_possible(conjunction: Conjunction) -> bool:
    by_path: dict[Path, list[Atom]] = {}
    for atom in conjunction:
        if not isinstance(atom, Opaque):
            by_path.setdefault(atom.path, []).append(atom)
    return all(_some_value(atoms) for atoms in by_path.values())


def _some_value(atoms: Iterable[Atom]) -> bool:
    """Whether an attribute can have a value, or have none, that all of these are true of."""
    atoms = tuple(atoms)
    absent = [isinstance(atom, IsAbsent) for atom in atoms]
    if any(absent):
        return all(absent)
    listed = [atom for atom in atoms if isinstance(atom, OneOf)]
    others = [atom for atom in atoms if not isinstance(atom, OneOf)]
    if listed:
        return any(
            all(_is_among(value, atom) for atom in listed) and all(_holds(atom, value) for atom in others)
            for value in listed[0].values
        )
    bounds = [atom for atom in atoms if isinstance(atom, RangeBound)]
    texts = [atom.text for atom in atoms if isinstance(atom, Prefix)]
    return _is_wide(bounds) and all(a.startswith(b) or b.startswith(a) for a in texts for b in texts)


def _is_among(value: Any, atom: OneOf) -> bool:
    return any(value == each for each in atom.values)


def _holds(atom: Atom, value: Any) -> bool:
    if isinstance(atom, Prefix):
        return not isinstance(value, str) or value.startswith(atom.text)
    if not isinstance(atom, RangeBound):
        return True
    try:
        beyond = value > atom.value if atom.upper else value < atom.value
        return not beyond and not (atom.open and value == atom.value)
    except TypeError:
        return True


def _is_wide(bounds: Iterable[RangeBound]) -> bool:
    """Whether anything lies between the bounds; what lies between whole numbers counts, too."""
    bounds = tuple(bounds)
    return all(
        _holds(low, high.value) and _holds(high, low.value)
        for low in bounds
        for high in bounds
        if not low.upper and high.upper
    )
