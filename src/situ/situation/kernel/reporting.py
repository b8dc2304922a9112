"""Matches that hold → detections: texts in place of codes and references, each detection once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from situ.situation.detection import Cause, Detection
from situ.situation.kernel.causes import Origins
from situ.situation.kernel.identities import Identities
from situ.situation.kernel.table import Ints, Table

_CAUSES = pa.list_(pa.struct([("source", pa.string()), ("id", pa.string()), ("pos", pa.int64())]))


@dataclass(frozen=True, slots=True)
class Detected:
    """What a step gives: detections as columns, and how many rows came too late.

    Columns: ``id``, ``time``, ``activation``, ``causes``, and ``@X`` for each alias, null where it is not bound.
    """

    batch: pa.RecordBatch
    late: int = 0


def schema_of(aliases: Iterable[str]) -> pa.Schema:
    return pa.schema(
        [("id", pa.string()), ("time", pa.int64()), ("activation", pa.int64()), ("causes", _CAUSES)]
        + [(f"@{name}", pa.string()) for name in aliases]
    )


def detections_of(policy: str, detected: Detected) -> list[Detection]:
    """The rows of detections as objects, in the order they are reported."""
    return [
        Detection(
            policy=policy,
            bindings=tuple(
                sorted((name[1:], text) for name, text in row.items() if name.startswith("@") and text is not None)
            ),
            causes=tuple(Cause(each["source"], each["id"]) for each in row["causes"]),
            positions=tuple(each["pos"] for each in row["causes"]),
            time=row["time"],
            activation=row["activation"],
        )
        for row in detected.batch.to_pylist()
    ]


def report(
    policy: str, matches: Table, aliases: list[str], identities: Identities, origins: Origins, known: Mapping[str, int]
) -> dict[str, Detection]:
    """The detections of matches by their ids, in the order of time and id; without those that are known already."""
    found: dict[str, Detection] = {}
    bindings = _bindings(matches, aliases, identities)
    causes = _causes(matches, origins)
    times, activations = matches["report"].tolist(), matches.time.tolist()
    for row in np.lexsort((matches.time, matches["report"])).tolist():
        detection = Detection(
            policy=policy,
            bindings=tuple((name, texts[row]) for name, texts in bindings if texts[row] is not None),
            causes=tuple(causes[row]),
            positions=tuple(causes[row].values()),
            time=times[row],
            activation=activations[row],
        )
        id = detection.id
        if id not in known:
            found.setdefault(id, detection)
    return dict(sorted(found.items(), key=lambda each: (each[1].time, each[0])))


def _bindings(matches: Table, aliases: list[str], identities: Identities) -> list[tuple[str, list[str | None]]]:
    texts = identities.texts
    return [
        (name, [texts[code] if code >= 0 else None for code in matches[f"@{name}"].tolist()])
        for name in sorted(aliases)
    ]


def _causes(matches: Table, origins: Origins) -> list[dict[Cause, int]]:
    """The causes of each match in order, and where they are in the root log."""
    slots = [column for name, column in matches.columns.items() if name.startswith("c")]
    references: Ints = np.stack(slots, axis=1)
    different = np.unique(references[references >= 0])
    named = {
        reference: (Cause(source, id), pos)
        for reference, (source, id, _, pos) in zip(different.tolist(), origins.of(different), strict=True)
    }
    return [dict(sorted(named[each] for each in row if each >= 0)) for row in references.tolist()]


def _located(detection: Detection) -> list[dict[str, str | int]]:
    located = zip(detection.causes, detection.positions, strict=True)
    return [{"source": cause.source, "id": cause.id, "pos": pos} for cause, pos in located]


def as_columns(found: Mapping[str, Detection], aliases: list[str]) -> pa.RecordBatch:
    detections = list(found.values())
    bound = [dict(each.bindings) for each in detections]
    return pa.record_batch(
        [
            pa.array(list(found), pa.string()),
            pa.array([each.time for each in detections], pa.int64()),
            pa.array([each.activation for each in detections], pa.int64()),
            pa.array([_located(each) for each in detections], _CAUSES),
            *(pa.array([each.get(name) for each in bound], pa.string()) for name in aliases),
        ],
        schema=schema_of(aliases),
    )
