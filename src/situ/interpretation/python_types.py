"""Dataclasses → types, in the words of the files: ``price: Annotated[Money, Unit("USD")]`` is ``price: Money USD``.

Another dataclass is a type by its name. Whether that is declared, and where, is not known here.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import inspect
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, is_dataclass
from types import MappingProxyType
from typing import Annotated, Any, Union, get_args, get_origin

from situ.types.syntax import format_head


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of an attribute: ``Annotated[float, Unit("km/h")]``."""

    name: str


@dataclass(frozen=True, slots=True)
class Typed:
    """The type of an attribute where Python has no word for it: ``Annotated[Decimal, Typed("decimal(18,2)")]``."""

    name: str


PRIMITIVES: Mapping[Any, str] = MappingProxyType(
    {
        bool: "boolean",
        int: "long",
        float: "double",
        str: "string",
        bytes: "bytes",
        dt.date: "date",
        dt.datetime: "timestamp",
        dt.timedelta: "duration",
    }
)


def head_of(cls: type[Any]) -> str:
    """The name of a class, with the dataclasses that it extends."""
    return format_head(cls.__name__, tuple(each.__name__ for each in cls.__bases__ if is_dataclass(each)))


def struct_of(cls: type[Any]) -> dict[str, Any]:
    """The attributes that a dataclass adds to those of the classes above it."""
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise TypeError(f"{cls.__name__}: {error.name!r} is not known where the class stands") from error
    own = inspect.get_annotations(cls)
    return {each.name: _attribute(cls, each, hints[each.name]) for each in dataclasses.fields(cls) if each.name in own}


def _attribute(cls: type[Any], field: dataclasses.Field[Any], hint: Any) -> Any:
    try:
        type, unit, optional = _type(hint)
        default = _default(field)
    except TypeError as error:
        raise TypeError(f"{cls.__name__}.{field.name}: {error}") from None
    if default is None:
        return " ".join([*(["optional"] if optional else []), type, *([unit] if unit else [])])
    form = {"type": type, "unit": unit, "optional": optional, "default": default}
    return {key: value for key, value in form.items() if value or key == "default"}


def _type(hint: Any) -> tuple[str, str, bool]:
    """Type, unit, and whether it may be missing."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        typed = [each.name for each in arguments[1:] if isinstance(each, Typed)]
        type, unit, optional = _type_in(arguments[0], typed)
        return type, next((each.name for each in arguments[1:] if isinstance(each, Unit)), unit), optional
    if origin in (Union, types.UnionType):
        others = [each for each in arguments if each is not types.NoneType]
        if len(others) == 1 and len(arguments) == 2:
            type, unit, _ = _type(others[0])
            return type, unit, True
    if origin is list and len(arguments) == 1:
        type, unit, optional = _type(arguments[0])
        if not optional:
            return f"[{type}]", unit, False
    if isinstance(hint, str | typing.ForwardRef) or hint is decimal.Decimal:
        raise TypeError('say which type it is: Annotated[…, Typed("decimal(18,2)")]')
    if hint in PRIMITIVES:
        return PRIMITIVES[hint], "", False
    if inspect.isclass(hint) and is_dataclass(hint):
        return hint.__name__, "", False
    raise TypeError(f"{hint!r} is no type of events; there are primitives, dataclasses, list[…] and … | None")


def _type_in(hint: Any, typed: list[str]) -> tuple[str, str, bool]:
    """What is said in words counts; that it may be missing is still Python's to say."""
    if not typed:
        return _type(hint)
    optional = get_origin(hint) in (Union, types.UnionType) and types.NoneType in get_args(hint)
    return typed[0], "", optional


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not MISSING:
        return _in_json(field.default)
    return None if field.default_factory is MISSING else _in_json(field.default_factory())


def _in_json(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case decimal.Decimal():
            return str(value)
        case list():
            return [_in_json(each) for each in value]
        case _ if is_dataclass(value) and not inspect.isclass(value):
            return {each.name: _in_json(getattr(value, each.name)) for each in dataclasses.fields(value)}
        case _:
            raise TypeError(f"{value!r} cannot be the default of an attribute")
