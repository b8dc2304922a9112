"""What values of the types are in Python, for those who make or read them."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, assert_never

from situ.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Decimal,
    ListOf,
    Primitive,
    Struct,
    Type,
    plain,
)

_EXAMPLES: Mapping[Primitive, Any] = MappingProxyType(
    {
        BOOLEAN: False,
        INT: 0,
        LONG: 0,
        DOUBLE: 0.0,
        STRING: "",
        BYTES: b"",
        DATE: dt.date(2000, 1, 1),
        TIMESTAMP: dt.datetime(2000, 1, 1, tzinfo=dt.UTC),
        DURATION: dt.timedelta(),
    }
)

PYTHON_TYPES: Mapping[Primitive, Any] = MappingProxyType({each: type(value) for each, value in _EXAMPLES.items()})
"""The class of their values; that of every decimal is :class:`decimal.Decimal`."""


def example(type: Type) -> Any:
    """Some value of the type, which stands for one that is not known yet."""
    bare = plain(type)
    match bare:
        case Primitive():
            return _EXAMPLES[bare]
        case Decimal(scale=scale):
            return decimal.Decimal(0).scaleb(-scale)
        case ListOf():
            return []
        case Struct(attributes=attributes):
            return {each.name: example(each.type) for each in attributes}
        case _:
            assert_never(bare)
