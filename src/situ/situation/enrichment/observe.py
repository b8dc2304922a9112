"""Events → observations: what each event says through each push source, one by one, and as enrichment takes them.

Where events come few at a time, and where the reference looks at them; many are decoded in columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

import pyarrow as pa

from situ.event.instants import microseconds
from situ.expr.columns import below, column
from situ.situation.enrichment.enrich import Enrichment, Observed
from situ.situation.enrichment.rows import BASE, scalar_fields
from situ.situation.meaning.detection import Cause, Observation
from situ.sources.model import Push
from situ.types.table import Types

_MICROSECOND = timedelta(microseconds=1)


class Event(Protocol):
    """An event in root terms, its data as a value of its type."""

    @property
    def type(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def time(self) -> int: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


def observe(events: Iterable[Event], pushes: Mapping[str, Push], types: Types) -> Iterator[Observation]:
    """What these events say. One in which the identity, the value or its time is null says nothing."""
    heard = {name: _names(types, push.event) for name, push in pushes.items()}
    for event in events:
        for name, push in pushes.items():
            if event.type not in heard[name]:
                continue
            identity, value = _said(event.data, push.id), _said(event.data, push.value)
            time: Any = below(event.data, push.time) if push.time else event.time
            if identity is not None and value is not None and time is not None:
                yield Observation(
                    push=name,
                    concept=push.concept,
                    identity=str(identity),
                    attribute=push.attribute,
                    value=value,
                    time=microseconds(time) if push.time else event.time,
                    cause=Cause(event.source, event.id),
                )


def _said(data: Mapping[str, Any], path: Sequence[str]) -> Any:
    """What is at a path; among the bindings of a situation it is the identity behind an alias."""
    listed = below(data, path[:-1]) if len(path) > 1 else None
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        return next((each["id"] for each in listed if each["alias"] == path[-1]), None)
    return below(data, path)


def _names(types: Types, event: str) -> frozenset[str]:
    """An event type and its subtypes."""
    declared = types.event(event)
    return frozenset([event, *(str(each) for each in types.subtypes(declared))] if declared is not None else [event])


def observed(observations: Iterable[Observation], enrichment: Enrichment) -> Iterator[Observed]:
    """Observations as columns, a batch for each push source; those that nobody looks at are left out."""
    together: dict[tuple[str, str, str], list[Observation]] = {}
    for each in observations:
        together.setdefault((each.push, each.concept, each.attribute), []).append(each)
    for (_, concept, attribute), some in together.items():
        if not enrichment.is_wanted(concept, attribute):
            continue
        scalars = enrichment.scalars(concept, attribute)
        base = zip(*((each.time, *each.cause, each.push, 0, each.identity) for each in some), strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(base, BASE, strict=True)]
        arrays += [column([below({attribute: each.value}, s.path) for each in some], s.type) for s in scalars]
        rows = pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*BASE, *scalar_fields(scalars)]))
        yield Observed(concept=concept, attribute=attribute, rows=rows)


def kept(pushes: Mapping[str, Push]) -> dict[str, int]:
    """How long push sources keep their last values, in microseconds; only those that do."""
    return {name: push.keep // _MICROSECOND for name, push in pushes.items() if push.keep}
