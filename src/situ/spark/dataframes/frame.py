"""DataFrames of events: their columns, and what the metadata of ``data`` says about them.

Such a DataFrame has events of one type, in the terms of one context, in three columns beside those of its user:

- ``event``, the envelope (:data:`ENVELOPE`);
- ``data``, a struct in the layout of the type. Its metadata names type and context, which Spark carries through
  ``where``, ``select``, joins, streams and Parquet files;
- ``failure``, null for events that are well. A row with a failure has no ``data``, and passes later stages as it is.

Everything here is text of Spark SQL and methods that Spark Connect has as well: no context of Spark, no Java objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StructType

from situ.contexts.model import ROOT
from situ.lang.catalogue import NO_EVENT_FRAME, NO_SUCH_COLUMN, SESSION_UNFIT
from situ.lang.expr.overload import spark_name, spark_text
from situ.lang.expr.tree import Read
from situ.lang.problems import Problem, SituError, nearest

EVENT, DATA, FAILURE = "event", "data", "failure"
OTHERS = f"* EXCEPT ({EVENT}, {DATA}, {FAILURE})"
"""The columns of the user, to select: to list them, Spark would have to analyse the query."""
METADATA = "situ"
"""The key of what is known of a DataFrame in the metadata of its column ``data``."""

ENVELOPE: Mapping[str, str] = {
    "id": "STRING",
    "source": "STRING",
    "type": "STRING",
    "time": "TIMESTAMP",
    "confidence": "DOUBLE",
    "client": "STRING",
    "ad": "STRING",
    "received": "TIMESTAMP",
    "context": "STRING",
    "extensions": "MAP<STRING, STRING>",
}
"""The fields of ``event``. ``received`` is null where the DataFrame does not say it."""
_READ_AS_THEY_ARE = frozenset({"id", "source", "type", "time", "confidence"})

ERRORS = "ARRAY<STRUCT<code: STRING, path: STRING, message: STRING, hint: STRING>>"
FAILURES: Mapping[str, str] = {
    "stage": "STRING",
    "context": "STRING",
    "type": "STRING",
    "errors": ERRORS,
    "original": "STRING",
}
"""The fields of ``failure``: in which stage, of what, what is wrong, and what the stage was given."""

TIME_ZONE = "spark.sql.session.timeZone"
_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Z", "+00:00"})


def struct_type(fields: Mapping[str, str]) -> str:
    """``STRUCT<…>`` of these."""
    return f"STRUCT<{', '.join(f'{spark_name(name)}: {type}' for name, type in fields.items())}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFrame:
    """What a DataFrame says of its events."""

    type: str
    context: str = ROOT

    def as_metadata(self) -> dict[str, Any]:
        return {METADATA: {"type": self.type, "context": self.context}}

    def put_on(self, frame: DataFrame, *, sure: bool = False) -> DataFrame:
        """The DataFrame that says so; the object itself does, too, which can be asked where no query is analysed.

        ``sure``: every row that did not fail is such an event. Of a DataFrame made of this one nobody knows.
        """
        # Not `withMetadata`, nor `withColumn` and `drop` elsewhere: over Spark Connect these analyse the query at once.
        data = sf.col(DATA).alias(DATA, metadata=self.as_metadata())
        made = frame.select(sf.expr(OTHERS), sf.col(EVENT), data, sf.col(FAILURE))
        setattr(made, _KNOWN, self)
        setattr(made, _SURE, sure)
        return made


_KNOWN, _SURE = "_situ_events", "_situ_sure"
_NO_ANALYSIS = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"


def schema_of(frame: DataFrame) -> StructType | None:
    """The schema; None inside a query function of a declarative pipeline, where nothing may be analysed."""
    try:
        return frame.schema
    except PySparkException as error:
        if error.getCondition() != _NO_ANALYSIS:
            raise
        return None


def without(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """Without columns that would be in the way; where nobody can look, they are not expected."""
    schema = schema_of(frame)
    return frame if schema is None else frame.drop(*(name for name in names if name in schema.names))


def event_frame(frame: DataFrame, method: str) -> EventFrame:
    """What this DataFrame has; :class:`SituError` with N151 if it is none of events."""
    known = frame.__dict__.get(_KNOWN)
    if isinstance(known, EventFrame):
        return known
    schema = schema_of(frame)
    if schema is None:
        reason = "inside a query function of a pipeline only what `decode` and `interpret` give there is known"
        raise SituError(NO_EVENT_FRAME(method=method, reason=reason))
    for name in (EVENT, DATA, FAILURE):
        if name not in schema.names:
            raise SituError(NO_EVENT_FRAME(method=method, reason=f"it has no column `{name}`"))
    known = (schema[DATA].metadata or {}).get(METADATA)
    if not isinstance(known, Mapping) or "type" not in known:
        reason = "its column `data` does not say of which type it is"
        raise SituError(NO_EVENT_FRAME(method=method, reason=reason))
    return EventFrame(type=str(known["type"]), context=str(known.get("context", ROOT)))


def is_sure(frame: DataFrame) -> bool:
    """Whether every row that did not fail is what the DataFrame says, so that none need be looked at."""
    return bool(frame.__dict__.get(_SURE))


def column_type(schema: StructType, name: str, wanted: str, remedy: str = "") -> DataType:
    """The type of a column; :class:`SituError` with N152 if there is no such column. Case counts as Spark has it."""
    found = [field for field in schema.fields if field.name.casefold() == name.casefold()]
    if not found:
        raise SituError(no_column(name, schema.names, wanted, remedy))
    return found[0].dataType


def no_column(name: str, known: Iterable[str], wanted: str, remedy: str = "") -> Problem:
    return NO_SUCH_COLUMN(column=name, wanted=wanted, nearest=nearest(name, known), remedy=remedy)


def check_session(spark: SparkSession) -> None:
    """:class:`SituError` with N157 if dates and times would mean something else in this session."""
    found = spark.conf.get(TIME_ZONE, "") or ""
    if found not in _UTC:
        raise SituError(SESSION_UNFIT(setting=TIME_ZONE, found=found, needed="UTC"))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Spark SQL over these columns.


def read_frame(node: Read) -> str:
    """How expressions read an event: ``event`` is the envelope, ``data`` the struct."""
    if node.variable == EVENT and node.path and node.path[0] not in _READ_AS_THEY_ARE:
        return f"try_element_at({EVENT}.extensions, {spark_text(node.path[0])})"
    return ".".join(spark_name(name) for name in (node.variable, *node.path))


def arrow_function(run: Callable[..., Any], returns: pa.DataType) -> Callable[..., Column]:
    """A function over Arrow arrays, for columns; to read a type as text, Spark would have to be asked.

    Spark is told that it may answer anything: it then calls it once for a row, whoever reads the parts of its answer.
    """
    # The hints of the function say of which kind it is. Spark's types ask for it once more, and Spark then warns of it.
    made = cast("Any", arrow_udf)(run, from_arrow_type(returns))
    return cast("Callable[..., Column]", made.asNondeterministic())


def envelope_column() -> Column:
    """The envelope for a function over Arrow arrays."""
    return sf.expr(nullable(EVENT, ENVELOPE))


def failure_text(*, stage: str, context: str, type: str, problem: Problem, original: str) -> str:
    """A failure with one error; ``context``, ``type`` and ``original`` are Spark SQL."""
    error = ", ".join(
        f"{spark_text(name)}, {spark_text(value)}"
        for name, value in (
            ("code", problem.code.code),
            ("path", str(problem.values.get("path", ""))),
            ("message", problem.message),
            ("hint", problem.hint),
        )
    )
    parts = {
        "stage": spark_text(stage),
        "context": context,
        "type": type,
        "errors": f"array(named_struct({error}))",
        "original": original,
    }
    return nullable(f"named_struct({', '.join(f'{spark_text(name)}, {parts[name]}' for name in FAILURES)})", FAILURES)


def nullable(text: str, fields: Mapping[str, str] | str) -> str:
    """A struct all of whose fields may be null, as Spark sees it: one that is null itself has none that are not.

    Arrow refuses to hold a struct that is null and has a field that must not be.
    """
    return f"CAST({text} AS {fields if isinstance(fields, str) else struct_type(fields)})"


def json_text(column: str) -> str:
    """A struct as :meth:`situ.lang.types.data_column.DataColumn.layout_json` reads it again."""
    return f"to_json({column}, map('timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSSXXX'))"
