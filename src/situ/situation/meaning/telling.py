"""What Situ says of a situation: the data of its events, and one sentence for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from situ.event.instants import print_instant
from situ.event.row import Row
from situ.situation.meaning.lifecycle import Stage, Transition
from situ.situation.policies.policy import Absence, Is, Part, Policy
from situ.situation.policies.wording import duration_text, part_text
from situ.types.reserved import CLOSED, CONTINUED, OPENED

TYPES = {Stage.OPENED: OPENED.name, Stage.CONTINUED: CONTINUED.name, Stage.CLOSED: CLOSED.name}
_MOST_VALUES = 100
"""Values of one causing event that are told; an event can be large."""
_WORD = re.compile(r"'[^']*'|[A-Za-z_][A-Za-z0-9_]*")


def situation_data(transition: Transition, policy: Policy, causes: Iterable[Row]) -> bytes:
    """The data of the event that tells a transition, as canonical text of its type."""
    situation = transition.situation
    concepts = {alias.name: alias.concept for alias in policy.aliases}
    data = {
        "situation": situation.id,
        "policy": situation.policy,
        "start": print_instant(situation.start),
        "last": print_instant(situation.last),
        "end": None if transition.end is None else print_instant(transition.end),
        "reason": transition.reason or None,
        "detection": transition.detection or None,
        "text": sentence(policy, situation.bindings, transition),
        "bindings": [
            {"alias": alias, "concept": concepts.get(alias, ""), "id": identity}
            for alias, identity in situation.bindings
        ],
        "causes": [_cause(row) for row in causes],
    }
    return msgspec.json.encode({name: value for name, value in data.items() if value is not None})


def _cause(row: Row) -> dict[str, Any]:
    values = list(_values((), msgspec.json.decode(row.data)))[:_MOST_VALUES]
    return {
        "id": row.id,
        "source": row.source,
        "type": row.type,
        "time": print_instant(row.time),
        "pos": row.pos,
        "values": values,
    }


def _values(path: tuple[str, ...], value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _values((*path, name), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _values(path, inner)
    elif isinstance(value, bool):
        yield {"path": ".".join(path), "text": "true" if value else "false"}
    elif isinstance(value, int | float):
        yield {"path": ".".join(path), "number": float(value)}
    elif value is not None:
        yield {"path": ".".join(path), "text": value}


def sentence(policy: Policy, bindings: Iterable[tuple[str, str]], transition: Transition | None = None) -> str:
    """``A 17 is inside R r4; within 5 s no B was: A 17 is within 5 m of B and B is inside R r4``."""
    bound = dict(bindings)
    said = "; ".join(_met(part, policy, bound) for part in policy.conditions)
    if transition is None or transition.stage is Stage.OPENED:
        return said
    if transition.stage is Stage.CONTINUED:
        return f"still: {said}"
    lasted = duration_text(transition.situation.last - transition.situation.start)
    why = f" ({transition.reason})" if transition.reason else ""
    return f"over after {lasted}{why}: {said}"


def _met(part: Part, policy: Policy, bound: Mapping[str, str]) -> str:
    """How a condition was met, as far as that follows from which aliases are bound."""
    absent = part.literals if isinstance(part, Absence) else ()
    relations = [literal.relation for literal in absent if isinstance(literal, Is)]
    free = sorted({alias for each in relations for alias in each.aliases} - bound.keys())
    if free and len(relations) == len(absent):
        what = " and ".join(_named(each.text, bound) for each in relations)
        return f"within {duration_text(policy.window)} there was no {' and no '.join(free)} with: {what}"
    return _named(part_text(part, policy.window), bound)


def _named(text: str, bound: Mapping[str, str]) -> str:
    """The text with the identity behind each alias that is bound; what is quoted is left alone."""
    return _WORD.sub(lambda word: f"{word[0]} {bound[word[0]]}" if word[0] in bound else word[0], text)
