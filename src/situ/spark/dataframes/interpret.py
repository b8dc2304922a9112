"""Stage interpret on DataFrames: events of one type in the terms of another context, and why some have none there.

A transformation that needs nothing but the event is an expression of Spark (`_to_columns`): it composes with the query
of the user, and no Python runs. A row of a table that it looks up is joined. One that calls functions of Python or
looks up what no join finds, and one that is more than Spark can take, runs in a function over Arrow arrays, by the
converters of engines (`convert_rows`). One that remembers other events runs nowhere here: rows of a DataFrame have no
order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from situ.contexts.model import ROOT, Direction
from situ.contexts.transform.columns import TableJoin, spark_expression, spark_joins
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.transformation import Transformation
from situ.event.data_reader import read_envelope
from situ.event.row import OUTBOUND, BadRow, Error, Row, errors_of
from situ.lang.catalogue import EVENT_FAILED, FRAME_EVENT_UNFIT, NOT_ON_DATAFRAMES, ROW_FAILED
from situ.lang.expr.emit.spark import SparkExpression
from situ.lang.expr.overload import spark_name, spark_text
from situ.lang.expr.runtime import FAILURES as CONVERSION_FAILURES
from situ.lang.expr.tree import Read
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.lang.types.arrow_schema import arrow_type
from situ.lang.types.data_column import DataColumn
from situ.lang.types.json_codec import decoder
from situ.lang.types.layout import spark_type
from situ.sources.table import Table
from situ.spark.dataframes import worker
from situ.spark.dataframes.decode import explain_columns
from situ.spark.dataframes.frame import (
    DATA,
    ENVELOPE,
    EVENT,
    FAILURE,
    FAILURES,
    OTHERS,
    EventFrame,
    arrow_function,
    envelope_column,
    failure_text,
    is_sure,
    json_text,
    nullable,
    read_frame,
    without,
)
from situ.spark.dataframes.worker import ProjectTerms, event_rows, failure_array, failure_of_row, now
from situ.stages.decode import STAGE as DECODE
from situ.stages.interpret import STAGE, Interpretation

_MADE, _ROW = "_situ_made", "_situ_row"
_BUT_MADE = f"* EXCEPT ({EVENT}, {DATA}, {FAILURE}, {_MADE})"

Tables = Callable[[str], Table]
"""The table of a pull source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameStep:
    """One conversion of a DataFrame: what it has, what it gets, and the form that runs."""

    way: Transformation
    before: EventFrame
    after: EventFrame
    sql: SparkExpression | None
    """None: it runs over Arrow arrays."""
    joins: Mapping[str, TableJoin] = field(default_factory=dict)
    """The rows of tables that the expression reads, by the columns it reads them from."""

    @property
    def form(self) -> str:
        """Where it runs, in a word: ``catalyst`` or ``arrow``."""
        return "catalyst" if self.sql is not None else "arrow"

    @property
    def stage(self) -> str:
        return STAGE if self.way.direction is Direction.IN else OUTBOUND


def frame_step(way: Transformation, before: EventFrame, context: str) -> FrameStep:
    """How events take this way; :class:`SituError` with N156 if they cannot on a DataFrame."""
    if way.execution == "stateful":
        what = f"The conversion of `{way.source.name}` {way.direction.value} `{way.context}`"
        remedy = 'Let an engine convert these events, and read what a subscription gets of them: `format("situ")`.'
        raise SituError(NOT_ON_DATAFRAMES(what=what, reason="it remembers other events", remedy=remedy))
    after = EventFrame(type=way.target.name, context=context)
    rows = {variable: f"{_ROW}{number}" for number, variable in enumerate(way.externals)}

    def read(node: Read) -> str:
        return read_frame(replace(node, variable=rows.get(node.variable, node.variable)))

    sql = spark_expression(way, read)
    found = spark_joins(way, read) if sql is not None else None
    joins = {rows[each.variable]: each for each in found or ()}
    return FrameStep(way=way, before=before, after=after, sql=sql, joins=joins)


def interpret_frame(frame: DataFrame, step: FrameStep, terms: Callable[[], ProjectTerms], tables: Tables) -> DataFrame:
    """The events of a DataFrame, converted; those that cannot be have a failure instead of data.

    ``terms`` gives what workers need, where Python runs, ``tables`` those that rows are joined of.
    """
    made = _to_columns(frame, step, tables) if step.sql is not None else _over_arrow(frame, step, terms())
    return step.after.put_on(made, sure=True)


def _is_of_frame(kind: EventFrame) -> str:
    """Whether a row is what its DataFrame says; somebody may have put two DataFrames into one."""
    same = f"{EVENT}.type = {spark_text(kind.type)} AND {EVENT}.context = {spark_text(kind.context)}"
    return f"coalesce({same}, FALSE)"


def _guard(frame: DataFrame, step: FrameStep) -> str:
    """What becomes of rows that failed before, and of those that are of another kind.

    To look at the kind of a row costs the whole envelope, with an id that is a hash, where nobody else asks for it.
    """
    failed = f"WHEN {FAILURE} IS NOT NULL THEN {FAILURE}"
    if is_sure(frame):
        return failed
    expected = f"events of type `{step.before.type}` in the terms of `{step.before.context}`"
    problem = FRAME_EVENT_UNFIT(found="an event of another type, or in other terms", expected=expected)
    text = failure_text(
        stage=step.stage, context=f"{EVENT}.context", type=f"{EVENT}.type", problem=problem, original=json_text(DATA)
    )
    return f"{failed} WHEN NOT {_is_of_frame(step.before)} THEN {text}"


def _envelope(step: FrameStep) -> str:
    """The envelope of what was converted."""
    values = {"type": spark_text(step.after.type), "context": spark_text(step.after.context)}
    parts = ", ".join(f"{spark_text(name)}, {values.get(name, f'{EVENT}.{name}')}" for name in ENVELOPE)
    return f"CASE WHEN {FAILURE} IS NULL THEN named_struct({parts}) ELSE {EVENT} END"


def _joined(frame: DataFrame, step: FrameStep, tables: Tables) -> DataFrame:
    """With a column for each row that is looked up, null where there is none."""
    for row, join in step.joins.items():
        table = tables(join.lookup.source)
        table.index(tuple(join.keys))  # it has no key twice: a row must not become two
        rows = DataColumn(join.lookup.row, step.way.types).of_values(table.rows)
        found = frame.sparkSession.createDataFrame(pa.table({row: rows}))
        keys = {column: f"{row}_{number}" for number, column in enumerate(join.keys)}
        keyed = found.selectExpr(row, *(f"{row}.{spark_name(column)} AS {key}" for column, key in keys.items()))
        same = " AND ".join(f"({text}) = {keys[column]}" for column, text in join.keys.items())
        joined = frame.join(sf.broadcast(keyed), sf.expr(same), "left")
        frame = joined.selectExpr(f"* EXCEPT ({', '.join(keys.values())})")
    return frame


def _to_columns(frame: DataFrame, step: FrameStep, tables: Tables) -> DataFrame:
    """By an expression of Spark, in two steps: what fails is known before anything is made of the others."""
    assert step.sql is not None
    way = step.way
    problem = ROW_FAILED(stage=step.stage, target=f"an event of type `{way.target.name}`")
    failure = failure_text(
        stage=step.stage,
        context=spark_text(step.before.context if way.direction is Direction.IN else step.after.context),
        type=spark_text(way.source.name),
        problem=problem,
        original=json_text(DATA),
    )
    fails = f" WHEN {step.sql.fails} THEN {failure}" if step.sql.fails else ""
    failed = f"CASE {_guard(frame, step)}{fails} END AS {FAILURE}"
    checked = _joined(frame, step, tables).selectExpr(OTHERS, EVENT, DATA, failed)
    value = DATA if way.is_identity else nullable(step.sql.value, spark_type(way.target, way.targets))
    others = f"* EXCEPT ({', '.join((EVENT, DATA, FAILURE, *step.joins))})"
    return checked.selectExpr(
        others, f"{_envelope(step)} AS {EVENT}", f"CASE WHEN {FAILURE} IS NULL THEN {value} END AS {DATA}", FAILURE
    )


def _over_arrow(frame: DataFrame, step: FrameStep, terms: ProjectTerms) -> DataFrame:
    """By the converters of engines, in a function over Arrow arrays."""
    way = step.way
    gives = pa.struct([(DATA, arrow_type(way.target, way.targets)), (FAILURE, worker.FAILURE)])
    convert = arrow_function(_converting(terms, step.before, step.after), gives)
    checked = frame.selectExpr(OTHERS, EVENT, DATA, f"CASE {_guard(frame, step)} END AS {FAILURE}")
    given = sf.expr(f"CASE WHEN {FAILURE} IS NULL THEN {DATA} END")
    whole = checked.select("*", convert(envelope_column(), given).alias(_MADE))
    joined = whole.selectExpr(
        _BUT_MADE, EVENT, f"{_MADE}.{DATA} AS {DATA}", f"coalesce({FAILURE}, {_MADE}.{FAILURE}) AS {FAILURE}"
    )
    return joined.selectExpr(OTHERS, f"{_envelope(step)} AS {EVENT}", DATA, FAILURE)


def _converting(terms: ProjectTerms, before: EventFrame, after: EventFrame) -> Any:
    def run(events: pa.Array, data: pa.Array) -> pa.Array:
        interpretation = terms.plan().interpretation
        source, target = (_column(interpretation, kind) for kind in (before, after))
        texts, failures = convert_rows(interpretation, event_rows(events, source.texts(data), now()), before, after)
        return pa.StructArray.from_arrays([target.of_texts(texts), failure_array(failures)], [DATA, FAILURE])

    return run


def _column(interpretation: Interpretation, kind: EventFrame) -> DataColumn:
    context = interpretation.contexts.get(kind.context)
    assert context is not None, "the driver has looked it up"
    struct = context.types.event(kind.type)
    assert struct is not None, "the driver has looked it up"
    return DataColumn(struct, context.types)


def convert_rows(
    interpretation: Interpretation, rows: Sequence[Row | None], before: EventFrame, after: EventFrame
) -> tuple[list[bytes | None], list[Mapping[str, Any] | None]]:
    """The data of rows in the terms of another context, or what is wrong with them; None stays None."""
    present = [row for row in rows if row is not None]
    if before.context == ROOT:
        found = iter(_out_of_root(interpretation, present, after.context))
        said = after.context
    else:
        stamped = interpretation.version_of(before.context)
        for row in present:
            row.context = stamped
        found = iter(interpretation.into_root(list[Row | BadRow](present)))
        said = before.context
    texts: list[bytes | None] = []
    failures: list[Mapping[str, Any] | None] = []
    for each in rows:
        made = next(found) if each is not None else None
        texts.append(made.data if isinstance(made, Row) else None)
        failures.append(failure_of_row(made, said, before.type) if isinstance(made, BadRow) else None)
    return texts, failures


def _out_of_root(interpretation: Interpretation, rows: Sequence[Row], context: str) -> Iterable[Row | BadRow]:
    """Each in the terms of a context; functions of Python are called for all of them at once."""
    ways = ((row, interpretation.converter(context, Direction.OUT, row.type)) for row in rows)
    calls = (partial(way.text, read_envelope(row), row.data) for row, way in ways if way is not None)
    with interpretation.python.together(calls if interpretation.calls_python else ()):
        for row in rows:
            made = interpretation.in_terms(row, context)
            if isinstance(made, tuple):
                yield replace(row, type=made[0], data=made[1])
            else:
                yield row if made is None else made


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Dead letters. Spark says that a row fails; which value is to blame is found by the code of engines, from what the
# failure kept. Nobody asks for that before he looks at dead letters, and then only of these.


def dead_letters(frame: DataFrame, terms: ProjectTerms) -> DataFrame:
    """The rows that failed: the columns of the user, the envelope, and a column for each field of the failure."""
    explain = arrow_function(_explaining(terms), worker.ERRORS)
    bad = without(frame, FAILURES).where(f"{FAILURE} IS NOT NULL")
    bad = bad.select("*", explain(envelope_column(), sf.col(FAILURE)).alias(_MADE))
    fields = (f"{_MADE} AS errors" if name == "errors" else f"{FAILURE}.{name} AS {name}" for name in FAILURES)
    return bad.selectExpr(_BUT_MADE, EVENT, *fields)


def _explaining(terms: ProjectTerms) -> Any:
    def run(events: pa.Array, failures: pa.Array) -> pa.Array:
        interpretation = terms.plan().interpretation
        clock = now()
        return pa.array(
            [
                _errors(interpretation, event, failure, clock)
                for event, failure in zip(events.to_pylist(), failures.to_pylist(), strict=True)
            ],
            worker.ERRORS,
        )

    return run


def _errors(interpretation: Interpretation, event: Any, failure: Any, clock: int) -> list[Any]:
    errors: list[Any] = failure["errors"]
    if [each["code"] for each in errors] != [ROW_FAILED.code]:
        return errors
    try:
        found = _explained(interpretation, event, failure, clock)
    except Exception as error:  # noqa: BLE001 - of this letter, and of no other
        found = errors_of([EVENT_FAILED(stage=failure["stage"], what=type(error).__name__, id="dead_letters")])
    return [dict(zip(("code", "path", "message", "hint"), each, strict=True)) for each in found] or errors


def _explained(interpretation: Interpretation, event: Any, failure: Any, clock: int) -> tuple[Error, ...]:
    stage, context, type = failure["stage"], failure["context"], failure["type"]
    source = EventFrame(type=type, context=ROOT if stage == OUTBOUND else context)
    column = _column(interpretation, source)
    rows = event_rows(pa.array([event], worker.ENVELOPE), [b"{}"], clock)
    row = rows[0]
    assert row is not None
    if stage == DECODE:
        time = None if event["time"] is None else row.time
        return explain_columns(column, failure["original"], time, row.recv, interpretation)
    direction = Direction.OUT if stage == OUTBOUND else Direction.IN
    converter = interpretation.converter(context, direction, type)
    assert converter is not None
    return _faults(converter, row, column, failure["original"])


def _faults(converter: Converter, row: Row, column: DataColumn, original: str) -> tuple[Error, ...]:
    value = decoder(column.struct, column.types)(column.layout_json(original)).value
    try:
        converter.data(read_envelope(row), value)
    except CONVERSION_FAILURES:
        return errors_of(converter.faults(read_envelope(row), value))
    return ()
