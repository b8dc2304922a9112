"""Values of a declared type → canonical JSON values: the exact inverse of :mod:`situ.types.decode`.

An encoder is made once per type, of closures. It trusts its input: whoever makes values makes them fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, assert_never

from situ.types.model import Decimal, ListOf, Primitive, Struct, Type, plain
from situ.types.scalars import PRINTERS, print_decimal

if TYPE_CHECKING:
    from situ.types.table import Types

TYPE_KEY = "$type"
"""Names the dynamic type of a struct where that is a strict subtype of the declared one."""
EXTRA_KEY = "$extra"
"""Holds the attributes of a struct that its type does not declare, where a project keeps them."""

Encoder = Callable[[Any], Any]


def encode(type: Type, value: Any, types: Types | None = None) -> Any:
    """The canonical JSON form of one value; for many use :func:`encoder`."""
    return encoder(type, types)(value)


def encoder(type: Type, types: Types | None = None) -> Encoder:
    """A function from values of this type to JSON values. Without ``types`` no subtypes are known."""
    return _Compiler(types).encoder(type)


class _Compiler:
    """Makes the closures; each struct once, whichever way it is reached."""

    def __init__(self, types: Types | None) -> None:
        self._types = types
        self._structs: dict[str, Encoder] = {}

    def encoder(self, type: Type) -> Encoder:
        bare = plain(type)
        match bare:
            case Primitive():
                return PRINTERS[bare]
            case Decimal():
                return print_decimal
            case ListOf():
                return _list_encoder(self.encoder(bare.element))
            case Struct():
                return self.struct(bare)
            case _:
                assert_never(bare)

    def struct(self, struct: Struct) -> Encoder:
        if struct.name and struct.name in self._structs:
            return self._structs[struct.name]
        below = self._types.subtypes(struct)[1:] if self._types and struct.name else ()
        others = {each.name: self.exactly(each) for each in below if isinstance(each, Struct)}
        result = _dynamic_encoder(self.exactly(struct), others)
        if struct.name:
            self._structs[struct.name] = result
        return result

    def exactly(self, struct: Struct) -> Encoder:
        return _struct_encoder(tuple((each.name, self.encoder(each.type)) for each in struct.attributes))


def _list_encoder(element: Encoder) -> Encoder:
    def run(value: Any) -> Any:
        return [None if item is None else element(item) for item in value]

    return run


def _dynamic_encoder(own: Encoder, others: Mapping[str, Encoder]) -> Encoder:
    if not others:
        return own

    def run(value: Any) -> Any:
        named = value.get(TYPE_KEY)
        return own(value) if named is None else {TYPE_KEY: named, **others[named](value)}

    return run


def _struct_encoder(steps: tuple[tuple[str, Encoder], ...]) -> Encoder:
    def run(value: Any) -> Any:
        result: dict[str, Any] = {}
        for name, step in steps:
            item = value.get(name)
            if item is not None:
                result[name] = step(item)
        if EXTRA_KEY in value:
            result[EXTRA_KEY] = value[EXTRA_KEY]
        return result

    return run
