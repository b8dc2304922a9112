"""Rows of tables, references and results of Python where an expression reads them: found by functions of the host.

In a transformation each of them is a variable. An engine that joins tables binds it; one that holds them in memory puts
a call in its place, here, with the keys or the value as they are known there, inside of lists as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from situ.expr.overload import Overload
from situ.expr.tree import Apply, Field, Literal, MakeStruct, Node, Read, rebuild
from situ.interpretation.bodies import EVENT
from situ.interpretation.calls import External
from situ.interpretation.model import Conversion, Lookup, State
from situ.types.model import TIMESTAMP, Attribute, Struct, plain
from situ.types.scalars import read_timestamp

Find = Callable[..., Any]
"""The row for the values of the keys, in their order; one more value where there are several as time goes by: the
instant that is meant. Or what a function of Python gives for a value; one that is called for nulls gets it as the
attribute ``value`` of a struct, which is never null."""

NOW = "received"
"""The attribute of the envelope that says when the event came in: what ``time: now`` means."""


def with_rows(node: Node, externals: Mapping[str, External], find: Mapping[str, Find]) -> Node:
    """The expression with a call of ``find`` in the place of each of these variables."""
    calls: dict[str, Apply] = {}

    def change(part: Node) -> Node:
        if not isinstance(part, Read) or part.variable not in find:
            return rebuild(part, change)
        if part.variable not in calls:
            external = externals[part.variable]
            keys = tuple((column, change(key)) for column, key in external.keys)  # which may be read from another row
            argument = change(external.argument) if external.of is None else external.argument
            calls[part.variable] = _call(replace(external, keys=keys, argument=argument), find[part.variable])
        found: Node = calls[part.variable]
        for step in part.path:
            struct = plain(found.type)
            attribute = struct.attribute(step) if isinstance(struct, Struct) else None
            assert attribute is not None  # the checked expression reads it
            found = Field(found, step, attribute.type, optional=attribute.nullable)
        return found

    return change(node) if find else node


def _call(external: External, find: Find) -> Apply:
    of, function = external.of, external.function
    keys = [key for _, key in external.keys] if of is not None else [_argument(external)]
    if isinstance(of, Lookup) and of.as_of:
        keys.append(time_of(function))
    elif isinstance(of, State):
        keys.append(_time("event"))

    def python(texts: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
        return f"{bind(find)}({', '.join(texts)})"

    overload = Overload(
        name=of.name if of is not None else function.name,
        parameters=tuple("element" for _ in keys),
        result="element",
        spark="NULL",  # joins bind the variable instead
        python=python,
        fails=of is None,
        may_be_null=of is not None or function.result.optional,
    )
    return Apply(overload, tuple(keys), of.row if of is not None else function.result.type)


def _argument(external: External) -> Node:
    value = external.argument
    if not external.function.nulls:
        return value
    return MakeStruct((("value", value),), Struct("", (Attribute(name="value", type=value.type, optional=True),)))


def time_of(function: Conversion) -> Node:
    """The instant for which a function looks for rows."""
    return _time(function.time)


def _time(means: str) -> Node:
    if means in ("", "event", "now"):
        return Read(EVENT, (NOW if means == "now" else "time",), TIMESTAMP, optional=(False, False))
    return Literal(read_timestamp(means), TIMESTAMP)
