"""Plans: per event type, a compiled reader of its data that accepts what is plainly right.

A plan reads JSON text into a generated struct and writes it again in canonical form, both in C. It accepts less than
:mod:`situ.types.decode` and never anything that one would not, with the same value; whatever it does not accept is
judged there. So undeclared attributes, ``$type``, decimals written as numbers and times in unusual forms are no
business of a plan, and what is wrong with a value neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from situ.event.instants import canonical_instant
from situ.types.encode import encode
from situ.types.model import (
    BOOLEAN,
    DOUBLE,
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
from situ.types.scalars import PRINTERS, READERS, Unfit, decimal_reader, print_decimal

DEEPEST = 60
"""Deeper types have no plan: the limit on the depth of events is counted elsewhere."""

_encode = msgspec.json.Encoder().encode

_PLAIN: dict[Primitive, Any] = {
    BOOLEAN: bool,
    INT: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)],
    LONG: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)],
    DOUBLE: float,
    STRING: str,
}

Mend = Callable[[Any], Any]
"""From a value as it was read to the canonical one; :class:`Unfit` where the plan cannot be sure."""


class Plan:
    """Reads the data of one event type.

    ``decode`` gives the generated struct, ``mend`` makes it canonical where reading does not already.
    """

    __slots__ = ("decode", "fills", "mend")

    def __init__(self, struct: Struct) -> None:
        shape, mend, fills = _Shapes().struct(struct)
        self.decode: Callable[[Any], Any] = msgspec.json.Decoder(shape).decode
        self.mend: Mend | None = mend
        self.fills = fills
        """Whether mending adds or removes attributes: then quotes are counted before."""

    def canonical(self, data: msgspec.Raw | bytes) -> tuple[bytes, int]:
        """The canonical text of the data, and the number of quotes in what was sent, if each key stood there once."""
        value = self.decode(data)
        if self.mend is None:
            text = _encode(value)
            return text, text.count(b'"')
        quotes = _encode(value).count(b'"') if self.fills else -1
        text = _encode(self.mend(value))
        return text, quotes if self.fills else text.count(b'"')


def plan_of(struct: Struct) -> Plan | None:
    """The plan of an event type; None if it is too deep for one."""
    return Plan(struct) if _depth(struct) <= DEEPEST else None


def _depth(type: Type) -> int:
    bare = plain(type)
    if isinstance(bare, ListOf):
        return 1 + _depth(bare.element)
    if isinstance(bare, Struct):
        return 1 + max((_depth(each.type) for each in bare.attributes), default=0)
    return 0


class _Shapes:
    """Makes the generated structs, each once, whichever way it is reached."""

    def __init__(self) -> None:
        self._structs: dict[str, tuple[Any, Mend | None, bool]] = {}

    def of(self, type: Type) -> tuple[Any, Mend | None, bool]:
        bare = plain(type)
        if isinstance(bare, Struct):
            return self.struct(bare)
        if isinstance(bare, ListOf):
            shape, mend, fills = self.of(bare.element)
            return list[shape | None], mend and _mend_list(mend), fills  # type: ignore[valid-type]  # made at run time
        if isinstance(bare, Primitive) and bare in _PLAIN:
            return _PLAIN[bare], None, False
        return str, _mend_text(bare), False

    def struct(self, struct: Struct) -> tuple[Any, Mend | None, bool]:
        known = self._structs.get(struct.name) if struct.name else None
        if known is None:
            known = self._structs[struct.name] = self._make(struct)
        return known

    def _make(self, struct: Struct) -> tuple[Any, Mend | None, bool]:
        # Attributes may have any name, also one that Python reserves: fields are numbered and renamed.
        fields: list[tuple[str, Any, Any]] = []
        names: dict[str, str] = {}
        steps: list[tuple[str, Mend | None, Any]] = []
        fills = False
        for number, attribute in enumerate(struct.attributes):
            field = f"a{number}"
            names[field] = attribute.name
            shape, mend, deeper = self.of(attribute.type)
            open_ended = attribute.optional or attribute.default is not None
            if open_ended:
                fields.append((field, shape | None | UnsetType, UNSET))
            else:
                fields.append((field, shape, msgspec.NODEFAULT))
            if open_ended or mend is not None:
                steps.append((field, mend, _default(attribute)))
            fills = fills or deeper or open_ended
        made = msgspec.defstruct(
            f"Data_{len(self._structs)}",
            fields,
            rename=names,
            kw_only=True,
            gc=False,
        )
        return made, _mend_struct(tuple(steps)) if steps else None, fills


def _default(attribute: Attribute) -> Any:
    """What is written where the attribute is missing."""
    return UNSET if attribute.default is None else encode(attribute.type, attribute.default)


def _mend_struct(steps: tuple[tuple[str, Mend | None, Any], ...]) -> Mend:
    def mend(value: Any) -> Any:
        for field, deeper, default in steps:
            found = getattr(value, field)
            if found is UNSET or found is None:
                if found is not default:
                    setattr(value, field, default)
            elif deeper is not None:
                mended = deeper(found)
                if mended is not found:
                    setattr(value, field, mended)
        return value

    return mend


def _mend_list(element: Mend) -> Mend:
    def mend(value: Any) -> Any:
        return [None if item is None else element(item) for item in value]

    return mend


_MOST_REMEMBERED = 4096


def _mend_text(type: Primitive | Decimal) -> Mend:
    """Texts of a form: times are read as such, of the others few are different and those are remembered."""
    if type == TIMESTAMP:
        return _mend_instant
    read = decimal_reader(type) if isinstance(type, Decimal) else READERS[type]
    write = print_decimal if isinstance(type, Decimal) else PRINTERS[type]
    known: dict[str, str] = {}

    def mend(text: str) -> str:
        found = known.get(text)
        if found is None:
            if len(known) >= _MOST_REMEMBERED:
                known.clear()
            found = known[text] = write(read(text))
        return found

    return mend


def _mend_instant(text: str) -> str:
    found = canonical_instant(text)
    if found is None:
        raise Unfit
    return found
