"""What Spark's Python workers need of a project, and rows of events made of Arrow columns.

`ProjectTerms` travels with a function: the deployment as text, and the tables that it looks up in. A worker compiles
the plan of a deployment once. `event_rows` makes rows for the stages of columns; `failure_array` and `envelope_array`
make columns of what stages give. It knows nothing of Spark.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa

from situ.contexts.model import ROOT
from situ.event.data_reader import read_extensions
from situ.event.row import BadRow, Error, Row
from situ.model import Deployment
from situ.sources.table import Table
from situ.stages.plan import Plan, compile_plan

_INSTANT = pa.timestamp("us", tz="UTC")
ENVELOPE = pa.struct(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("type", pa.string()),
        ("time", _INSTANT),
        ("confidence", pa.float64()),
        ("client", pa.string()),
        ("ad", pa.string()),
        ("received", _INSTANT),
        ("context", pa.string()),
        ("extensions", pa.map_(pa.string(), pa.string())),
    ]
)
ERRORS = pa.list_(
    pa.struct([("code", pa.string()), ("path", pa.string()), ("message", pa.string()), ("hint", pa.string())])
)
FAILURE = pa.struct(
    [
        ("stage", pa.string()),
        ("context", pa.string()),
        ("type", pa.string()),
        ("errors", ERRORS),
        ("original", pa.string()),
    ]
)

_KEPT = 4
_plans: OrderedDict[str, Plan] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectTerms:
    """A deployment as workers get it: everything that they need, and no path of anybody's disk."""

    digest: str
    terms: bytes = field(repr=False)
    tables: Mapping[str, Table] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, deployment: Deployment, tables: Mapping[str, Table]) -> ProjectTerms:
        return cls(
            digest=f"{deployment.digest}/{deployment.version}",
            terms=json.dumps(deployment.as_json()).encode(),
            tables=tables,
        )

    def plan(self) -> Plan:
        """The plan of the deployment, compiled once in a process, with these tables."""
        with _lock:
            plan = _plans.get(self.digest)
            if plan is None:
                plan = _plans[self.digest] = compile_plan(Deployment.from_json(json.loads(self.terms)))
                while len(_plans) > _KEPT:
                    _plans.popitem(last=False)
            _plans.move_to_end(self.digest)
        plan.interpretation.rows.tables = self.tables
        return plan


def now() -> int:
    """The clock, in microseconds."""
    return time.time_ns() // 1000


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Columns → rows. An event has no place in a log here: it is told apart from others by its place in the batch.


def event_rows(events: pa.StructArray, texts: Sequence[bytes | None], received: int) -> list[Row | None]:
    """Rows of envelopes and canonical texts of their data; None where either is null.

    ``received`` is when those came of which nothing else is said.
    """
    clock = {name: events.field(name).cast(pa.int64()).to_pylist() for name in ("time", "received")}
    names = ("id", "source", "type", "confidence", "client", "ad", "context", "extensions")
    columns = {name: events.field(name).to_pylist() for name in names}
    there = events.is_valid().to_pylist()
    rows: list[Row | None] = []
    for place, text in enumerate(texts):
        if text is None or not there[place]:
            rows.append(None)
            continue
        came = clock["received"][place]
        time = clock["time"][place]
        rows.append(
            Row(
                pos=place + 1,
                client=columns["client"][place] or "",
                incarnation=1,
                seq=place + 1,
                context=columns["context"][place] or ROOT,
                recv=received if came is None else came,
                id=columns["id"][place] or "",
                source=columns["source"][place] or "",
                type=columns["type"][place] or "",
                time=received if time is None else time,
                ad=columns["ad"][place] or "",
                confidence=columns["confidence"][place],
                ext=_members(columns["extensions"][place]),
                data=text,
            )
        )
    return rows


def _members(extensions: Iterable[tuple[str, str]] | None) -> str:
    """As rows have them: members of a JSON object."""
    return msgspec.json.encode(dict(extensions))[1:-1].decode() if extensions else ""


# ── rows → columns ──


def envelope_array(rows: Iterable[Row | None], context: str, received: Iterable[int | None]) -> pa.Array:
    """The column ``event``; ``received`` is what the DataFrame says of each."""
    return pa.array(
        [None if row is None else _envelope(row, context, came) for row, came in zip(rows, received, strict=True)],
        ENVELOPE,
    )


def _envelope(row: Row, context: str, received: int | None) -> dict[str, Any]:
    return {
        "id": row.id,
        "source": row.source,
        "type": row.type,
        "time": row.time,
        "confidence": row.confidence,
        "client": row.client,
        "ad": row.ad or None,
        "received": received,
        "context": context,
        "extensions": list(read_extensions(row).items()) if row.ext else [],
    }


def failure_array(failures: Iterable[Mapping[str, Any] | None]) -> pa.Array:
    """The column ``failure``."""
    return pa.array(list(failures), FAILURE)


def failure_of_row(bad: BadRow, context: str, type: str) -> dict[str, Any]:
    """What became of an event that a stage refused."""
    return failure(bad.stage, context, type, bad.errors, bad.original.decode(errors="replace"))


def failure(stage: str, context: str, type: str, errors: Iterable[Error], original: str | None) -> dict[str, Any]:
    return {
        "stage": stage,
        "context": context,
        "type": type,
        "errors": [dict(zip(("code", "path", "message", "hint"), each, strict=True)) for each in errors],
        "original": original,
    }
