"""What becomes of events between two contexts in one step: which value comes from where, over what in root.

Decides and lays nothing out: :mod:`situ.cli.render.transform` does that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

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
from situ.lang.json_form import TEXT_ONLY, Explanation
from situ.lang.problems import Problem, SituError
from situ.lang.types.json_codec import encode
from situ.stages.interpret import not_executed


class FusedPlace(Explanation, frozen=True, kw_only=True):
    """A value of the target: what it is made of, over what in root."""

    target: str
    sources: tuple[str, ...]
    into: tuple[str, ...] = msgspec.field(name="in")
    """The functions by which it gets into root."""
    root: tuple[str, ...]
    """Where it is in root."""
    out: str
    """The function by which it gets out of root."""
    expression: str | None
    """The whole way; null where that varies."""
    when: str | None


class FusedExplanation(Explanation, frozen=True, kw_only=True):
    """What becomes of one event type of a context in another, in one step; with a sample, also of that."""

    producer: str = msgspec.field(name="from")
    consumer: str = msgspec.field(name="to")
    source: str
    root: str
    """The type that it is in root."""
    target: str
    plan: str
    lossy: bool
    can_fail: bool
    identity: bool
    attributes: tuple[FusedPlace, ...]
    looked_at: tuple[str, ...]
    """What root needs and the consumer does not ask for: it fails if one of these does."""
    result: Any | msgspec.UnsetType = msgspec.UNSET
    """The sample, converted; null if it cannot be."""
    failures: tuple[Problem, ...] | msgspec.UnsetType = msgspec.UNSET
    """What is wrong with the sample, as its dead letter would say."""
    ends: Annotated[tuple[str, str, str], TEXT_ONLY]
    """Source, root and target, with the contexts whose types they are."""


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
    result, failures = (msgspec.UNSET, msgspec.UNSET) if sample is None else _sampled(way, *sample)
    return FusedExplanation(
        producer=way.inbound.context,
        consumer=way.outbound.context,
        source=way.source.name,
        root=way.inbound.target.name,
        target=way.target.name,
        plan=way.plan,
        lossy=way.lossy,
        can_fail=way.can_fail,
        identity=way.is_identity,
        attributes=tuple(_place(each, way.inbound, body) for each in way.outbound.places),
        looked_at=tuple(print_expression(each) for each in guarded),
        result=result,
        failures=failures,
        ends=(
            f"{type_text(way.source.name, producer)} ({producer.name})",
            f"{way.inbound.target.name} ({producer.root.name})",
            f"{type_text(way.target.name, consumer)} ({consumer.name})",
        ),
    )


def _sampled(way: FusedTransformation, envelope: Any, data: Any) -> tuple[Any, tuple[Problem, ...]]:
    converter = FusedConverter(way)
    try:
        return encode(way.target, converter.data(envelope, data), way.targets), ()
    except FAILURES:
        return None, converter.faults(envelope, data)


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
        expression=None if part is None else print_expression(part) or None,
        when=out.when or None,
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
