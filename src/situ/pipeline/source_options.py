"""The options of the bus as a source of Spark, read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from situ.bus.address import Address
from situ.bus.names import Names

SMALL = 256 * 1024
"""Bytes of messages that one task is done with before another would have begun."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What is to be read, and how; see :mod:`situ.pipeline.source`."""

    address: Address
    stream: str
    content: str
    checkpoint: Path | None
    partitions: int
    max_events: int
    folder: Path = Path()
    """Of the project: where the files of its tables are."""

    @classmethod
    def read(cls, options: Mapping[str, str]) -> SourceOptions:
        checkpoint = options.get("checkpoint")
        return cls(
            address=Address.from_json(options["address"]),
            stream=options.get("stream", "IN"),
            content=options.get("content", "events"),
            checkpoint=Path(checkpoint) if checkpoint else None,
            partitions=int(options.get("partitions", "2")),
            max_events=int(options.get("maxEvents", "200000")),
            folder=Path(options.get("folder", ".")),
        )

    @property
    def names(self) -> Names:
        return Names(self.address.zone)

    @property
    def log(self) -> str:
        return self.names.in_stream if self.stream == "IN" else self.names.root_stream
