"""What msgspec reads canonical JSON text into: the values of a type as all of Situ works with them.

The text is trusted: it was written by :mod:`situ.types.encode` or is part of data that was checked. The result equals
what :mod:`situ.types.decode` gives.
"""

from __future__ import annotations

import decimal
from collections.abc import Collection
from typing import Any, TypedDict, assert_never

from situ.types.encode import TYPE_KEY
from situ.types.model import Decimal, ListOf, Primitive, Struct, Type, plain
from situ.types.python_values import PYTHON_TYPES


def shape(type: Type) -> Any:
    """The type to give to msgspec for values of this type."""
    bare = plain(type)
    match bare:
        case Primitive():
            return PYTHON_TYPES[bare]
        case Decimal():
            return decimal.Decimal
        case ListOf():
            return list[shape(bare.element) | None]  # type: ignore[misc]  # made at run time
        case Struct():
            return dict_shape(bare, None)
        case _:
            assert_never(bare)


def dict_shape(struct: Struct, names: Collection[str] | None) -> Any:
    """The same for a struct of which only these attributes are wanted; None: all of them."""
    shapes = {each.name: shape(each.type) for each in struct.attributes if names is None or each.name in names}
    shapes[TYPE_KEY] = str
    return TypedDict(struct.name or "Data", shapes, total=False)  # type: ignore[operator]  # made at run time
