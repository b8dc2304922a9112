"""Offsets of the event query: everything a batch depends on beside the rows of the log.

Spark writes the offset of a batch down before it runs it, so a batch that is repeated after a crash is repeated with
the same positions, the same version of the deployment, the same clock and the same partitions, whatever changed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from situ.catalogue import CHECKPOINT_DAMAGED
from situ.errors import Location, SituError


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """The end of a batch: ``seq`` is the last message of the log in it."""

    seq: int = 0
    version: int = 0
    """Of the deployment the batch runs with."""
    partitions: int = 1
    """How many tasks share the clients; messages are cut within one."""
    clock: int = 0
    """When the end was chosen, in microseconds: the batch knows no other present."""
    tables: dict[str, str] = field(default_factory=dict)
    """Digests of the pull tables the batch reads, by name."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Any) -> Offset:
        """Raises :class:`msgspec.ValidationError` for what is no offset."""
        return msgspec.convert(value, cls)


def read_offset(checkpoint: Path, batch: int) -> Offset:
    """The offset that Spark wrote down for a batch of the query with this checkpoint."""
    file = checkpoint / "offsets" / str(batch)
    try:
        # The first line is the format's version, the second Spark's own metadata, then comes a line for each source.
        return Offset.from_json(json.loads(file.read_text(encoding="utf-8").splitlines()[2]))
    except IndexError:
        reason = "it is cut off"
    except OSError as error:
        reason = error.strerror or str(error)
    except (ValueError, msgspec.ValidationError) as error:
        reason = str(error)
    raise SituError(CHECKPOINT_DAMAGED(Location(file=str(file)), reason=reason))


def last_batch(checkpoint: Path, log: str) -> int | None:
    """The highest batch in ``offsets`` (begun) or ``commits`` (done); None if there is none."""
    folder = checkpoint / log
    numbers = [int(each.name) for each in folder.iterdir() if each.name.isdigit()] if folder.is_dir() else []
    return max(numbers, default=None)
