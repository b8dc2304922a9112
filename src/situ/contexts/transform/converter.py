"""Converters: transformations compiled to one Python function each, which looks nothing up while it runs.

``data`` converts values, ``text`` canonical JSON. Where an event cannot be converted, both raise one of
:data:`situ.lang.expr.runtime.FAILURES`, as soon as the first place fails; ``faults`` then finds all of them, slowly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from situ.contexts.function_bodies import DATA, EVENT
from situ.contexts.model import MissingValue, ReferenceState, TableLookup
from situ.contexts.transform.function_calls import ExternalValue, FindRow, time_of, with_rows
from situ.contexts.transform.json_struct import PatchPlan, StructPlan
from situ.contexts.transform.json_text import NoTextPlan, TextPlan, with_copies
from situ.contexts.transform.steps import StepFault, faults
from situ.contexts.transform.transformation import Transformation
from situ.lang.catalogue import FUNCTION_FAILED, NO_REFERENCE, NO_ROW, REQUIRED_MISSING
from situ.lang.expr.emit.python import PythonFunction, compile_value
from situ.lang.expr.format import print_literal
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.simplify import simplify
from situ.lang.expr.tree import Node, Read, walk
from situ.lang.problems import Problem
from situ.lang.quantities import format_duration
from situ.lang.types.json_codec import decoder, encoder
from situ.lang.types.model import Struct

_encode = msgspec.json.Encoder().encode
_NONE: Mapping[str, Any] = MappingProxyType({})
_MOST_GIVEN, _MOST_SHOWN = 3, 60
_Text = Callable[[Mapping[str, Any], bytes, Mapping[str, Any]], bytes]


class Converter:
    """Converts events of one type. ``event`` is the envelope as filters see it, ``rows`` what the host has bound.

    ``find`` gives functions that find rows of tables, by the name of the variable; those need not be bound then.
    """

    __slots__ = (
        "_call",
        "_find",
        "_node",
        "_quick",
        "_structs",
        "_text",
        "function",
        "is_identity",
        "needs_envelope",
        "reads_envelope",
        "transformation",
    )

    def __init__(self, transformation: Transformation, find: Mapping[str, FindRow] = _NONE) -> None:
        self.transformation = transformation
        self._find = find
        self._node = with_rows(transformation.node, transformation.externals, find)
        self.function: PythonFunction = compile_value(simplify(self._node), self._parameters)
        self._call = self.function.call
        self._text: _Text | None = None
        self._quick: Callable[..., bytes] | None = None
        """The compiled function alone, if nothing has to be bound for it."""
        self._structs: StructPlan | UnsetType | None = UNSET
        # Asked for every event; the transformation would look through its tree each time.
        self.is_identity = transformation.is_identity
        self.needs_envelope = bool(transformation.externals) or transformation.reads_envelope
        self.reads_envelope = any(isinstance(part, Read) and part.variable == EVENT for part in walk(self._node))
        """Whether anything of it is read, also to find rows: nobody need make it otherwise."""

    @property
    def _parameters(self) -> tuple[str, ...]:
        return (EVENT, DATA, *self._bound)

    @property
    def _bound(self) -> tuple[str, ...]:
        return tuple(name for name in self.transformation.externals if name not in self._find)

    def data(self, event: Mapping[str, Any], data: Mapping[str, Any], rows: Mapping[str, Any] = _NONE) -> Any:
        """The data of the target, as values of its type."""
        if not rows:
            return self._call(event, data, *(None for _ in self._bound))
        return self._call(event, data, *(rows.get(name) for name in self._bound))

    def text(self, event: Mapping[str, Any], text: bytes, rows: Mapping[str, Any] = _NONE) -> bytes:
        """The canonical text of the target's data, given that of the source's."""
        if self._quick is not None:
            return self._quick(event, text)
        if self._text is None:
            self._text = self._text_function()
        return self._text(event, text, rows)

    @property
    def structs(self) -> StructPlan | None:
        """What makes of the struct that an event was read into that of the target; None if that takes more."""
        if self._structs is UNSET:
            self._structs = self._struct_plan() if self._is_of_data else None
        return self._structs

    @property
    def _is_of_data(self) -> bool:
        """Whether it asks for nothing but the data of the event, and rows that these lead to."""
        externals = self.transformation.externals.values()
        return not (self.reads_envelope or self._bound) and all(isinstance(each.of, TableLookup) for each in externals)

    def _struct_plan(self) -> StructPlan | None:
        made = self.transformation
        with suppress(NoTextPlan):
            node = with_copies(self._node, made.source, made.types)
            return StructPlan(node, made.source, made.target, made.types, self._parameters)
        return None

    def faults(
        self, event: Mapping[str, Any], data: Mapping[str, Any], rows: Mapping[str, Any] = _NONE
    ) -> tuple[Problem, ...]:
        """Every place of the target that this event gives no value for, in its order; empty if it converts."""
        if self.transformation.through is not None:
            first, second = (Converter(each, self._find) for each in self.transformation.through)
            if problems := first.faults(event, data, rows):
                return problems
            between = {**event, "type": second.transformation.source.name} if event else event
            return second.faults(between, first.data(event, data, rows), rows)
        values = {name: rows.get(name) for name in self._bound}
        values |= {EVENT: event, DATA: data}
        return tuple(map(self._problem, faults(self.transformation.step, values, self._evaluate)))

    def _evaluate(self, node: Node, values: Mapping[str, Any]) -> Any:
        return interpret(with_rows(node, self.transformation.externals, self._find), values)

    def text_faults(
        self, event: Mapping[str, Any], text: bytes, rows: Mapping[str, Any] = _NONE
    ) -> tuple[Problem, ...]:
        """As :meth:`faults`, of the text of the source's data."""
        read = decoder(self.transformation.source, self.transformation.types, "keep")
        decoded = read(msgspec.json.decode(text))
        return decoded.problems or self.faults(event, decoded.value, rows)

    def _problem(self, fault: StepFault) -> Problem:
        if fault.missing or fault.step is None:
            return REQUIRED_MISSING(path=fault.path, type=str(fault.type))
        function, rule = fault.step.conversion, fault.step.rule
        context = self.transformation.context
        if function is not None and function.missing in (MissingValue.ERROR, MissingValue.HOLD):
            for external in self.transformation.externals.values():
                row = Read(external.variable, (), Struct("", ()))
                asked = any(isinstance(part, Read) and part.variable == row.variable for part in walk(fault.step.node))
                if asked and external.of is not None and self._is_missing(row, fault):
                    return self._missing(external, fault, context)
        return FUNCTION_FAILED(
            path=fault.path or "$",
            function=fault.step.function,
            reason=f"{fault.reason or 'no value'}{_given(fault)}",
            rule="" if rule is None else str(rule),
            context=context,
        )

    def _is_missing(self, row: Read, fault: StepFault) -> bool:
        """Whether a row was looked for and is not there; where a key could not be computed, none was looked for."""
        try:
            return self._evaluate(row, fault.values) is None
        except FAILURES:
            return False

    def _missing(self, external: ExternalValue, fault: StepFault, context: str) -> Problem:
        """What was looked for, where, and for which values: who adds the row has to know them."""
        of, function = external.of, external.function
        if not isinstance(of, ReferenceState):
            assert of is not None
            key = " and ".join(f"`{column}` {self._asked(node, fault)}" for column, node in external.keys)
            if of.as_of:
                key += f", valid at {self._asked(time_of(function), fault)} by `{of.as_of}`"
            path, name = fault.path, of.name
            return NO_ROW(path=path, function=function.name, name=name, source=of.source, key=key, context=context)
        waited = (
            f", although it waited for {format_duration(function.hold)}"
            if function.missing is MissingValue.HOLD
            else ""
        )
        return NO_REFERENCE(
            path=fault.path,
            function=function.name,
            name=of.name,
            key=f"the key {self._asked(external.keys[0][1], fault)}",
            waited=waited,
            event=of.event.name,
            context=context,
        )

    def _asked(self, node: Node, fault: StepFault) -> str:
        try:
            return _shown(self._evaluate(node, fault.values))
        except (*FAILURES, KeyError):  # of a sample the envelope may be made up
            return "that cannot be told"

    def _text_function(self) -> _Text:
        made = self.transformation
        if made.is_identity:
            return lambda event, text, rows: text
        names = self._bound
        call = self._compiled_text()
        if call is None:
            return self._slow_text()
        if not names:
            self._quick = call
        return lambda event, text, rows: call(event, text, *(rows.get(name) for name in names))

    def _compiled_text(self) -> Callable[..., bytes] | None:
        """What makes text of text, if there is any such way."""
        made = self.transformation
        node = with_copies(self._node, made.source, made.types)
        if isinstance(node, Read) and node.variable == DATA and not node.path:
            return lambda event, text, *rows: text
        with suppress(NoTextPlan):
            return PatchPlan(node, made.source, made.types, self._parameters).call
        with suppress(NoTextPlan):
            plan = TextPlan(node, made.source, made.types)
            call, decode = compile_value(simplify(plan.node), self._parameters).call, plan.decode
            return lambda event, text, *rows: _encode(call(event, decode(text), *rows))
        return None

    def _slow_text(self) -> _Text:
        """By way of values, which works for whatever types there are."""
        made = self.transformation
        read = decoder(made.source, made.types, "keep")
        write = encoder(made.target, made.targets)

        def convert(event: Mapping[str, Any], text: bytes, rows: Mapping[str, Any]) -> bytes:
            return _encode(write(self.data(event, read(msgspec.json.decode(text)).value, rows)))

        return convert


def _given(fault: StepFault) -> str:
    """The values that a step failed for, as far as they are single ones."""
    assert fault.step is not None
    if fault.step.conversion is not None and fault.step.conversion.code:
        return ""  # Python was told what it failed for
    found: dict[str, str] = {}
    for part in walk(fault.step.node):
        if not isinstance(part, Read) or part.variable == EVENT or part.variable not in fault.values:
            continue
        value = interpret(part, fault.values)
        if not isinstance(value, (dict, list)):
            found[part.path[-1] if part.path else "the value"] = "null" if value is None else str(value)[:_MOST_SHOWN]
    return "".join(f", {name} is {value}" for name, value in list(found.items())[:_MOST_GIVEN])


def _shown(value: Any) -> str:
    if value is None:
        return "null, which no row has"
    if isinstance(value, (dict, list)):
        return "this value"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    text = print_literal(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
