"""Stored forms: structs whose fields are what is written down of them, as plain JSON values.

A form has its keys in the order of the fields, under their names or those that ``msgspec.field(name=...)`` gives. Form
and class are the same thing, so that one cannot be changed without the other. Irregular forms are written by hand
where they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, ClassVar, Self

import msgspec


class StoredForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value that is stored and read back."""

    OMITTED: ClassVar[tuple[str, ...]] = ()
    """Fields that are left out while they have their default: they came later, or seldom say anything."""

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values, from which :meth:`from_json` makes an equal value."""
        found: dict[str, Any] = plain(self)
        return found

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """What :meth:`as_json` gave; ValueError for what it cannot have given."""
        return msgspec.convert(value, cls)


def plain(value: Any) -> Any:
    """A struct and all that is in it as plain JSON values; sets in their order."""
    match value:
        case msgspec.Struct():
            fields = ((name, key, getattr(value, name)) for name, key in _fields(type(value)))
            omitted = getattr(value, "OMITTED", ())
            defaults = _defaults(type(value)) if omitted else {}
            kept = {key: plain(each) for name, key, each in fields if name not in omitted or each != defaults[name]}
            tag = value.__struct_config__
            return kept if tag.tag is None else {tag.tag_field: tag.tag, **kept}
        case tuple() | list():
            return [plain(each) for each in value]
        case Mapping():
            return {key: plain(each) for key, each in value.items()}
        case set() | frozenset():
            return sorted(value)
        case Enum():
            return value.value
        case _:
            return value


@cache
def _fields(of: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    return tuple(zip(of.__struct_fields__, of.__struct_encode_fields__, strict=True))


@cache
def _defaults(of: type[msgspec.Struct]) -> Mapping[str, Any]:
    return {each.name: each.default for each in msgspec.structs.fields(of)}
