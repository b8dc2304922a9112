"""Explanations of expressions: the typed tree, the forms for both engines, and the outcome for a sample event.

`read_sample` and `evaluate` run an expression on a sample, `explain_expression` describes it. `explain_subject` finds
out what was asked about: an expression, the filter of a subscription, or a function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from math import lcm
from typing import Annotated, Any

import msgspec

from situ.event import CloudEvent, decode_event
from situ.lang.catalogue import OTHER_EVENT, UNKNOWN_SUBSCRIPTION, UNKNOWN_TYPE, WITHOUT_TYPE
from situ.lang.documents.strict_json import JSON_LIMITS, read_json, to_text
from situ.lang.expr.checker.check import Checked, check, check_condition
from situ.lang.expr.definitions import DefinedFunction
from situ.lang.expr.emit.python import compile_test, compile_value
from situ.lang.expr.emit.spark import emit_spark
from situ.lang.expr.format import print_expression, print_literal
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.scope import NameScope, event_scope
from situ.lang.expr.simplify import simplify
from situ.lang.expr.tree import (
    And,
    Apply,
    Case,
    Coalesce,
    Coerce,
    Compare,
    Field,
    ForEach,
    In,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Not,
    Or,
    Read,
    children,
)
from situ.lang.json_form import TEXT_ONLY, Explanation
from situ.lang.problems import Location, Problem, SituError, nearest
from situ.lang.records import replace
from situ.lang.types.json_codec import decode, encode
from situ.lang.types.lookup import unknown_event
from situ.lang.types.model import BOOLEAN, Attribute, Struct, is_subtype, plain
from situ.lang.types.table import Types
from situ.lang.units import Unit
from situ.model import Deployment
from situ.routing import Subscription

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Samples. A sample is a CloudEvent, or only the data of one; the envelope of the latter is made up here and said to be.

_MADE_UP = "sample"


@dataclass(frozen=True, slots=True)
class RawSample:
    """A sample as it was found in a file."""

    file: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The values of the variables of a scope, and where they come from."""

    name: str
    values: Mapping[str, Any]


class ExpressionOutcome(Explanation, frozen=True, kw_only=True, omit_defaults=True):
    """What an expression gives for a sample."""

    sample: str
    """What the sample is; empty: the expression reads nothing."""
    fails: bool
    value: Any | msgspec.UnsetType = msgspec.UNSET
    """Null or a value, as JSON; left out if it fails."""
    reason: str = ""
    """Why it fails."""
    shown: Annotated[str, TEXT_ONLY] = ""
    """The value as it would be written in an expression."""


def read_sample(raw: RawSample, payload: Struct, types: Types, now: datetime) -> Sample:
    """The event, or data of an event, of that type or one below it; :class:`SituError` with all that is wrong."""
    with _placed(raw):
        value = _json(raw)
        if not _is_event(value):
            envelope = {**envelope_of(now), "type": payload.name}
            data = decode(payload, value, types)
            return Sample(name="data with a made-up envelope", values={"event": envelope, "data": data})
        event = decode_event(raw.content)
        envelope = {
            "id": event.id,
            "source": event.source,
            "type": event.type,
            "time": event.time or now,
            "confidence": event.confidence,
        }
        data = decode(_type_of(event, payload, types), event.data, types)
        return Sample(name=f"event {event.id} of {event.source}", values={"event": envelope, "data": data})


def type_of_sample(raw: RawSample) -> str:
    """The type a CloudEvent says it has; empty for anything else."""
    with _placed(raw):
        value = _json(raw)
    type = value.get("type") if _is_event(value) else None
    return type if isinstance(type, str) else ""


def envelope_of(now: datetime) -> dict[str, Any]:
    """The envelope of an event of which only the data is known."""
    return {"id": _MADE_UP, "source": _MADE_UP, "type": _MADE_UP, "time": now, "confidence": None, "received": now}


def read_arguments(raw: RawSample, parameters: Struct, types: Types) -> Sample:
    """A JSON object with the arguments of a function, by the names of its parameters."""
    with _placed(raw):
        return Sample(name="these arguments", values=decode(parameters, _json(raw), types, "reject"))


def evaluate(node: Node, sample: Sample, types: Types) -> ExpressionOutcome:
    """Run the expression."""
    try:
        value = interpret(node, sample.values)
    except FAILURES as failure:
        return ExpressionOutcome(sample=sample.name, fails=True, reason=str(failure) or "the operation failed")
    encoded = None if value is None else encode(node.type, value, types)
    shown = print_literal(value, node.unit) if not isinstance(value, dict | list) else _structure(encoded)
    return ExpressionOutcome(sample=sample.name, fails=False, value=encoded, shown=shown)


@contextmanager
def _placed(raw: RawSample) -> Iterator[None]:
    """Problems of a sample say in which file it is."""
    try:
        yield
    except SituError as error:
        place = Location(file=raw.file)
        raise SituError(*(replace(each, location=each.location or place) for each in error.problems)) from None


def _json(raw: RawSample) -> Any:
    return read_json(to_text(raw.content, JSON_LIMITS.event), JSON_LIMITS.depth)


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and "specversion" in value


def _type_of(event: CloudEvent, wanted: Struct, types: Types) -> Struct:
    found = types.event(event.type)
    if found is None:
        known = sorted(types.events)
        raise SituError(unknown_event(event.type, nearest(event.type, known)))
    if not is_subtype(found, wanted):
        fitting = tuple(str(type) for type in types.subtypes(wanted))
        raise SituError(OTHER_EVENT(found=event.type, wanted=wanted.name, fitting=fitting[:5]))
    return found


def _structure(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The explanation of one expression. It is explained as engines run it, so Spark SQL and Python are those of the
# simplified form. The text for people is :mod:`situ.cli.render.expression`.

_LONGEST_DIVISOR = 10**9
"""Divisors with more digits say nothing to a reader: then factor and offset are shown, rounded."""


class ExpressionPart(Explanation, frozen=True, kw_only=True, omit_defaults=True):
    """A node of the typed tree, with what is below it."""

    node: str
    role: str = ""
    """What it is to the node above, where that has several kinds of parts."""
    type: str
    unit: str | None
    nullable: bool
    can_fail: bool
    parts: tuple[ExpressionPart, ...]


class SparkForm(Explanation, frozen=True, kw_only=True):
    """An expression in Spark SQL."""

    value: str
    fails: str | None
    """What is true where it fails; null: it cannot."""


class ExpressionExplanation(Explanation, frozen=True, kw_only=True, omit_defaults=True):
    """An expression: its types and units, its forms, its text for both engines, and what it gives for a sample."""

    subject: str
    """Where it comes from: an expression, the filter of a subscription, a function."""
    over: str | None
    """The type of event that it is about."""
    text: str
    canonical: str
    simplified: str
    """As engines run it: Spark SQL and Python are those of this form."""
    type: str
    unit: str | None
    nullable: bool
    can_fail: bool
    tree: ExpressionPart
    spark: SparkForm
    python: str
    problems: tuple[Problem, ...]
    outcome: ExpressionOutcome | None = None


def explain_expression(
    node: Node,
    *,
    text: str,
    subject: str,
    over: str,
    variables: Sequence[str],
    bare: str = "data",
    problems: tuple[Problem, ...] = (),
    outcome: ExpressionOutcome | None = None,
) -> ExpressionExplanation:
    """Explain a checked expression over ``variables``, those of its scope."""
    simple = simplify(node)
    tree, spark = describe(node, bare), emit_spark(simple)
    compiled = (compile_test if plain(node.type) == BOOLEAN else compile_value)(simple, variables)
    return ExpressionExplanation(
        subject=subject,
        over=over or None,
        text=text,
        canonical=print_expression(node, bare),
        simplified=print_expression(simple, bare),
        type=tree.type,
        unit=tree.unit,
        nullable=tree.nullable,
        can_fail=tree.can_fail,
        tree=tree,
        spark=SparkForm(value=spark.value, fails=spark.fails or None),
        python=compiled.source,
        problems=problems,
        outcome=outcome,
    )


def describe(node: Node, bare: str = "data", role: str = "") -> ExpressionPart:
    """The typed tree in words."""
    below = tuple(describe(part, bare, role) for role, part in zip(_roles(node), children(node), strict=True))
    return ExpressionPart(
        node=_label(node, bare),
        role=role,
        type=str(node.type),
        unit=str(node.unit) or None,
        nullable=node.nullable,
        can_fail=node.can_fail,
        parts=below,
    )


def _roles(node: Node) -> Iterator[str]:
    match node:
        case Case(arms=arms):
            for _ in arms:
                yield from ("when", "then")
            yield "else"
        case MakeStruct(fields=fields):
            yield from (name for name, _ in fields)
        case ForEach(variable=variable):
            yield from ("list", f"{variable} ->")
        case _:
            yield from ("" for _ in children(node))


def _label(node: Node, bare: str) -> str:
    match node:
        case Literal() | Read():
            return print_expression(node, bare)
        case Apply(overload=overload):
            return "-" if overload.name == "negate" else overload.name
        case Coerce():
            return _conversion(node)
        case Compare(op=op):
            return op
        case In(item=item, values=values):
            return f"IN ({', '.join(print_literal(value, item.unit) for value in values)})"
        case And():
            return "AND"
        case Or():
            return "OR"
        case Not():
            return "NOT"
        case IsNull():
            return "IS NULL"
        case Case():
            return "CASE"
        case Coalesce():
            return "coalesce"
        case MakeStruct():
            return "struct"
        case Field(name=name):
            return f".{name}"
        case ForEach(kind=kind):
            return kind.value


def _conversion(node: Coerce) -> str:
    """An implicit step: which factor and offset, where the unit changes."""
    below = lcm(node.scale.denominator, node.offset.denominator)
    if below > _LONGEST_DIVISOR:
        below = 1
    factor, offset = node.scale * below, node.offset * below
    shown = f" × {_number(factor)}" if factor != 1 else ""
    shown += f" {'−' if offset < 0 else '+'} {_number(abs(offset))}" if offset else ""
    shown = f" ({shown[1:]})" if below > 1 and offset else shown
    return f"as {with_unit(str(node.type), node.unit)}{shown}{f' ÷ {below}' if below > 1 else ''}"


def with_unit(text: str, unit: Unit | str | None) -> str:
    """``double m``; ``boolean`` where there is no unit."""
    return f"{text} {unit or ''}".rstrip()


def _number(value: Fraction) -> str:
    return repr(value.numerator / value.denominator).removesuffix(".0")


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What ``situ explain expression`` is asked about; the text itself decides. The id of a subscription, ``client/name``,
# stands for its filter; the name of a function of the project for its definition, unless a type is given; anything else
# is an expression.

_ID = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9-]+")


def explain_subject(text: str, type: str, raw: RawSample | None, deployment: Deployment) -> ExpressionExplanation:
    """Explain it, with its outcome for a sample if there is one; :class:`SituError` with what is wrong."""
    subscription = deployment.subscriptions.get(text)
    if subscription is not None:
        return _filter(subscription, type, raw, deployment)
    function = deployment.functions.get(text)
    if function is not None and not type:
        return _function(function, raw, deployment)
    return _expression(text, type, raw, deployment)


def _expression(text: str, type: str, raw: RawSample | None, deployment: Deployment) -> ExpressionExplanation:
    named = type or (type_of_sample(raw) if raw is not None else "")
    if named:
        types = deployment.types
        payload = _struct(named, types)
        checked = check(text, _event_scope(payload, types, deployment))
        return _over_event(checked, "Expression", payload.name, payload, raw, types)
    scope = _scope(deployment)
    checked = check(text, scope)
    if checked.node is None:
        raise _without_type(text, checked, deployment)
    sample = Sample(name="", values={})
    return explain_expression(
        checked.node,
        text=text,
        subject="Expression",
        over="",
        variables=(),
        problems=checked.problems,
        outcome=evaluate(checked.node, sample, deployment.types),
    )


def _filter(
    subscription: Subscription, type: str, raw: RawSample | None, deployment: Deployment
) -> ExpressionExplanation:
    """The filter for one of the subscription's types: the one that is named, or that the sample has, or the first.

    It is in the terms of the subscription's context, and so is the sample.
    """
    context = deployment.contexts.get(subscription.context)
    types = deployment.types if context is None else context.types
    if type:
        chosen = _struct(type, types)
    else:
        sent = types.event(type_of_sample(raw)) if raw is not None else None
        candidates = [_struct(name, types) for name in subscription.types]
        chosen = next((each for each in candidates if sent in types.subtypes(each)), candidates[0])
    text = subscription.where or "TRUE"
    checked = check_condition(text, _event_scope(chosen, types, deployment))
    others = [name for name in subscription.types if name != chosen.name]
    over = f"{chosen.name}, one of {', '.join(subscription.types)}" if others else chosen.name
    return _over_event(checked, f"Filter of {subscription.id}", over, chosen, raw, types)


def _over_event(
    checked: Checked, subject: str, over: str, payload: Struct, raw: RawSample | None, types: Types
) -> ExpressionExplanation:
    node = checked.tree()
    sample = None if raw is None else read_sample(raw, payload, types, datetime.now(UTC))
    return explain_expression(
        node,
        text=checked.text,
        subject=subject,
        over=over,
        variables=("event", "data"),
        problems=checked.problems,
        outcome=None if sample is None else evaluate(node, sample, types),
    )


def _function(function: DefinedFunction, raw: RawSample | None, deployment: Deployment) -> ExpressionExplanation:
    types = deployment.types
    names = tuple(name for name, _ in function.parameters)
    outcome = None
    if raw is not None:
        sample = read_arguments(raw, _parameters(function), types)
        values = {**dict.fromkeys(names), **sample.values, "event": envelope_of(datetime.now(UTC))}
        outcome = evaluate(function.body, Sample(name=sample.name, values=values), types)
    return explain_expression(
        function.body,
        text=function.text,
        subject=f"Function {function.name}{': ' if function.converts else ''}{function.signature}",
        over="",
        variables=(*names, "event") if function.converts else names,
        bare="",
        outcome=outcome,
    )


def _parameters(function: DefinedFunction) -> Struct:
    return Struct(
        "",
        tuple(
            Attribute(name=name, type=variable.type, unit=variable.unit, optional=variable.optional)
            for name, variable in function.parameters
        ),
    )


def _struct(name: str, types: Types) -> Struct:
    found = types.get(name)
    if isinstance(found, Struct):
        return found
    raise SituError(UNKNOWN_TYPE(name=name, nearest=nearest(name, types.names)))


def _scope(deployment: Deployment) -> NameScope:
    """The scope of an expression about nothing: constants, and the functions of the project."""
    types = deployment.types
    limits = deployment.settings.expression_limits
    return NameScope(types=types, units=types.units, functions=deployment.definitions, limits=limits)


def _event_scope(payload: Struct, types: Types, deployment: Deployment) -> NameScope:
    limits = deployment.settings.expression_limits
    return event_scope(payload, types=types, functions=deployment.definitions, limits=limits, extensions=True)


def _without_type(text: str, checked: Checked, deployment: Deployment) -> SituError:
    """Names that nothing knows: most likely a subscription with a slip, or an expression whose type was not said."""
    if _ID.fullmatch(text):
        known = nearest(text, deployment.subscriptions)
        return SituError(UNKNOWN_SUBSCRIPTION(name=text, nearest=known))
    if any(problem.code.code == "X102" for problem in checked.problems):
        return SituError(*(WITHOUT_TYPE(each.location, cause=each) for each in checked.problems[:1]))
    return SituError(*checked.problems)
