"""A copy with other fields, of a data class and of a struct."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from situ.lang.records import replace


@dataclass(frozen=True)
class Plain:
    name: str
    size: int = 0


class Packed(msgspec.Struct, frozen=True):
    name: str
    size: int = 0


@pytest.mark.parametrize("record", [Plain("a", 1), Packed("a", 1)])
def test_both_kinds_of_record_are_changed_alike(record: Plain | Packed) -> None:
    changed = replace(record, size=2)
    assert (type(changed), changed.name, changed.size, record.size) == (type(record), "a", 2, 1)
    with pytest.raises(TypeError):
        replace(record, colour="red")
