"""Actions: what a project declares under a name, in terms of the few things that Situ can do.

Plain data, checked as far as it can be without a policy. How actions are written is
:mod:`situ.policies.actions.load`; whether one fits a policy is :mod:`situ.policies.actions.resolve`;
what it comes to for a detection is :mod:`situ.policies.actions.invocations`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from situ.lang.problems import Location
from situ.policies.actions.templates import Template

VERBS = ("publish", "notify", "webhook", "command", "log", "delete policy", "suspend policy")
"""What Situ can do, by the names that policies and ``actions.yaml`` use."""
LEVELS = ("debug", "info", "warning", "error")
METHODS = ("POST", "PUT", "PATCH", "DELETE", "GET")
_URL = re.compile(r"(?:https?://(?:[^\s/?#{}]|\$\{\w+\})+|\$\{\w+\})(?:[/?#].*)?", re.DOTALL)


class ConstantData(msgspec.Struct, frozen=True):
    """A JSON value that is always the same."""

    value: Any


class RecordData(msgspec.Struct, frozen=True):
    """Values by name."""

    entries: tuple[tuple[str, ActionData], ...]


class ListData(msgspec.Struct, frozen=True):
    """Values in order."""

    items: tuple[ActionData, ...]


ActionData = Template | ConstantData | RecordData | ListData

_NOTHING = RecordData(())


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishStep:
    """An event of this type, from the policy."""

    type: str
    data: RecordData = _NOTHING
    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyStep:
    """A text for people: who is told, and what. Without a text, what was detected."""

    to: Template
    text: Template | None = None
    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookStep:
    """A request to an address. Its host is always the same; without data the situation is sent."""

    url: Template
    method: str = "POST"
    headers: tuple[tuple[str, Template], ...] = ()
    data: ActionData | None = None
    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandStep:
    """A message to a device, which is a client. Without data the situation is sent."""

    to: Template
    data: ActionData | None = None
    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStep:
    """A line in the log of the engine. Without a text, what was detected."""

    text: Template | None = None
    level: str = "info"
    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePolicyStep:
    """The policy of this name is removed."""

    policy: Template
    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendPolicyStep:
    """The policy of this name is suspended, until somebody resumes it."""

    policy: Template
    location: Location | None = field(default=None, compare=False, repr=False)


ActionStep = PublishStep | NotifyStep | WebhookStep | CommandStep | LogStep | DeletePolicyStep | SuspendPolicyStep

VERB_OF: Mapping[type[ActionStep], str] = dict(
    zip(
        (PublishStep, NotifyStep, WebhookStep, CommandStep, LogStep, DeletePolicyStep, SuspendPolicyStep),
        VERBS,
        strict=True,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAction:
    """What a project calls ``raise alarm``: one thing after another."""

    name: str
    steps: tuple[ActionStep, ...]
    location: Location | None = field(default=None, compare=False, repr=False)

    @property
    def arguments(self) -> int:
        """How many words it needs behind its name."""
        return max((each.argument for step in self.steps for each in references_of(step)), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredActions:
    """All actions of a project by name, and the pairs that oppose each other, each in the order of names."""

    named: Mapping[str, NamedAction] = field(default_factory=dict)
    opposed: frozenset[tuple[str, str]] = frozenset()
    faulty: frozenset[str] = field(default=frozenset(), compare=False)
    """Names of those that are declared, but wrong: whoever uses one is not told that there is none."""

    def oppose(self, one: str, other: str) -> bool:
        return (min(one, other), max(one, other)) in self.opposed


def has_host(url: Template) -> bool:
    """Whether an address says by itself which host it is at: events never do."""
    return _URL.fullmatch(str(url)) is not None


def templates_of(step: ActionStep) -> Iterator[Template]:
    """Every template of a step."""
    match step:
        case PublishStep(data=data):
            yield from templates_in(data)
        case NotifyStep(to=to, text=text):
            yield to
            if text is not None:
                yield text
        case WebhookStep(url=url, headers=headers, data=sent):
            yield url
            yield from (template for _, template in headers)
            if sent is not None:
                yield from templates_in(sent)
        case CommandStep(to=to, data=sent):
            yield to
            if sent is not None:
                yield from templates_in(sent)
        case LogStep(text=said):
            if said is not None:
                yield said
        case DeletePolicyStep(policy=policy) | SuspendPolicyStep(policy=policy):
            yield policy


def templates_in(data: ActionData) -> Iterator[Template]:
    match data:
        case Template():
            yield data
        case RecordData(entries=entries):
            for _, each in entries:
                yield from templates_in(each)
        case ListData(items=items):
            for each in items:
                yield from templates_in(each)


def references_of(step: ActionStep) -> Iterator[Any]:
    for template in templates_of(step):
        yield from template.references
