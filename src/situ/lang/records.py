"""How a record is changed: a copy with other fields, whether it is a data class or a struct.

The type checker lets `dataclasses.replace` be called on a struct of msgspec, and it fails when it runs. This one takes
both, so that a class can become the other without a look at all its callers.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

RecordT = TypeVar("RecordT")


def replace(record: RecordT, /, **changes: Any) -> RecordT:
    """The record with other values in some fields."""
    if dataclasses.is_dataclass(record):
        return dataclasses.replace(record, **changes)  # type: ignore[type-var, return-value, unused-ignore]
    from msgspec import structs  # not before it is needed: `--help` shows no struct

    return structs.replace(record, **changes)  # type: ignore[type-var, unused-ignore]
