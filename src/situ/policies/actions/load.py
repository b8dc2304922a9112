"""``actions.yaml`` → the actions of a project, or everything that is wrong with them.

An action is one thing that Situ can do, or a list of such: ``raise alarm: {publish: Alarm, data: {…}}``. What is
published is held against its event type; what templates refer to is known only where a policy uses the action.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from situ.catalogue import ACTION_UNFIT, BAD_NAME, DECLARED_TWICE, OPPOSED_UNFIT
from situ.documents import Document, Fields, Node, Reader, Scalar, parse_json
from situ.documents import Sequence as SequenceNode
from situ.errors import Location, Problems, nearest
from situ.expr.faults import NO_FAULTS, Faults
from situ.situation.actions.action import (
    VERBS,
    Actions,
    Command,
    DeletePolicy,
    Log,
    NamedAction,
    Notify,
    Publish,
    Step,
    SuspendPolicy,
    Webhook,
)
from situ.situation.actions.action_data import data_as_json
from situ.situation.actions.declare_steps import DeclaringStep
from situ.types.declare import is_nothing
from situ.types.table import Types

ACTIONS_KEYS = ("actions", "opposed")
_NAME = re.compile(r"[^\W\d][\w-]*(?: [\w-]+){0,7}")
_RESERVED = ("policy", "concepts", "conditions", "actions", "concept", "condition", "action")
_LONGEST_NAME = 64


def load_actions(
    documents: Iterable[Document], types: Types, problems: Problems, *, faults: Faults = NO_FAULTS
) -> Actions:
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


def actions_as_json(actions: Actions) -> dict[str, Any]:
    """All actions as they are written; equal ones give equal values."""
    return {
        "actions": {name: [step_as_json(step) for step in actions.named[name].steps] for name in sorted(actions.named)},
        "opposed": [list(pair) for pair in sorted(actions.opposed)],
    }


def actions_from_json(value: Any, types: Types) -> Actions:
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
        self.pairs: list[tuple[Scalar, ...]] = []

    def document(self, fields: Fields) -> None:
        for key, node in _entries(fields, "actions"):
            self._action(key, node)
        opposed = fields.node("opposed")
        if opposed is not None and not is_nothing(opposed):
            self._opposed(opposed)

    def actions(self) -> Actions:
        return Actions(
            named=MappingProxyType({name: self.named[name] for name in sorted(self.named)}),
            opposed=frozenset(self._oppositions()),
            faulty=frozenset(self.faulty),
        )

    # ── actions ───────────────────────────────────────────────────────────────────────────────────

    def _action(self, key: Scalar, node: Node) -> None:
        name = " ".join(key.text.split())
        if not self._is_named(key, name):
            return
        first = self.places.setdefault(name, key.location)
        if first is not key.location and name in (*self.named, *self.faulty):
            self.problems.add(DECLARED_TWICE(key.location, what="The action", name=name, first=str(first)))
            return
        nodes = self.read.items(node) if isinstance(node, SequenceNode) else (node,)
        steps = [DeclaringStep(name, self.types, self.problems, self.faults).step(each) for each in nodes or ()]
        if not steps:
            remedy = f"Write one of {', '.join(f'`{verb}`' for verb in VERBS)}."
            self.problems.add(ACTION_UNFIT(key.location, name=name, reason="does nothing", remedy=remedy))
        known = tuple(step for step in steps if step is not None)
        if len(known) < len(steps) or not known:
            self.faulty.add(name)
            return
        self.named[name] = NamedAction(name=name, steps=known, location=key.location)

    def _is_named(self, key: Scalar, name: str) -> bool:
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


def _entries(fields: Fields, section: str) -> tuple[tuple[Scalar, Node], ...]:
    node = fields.node(section)
    if node is None or is_nothing(node):
        return ()
    mapping = fields.read.mapping(node)
    return () if mapping is None else mapping.entries


def step_as_json(step: Step) -> dict[str, Any]:
    """One step as it is written."""
    match step:
        case Publish(type=type, data=data):
            return {"publish": type, "data": data_as_json(data)}
        case Notify(to=to, text=text):
            return {"notify": str(to)} | ({"text": str(text)} if text is not None else {})
        case Webhook(url=url, method=method, headers=headers, data=sent):
            return (
                {"webhook": str(url), "method": method}
                | ({"headers": {name: str(each) for name, each in headers}} if headers else {})
                | ({"data": data_as_json(sent)} if sent is not None else {})
            )
        case Command(to=to, data=sent):
            return {"command": str(to)} | ({"data": data_as_json(sent)} if sent is not None else {})
        case Log(text=said, level=level):
            return {"log": "" if said is None else str(said), "level": level}
        case DeletePolicy(policy=policy):
            return {"delete policy": str(policy)}
        case SuspendPolicy(policy=policy):
            return {"suspend policy": str(policy)}
