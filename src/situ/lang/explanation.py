"""What every explanation is: a struct whose fields are its JSON form, and what only a text for people needs.

A field has the name in JSON that it has here, or that ``msgspec.field(name=...)`` gives it. Left out of the JSON form
is a field that is ``msgspec.UNSET``, and in a struct with ``omit_defaults`` one that has its default. The reference
page of explanations and their JSON Schemas are made from these structs.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any

import msgspec

from situ.lang.problems import Problem

TEXT_ONLY = msgspec.Meta(extra={"json": False})
"""In the annotation of a field: it is for the text that people read, and not in the JSON form."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Something explained, or a part of it."""

    def as_json(self) -> dict[str, Any]:
        """The explanation as plain data, for ``--json`` and for other programs."""
        omits = self.__struct_config__.omit_defaults
        values = ((field, getattr(self, field.name)) for field in json_fields(type(self)))
        return {
            field.encode_name: _plain(value)
            for field, value in values
            if value is not msgspec.UNSET and not (omits and value == field.default)
        }


@cache
def json_fields(of: type[Explanation]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of the JSON form, in its order."""
    return tuple(each for each in msgspec.structs.fields(of) if TEXT_ONLY not in getattr(each.type, "__metadata__", ()))


def _plain(value: Any) -> Any:
    if isinstance(value, Explanation | Problem):
        return value.as_json()
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return value.value if isinstance(value, Enum) else value
