"""An action of a policy and what was detected → what is to be done, ready to be handed to whoever does it.

Nothing is done here: a deed is plain data, the same for the same detection whenever it is made, with a key that says
so. Whoever does it may do it again with the same key, and nothing more comes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from situ.catalogue import ACTION_UNFIT
from situ.errors import SituError
from situ.situation.actions.action import (
    Actions,
    Command,
    Constant,
    Data,
    DeletePolicy,
    Listing,
    Log,
    Notify,
    Publish,
    Record,
    Step,
    SuspendPolicy,
    Webhook,
)
from situ.situation.actions.resolve_actions import steps_of
from situ.situation.actions.templates import Facts, Reference, Template, json_value, render, render_text
from situ.situation.policies.policy import Action

_CLIENT = re.compile(r"[A-Za-z0-9-]{1,64}")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
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


def deeds(action: Action, number: int, actions: Actions, facts: Facts, situation: Any = None) -> tuple[Deed, ...]:
    """What the action, the ``number``-th of its policy, comes to. ``situation`` is sent where nothing else is said.

    :class:`SituError` if what references stand for cannot be used where they stand.
    """
    places = range(len(steps_of(action, actions)))
    return tuple(deed(action, number, place, actions, facts, situation) for place in places)


def deed(action: Action, number: int, place: int, actions: Actions, facts: Facts, situation: Any = None) -> Deed:
    """The same for one step of the action."""
    step = steps_of(action, actions)[place]
    return _deed(f"{facts.detection}-{number}.{place}", action, step, _with_arguments(facts, action), situation)


def render_data(data: Data, facts: Facts) -> Any:
    """The JSON value that data come to. What is not known is left out of records."""
    match data:
        case Template():
            return render(data, facts)
        case Constant(value=value):
            return value
        case Record(entries=entries):
            made = ((name, render_data(each, facts)) for name, each in entries)
            return {name: value for name, value in made if value is not None}
        case Listing(items=items):
            return [render_data(each, facts) for each in items]


def _with_arguments(facts: Facts, action: Action) -> Facts:
    return Facts(
        policy=facts.policy,
        situation=facts.situation,
        detection=facts.detection,
        time=facts.time,
        bindings=facts.bindings,
        attributes=facts.attributes,
        arguments=action.arguments,
        environment=facts.environment,
    )


def _deed(key: str, action: Action, step: Step, facts: Facts, situation: Any) -> Deed:
    match step:
        case Publish(type=type, data=data):
            return Deed(key=key, verb="publish", target=type, body=render_data(data, facts))
        case Notify(to=to, text=text):
            said = render_text(text, facts) if text is not None else _in_words(facts)
            return Deed(key=key, verb="notify", target=render_text(to, facts), body=said)
        case Webhook(url=url, method=method, headers=headers, data=sent):
            return Deed(
                key=key,
                verb="webhook",
                target=_address(url, facts),
                body=situation if sent is None else render_data(sent, facts),
                method=method,
                headers=tuple((name, _one_line(render_text(each, facts))) for name, each in headers),
            )
        case Command(to=to, data=sent):
            target = _name(action, render_text(to, facts), "a device")
            return Deed(
                key=key, verb="command", target=target, body=situation if sent is None else render_data(sent, facts)
            )
        case Log(text=line, level=level):
            said = render_text(line, facts) if line is not None else _in_words(facts)
            return Deed(key=key, verb="log", body=_one_line(said), level=level)
        case DeletePolicy(policy=policy):
            return Deed(key=key, verb="delete policy", target=_name(action, render_text(policy, facts), "a policy"))
        case SuspendPolicy(policy=policy):
            return Deed(key=key, verb="suspend policy", target=_name(action, render_text(policy, facts), "a policy"))


def _address(url: Template, facts: Facts) -> str:
    """What events brought stays inside of its part of the address; the environment may give any part."""
    return "".join(_address_parts(url, facts))


def _address_parts(url: Template, facts: Facts) -> Iterator[str]:
    for part in url.parts:
        if isinstance(part, Reference):
            said = render_text(Template((part,)), facts)
            yield said if part.is_environment else _percent_encoded(said)
        else:
            yield part


def _percent_encoded(text: str) -> str:
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in text.encode())


def _one_line(text: str) -> str:
    """Line breaks and other signs that steer would end a header or forge a line of a log."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _name(action: Action, name: str, what: str) -> str:
    if _CLIENT.fullmatch(name):
        return name
    remedy = "Names have 1 to 64 letters A to Z, digits and hyphens."
    raise SituError(ACTION_UNFIT(None, name=action.name, reason=f"names `{name[:80]}` as {what}", remedy=remedy))


def _in_words(facts: Facts) -> str:
    bound = ", ".join(f"{alias} = {json_value(identity)}" for alias, identity in facts.bindings.items())
    return f"{facts.policy}: {bound}" if bound else facts.policy
