"""Filters in normal form: an OR of ANDs of atoms, each atom a condition that can be looked up.

Only *true* counts for a filter: false, null and failure all mean no match. An OR is true iff a part is, an AND iff all
parts are, so both may be multiplied out; and what says nothing but "is it true" is unwrapped. An atom compares one
attribute with constants. Everything else is opaque: a condition to be evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from situ.expr.functions.text import ANY, like_pieces
from situ.expr.tree import FALSE, TRUE, And, Apply, Coalesce, Compare, In, IsNull, Literal, Node, Not, Or, Read
from situ.types.model import BOOLEAN, plain

MOST_CONJUNCTIONS = 16

Path = tuple[str, ...]
"""Where a value is read: the variable, ``event`` or ``data``, and the steps below it."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """The attribute is one of these."""

    path: Path
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """The attribute is at most (``upper``) or at least this, or strictly so (``open``)."""

    path: Path
    value: Any
    upper: bool
    open: bool


@dataclass(frozen=True, slots=True)
class Prefix:
    """The text begins like this. ``exact`` says whether that is all that is asked."""

    path: Path
    text: str
    exact: bool


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no such attribute."""

    path: Path


@dataclass(frozen=True, slots=True)
class Opaque:
    """Any other condition."""

    node: Node


Atom = OneOf | Bound | Prefix | Absent | Opaque
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
            return Bound(_path(read), value, op.startswith("<"), len(op) == 1)
        case In(item=Read() as read, values=values) if _is_attribute(read, values):
            return OneOf(_path(read), values)
        case IsNull(arg=Read() as read) if _is_attribute(read, ()):
            return Absent(_path(read))
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
