"""What ``situ explain expression`` is asked about: an expression, the filter of a subscription, or a function.

The text itself decides. The id of a subscription, ``client/name``, stands for its filter; the name of a function of the
project for its definition, unless a type is given; anything else is an expression.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from situ.catalogue import UNKNOWN_SUBSCRIPTION, UNKNOWN_TYPE, WITHOUT_TYPE
from situ.cli.explained_expression import Explained, explain_expression
from situ.cli.outcome import Raw, Sample, envelope_of, evaluate, read_arguments, read_sample, type_of_sample
from situ.deployment import Deployment
from situ.errors import SituError, nearest
from situ.expr.check import Checked, check, check_condition
from situ.expr.definitions import Function
from situ.expr.scope import Scope, event_scope
from situ.subscription import Subscription
from situ.types.model import Attribute, Struct
from situ.types.table import Types

_ID = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9-]+")


def explain_subject(text: str, type: str, raw: Raw | None, deployment: Deployment) -> Explained:
    """Explain it, with its outcome for a sample if there is one; :class:`SituError` with what is wrong."""
    subscription = deployment.subscriptions.get(text)
    if subscription is not None:
        return _filter(subscription, type, raw, deployment)
    function = deployment.functions.get(text)
    if function is not None and not type:
        return _function(function, raw, deployment)
    return _expression(text, type, raw, deployment)


def _expression(text: str, type: str, raw: Raw | None, deployment: Deployment) -> Explained:
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


def _filter(subscription: Subscription, type: str, raw: Raw | None, deployment: Deployment) -> Explained:
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


def _over_event(checked: Checked, subject: str, over: str, payload: Struct, raw: Raw | None, types: Types) -> Explained:
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


def _function(function: Function, raw: Raw | None, deployment: Deployment) -> Explained:
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


def _parameters(function: Function) -> Struct:
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


def _scope(deployment: Deployment) -> Scope:
    """The scope of an expression about nothing: constants, and the functions of the project."""
    types = deployment.types
    limits = deployment.settings.expression_limits
    return Scope(types=types, units=types.units, functions=deployment.definitions, limits=limits)


def _event_scope(payload: Struct, types: Types, deployment: Deployment) -> Scope:
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
