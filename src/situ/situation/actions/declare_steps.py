"""One step of an action as a file declares it → what is to be done: ``{publish: Alarm, data: {…}}``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from situ.catalogue import ACTION_UNFIT, ENVIRONMENT_IN_EVENT
from situ.documents import Fields, Node, Reader, Scalar
from situ.documents import Mapping as MappingNode
from situ.errors import Location, Problems, SituError, nearest
from situ.expr.faults import Faults
from situ.situation.actions.action import (
    LEVELS,
    METHODS,
    VERBS,
    Command,
    Data,
    DeletePolicy,
    Log,
    Notify,
    Publish,
    Record,
    Step,
    SuspendPolicy,
    Webhook,
    has_host,
    references_of,
)
from situ.situation.actions.action_data import Declaring
from situ.situation.actions.templates import Template, parse_template
from situ.types.table import Types

_KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "publish": ("data",),
        "notify": ("text",),
        "webhook": ("method", "headers", "data"),
        "command": ("data",),
        "log": ("level",),
        "delete policy": (),
        "suspend policy": (),
    }
)
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_OWN_HEADERS = frozenset(("host", "connection", "content-length", "transfer-encoding", "idempotency-key"))
"""What every request has of its own."""


class DeclaringStep:
    """Reads the steps of one action."""

    def __init__(self, action: str, types: Types, problems: Problems, faults: Faults) -> None:
        self.action, self.types, self.problems, self.faults = action, types, problems, faults
        self.read = Reader(problems)

    def step(self, node: Node) -> Step | None:
        mapping = self.read.mapping(node)
        if mapping is None:
            return None
        verbs = [key for key, _ in mapping.entries if key.text in VERBS]
        if len(verbs) != 1:
            self._no_verb(mapping, verbs)
            return None
        (verb,) = verbs
        before = len(self.problems.errors)
        fields = self.read.fields(node, required=(verb.text,), optional=_KEYS[verb.text])
        if fields is None:
            return None
        step = _STEPS[verb.text](self, fields)
        if isinstance(step, Publish | Notify | Command):
            self._no_secrets(step)
        return step if len(self.problems.errors) == before else None

    def _no_verb(self, mapping: MappingNode, verbs: list[Scalar]) -> None:
        if verbs:
            reason = f"says {_listed(tuple(each.text for each in verbs))} in one"
            self._unfit(verbs[1].location, reason, "Write a list, one a line.")
            return
        similar = [near for key, _ in mapping.entries for near in nearest(key.text, VERBS, 1)]
        remedy = f"Did you mean `{similar[0]}`?" if similar else f"Write one of {_listed(VERBS)}."
        self._unfit(mapping.location, "does not say what to do", remedy)

    def _no_secrets(self, step: Step) -> None:
        """What becomes part of an event is stored and told: the environment has no place there."""
        for each in references_of(step):
            if each.is_environment:
                self.problems.add(ENVIRONMENT_IN_EVENT(each.location, name=self.action, reference=str(each)))

    def publish(self, fields: Fields) -> Step | None:
        scalar = fields.scalar("publish")
        if scalar is None:
            return None
        struct = self.types.event(scalar.text) if scalar.text in self.types.events else None
        if struct is None and scalar.text in self.faults.types:
            return None  # it is declared, but wrong, and that is said already
        if struct is None:
            similar = nearest(scalar.text, self.types.events, 1)
            remedy = f"Did you mean `{similar[0]}`?" if similar else "Declare it under `events:` in `types/*.yaml`."
            self._unfit(scalar.location, f"publishes `{scalar.text}`, which is no event type", remedy)
            return None
        data = Declaring(self.action, self.problems).event(fields.node("data"), struct, scalar.location)
        return Publish(type=scalar.text, data=data or Record(()), location=scalar.location)

    def notify(self, fields: Fields) -> Step | None:
        to, text = self._template(fields, "notify"), self._template(fields, "text")
        return None if to is None else Notify(to=to, text=text, location=to.location)

    def webhook(self, fields: Fields) -> Step | None:
        url = self._template(fields, "webhook")
        if url is None:
            return None
        if not has_host(url):
            remedy = "Write `https://…`; references can stand behind the host only."
            self._unfit(url.location, f"calls `{url}`, which is no address with a host of its own", remedy)
        method = fields.choice("method", METHODS, default="POST")
        return Webhook(
            url=url,
            method=method,
            headers=tuple(self._headers(fields)),
            data=self._data(fields),
            location=url.location,
        )

    def command(self, fields: Fields) -> Step | None:
        to = self._template(fields, "command")
        return None if to is None else Command(to=to, data=self._data(fields), location=to.location)

    def log(self, fields: Fields) -> Step | None:
        text = self._template(fields, "log")
        level = fields.choice("level", LEVELS, default="info")
        return None if text is None else Log(text=text, level=level, location=text.location)

    def delete_policy(self, fields: Fields) -> Step | None:
        policy = self._template(fields, "delete policy")
        return None if policy is None else DeletePolicy(policy=policy, location=policy.location)

    def suspend_policy(self, fields: Fields) -> Step | None:
        policy = self._template(fields, "suspend policy")
        return None if policy is None else SuspendPolicy(policy=policy, location=policy.location)

    def _headers(self, fields: Fields) -> Iterator[tuple[str, Template]]:
        node = fields.node("headers")
        mapping = None if node is None else self.read.mapping(node)
        for key, value in mapping.entries if mapping is not None else ():
            if not _HEADER.fullmatch(key.text):
                self._unfit(key.location, f"has a header `{key.text}`", "Headers are letters, digits and `-`.")
            elif key.text.lower() in _OWN_HEADERS:
                remedy = "Leave it out: every request has its own."
                self._unfit(key.location, f"sets the header `{key.text}`", remedy)
            scalar = self.read.scalar(value)
            template = None if scalar is None else self._parsed(scalar)
            if template is not None:
                yield key.text, template

    def _data(self, fields: Fields) -> Data | None:
        node = fields.node("data")
        return None if node is None else Declaring(self.action, self.problems).anything(node)

    def _template(self, fields: Fields, key: str) -> Template | None:
        scalar = fields.scalar(key)
        return None if scalar is None else self._parsed(scalar)

    def _parsed(self, scalar: Scalar) -> Template | None:
        try:
            written = scalar.written or scalar  # what the environment says stays out of what is stored
            return parse_template(written.text, written.locate)
        except SituError as error:
            self.problems.extend(error.problems)
            return None

    def _unfit(self, place: Location | None, reason: str, remedy: str) -> None:
        self.problems.add(ACTION_UNFIT(place, name=self.action, reason=reason, remedy=remedy))


_STEPS: Mapping[str, Callable[[DeclaringStep, Fields], Step | None]] = MappingProxyType(
    {
        "publish": DeclaringStep.publish,
        "notify": DeclaringStep.notify,
        "webhook": DeclaringStep.webhook,
        "command": DeclaringStep.command,
        "log": DeclaringStep.log,
        "delete policy": DeclaringStep.delete_policy,
        "suspend policy": DeclaringStep.suspend_policy,
    }
)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
