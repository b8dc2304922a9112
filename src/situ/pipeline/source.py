"""The bus as a source of Spark: ``spark.read`` and ``spark.readStream.format("situ-bus")``.

Options: ``address`` (JSON, see :class:`situ.bus.address.Address`), ``stream`` (``IN`` or ``ROOT``),
``content``: ``events``, the text of each event with its key; ``rows``, decoded and checked against the types of the
deployment; ``counts``, decoded and taken through all stages, the deliveries published by the task that made them, and
what was counted; ``log``, the lines of the root log; ``checkpoint``, where what passes between batches is kept.

Spark loads this module in several processes of its own before the first batch, most of which only ask what the source
is: what does the work is loaded by those that do it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from situ.bus.address import Address
from situ.pipeline import frames
from situ.pipeline.offsets import Offset
from situ.pipeline.source_options import SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from situ.pipeline.cutting import Batches, Part


class BusSource(DataSource):
    """Events of a zone's logs."""

    @classmethod
    def name(cls) -> str:
        return "situ-bus"

    def schema(self) -> StructType:
        return frames.schema(SourceOptions.read(self.options).content)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        return BusReader(SourceOptions.read(self.options), self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's signature
        return BusStreamReader(SourceOptions.read(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002 - Spark's signature
        from situ.pipeline.sink import BusWriter

        return BusWriter(Address.from_json(self.options["address"]))


class BusStreamReader(DataSourceStreamReader):
    """Cuts the log into batches. Lives in one process beside the driver; ``read`` runs in the tasks."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._made: Batches | None = None

    @property
    def _batches(self) -> Batches:
        from situ.pipeline.cutting import Batches

        if self._made is None:
            self._made = Batches(self._options)
        return self._made

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._batches.first().as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._options.max_events)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._batches.next(Offset.from_json(start), limit).as_json()

    def stop(self) -> None:
        if self._made is not None:
            self._made.close()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        from situ.pipeline.cutting import cut

        return cut(self._options, Offset.from_json(start), Offset.from_json(end))

    def read(self, partition: Part) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        from situ.pipeline.cutting import read_part

        return read_part(self._options, partition)


class BusReader(DataSourceReader):
    """A range of the log, read once: options ``first`` and ``last``, else all there is now."""

    def __init__(self, options: SourceOptions, given: Mapping[str, str]) -> None:
        self._options = options
        self._range = (given.get("first"), given.get("last"), given.get("version"))

    def partitions(self) -> Sequence[InputPartition]:
        from situ.pipeline.cutting import parts_of

        return parts_of(self._options, *self._range)

    def read(self, partition: Part) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        from situ.pipeline.cutting import read_part

        return read_part(self._options, partition)
