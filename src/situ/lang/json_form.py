"""Structs whose fields are their JSON form: stored forms, which are read back, and explanations, which are not.

A form has its keys in the order of the fields, under their names or those that ``msgspec.field(name=...)`` gives. Left
out is a field that is ``msgspec.UNSET``, and one that has its default, if the struct has ``omit_defaults`` or names the
field in ``OMITTED``. Form and class are the same thing, so that one cannot be changed without the other. Irregular
forms are written by hand where they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, ClassVar, Self

import msgspec

TEXT_ONLY = msgspec.Meta(extra={"json": False})
"""In the annotation of a field: it is for the text that people read, and not in the JSON form."""

_ATOMS = frozenset({str, int, float, bool, type(None)})


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Something explained, or a part of it. The reference page and the JSON Schemas are made from its fields."""

    def as_json(self) -> dict[str, Any]:
        """The explanation as plain data, for ``--json`` and for other programs."""
        found: dict[str, Any] = plain(self)
        return found


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
    if type(value) in _ATOMS:
        return value
    match value:
        case msgspec.Struct():
            form = ((key, getattr(value, name), absent) for name, key, absent in _form(type(value)))
            kept = {key: plain(each) for key, each, absent in form if each != absent}
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
            return value.as_json() if hasattr(value, "as_json") else value


def text_of(value: Any) -> str:
    """For forms that are read by hand: a text, and TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


@cache
def json_fields(of: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of the JSON form, in its order."""
    return tuple(each for each in msgspec.structs.fields(of) if TEXT_ONLY not in getattr(each.type, "__metadata__", ()))


@cache
def _form(of: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    """Of each field its name, its key, and the value with which it is left out."""
    omitted = of.__struct_fields__ if of.__struct_config__.omit_defaults else getattr(of, "OMITTED", ())
    return tuple(
        (each.name, each.encode_name, each.default if each.name in omitted else msgspec.UNSET)
        for each in json_fields(of)
    )
