"""What becomes of events between two contexts in one step: which value comes from where, over what in root.

Decides and lays nothing out: :mod:`situ.cli.render.transform` does that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from situ.contexts.function_bodies import DATA
from situ.contexts.transform.function_calls import FindRow
from situ.contexts.transform.fusion import FusedConverter, FusedTransformation, fuse
from situ.contexts.transform.steps import Provenance
from situ.contexts.transform.transformation import Transformation
from situ.explain.conversion import ContextConversions, LookupTables, type_text
from situ.lang.catalogue import NOT_EXECUTED
from situ.lang.expr.format import print_expression
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.tree import Case, ForEach, IsNull, Literal, MakeStruct, Node, Read, walk
from situ.lang.problems import Problem, SituError
from situ.lang.types.json_codec import encode
from situ.stages.interpret import not_executed


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedPlace:
    """A value of the target: from ``sources``, by functions into root, where it is at ``root``, and one out of it."""

    target: str
    sources: tuple[str, ...]
    into: tuple[str, ...]
    root: tuple[str, ...]
    out: str
    expression: str
    when: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "sources": list(self.sources),
            "in": list(self.into),
            "root": list(self.root),
            "out": self.out,
            "expression": self.expression or None,
            "when": self.when or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedSample:
    """What became of an event: a result, or the problems that its dead letter would name."""

    result: Any = None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedExplanation:
    """What becomes of one event type of the producer."""

    way: FusedTransformation
    source: str
    through: str
    target: str
    places: tuple[FusedPlace, ...]
    looked_at: tuple[str, ...]
    """What root needs and the consumer does not ask for: it fails if one of these does."""
    sample: FusedSample | None = None

    def as_json(self) -> dict[str, Any]:
        sample = self.sample
        told = {"result": sample.result, "failures": [each.as_json() for each in sample.problems]} if sample else {}
        return {
            "from": self.way.inbound.context,
            "to": self.way.outbound.context,
            "source": self.way.source.name,
            "root": self.way.inbound.target.name,
            "target": self.way.target.name,
            "plan": self.way.plan,
            "lossy": self.way.lossy,
            "can_fail": self.way.can_fail,
            "identity": self.way.is_identity,
            "attributes": [each.as_json() for each in self.places],
            "looked_at": list(self.looked_at),
            **told,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPair:
    """The ways from one context into root, and out of it into another."""

    incoming: ContextConversions
    outgoing: ContextConversions
    tables: LookupTables

    @property
    def types(self) -> tuple[str, ...]:
        """Event types that lead all the way and that engines execute."""
        return tuple(name for name in sorted(self.incoming.by_type) if not self._hindered(name))

    def way(self, type: str) -> FusedTransformation:
        """What becomes of this event type of the producer; refused with the reason if nothing does."""
        self.incoming.get(type)
        if problems := self._hindered(type):
            raise SituError(*problems)
        into = self.incoming.get(type)
        out = self.outgoing.get(into.target.name)
        return fuse(into, out, (self._find(into), self._find(out)))

    def _find(self, way: Transformation) -> dict[str, FindRow]:
        """Here nothing runs that could remember events: there are none."""
        found = self.tables.find(way)
        return {name: found.get(name, _remembers_nothing) for name in way.externals}

    def _hindered(self, type: str) -> tuple[Problem, ...]:
        into = self.incoming.by_type[type]
        out = self.outgoing.by_type.get(into.target.name)
        if out is None:
            return (self.outgoing.missing(into.target.name),)
        return tuple(problem for way in (into, out) for problem in not_executed(way, NOT_EXECUTED))


def _remembers_nothing(*_: object) -> None:
    return None


def explain_fused(
    way: FusedTransformation, between: ContextPair, sample: tuple[Any, Any] | None = None
) -> FusedExplanation:
    """What becomes of an event type; the sample is an envelope and the data, as values."""
    producer, consumer = between.incoming.context, between.outgoing.context
    body, guarded = _unguarded(way.node)
    return FusedExplanation(
        way=way,
        source=f"{type_text(way.source.name, producer)} ({producer.name})",
        through=f"{way.inbound.target.name} ({producer.root.name})",
        target=f"{type_text(way.target.name, consumer)} ({consumer.name})",
        places=tuple(_place(each, way.inbound, body) for each in way.outbound.places),
        looked_at=tuple(print_expression(each) for each in guarded),
        sample=None if sample is None else _sampled(way, *sample),
    )


def _sampled(way: FusedTransformation, envelope: Any, data: Any) -> FusedSample:
    converter = FusedConverter(way)
    try:
        return FusedSample(result=encode(way.target, converter.data(envelope, data), way.targets))
    except FAILURES:
        return FusedSample(problems=converter.faults(envelope, data))


def _place(out: Provenance, inbound: Transformation, body: Node) -> FusedPlace:
    read = (out.source,) if out.source else tuple(dict.fromkeys(_read(out.node)))
    found = tuple(pair for path in read for pair in _came(path, inbound.places))
    part = _part(body, _tokens(out.target))
    return FusedPlace(
        target=out.target,
        sources=tuple(dict.fromkeys(source for source, _ in found if source)),
        into=tuple(dict.fromkeys(function for _, function in found)),
        root=read,
        out=out.function,
        expression="" if part is None else print_expression(part),
        when=out.when,
    )


def _read(node: Node) -> Iterator[str]:
    for part in walk(node):
        if isinstance(part, Read) and part.variable == DATA and part.path:
            yield ".".join(part.path)


def _came(path: str, places: tuple[Provenance, ...]) -> Iterator[tuple[str, str]]:
    """The places of the producer's event that a place of root is made of, and by what."""
    tokens = _tokens(path)
    for each in places:
        there = _tokens(each.target)
        shared = min(len(tokens), len(there))
        if tokens[:shared] == there[:shared]:
            rest = tokens[shared:]
            copied = each.function in ("copied", "identity")
            sources = (each.source,) if each.source else tuple(_read(each.node))
            yield from ((_joined(source, rest) if copied else source, each.function) for source in sources or ("",))


def _tokens(path: str) -> tuple[str, ...]:
    return tuple(token for token in path.replace("[]", ".[]").split(".") if token)


def _joined(path: str, rest: tuple[str, ...]) -> str:
    for token in rest:
        path = f"{path}{token}" if token == "[]" else f"{path}.{token}" if path else token
    return path


def _unguarded(node: Node) -> tuple[Node, tuple[Node, ...]]:
    match node:
        case Case(arms=((IsNull(arg=MakeStruct(fields=fields)), _),), otherwise=otherwise):
            return otherwise, tuple(part for _, part in fields)
    return node, ()


def _part(node: Node, tokens: tuple[str, ...]) -> Node | None:
    """What makes a place of the target; None where that varies."""
    if not tokens:
        return node
    match node:
        case MakeStruct(fields=fields):
            part = dict(fields).get(tokens[0])
            return None if part is None else _part(part, tokens[1:])
        case ForEach(body=body) if tokens[0] == "[]":
            return _part(body, tokens[1:])
        case Case(arms=((IsNull(), Literal(value=None)),), otherwise=otherwise):
            return _part(otherwise, tokens)
        case Read() if tokens:
            return Read(node.variable, (*node.path, *tokens), node.type) if "[]" not in tokens else None
    return None
