"""An action of a policy and what was detected → what is to be done, ready to be handed to whoever does it.

Nothing is done here: a deed is plain data, the same for the same detection whenever it is made, with a key that says
so. Whoever does it may do it again with the same key, and nothing more comes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from situ.lang.catalogue import ACTION_UNFIT
from situ.lang.problems import SituError
from situ.policies.actions.model import (
    ActionData,
    ActionStep,
    CommandStep,
    ConstantData,
    DeclaredActions,
    DeletePolicyStep,
    ListData,
    LogStep,
    NotifyStep,
    PublishStep,
    RecordData,
    SuspendPolicyStep,
    WebhookStep,
)
from situ.policies.actions.resolve import steps_of
from situ.policies.actions.templates import (
    Template,
    TemplateFacts,
    TemplateReference,
    json_value,
    render_template,
    render_text,
)
from situ.policies.model import PolicyAction

_CLIENT = re.compile(r"[A-Za-z0-9-]{1,64}")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionInvocation:
    """One thing to do. ``verb`` is a built-in action.

    ``target`` is the event type, the addressee, the address, or the policy, and nothing for a log; ``body`` the data,
    or the text.
    """

    key: str
    verb: str
    target: str = ""
    body: Any = None
    method: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    level: str = ""


def invocation_of(
    action: PolicyAction, number: int, place: int, actions: DeclaredActions, facts: TemplateFacts, situation: Any = None
) -> ActionInvocation:
    """What a step of an action comes to. ``number`` is that of the action in its policy, ``place`` that of the step.

    ``situation`` is sent where nothing else is said. :class:`SituError` if what references stand for cannot be used
    where they stand.
    """
    step = steps_of(action, actions)[place]
    return _deed(f"{facts.detection}-{number}.{place}", action, step, _with_arguments(facts, action), situation)


def render_data(data: ActionData, facts: TemplateFacts) -> Any:
    """The JSON value that data come to. What is not known is left out of records."""
    match data:
        case Template():
            return render_template(data, facts)
        case ConstantData(value=value):
            return value
        case RecordData(entries=entries):
            made = ((name, render_data(each, facts)) for name, each in entries)
            return {name: value for name, value in made if value is not None}
        case ListData(items=items):
            return [render_data(each, facts) for each in items]


def _with_arguments(facts: TemplateFacts, action: PolicyAction) -> TemplateFacts:
    return TemplateFacts(
        policy=facts.policy,
        situation=facts.situation,
        detection=facts.detection,
        time=facts.time,
        bindings=facts.bindings,
        attributes=facts.attributes,
        arguments=action.arguments,
        environment=facts.environment,
    )


def _deed(key: str, action: PolicyAction, step: ActionStep, facts: TemplateFacts, situation: Any) -> ActionInvocation:
    match step:
        case PublishStep(type=type, data=data):
            return ActionInvocation(key=key, verb="publish", target=type, body=render_data(data, facts))
        case NotifyStep(to=to, text=text):
            said = render_text(text, facts) if text is not None else _in_words(facts)
            return ActionInvocation(key=key, verb="notify", target=render_text(to, facts), body=said)
        case WebhookStep(url=url, method=method, headers=headers, data=sent):
            return ActionInvocation(
                key=key,
                verb="webhook",
                target=_address(url, facts),
                body=situation if sent is None else render_data(sent, facts),
                method=method,
                headers=tuple((name, _one_line(render_text(each, facts))) for name, each in headers),
            )
        case CommandStep(to=to, data=sent):
            target = _name(action, render_text(to, facts), "a device")
            return ActionInvocation(
                key=key, verb="command", target=target, body=situation if sent is None else render_data(sent, facts)
            )
        case LogStep(text=line, level=level):
            said = render_text(line, facts) if line is not None else _in_words(facts)
            return ActionInvocation(key=key, verb="log", body=_one_line(said), level=level)
        case DeletePolicyStep(policy=policy):
            return ActionInvocation(
                key=key, verb="delete policy", target=_name(action, render_text(policy, facts), "a policy")
            )
        case SuspendPolicyStep(policy=policy):
            return ActionInvocation(
                key=key, verb="suspend policy", target=_name(action, render_text(policy, facts), "a policy")
            )


def _address(url: Template, facts: TemplateFacts) -> str:
    """What events brought stays inside of its part of the address; the environment may give any part."""
    return "".join(_address_parts(url, facts))


def _address_parts(url: Template, facts: TemplateFacts) -> Iterator[str]:
    for part in url.parts:
        if isinstance(part, TemplateReference):
            said = render_text(Template((part,)), facts)
            yield said if part.is_environment else _percent_encoded(said)
        else:
            yield part


def _percent_encoded(text: str) -> str:
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in text.encode())


def _one_line(text: str) -> str:
    """Line breaks and other signs that steer would end a header or forge a line of a log."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _name(action: PolicyAction, name: str, what: str) -> str:
    if _CLIENT.fullmatch(name):
        return name
    remedy = "Names have 1 to 64 letters A to Z, digits and hyphens."
    raise SituError(ACTION_UNFIT(None, name=action.name, reason=f"names `{name[:80]}` as {what}", remedy=remedy))


def _in_words(facts: TemplateFacts) -> str:
    bound = ", ".join(f"{alias} = {json_value(identity)}" for alias, identity in facts.bindings.items())
    return f"{facts.policy}: {bound}" if bound else facts.policy
