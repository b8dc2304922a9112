"""Rows of tables where an expression reads them: found by functions that the host gives, one for each place.

In a transformation a lookup is a variable. An engine that joins tables binds it; one that holds them in memory puts a
call in its place, here, with the keys as they are known there, inside of lists as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from situ.expr.overload import Overload
from situ.expr.tree import Apply, Field, Literal, Node, Read, rebuild
from situ.interpretation.bodies import EVENT
from situ.interpretation.calls import External
from situ.interpretation.model import Lookup
from situ.types.model import TIMESTAMP, Struct, plain
from situ.types.scalars import read_timestamp

Find = Callable[..., Mapping[str, Any] | None]
"""The row for the values of the keys, in their order; one more value where the table has several as time goes by: the
instant that is meant."""

NOW = "received"
"""The attribute of the envelope that says when the event came in: what ``time: now`` means."""


def with_rows(node: Node, externals: Mapping[str, External], find: Mapping[str, Find]) -> Node:
    """The expression with a call of ``find`` in the place of each of these variables."""
    calls = {name: _call(externals[name], found) for name, found in find.items()}

    def change(part: Node) -> Node:
        if not isinstance(part, Read) or part.variable not in calls:
            return rebuild(part, change)
        found: Node = calls[part.variable]
        for step in part.path:
            struct = plain(found.type)
            attribute = struct.attribute(step) if isinstance(struct, Struct) else None
            assert attribute is not None  # the checked expression reads it
            found = Field(found, step, attribute.type, optional=attribute.nullable)
        return found

    return change(node) if calls else node


def _call(external: External, find: Find) -> Apply:
    assert isinstance(external.of, Lookup)
    keys = [key for _, key in external.keys]
    if external.of.as_of:
        keys.append(_time(external.function.time))

    def python(texts: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
        return f"{bind(find)}({', '.join(texts)})"

    overload = Overload(
        name=external.of.name,
        parameters=tuple("element" for _ in keys),
        result="element",
        spark="NULL",  # joins bind the variable instead
        python=python,
        may_be_null=True,
    )
    return Apply(overload, tuple(keys), external.of.row)


def _time(means: str) -> Node:
    if means in ("", "event", "now"):
        return Read(EVENT, (NOW if means == "now" else "time",), TIMESTAMP, optional=(False, False))
    return Literal(read_timestamp(means), TIMESTAMP)
