"""``actions.yaml`` → the declared actions of a project, or everything that is wrong with them.

`ActionStepReader` reads one step of an action, ``{publish: Alarm, data: {…}}``; `load_actions` reads all actions and
which of them are opposed; `actions_as_json` and `actions_from_json` are the canonical form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from situ.lang.catalogue import ACTION_UNFIT, BAD_NAME, DECLARED_TWICE, ENVIRONMENT_IN_EVENT, OPPOSED_UNFIT
from situ.lang.documents import (
    Document,
    Fields,
    MappingNode,
    Node,
    Reader,
    ScalarNode,
    SequenceNode,
    is_nothing,
    parse_json,
)
from situ.lang.expr.faults import NO_FAULTS, Faults
from situ.lang.problems import Location, Problems, SituError, nearest
from situ.lang.types.table import Types
from situ.policies.actions.data import ActionDataReader, data_as_json
from situ.policies.actions.model import (
    LEVELS,
    METHODS,
    VERBS,
    ActionData,
    ActionStep,
    CommandStep,
    DeclaredActions,
    DeletePolicyStep,
    LogStep,
    NamedAction,
    NotifyStep,
    PublishStep,
    RecordData,
    SuspendPolicyStep,
    WebhookStep,
    has_host,
    references_of,
)
from situ.policies.actions.templates import Template, parse_template

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


class ActionStepReader:
    """Reads the steps of one action."""

    def __init__(self, action: str, types: Types, problems: Problems, faults: Faults) -> None:
        self.action, self.types, self.problems, self.faults = action, types, problems, faults
        self.read = Reader(problems)

    def step(self, node: Node) -> ActionStep | None:
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
        if isinstance(step, PublishStep | NotifyStep | CommandStep):
            self._no_secrets(step)
        return step if len(self.problems.errors) == before else None

    def _no_verb(self, mapping: MappingNode, verbs: list[ScalarNode]) -> None:
        if verbs:
            reason = f"says {_listed(tuple(each.text for each in verbs))} in one"
            self._unfit(verbs[1].location, reason, "Write a list, one a line.")
            return
        similar = [near for key, _ in mapping.entries for near in nearest(key.text, VERBS, 1)]
        remedy = f"Did you mean `{similar[0]}`?" if similar else f"Write one of {_listed(VERBS)}."
        self._unfit(mapping.location, "does not say what to do", remedy)

    def _no_secrets(self, step: ActionStep) -> None:
        """What becomes part of an event is stored and told: the environment has no place there."""
        for each in references_of(step):
            if each.is_environment:
                self.problems.add(ENVIRONMENT_IN_EVENT(each.location, name=self.action, reference=str(each)))

    def publish(self, fields: Fields) -> ActionStep | None:
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
        data = ActionDataReader(self.action, self.problems).event(fields.node("data"), struct, scalar.location)
        return PublishStep(type=scalar.text, data=data or RecordData(()), location=scalar.location)

    def notify(self, fields: Fields) -> ActionStep | None:
        to, text = self._template(fields, "notify"), self._template(fields, "text")
        return None if to is None else NotifyStep(to=to, text=text, location=to.location)

    def webhook(self, fields: Fields) -> ActionStep | None:
        url = self._template(fields, "webhook")
        if url is None:
            return None
        if not has_host(url):
            remedy = "Write `https://…`; references can stand behind the host only."
            self._unfit(url.location, f"calls `{url}`, which is no address with a host of its own", remedy)
        method = fields.choice("method", METHODS, default="POST")
        return WebhookStep(
            url=url,
            method=method,
            headers=tuple(self._headers(fields)),
            data=self._data(fields),
            location=url.location,
        )

    def command(self, fields: Fields) -> ActionStep | None:
        to = self._template(fields, "command")
        return None if to is None else CommandStep(to=to, data=self._data(fields), location=to.location)

    def log(self, fields: Fields) -> ActionStep | None:
        text = self._template(fields, "log")
        level = fields.choice("level", LEVELS, default="info")
        return None if text is None else LogStep(text=text, level=level, location=text.location)

    def delete_policy(self, fields: Fields) -> ActionStep | None:
        policy = self._template(fields, "delete policy")
        return None if policy is None else DeletePolicyStep(policy=policy, location=policy.location)

    def suspend_policy(self, fields: Fields) -> ActionStep | None:
        policy = self._template(fields, "suspend policy")
        return None if policy is None else SuspendPolicyStep(policy=policy, location=policy.location)

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

    def _data(self, fields: Fields) -> ActionData | None:
        node = fields.node("data")
        return None if node is None else ActionDataReader(self.action, self.problems).anything(node)

    def _template(self, fields: Fields, key: str) -> Template | None:
        scalar = fields.scalar(key)
        return None if scalar is None else self._parsed(scalar)

    def _parsed(self, scalar: ScalarNode) -> Template | None:
        try:
            written = scalar.written or scalar  # what the environment says stays out of what is stored
            return parse_template(written.text, written.locate)
        except SituError as error:
            self.problems.extend(error.problems)
            return None

    def _unfit(self, place: Location | None, reason: str, remedy: str) -> None:
        self.problems.add(ACTION_UNFIT(place, name=self.action, reason=reason, remedy=remedy))


_STEPS: Mapping[str, Callable[[ActionStepReader, Fields], ActionStep | None]] = MappingProxyType(
    {
        "publish": ActionStepReader.publish,
        "notify": ActionStepReader.notify,
        "webhook": ActionStepReader.webhook,
        "command": ActionStepReader.command,
        "log": ActionStepReader.log,
        "delete policy": ActionStepReader.delete_policy,
        "suspend policy": ActionStepReader.suspend_policy,
    }
)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# All actions. An action is one thing that Situ can do, or a list of such: ``raise alarm: {publish: Alarm, data: {…}}``.
# What is published is held against its event type; what templates refer to is known only where a policy uses the
# action.

ACTIONS_KEYS = ("actions", "opposed")
_NAME = re.compile(r"[^\W\d][\w-]*(?: [\w-]+){0,7}")
_RESERVED = ("policy", "concepts", "conditions", "actions", "concept", "condition", "action")
_LONGEST_NAME = 64


def load_actions(
    documents: Iterable[Document], types: Types, problems: Problems, *, faults: Faults = NO_FAULTS
) -> DeclaredActions:
    """Read and check what all these documents declare together; what is wrong is reported and left out."""
    loading = _Loading(types, problems, faults)
    for document in documents:
        if document.root is not None and is_nothing(document.root):
            problems.extend(document.problems)
            continue
        fields = loading.read.document(document, optional=ACTIONS_KEYS)
        if fields is not None:
            loading.document(fields)
    return loading.actions()


def actions_as_json(actions: DeclaredActions) -> dict[str, Any]:
    """All actions as they are written; equal ones give equal values."""
    return {
        "actions": {name: [step_as_json(step) for step in actions.named[name].steps] for name in sorted(actions.named)},
        "opposed": [list(pair) for pair in sorted(actions.opposed)],
    }


def actions_from_json(value: Any, types: Types) -> DeclaredActions:
    """The actions that :func:`actions_as_json` gave; ValueError for what it cannot have given."""
    problems = Problems()
    try:
        actions = load_actions([actions_document(value, "actions.yaml")], types, problems)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"these are no actions: {error!r}") from error
    if problems.errors:
        raise ValueError("; ".join(map(str, problems.errors)))
    return actions


def actions_document(value: Mapping[str, Any], file: str) -> Document:
    """What :func:`actions_as_json` gave, or a part of it, as a file declares it."""
    written = {section: value[section] for section in ACTIONS_KEYS if value.get(section)}
    return parse_json(json.dumps(written, ensure_ascii=False, indent=1), file)


class _Loading:
    def __init__(self, types: Types, problems: Problems, faults: Faults) -> None:
        self.types, self.problems, self.faults = types, problems, faults
        self.read = Reader(problems)
        self.named: dict[str, NamedAction] = {}
        self.faulty: set[str] = set()
        self.places: dict[str, Location] = {}
        self.pairs: list[tuple[ScalarNode, ...]] = []

    def document(self, fields: Fields) -> None:
        for key, node in _entries(fields, "actions"):
            self._action(key, node)
        opposed = fields.node("opposed")
        if opposed is not None and not is_nothing(opposed):
            self._opposed(opposed)

    def actions(self) -> DeclaredActions:
        return DeclaredActions(
            named=MappingProxyType({name: self.named[name] for name in sorted(self.named)}),
            opposed=frozenset(self._oppositions()),
            faulty=frozenset(self.faulty),
        )

    # ── actions ───────────────────────────────────────────────────────────────────────────────────

    def _action(self, key: ScalarNode, node: Node) -> None:
        name = " ".join(key.text.split())
        if not self._is_named(key, name):
            return
        first = self.places.setdefault(name, key.location)
        if first is not key.location and name in (*self.named, *self.faulty):
            self.problems.add(DECLARED_TWICE(key.location, what="The action", name=name, first=str(first)))
            return
        nodes = self.read.items(node) if isinstance(node, SequenceNode) else (node,)
        steps = [ActionStepReader(name, self.types, self.problems, self.faults).step(each) for each in nodes or ()]
        if not steps:
            remedy = f"Write one of {', '.join(f'`{verb}`' for verb in VERBS)}."
            self.problems.add(ACTION_UNFIT(key.location, name=name, reason="does nothing", remedy=remedy))
        known = tuple(step for step in steps if step is not None)
        if len(known) < len(steps) or not known:
            self.faulty.add(name)
            return
        self.named[name] = NamedAction(name=name, steps=known, location=key.location)

    def _is_named(self, key: ScalarNode, name: str) -> bool:
        reason = ""
        if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
            reason = "it is not made of words"
        elif name in VERBS:
            reason = "Situ has an action of that name"
        elif name.split()[0].lower() in _RESERVED:
            reason = f"`{name.split()[0]}` is a word of policies"
        if reason:
            remedy = "Use words of letters, digits, `_` and `-`, at most 64 characters, such as `raise alarm`."
            self.problems.add(BAD_NAME(key.location, name=key.text, what="an action", reason=reason, remedy=remedy))
        return not reason

    # ── oppositions ───────────────────────────────────────────────────────────────────────────────

    def _opposed(self, node: Node) -> None:
        for pair in self.read.items(node) or ():
            names = self.read.items(pair)
            if names is None:
                continue
            scalars = tuple(scalar for each in names if (scalar := self.read.scalar(each)) is not None)
            if len(names) != 2:
                self.problems.add(OPPOSED_UNFIT(pair.location, reason="two actions make a pair", nearest=()))
            elif len(scalars) == 2:
                self.pairs.append(scalars)

    def _oppositions(self) -> Iterator[tuple[str, str]]:
        for pair in self.pairs:
            names = [" ".join(scalar.text.split()) for scalar in pair]
            for scalar, name in zip(pair, names, strict=True):
                if name not in self.named and name not in self.faulty:
                    similar = nearest(name, self.named)
                    reason = f"there is no action `{name}`"
                    self.problems.add(OPPOSED_UNFIT(scalar.location, reason=reason, nearest=similar))
            if names[0] == names[1]:
                reason = f"`{names[0]}` is both"
                self.problems.add(OPPOSED_UNFIT(pair[1].location, reason=reason, nearest=()))
            elif all(name in self.named for name in names):
                yield min(names), max(names)


def _entries(fields: Fields, section: str) -> tuple[tuple[ScalarNode, Node], ...]:
    node = fields.node(section)
    if node is None or is_nothing(node):
        return ()
    mapping = fields.read.mapping(node)
    return () if mapping is None else mapping.entries


def step_as_json(step: ActionStep) -> dict[str, Any]:
    """One step as it is written."""
    match step:
        case PublishStep(type=type, data=data):
            return {"publish": type, "data": data_as_json(data)}
        case NotifyStep(to=to, text=text):
            return {"notify": str(to)} | ({"text": str(text)} if text is not None else {})
        case WebhookStep(url=url, method=method, headers=headers, data=sent):
            return (
                {"webhook": str(url), "method": method}
                | ({"headers": {name: str(each) for name, each in headers}} if headers else {})
                | ({"data": data_as_json(sent)} if sent is not None else {})
            )
        case CommandStep(to=to, data=sent):
            return {"command": str(to)} | ({"data": data_as_json(sent)} if sent is not None else {})
        case LogStep(text=said, level=level):
            return {"log": "" if said is None else str(said), "level": level}
        case DeletePolicyStep(policy=policy):
            return {"delete policy": str(policy)}
        case SuspendPolicyStep(policy=policy):
            return {"suspend policy": str(policy)}
