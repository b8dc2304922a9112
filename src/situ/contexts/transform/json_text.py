"""Transformation of canonical JSON text to canonical JSON text, without making values of what does not change.

`SourceUsage` finds what a transformation needs of the source, `TextPlan` reads that and makes the result anew,
`with_copies` finds structs whose text is the same on both sides.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypedDict

import msgspec

from situ.contexts.function_bodies import DATA
from situ.lang.expr.overload import Overload
from situ.lang.expr.tree import (
    Apply,
    Case,
    Coalesce,
    Compare,
    Each,
    ForEach,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Read,
    rebuild,
    walk,
)
from situ.lang.records import replace
from situ.lang.types.json_codec import TYPE_KEY, encode, encoder
from situ.lang.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Attribute,
    Decimal,
    ListOf,
    Primitive,
    Struct,
    Type,
    plain,
)
from situ.lang.types.table import Types

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a transformation only copies is taken over as text, unread; what it computes with is read as values, in C; what
# it does not look at is skipped. The result is what :mod:`situ.lang.types.json_codec` would write.

AS_IN_JSON = (BOOLEAN, INT, LONG, DOUBLE, STRING)
_SINGLE: Mapping[Primitive, Any] = MappingProxyType(
    {
        BOOLEAN: bool,
        INT: int,
        LONG: int,
        DOUBLE: float,
        STRING: str,
        BYTES: bytes,
        DATE: dt.date,
        TIMESTAMP: dt.datetime,
        DURATION: dt.timedelta,
    }
)


class NoTextPlan(Exception):
    """Subtypes disagree on what an attribute is, so no reader knows before it has read which one it is."""


class PlaceUse(msgspec.Struct):
    """How a place of the source is used: copied as it is, or computed with; or what is looked at below it."""

    type: Type
    copied: bool = False
    computed: bool = False
    below: dict[str, PlaceUse] = msgspec.field(default_factory=dict)
    elements: PlaceUse | None = None

    def settle(self, *, above: bool = False, element: bool = False) -> None:
        """What is copied and looked into has to be read whole, with all below; so has an element, which may be null."""
        inside = bool(self.below) or self.elements is not None
        self.computed = self.computed or above or (inside and self.copied) or (element and not inside)
        for each in self.below.values():
            each.settle(above=self.computed)
        if self.elements is not None:
            self.elements.settle(above=self.computed, element=True)


class SourceUsage:
    """What a transformation needs of the source, and the expressions that make of that the JSON to be written."""

    def __init__(self, node: Node, source: Struct, types: Types, *, apart: bool = True) -> None:
        """``apart``: what is copied is not read, so nothing can be looked at in it."""
        self.types = types
        self.needs: dict[str, PlaceUse] = {DATA: PlaceUse(source)}
        self._mark(node)
        self.root = self.needs[DATA]
        if apart:
            self.root.settle()

    # ── first pass: what is needed ──

    def _mark(self, node: Node) -> None:
        """A part of the result: what is read here is copied, what is read further inside computed with."""
        match node:
            case Read():
                if (need := self.need(node)) is not None:
                    need.copied = True
            case MakeStruct(fields=fields):
                for _, part in fields:
                    self._mark(part)
            case Case(arms=arms, otherwise=otherwise):
                for condition, result in arms:
                    self._mark_condition(condition)
                    self._mark(result)
                self._mark(otherwise)
            case Coalesce(args=args):
                for part in args:
                    self._mark(part)
            case ForEach(kind=Each.TRANSFORM, list=Read() as items, variable=variable, body=body):
                self._mark_elements(items, variable)
                self._mark(body)
            case _:
                self._mark_computed(node)

    def _mark_elements(self, items: Read, variable: str) -> None:
        need, of = self.need(items), plain(items.type)
        if need is None or not isinstance(of, ListOf):
            return
        if need.elements is None:
            need.elements = PlaceUse(of.element)
        self.needs[variable] = need.elements

    def _mark_condition(self, node: Node) -> None:
        match node:
            case IsNull(arg=Read() as read):
                self.need(read)
            case Compare(left=Read(path=path) as read, right=Literal()) if path and path[-1] == TYPE_KEY:
                self.need(read)
            case _:
                self._mark_computed(node)

    def _mark_computed(self, node: Node) -> None:
        for part in walk(node):
            if isinstance(part, Read) and (need := self.need(part)) is not None:
                need.computed = True

    def need(self, read: Read) -> PlaceUse | None:
        """The place that is read; None for what is not in the data. Its type is what is declared there."""
        need = self.needs.get(read.variable)
        if need is None:
            return None
        for step in read.path:
            if step not in need.below:
                need.below[step] = PlaceUse(self.declared(need.type, step))
            need = need.below[step]
        return need

    def declared(self, type: Type, step: str) -> Type:
        if step == TYPE_KEY:
            return STRING
        struct = plain(type)
        assert isinstance(struct, Struct)
        found = {each.type for each in self._attributes(struct) if each.name == step}
        if len(found) != 1:
            raise NoTextPlan
        return found.pop()

    def _attributes(self, struct: Struct) -> list[Attribute]:
        dynamic = self.types.subtypes(struct) if struct.name else (struct,)
        return [attribute for each in dynamic if isinstance(each, Struct) for attribute in each.attributes]

    # ── what is read whole ──

    def whole(self, type: Type) -> Any:
        bare = plain(type)
        match bare:
            case Primitive():
                return _SINGLE[bare]
            case Decimal():
                return decimal.Decimal
            case ListOf(element=element):
                return list[self.whole(element) | None]  # type: ignore[misc]  # made at run time
            case Struct():
                names = dict.fromkeys(each.name for each in self._attributes(bare))
                shapes = {name: self.whole(self.declared(bare, name)) for name in names}
                return TypedDict("Data", {TYPE_KEY: str, **shapes}, total=False)  # type: ignore[operator]

    # ── second pass: what is written ──

    def written(self, node: Node) -> Node:
        match node:
            case Read() if (need := self.need(node)) is not None and not need.computed:
                return node
            case Literal(value=value, type=type):
                return node if value is None else replace(node, value=encode(type, value))
            case MakeStruct(fields=fields):
                return replace(node, fields=tuple((name, self.written(part)) for name, part in fields))
            case Case(arms=arms, otherwise=otherwise):
                chosen = tuple((condition, self.written(result)) for condition, result in arms)
                return replace(node, arms=chosen, otherwise=self.written(otherwise))
            case Coalesce(args=args):
                return replace(node, args=tuple(self.written(part) for part in args))
            case ForEach(kind=Each.TRANSFORM, list=Read() as items, body=body) if self.need(items) is not None:
                return replace(node, body=self.written(body))
        return node if self._is_json(node.type) else _encoded(node, self.types)

    def _is_json(self, type: Type) -> bool:
        """Whether values of the type are what is written for them."""
        bare = plain(type)
        if isinstance(bare, ListOf):
            return self._is_json(bare.element)
        if isinstance(bare, Struct):
            return all(self._is_json(each.type) for each in self._attributes(bare))
        return bare in AS_IN_JSON


class TextPlan(SourceUsage):
    """Structs are read as dicts, and the result is made anew."""

    def __init__(self, node: Node, source: Struct, types: Types) -> None:
        super().__init__(node, source, types)
        self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(self._shape(self.root)).decode
        self.node = self.written(node)

    def _shape(self, need: PlaceUse) -> Any:
        if need.computed:
            return self.whole(need.type)
        if need.elements is not None:
            return list[self._shape(need.elements) | None]  # type: ignore[misc]  # made at run time
        if not need.below and (need.copied or need is not self.root):
            return msgspec.Raw
        shapes = {name: self._shape(each) for name, each in need.below.items()}
        return TypedDict("Data", {**shapes, TYPE_KEY: str}, total=False)  # type: ignore[operator]  # made at run time


def _encoded(node: Node, types: Types) -> Node:
    write = encoder(node.type, types)
    overload = Overload(
        name="encoded",
        parameters=("element",),
        result="string",
        spark="{0}",
        python=lambda texts, constants, bind: f"{bind(write)}({texts[0]})",
    )
    return Apply(overload, (node,), node.type)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The same text on both sides: structs that are made anew, under another name, of all that they had. To values it
# matters that a struct is of another type now; to JSON it does not, as long as its attributes are the same and stand in
# the same order. What is found here is handed on as it is, unread, with all below it.


def with_copies(node: Node, source: Struct, types: Types) -> Node:
    """The expression for text alone: a read in the place of whatever has the text of what is read."""
    return _Copies(types).copied(node, {DATA: source})


class _Copies:
    def __init__(self, types: Types) -> None:
        self._types = types

    def copied(self, node: Node, variables: Mapping[str, Type]) -> Node:
        """``variables`` are those in sight, with what they stand for."""
        if isinstance(node, ForEach):
            return self._each(node, variables)
        below = rebuild(node, lambda part: self.copied(part, variables))
        match below:
            case MakeStruct():
                return self._whole(below, variables) or below
            case Case(arms=((IsNull(arg=Read() as read), Literal(value=None)),), otherwise=Read() as found):
                return read if _same_place(read, found) else below
        return below

    def _each(self, node: ForEach, variables: Mapping[str, Type]) -> Node:
        of = self.copied(node.list, variables)
        listed = plain(of.type)
        if not isinstance(listed, ListOf):
            return node
        body = self.copied(node.body, {**variables, node.variable: listed.element})
        same = isinstance(body, Read) and body.variable == node.variable and not body.path
        if node.kind is Each.TRANSFORM and same and isinstance(of, Read):
            return of
        return ForEach(node.kind, of, node.variable, body, node.type, node.unit, span=node.span)

    def _whole(self, made: MakeStruct, variables: Mapping[str, Type]) -> Read | None:
        """The struct whose attributes these are: all of them, in their order, and no subtype has more."""
        first = made.fields[0][1] if made.fields else None
        if not made.sparse or not isinstance(first, Read) or not first.path:
            return None
        path = first.path[:-1]
        for name, part in made.fields:
            if not isinstance(part, Read) or part.variable != first.variable or part.path != (*path, name):
                return None
        struct = self._type_at(first.variable, path, variables)
        if not isinstance(struct, Struct) or len(self._types.subtypes(struct)) > 1:
            return None
        if tuple(each.name for each in struct.attributes) != tuple(name for name, _ in made.fields):
            return None
        return Read(first.variable, path, struct, optional=first.optional[:-1])

    def _type_at(self, variable: str, path: tuple[str, ...], variables: Mapping[str, Type]) -> Type | None:
        found = variables.get(variable)
        for step in path:
            struct = plain(found) if found is not None else None
            attribute = struct.attribute(step) if isinstance(struct, Struct) else None
            found = None if attribute is None else attribute.type
        return None if found is None else plain(found)


def _same_place(one: Read, other: Read) -> bool:
    return (one.variable, one.path) == (other.variable, other.path)
