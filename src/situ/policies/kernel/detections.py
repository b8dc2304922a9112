"""Matches that hold → detections: texts in place of codes and references, each detection once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from situ.lang.expr.limits import Remembering, once
from situ.policies.kernel.state import IdentityCodes, Origins
from situ.policies.kernel.table import Ints, SortedTable
from situ.policies.model import Cause, Detection

_CAUSES = pa.list_(pa.struct([("source", pa.string()), ("id", pa.string()), ("pos", pa.int64())]))


class DetectionBatch(Remembering):
    """What a step gives: detections, as objects or as columns, each made when asked for; and how many rows were late.

    Columns: ``id``, ``time``, ``activation``, ``causes``, and ``@X`` for each alias, null where it is not bound.
    """

    __slots__ = ("_given", "late")

    def __init__(self, given: pa.RecordBatch | ReportRows, late: int = 0) -> None:
        self._given = given
        self.late = late

    def __len__(self) -> int:
        return len(self._given)

    @once
    def batch(self) -> pa.RecordBatch:
        return self._given.columns if isinstance(self._given, ReportRows) else self._given

    def of(self, policy: str) -> list[Detection]:
        """As objects, in the order they are reported."""
        if isinstance(self._given, ReportRows):
            return self._given.detections(policy)
        return [_detection(policy, row) for row in self._given.to_pylist()]


@lru_cache(maxsize=1024)
def schema_of(aliases: tuple[str, ...]) -> pa.Schema:
    return pa.schema(
        [("id", pa.string()), ("time", pa.int64()), ("activation", pa.int64()), ("causes", _CAUSES)]
        + [(f"@{name}", pa.string()) for name in aliases]
    )


def detections_of(policy: str, detected: DetectionBatch) -> list[Detection]:
    """The detections of a policy as objects, in the order they are reported."""
    return detected.of(policy)


def _detection(policy: str, row: Mapping[str, Any]) -> Detection:
    return Detection(
        policy=policy,
        bindings=tuple(
            sorted((name[1:], text) for name, text in row.items() if name.startswith("@") and text is not None)
        ),
        causes=tuple(Cause(each["source"], each["id"]) for each in row["causes"]),
        positions=tuple(each["pos"] for each in row["causes"]),
        time=row["time"],
        activation=row["activation"],
    )


class DetectionReport:
    """Detections of one step, each once: rows of matches by the ids of their detections."""

    def __init__(
        self, policy: str, aliases: tuple[str, ...], matches: SortedTable, identities: IdentityCodes, origins: Origins
    ) -> None:
        self._aliases = aliases
        self._matches = matches
        self._texts = {name: _texts(matches[f"@{name}"], identities) for name in aliases}
        slots = [column for name, column in matches.columns.items() if name.startswith("c")]
        references: Ints = np.stack(slots, axis=1)
        different = np.unique(references[references >= 0])
        self._events = dict(zip(different.tolist(), origins.of(different), strict=True))
        self._written = {each: _json([source, id]) for each, (source, id, _, _) in self._events.items()}
        self._sorted = {each: (source, id) for each, (source, id, _, _) in self._events.items()}
        self._head = f"[{_json(policy)},"
        self._rows = self._found(references)

    def _found(self, references: Ints) -> dict[str, tuple[int, list[int]]]:
        """Of the same detection the earliest report counts."""
        bindings = self._bindings()
        given = references.tolist()
        found: dict[str, tuple[int, list[int]]] = {}
        for row in np.lexsort((self._matches.time, self._matches["report"])).tolist():
            causes = self._causes(given[row])
            found.setdefault(self._id(bindings[row], causes), (row, causes))
        return found

    def _causes(self, references: list[int]) -> list[int]:
        """One reference for each event, in the order of events."""
        events = {self._sorted[each]: each for each in references if each >= 0}
        return [events[event] for event in sorted(events)]

    def _bindings(self) -> list[str]:
        """Of each match, as JSON."""
        parts = []
        for name in sorted(self._aliases):
            head = f"{_json(name)}:"
            texts = self._texts[name]
            written = {text: head + _json(text) for text in set(texts) if text is not None}
            parts.append([written.get(text) for text in texts])  # type: ignore[arg-type]
        return [f"{{{','.join(filter(None, row))}}}" for row in zip(*parts, strict=True)]

    def _id(self, bindings: str, causes: list[int]) -> str:
        """That of :attr:`Detection.id`, put together from parts that are written once."""
        written = self._written
        text = f"{self._head}{bindings},[{','.join([written[each] for each in causes])}]]"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def new(self, known: Mapping[str, int]) -> dict[str, int]:
        """The ids of those that are not known yet, in the order of time and id; and their activations."""
        reports, activations = self._matches["report"].tolist(), self._matches.time.tolist()
        ids = [id for id in self._rows if id not in known]
        ids.sort(key=lambda id: (reports[self._rows[id][0]], id))
        return {id: activations[self._rows[id][0]] for id in ids}

    def detections(self, policy: str, ids: Iterable[str]) -> list[Detection]:
        """These detections as objects."""
        reports, activations = self._matches["report"].tolist(), self._matches.time.tolist()
        found = []
        for row, causes in (self._rows[id] for id in ids):
            bound = ((name, self._texts[name][row]) for name in sorted(self._aliases))
            events = [self._events[each] for each in causes]
            found.append(
                Detection(
                    policy=policy,
                    bindings=tuple((name, text) for name, text in bound if text is not None),
                    causes=tuple(Cause(source, id) for source, id, _, _ in events),
                    positions=tuple(pos for _, _, _, pos in events),
                    time=reports[row],
                    activation=activations[row],
                )
            )
        return found

    def columns(self, ids: Iterable[str]) -> pa.RecordBatch:
        """These detections as columns."""
        ids = list(ids)
        chosen = [self._rows[id] for id in ids]
        rows = np.array([row for row, _ in chosen], np.int64)
        bound = [pa.array([self._texts[name][row] for row, _ in chosen], pa.string()) for name in self._aliases]
        times = (pa.array(self._matches["report"][rows]), pa.array(self._matches.time[rows]))
        causes = self._located([causes for _, causes in chosen])
        return pa.record_batch([pa.array(ids, pa.string()), *times, causes, *bound], schema=schema_of(self._aliases))

    def _located(self, causes: list[list[int]]) -> pa.Array:
        ends = np.cumsum([0, *map(len, causes)])
        events = [self._events[each] for some in causes for each in some]
        columns = [
            pa.array([event[0] for event in events], pa.string()),
            pa.array([event[1] for event in events], pa.string()),
            pa.array([event[3] for event in events], pa.int64()),
        ]
        structs = pa.StructArray.from_arrays(columns, fields=list(_CAUSES.value_type))
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs, type=_CAUSES)


@dataclass(frozen=True, slots=True)
class ReportRows:
    """Some of the detections of a report."""

    report: DetectionReport
    ids: Sequence[str]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def columns(self) -> pa.RecordBatch:
        return self.report.columns(self.ids)

    def detections(self, policy: str) -> list[Detection]:
        return self.report.detections(policy, self.ids)


def _texts(codes: Ints, identities: IdentityCodes) -> list[str | None]:
    texts = identities.texts
    return [texts[code] if code >= 0 else None for code in codes.tolist()]


_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
